//! The control-flow graph of what ran, completed with what could have run.

use crate::code::{Code, Flow};
use crate::images::Images;
use program::flow::{Code as Binary, Flow as Graph};
use std::collections::{BTreeSet, HashMap};

/// The code of the images, and of instructions that ran but are in no file.
struct Seen<'a> {
    images: &'a Images,
    targets: HashMap<u64, Vec<u64>>,
    generated: HashMap<u64, Vec<u8>>,
}

impl Binary for Seen<'_> {
    fn bytes(&self, address: u64) -> &[u8] {
        match self.images.bytes(address) {
            [] => self.generated.get(&address).map_or(&[], |bytes| bytes),
            bytes => bytes,
        }
    }

    fn seen_targets(&self, jump: u64) -> &[u64] {
        self.targets.get(&jump).map_or(&[], |targets| targets)
    }
}

/// Discovers it.
pub fn discover(code: &Code, images: &Images, targets: &HashMap<u64, BTreeSet<u64>>) -> Graph {
    let mut entries: BTreeSet<u64> = BTreeSet::new();
    for (_, info) in code.instructions().filter(|(_, info)| info.flow == Flow::Call) {
        match info.instruction.near_branch_target() {
            0 => entries.extend(targets.get(&info.address()).into_iter().flatten()),
            target => _ = entries.insert(target),
        }
    }
    let starts: BTreeSet<u64> = code.paths().map(|(_, path)| code.start(path)).collect();
    let entries: Vec<u64> = entries.into_iter().collect();
    let others: Vec<u64> = starts.into_iter().collect();
    let seen = Seen {
        images,
        targets: targets.iter().map(|(j, t)| (*j, t.iter().copied().collect())).collect(),
        generated: generated(code, images),
    };
    Graph::discover(&seen, &entries, &others)
}

/// Code that no file holds, instruction by instruction.
fn generated(code: &Code, images: &Images) -> HashMap<u64, Vec<u8>> {
    let infos = code.instructions().map(|(_, info)| info);
    infos
        .filter(|info| images.bytes(info.address()).is_empty())
        .map(|info| (info.address(), info.bytes().to_vec()))
        .collect()
}
