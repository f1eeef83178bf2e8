//! What should have been brought up to date? A value that was used, but last written
//! before its neighbours in the same object were.

use crate::accesses::{Reader, accesses, is_object};
use crate::ranking::Ranking;
use crate::ways::Ways;
use position::{PlaceId, Run};
use slice::Tree;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;
use trace::{Instance, Range};

/// So many lines from the failure values are looked at.
const NEAR: u32 = 3;
/// So many values at most.
const MOST: usize = 96;
/// So many bytes away a neighbour is.
const BYTES: u64 = 96;
/// A value with more neighbours than this is one of many, such as an element of a table.
const LINES: usize = 6;

/// A value that was used.
struct Used {
    range: Range,
    at: Instance,
    groups: u32,
    /// Lines that wrote a neighbour since the value was written, and when last.
    since: BTreeMap<PlaceId, Instance>,
    written: bool,
}

/// Accuses lines that changed the neighbours of a value that the failure used, after that
/// value was written for the last time. False if there was no time for it.
pub fn accuse(run: &Run, ways: &Ways<'_>, ranking: &mut Ranking, late: Instant) -> bool {
    let mut used = used(run, ways);
    let Some(last) = used.iter().map(|u| u.at).max() else { return true };
    let low = used.iter().map(|u| u.range.start.saturating_sub(BYTES)).min().unwrap_or(0);
    let high = used.iter().map(|u| u.range.start + u.range.len + BYTES).max().unwrap_or(0);
    let done = accesses(run, last, late, &mut |access| {
        let Range { start, len } = access.range;
        if !access.writes || start >= high || start + len <= low {
            return;
        }
        let own = run.is_own(access.instruction);
        let is_object = own && is_object(run, access.instruction);
        for value in used.iter_mut().filter(|v| access.at < v.at) {
            let Range { start: from, len: size } = value.range;
            if start < from + size && from < start + len {
                value.since.clear();
                value.written = true;
            } else if is_object
                && start < from + size + BYTES
                && from < start + len + BYTES
                && let Some(place) = run.places.at(access.instruction)
            {
                value.since.insert(place, access.at);
            }
        }
    });
    if !done {
        // What was written last is not known.
        return false;
    }
    let mut accused: HashMap<PlaceId, (f64, Instance)> = HashMap::new();
    for value in used.iter().filter(|v| v.written && v.since.len() <= LINES) {
        let weight = 0.9 / (1.0 + f64::from(value.groups)) / (value.since.len() as f64).max(1.0);
        for (place, at) in &value.since {
            let known = accused.entry(*place).or_insert((0.0, *at));
            known.0 = known.0.max(weight);
        }
    }
    for (place, (weight, at)) in accused {
        let reason = "it changed the neighbours of a value that was used, not the value";
        ranking.accuse(place, at, weight, reason.to_owned());
    }
    true
}

/// Values of objects that the failure used, the nearest first.
fn used(run: &Run, ways: &Ways<'_>) -> Vec<Used> {
    let mut nearest: HashMap<(u64, u64, Instance), u32> = HashMap::new();
    let mut reader = Reader::new(run);
    let trees: [&Tree<'_>; 3] = [&ways.values, &ways.deciding, &ways.data];
    for node in trees.iter().flat_map(|t| t.nodes()).filter(|node| node.groups <= NEAR) {
        let id = run.trace.instruction(node.at);
        if !run.is_own(id) || !is_object(run, id) {
            continue;
        }
        for range in reader.loaded(node.at) {
            let known = nearest.entry((range.start, range.len, node.at)).or_insert(node.groups);
            *known = node.groups.min(*known);
        }
        if nearest.len() > 4 * MOST {
            break;
        }
    }
    let mut used: Vec<Used> = nearest
        .into_iter()
        .map(|((start, len, at), groups)| {
            let range = Range { start, len };
            Used { range, at, groups, since: BTreeMap::new(), written: false }
        })
        .collect();
    used.sort_by_key(|u| (u.groups, std::cmp::Reverse(u.at), u.range.start));
    used.truncate(MOST);
    used
}
