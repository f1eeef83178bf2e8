//! Was memory used that had been given back? Then what was found there was left by the
//! allocator, or it complains of what it found.

use crate::functions::{FREES, Functions, GIVES};
use crate::ranking::Ranking;
use crate::ways::Ways;
use position::Run;
use std::collections::HashSet;

/// Lines between the failure and the value that was found.
const NEAR: u32 = 6;
/// So many calls are accused.
const MOST: usize = 3;

/// Accuses calls that gave memory back, if the failure used what they left there. Where the run
/// did not crash, that may also be memory that was given out again and not filled.
pub fn accuse(run: &Run, ways: &Ways<'_>, crashed: bool, ranking: &mut Ranking) {
    let mut functions = Functions::new(run);
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
                    None if crashed => "it gave memory back that was used afterwards",
                    None => "what it left in memory that it gave back was used",
                };
                ranking.accuse(place, own, 1.5 / seen.len() as f64, reason.to_owned());
            }
        }
    }
}
