//! Where do the ways out of a branch meet? At its immediate post-dominator: a dominator in the
//! reversed graph, from the function's end.

use super::function::Block;
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

/// Of every block that branches: its last instruction, and where its ways out meet; `None` if only
/// at the function's end.
pub(super) fn joins(starts: &[u64], blocks: &[Block]) -> Vec<(u64, Option<u64>)> {
    if !blocks.iter().any(Block::branches) {
        return Vec::new();
    }
    let found = simple_fast(&reversed(blocks), end());
    let join = |block: usize| {
        let join = found.immediate_dominator(node(block))?;
        starts.get(join.index().checked_sub(1)?).copied()
    };
    let branching = blocks.iter().enumerate().filter(|(_, block)| block.branches());
    branching.map(|(n, block)| (block.last, join(n))).collect()
}

/// The end of the function; blocks come behind it.
fn end() -> NodeIndex {
    NodeIndex::new(0)
}

fn node(block: usize) -> NodeIndex {
    NodeIndex::new(block + 1)
}

fn reversed(blocks: &[Block]) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(blocks.len() + 1, 2 * blocks.len());
    for _ in 0..=blocks.len() {
        graph.add_node(());
    }
    for (n, block) in blocks.iter().enumerate() {
        for to in &block.successors {
            graph.add_edge(node(*to as usize), node(n), ());
        }
        if block.leaves || block.successors.is_empty() {
            graph.add_edge(end(), node(n), ());
        }
    }
    reach_all(&mut graph);
    graph
}

/// A loop without an end is taken to end at its last block.
fn reach_all(graph: &mut DiGraph<(), ()>) {
    let mut reached = vec![false; graph.node_count()];
    let mut walk = Dfs::new(&*graph, end());
    while let Some(node) = walk.next(&*graph) {
        reached[node.index()] = true;
    }
    for n in (1..reached.len()).rev() {
        if reached[n] {
            continue;
        }
        graph.add_edge(end(), NodeIndex::new(n), ());
        walk.move_to(NodeIndex::new(n));
        while let Some(node) = walk.next(&*graph) {
            reached[node.index()] = true;
        }
    }
}
