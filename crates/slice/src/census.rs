//! How much is wanted where, and with which marks: kept only for questions about any memory.

use crate::wanted_cells::ones;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// Of all bytes of memory that are wanted.
#[derive(Clone)]
pub struct Census<M> {
    /// The order of marks.
    rank: fn(M) -> u64,
    /// By rank: how many bytes, and one of the marks.
    marks: BTreeMap<u64, (u64, M)>,
    /// Bytes in each page.
    pages: BTreeMap<u64, u64>,
}

impl<M: Copy> Census<M> {
    /// Of nothing.
    pub fn new(rank: fn(M) -> u64) -> Census<M> {
        Census { rank, marks: BTreeMap::new(), pages: BTreeMap::new() }
    }

    /// Some of 64 bytes are wanted that were not.
    pub fn add_line(&mut self, start: u64, some: u64, mark: impl Fn(usize) -> M) {
        for n in ones(some) {
            self.marks.entry((self.rank)(mark(n))).or_insert((0, mark(n))).0 += 1;
        }
        if some != 0 {
            *self.pages.entry(start / PAGE).or_default() += u64::from(some.count_ones());
        }
    }

    /// Some of 64 bytes are no longer wanted.
    pub fn remove_line(&mut self, start: u64, some: u64, mark: impl Fn(usize) -> M) {
        for n in ones(some) {
            let rank = (self.rank)(mark(n));
            if let Some((bytes, _)) = self.marks.get_mut(&rank) {
                *bytes -= 1;
                if *bytes == 0 {
                    self.marks.remove(&rank);
                }
            }
        }
        if let Some(bytes) = self.pages.get_mut(&(start / PAGE)) {
            *bytes -= u64::from(some.count_ones());
            if *bytes == 0 {
                self.pages.remove(&(start / PAGE));
            }
        }
    }

    /// One mark of each rank, the lowest first.
    pub fn marks(&self) -> impl Iterator<Item = M> + '_ {
        self.marks.values().map(|(_, mark)| *mark)
    }

    /// Is something wanted in the pages of this range?
    pub fn has(&self, start: u64, len: u64) -> bool {
        let last = start.saturating_add(len.max(1) - 1) / PAGE;
        self.pages.range(start / PAGE..=last).next().is_some()
    }
}
