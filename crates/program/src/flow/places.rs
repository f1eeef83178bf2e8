//! Where has a function been met, and where do blocks of it begin?

use rustc_hash::FxHashMap;
use std::ops::Range;

/// What is known of an address: the number of what was met there, and one, or nothing; and whether
/// a block begins there.
#[derive(Clone, Copy, Default)]
struct Place(u32);

const BEGINS: u32 = 1 << 31;

/// A table for all addresses of a longer function would be larger than what it saves.
const LONGEST: u64 = 1 << 18;

/// Addresses of one function. Mostly it is known where it ends, and then each address has its place
/// in a table; all others are looked up.
pub(super) struct Places {
    near: Range<u64>,
    table: Vec<Place>,
    others: FxHashMap<u64, Place>,
    /// In the order in which they were found.
    starts: Vec<u64>,
}

impl Places {
    /// Nothing was met; most will be in this range.
    pub fn near(mut range: Range<u64>) -> Places {
        if range.end.saturating_sub(range.start) > LONGEST {
            range.end = range.start;
        }
        let table = vec![Place::default(); range.end.saturating_sub(range.start) as usize];
        Places { near: range, table, others: FxHashMap::default(), starts: Vec::new() }
    }

    fn place(&self, address: u64) -> Place {
        match self.near.contains(&address) {
            true => self.table[(address - self.near.start) as usize],
            false => self.others.get(&address).copied().unwrap_or_default(),
        }
    }

    fn place_mut(&mut self, address: u64) -> &mut Place {
        match self.near.contains(&address) {
            true => &mut self.table[(address - self.near.start) as usize],
            false => self.others.entry(address).or_default(),
        }
    }

    /// The number of what was met at an address.
    pub fn met(&self, address: u64) -> Option<usize> {
        (self.place(address).0 & !BEGINS).checked_sub(1).map(|n| n as usize)
    }

    /// Something is met at an address. Returns whether it is the first there.
    pub fn meet(&mut self, address: u64, number: usize) -> bool {
        let place = self.place_mut(address);
        let first = place.0 & !BEGINS == 0;
        if first {
            place.0 |= number as u32 + 1;
        }
        first
    }

    /// A block begins at an address. Returns whether that is new.
    pub fn begin(&mut self, address: u64) -> bool {
        let place = self.place_mut(address);
        let new = place.0 & BEGINS == 0;
        place.0 |= BEGINS;
        if new {
            self.starts.push(address);
        }
        new
    }

    /// Does a block begin at an address?
    pub fn begins(&self, address: u64) -> bool {
        self.place(address).0 & BEGINS != 0
    }

    /// Where blocks begin, in order.
    pub fn sorted_starts(&self) -> Vec<u64> {
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_table_is_like_one_elsewhere() {
        let mut places = Places::near(0x1000..0x1010);
        for address in [0x1000, 0x100f, 0x1010, 0xfff] {
            assert_eq!((places.met(address), places.begins(address)), (None, false));
            assert!(places.meet(address, 7));
            assert!(!places.meet(address, 8));
            assert!(places.begin(address));
            assert!(!places.begin(address));
            assert_eq!((places.met(address), places.begins(address)), (Some(7), true));
        }
        assert!(places.begin(0x1001), "a block may begin before anything is met there");
        assert_eq!(places.met(0x1001), None);
        assert_eq!(places.sorted_starts(), [0xfff, 0x1000, 0x1001, 0x100f, 0x1010]);
    }

    #[test]
    fn a_function_that_never_ends_has_no_table() {
        let mut places = Places::near(0..u64::MAX);
        assert!(places.begin(5));
        assert!(places.begins(5) && places.table.is_empty());
    }
}
