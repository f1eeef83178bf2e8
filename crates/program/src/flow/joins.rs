//! Where do the ways out of a branch meet? At its immediate post-dominator: a dominator in the
//! reversed graph, from the function's end.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy. Libraries have it for graphs of any kind of
//! node. petgraph's keeps maps by node, and to find the joins of a large run's functions with it was
//! measurably slower: blocks have numbers already.

use super::function::Block;

/// Of every block that branches: its last instruction, and where its ways out meet; `None` if only
/// at the function's end.
pub(super) fn joins(starts: &[u64], blocks: &[Block]) -> Vec<(u64, Option<u64>)> {
    if !blocks.iter().any(Block::branches) {
        return Vec::new();
    }
    let found = PostDominators::of(blocks);
    let branching = blocks.iter().enumerate().filter(|(_, block)| block.branches());
    branching.map(|(n, block)| (block.last, found.of_block(n).map(|join| starts[join]))).collect()
}

/// The blocks from which control comes to each, one after the other.
struct Before {
    first: Vec<u32>,
    blocks: Vec<u32>,
}

impl Before {
    fn of(blocks: &[Block]) -> Before {
        let edges = || {
            let numbered = (0..).zip(blocks);
            numbered.flat_map(|(from, block)| block.successors.iter().map(move |to| (from, *to)))
        };
        let mut first = vec![0; blocks.len() + 1];
        edges().for_each(|(_, to)| first[to as usize] += 1);
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        let mut before = vec![0; sum as usize];
        for (from, to) in edges() {
            let place = &mut first[to as usize];
            *place -= 1;
            before[*place as usize] = from;
        }
        Before { first, blocks: before }
    }

    fn block(&self, n: u32) -> &[u32] {
        let n = n as usize;
        &self.blocks[self.first[n] as usize..self.first[n + 1] as usize]
    }
}

/// Blocks in an order in which most come before all that they go on to, the way back from the
/// function's end: that comes last.
struct Order {
    before: Before,
    blocks: Vec<u32>,
    reached: Vec<bool>,
    /// Blocks behind which the function may end.
    ends: Vec<bool>,
}

impl Order {
    fn of(blocks: &[Block]) -> Order {
        let ends = blocks.iter().map(|block| block.leaves || block.successors.is_empty());
        let mut order = Order {
            before: Before::of(blocks),
            blocks: Vec::with_capacity(blocks.len()),
            reached: vec![false; blocks.len()],
            ends: ends.collect(),
        };
        for n in (0..blocks.len()).filter(|n| order.ends[*n]).collect::<Vec<_>>() {
            order.back_from(n);
        }
        // A loop without an end is taken to end at its last block.
        for n in (0..blocks.len()).rev() {
            if !order.reached[n] {
                order.ends[n] = true;
                order.back_from(n);
            }
        }
        order
    }

    /// All that leads to a block and was not reached, depth first.
    fn back_from(&mut self, block: usize) {
        if std::mem::replace(&mut self.reached[block], true) {
            return;
        }
        let mut way = vec![(block as u32, 0)];
        while let Some((block, done)) = way.last_mut() {
            match self.before.block(*block).get(*done) {
                Some(next) => {
                    *done += 1;
                    if !std::mem::replace(&mut self.reached[*next as usize], true) {
                        way.push((*next, 0));
                    }
                }
                None => {
                    self.blocks.push(*block);
                    way.pop();
                }
            }
        }
    }
}

/// The nearest block that every way from a block to the function's end passes, for each.
struct PostDominators {
    order: Order,
    /// By block, its place in the order.
    places: Vec<u32>,
    /// By place in the order, the place of the one that was asked for.
    nearest: Vec<u32>,
}

/// Nothing is known yet.
const UNKNOWN: u32 = u32::MAX;

impl PostDominators {
    fn of(blocks: &[Block]) -> PostDominators {
        let order = Order::of(blocks);
        let mut places = vec![0; blocks.len()];
        for (place, block) in (0..).zip(&order.blocks) {
            places[*block as usize] = place;
        }
        let end = blocks.len() as u32;
        let mut nearest = vec![UNKNOWN; blocks.len() + 1];
        nearest[end as usize] = end;
        let mut found = PostDominators { order, places, nearest };
        while found.round(blocks) {}
        found
    }

    /// Goes through all blocks once. Did anything change?
    fn round(&mut self, blocks: &[Block]) -> bool {
        let mut changed = false;
        for place in (0..blocks.len()).rev() {
            let block = self.order.blocks[place] as usize;
            let successors = blocks[block].successors.iter().map(|to| self.places[*to as usize]);
            let end = self.order.ends[block].then_some(blocks.len() as u32);
            let known = successors.chain(end).filter(|to| self.nearest[*to as usize] != UNKNOWN);
            let nearest = known.reduce(|one, other| self.meet(one, other)).unwrap_or(UNKNOWN);
            changed |= std::mem::replace(&mut self.nearest[place], nearest) != nearest;
        }
        changed
    }

    /// Where the ways from two places to the end meet, as far as is known.
    fn meet(&self, mut one: u32, mut other: u32) -> u32 {
        while one != other {
            while one < other {
                one = self.nearest[one as usize];
            }
            while other < one {
                other = self.nearest[other as usize];
            }
        }
        one
    }

    /// `None` if that is the end.
    fn of_block(&self, n: usize) -> Option<usize> {
        let nearest = self.nearest[self.places[n] as usize] as usize;
        self.order.blocks.get(nearest).map(|block| *block as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(ways: &[Vec<u32>]) -> Vec<Block> {
        let block = |(n, to): (u64, &Vec<u32>)| {
            let mut successors: Vec<u32> = to.clone();
            successors.sort_unstable();
            successors.dedup();
            Block { last: n, leaves: successors.is_empty(), successors: successors.into() }
        };
        (0..).zip(ways).map(block).collect()
    }

    /// The same, from the definition: without which block is there no way to the end?
    fn by_definition(blocks: &[Block], ends: &[bool], from: usize) -> Option<usize> {
        let comes_to_end = |from: usize, without: usize| {
            let (mut seen, mut work) = (vec![false; blocks.len()], vec![from]);
            while let Some(n) = work.pop() {
                if n == without || std::mem::replace(&mut seen[n], true) {
                    continue;
                }
                if ends[n] {
                    return true;
                }
                work.extend(blocks[n].successors.iter().map(|to| *to as usize));
            }
            false
        };
        let all: Vec<usize> =
            (0..blocks.len()).filter(|n| *n != from && !comes_to_end(from, *n)).collect();
        // The nearest is the one from which there is no way to the end without all the others.
        all.iter().copied().find(|n| all.iter().all(|m| m == n || !comes_to_end(*n, *m)))
    }

    proptest! {
        #[test]
        fn a_join_is_the_nearest_block_without_which_there_is_no_way_to_the_end(
            ways in (1usize..12).prop_flat_map(|n| {
                let to = proptest::collection::vec(0..n as u32, 0..4);
                proptest::collection::vec(to, n..=n)
            })
        ) {
            let blocks = blocks(&ways);
            let found = PostDominators::of(&blocks);
            for n in 0..blocks.len() {
                prop_assert_eq!(found.of_block(n), by_definition(&blocks, &found.order.ends, n));
            }
        }
    }
}
