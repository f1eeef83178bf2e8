//! The control-flow graph of what ran, completed with what could have run.

use crate::code::{Code, Flow};
use crate::images::Images;
use iced_x86::Instruction;
use program::debug::Program;
use program::flow::{Boundary, Code as Binary, Flow as Graph};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::RwLock;

/// The code of the images, and of instructions that ran but are in no file.
struct Seen<'a> {
    images: &'a Images,
    program: &'a Program,
    targets: HashMap<u64, Vec<u64>>,
    generated: HashMap<u64, Vec<u8>>,
    /// Functions that were asked about: whether they return is found out by their names.
    noreturn: RwLock<FxHashMap<u64, bool>>,
}

impl Binary for Seen<'_> {
    fn bytes(&self, address: u64) -> &[u8] {
        match self.images.bytes(address) {
            [] => self.generated.get(&address).map_or(&[], |bytes| bytes),
            bytes => bytes,
        }
    }

    fn never_returns(&self, call: &Instruction) -> bool {
        let target = call.near_branch_target();
        if target == 0 {
            return false;
        }
        let known = self.noreturn.read().expect("nobody panics").get(&target).copied();
        known.unwrap_or_else(|| {
            let never = self.program.is_noreturn(target);
            self.noreturn.write().expect("nobody panics").insert(target, never);
            never
        })
    }

    fn boundary(&self, address: u64) -> Boundary {
        self.program.boundary(address)
    }

    fn undivided(&self, address: u64) -> Range<u64> {
        self.program.undivided(address)
    }

    fn owner(&self, address: u64) -> Option<u64> {
        self.program.extent_start(address)
    }

    fn seen_targets(&self, jump: u64) -> &[u64] {
        self.targets.get(&jump).map_or(&[], |targets| targets)
    }
}

/// Discovers it.
pub fn discover(
    code: &Code,
    images: &Images,
    program: &Program,
    targets: &HashMap<u64, BTreeSet<u64>>,
) -> Graph {
    let mut entries: Vec<u64> = Vec::new();
    for (_, info) in code.instructions() {
        let i = &info.instruction;
        let linkage = info.flow == Flow::Indirect && i.is_ip_rel_memory_operand();
        match i.near_branch_target() {
            0 if info.flow == Flow::Call || linkage => {
                entries.extend(targets.get(&info.address()).into_iter().flatten());
            }
            0 => {}
            target if info.flow == Flow::Call => entries.push(target),
            _ => {}
        }
    }
    let mut others: Vec<u64> = code.paths().map(|(_, path)| code.start(path)).collect();
    // A path goes on behind a jump to another function, or to a part of one.
    let jumps = code.instructions().filter(|(_, info)| info.flow == Flow::Jump);
    others.extend(jumps.map(|(_, info)| info.instruction.near_branch_target()));
    others.sort_unstable();
    others.dedup();
    entries.extend(functions(program, &others));
    entries.sort_unstable();
    entries.dedup();
    others.retain(|start| *start != 0);
    let seen = Seen {
        images,
        program,
        targets: targets.iter().map(|(j, t)| (*j, t.iter().copied().collect())).collect(),
        generated: generated(code, images),
        noreturn: RwLock::default(),
    };
    Graph::discover(&seen, &entries, &others)
}

/// Which of some places in order are where functions begin.
fn functions(program: &Program, places: &[u64]) -> Vec<u64> {
    let mut undivided = 0..0;
    let begins = |place: &u64| {
        if undivided.contains(place) {
            return false;
        }
        undivided = program.undivided(program.extent_start(*place).unwrap_or(*place));
        program.boundary(*place) == Boundary::Function
    };
    places.iter().copied().filter(begins).collect()
}

/// Code that no file holds, instruction by instruction.
fn generated(code: &Code, images: &Images) -> HashMap<u64, Vec<u8>> {
    let infos = code.instructions().map(|(_, info)| info);
    infos
        .filter(|info| images.bytes(info.address()).is_empty())
        .map(|info| (info.address(), info.bytes().to_vec()))
        .collect()
}
