//! Was memory used that had been given back? Then what was found there was left by the
//! allocator, or it complains of what it found.

use crate::ranking::Ranking;
use crate::ways::Ways;
use position::Run;
use std::collections::{HashMap, HashSet};
use trace::{FrameId, Instance};

/// Functions that give memory back, and those that give it out.
const FREES: [&str; 3] = ["free", "cfree", "realloc"];
const GIVES: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"];
/// Lines between the failure and the value that was found.
const NEAR: u32 = 6;
/// So many calls an allocator makes inside of itself.
const DEEP: usize = 4;
/// So many calls are accused.
const MOST: usize = 3;

/// Accuses calls that gave memory back, if the failure used what they left there.
pub fn accuse(run: &Run, ways: &Ways<'_>, ranking: &mut Ranking) {
    let mut functions = Functions { run, names: HashMap::new() };
    let mut seen = HashSet::new();
    for tree in [&ways.values, &ways.data] {
        let nodes = tree.nodes();
        for node in nodes.iter().filter(|n| n.groups <= NEAR) {
            let Some(user) = node.towards.map(|n| nodes[n as usize].at) else { continue };
            let Some(free) = functions.around(node.at, &FREES) else { continue };
            let again = functions.around(user, &FREES);
            // Memory is found again to be given out: that is what it is for.
            if again == Some(free) || again.is_none() && functions.around(user, &GIVES).is_some() {
                continue;
            }
            let own = run.call_of(free).and_then(|call| run.own_instance(call));
            let place = own.and_then(|own| run.places.at(run.trace.instruction(own)));
            let Some((own, place)) = own.zip(place) else { continue };
            if seen.len() < MOST && seen.insert(place) {
                let reason = match again {
                    Some(_) => "it gave memory back that was given back again later",
                    None => "it gave memory back that was used afterwards",
                };
                ranking.accuse(place, own, 1.5 / seen.len() as f64, reason.to_owned());
            }
        }
    }
}

/// The names of functions, looked up once.
struct Functions<'a> {
    run: &'a Run,
    names: HashMap<u64, Option<String>>,
}

impl Functions<'_> {
    /// The activation of one of these functions that an instance of a library belongs to.
    fn around(&mut self, at: Instance, names: &[&str]) -> Option<FrameId> {
        let run = self.run;
        let (mut at, mut frame) = (at, run.trace.control.frame_of(at.time));
        for _ in 0..DEEP {
            if run.is_own(run.trace.instruction(at)) {
                return None;
            }
            let address = run.address(at);
            let name = self.names.entry(address);
            let name = name.or_insert_with(|| run.program.function(address).map(|f| f.name));
            if name.as_ref().is_some_and(|name| names.contains(&name.as_str())) {
                return Some(frame);
            }
            at = run.call_of(frame)?;
            frame = run.trace.control.frame(frame).caller;
        }
        None
    }
}
