//! Which values say where something was looked up? The digits of a number are read from a
//! table by what is left of it: along values alone, a way would end at the table.

use crate::accesses::found_by;
use position::Run;
use slice::{Node, Start, Tree};

/// What was looked up may itself have been found in a table, so often.
pub const DEEP: usize = 2;

/// So many look-ups are gone on from, the nearest to the failure.
const MOST: usize = 256;

/// The places of look-ups that a tree of values ends at: what was read there, nothing in the
/// run had written, so only where it was read can be wrong.
pub fn indices(run: &Run, values: &Tree<'_>) -> Vec<Start> {
    let nodes = values.nodes();
    let mut has_source = vec![false; nodes.len()];
    for user in nodes.iter().filter_map(|node| node.towards) {
        has_source[user as usize] = true;
    }
    let ends = nodes.iter().zip(has_source).filter(|(_, has_source)| !has_source);
    let mut found: Vec<(u32, Start)> =
        ends.filter_map(|(node, _)| Some((node.groups, index(run, node)?))).collect();
    found.sort_by_key(|(groups, _)| *groups);
    found.truncate(MOST);
    found.into_iter().map(|(_, start)| start).collect()
}

/// The registers that the address of a load was made of.
fn index(run: &Run, node: &Node) -> Option<Start> {
    let cells = found_by(run, node.at, |access| access.reads && !access.writes);
    (!cells.is_empty()).then(|| Start::Before(node.at, cells, Vec::new()))
}
