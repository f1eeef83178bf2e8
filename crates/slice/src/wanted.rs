//! What a backward walk is still looking for: register cells and bytes of memory,
//! each with a mark that says why.

use crate::follow::Follow;
use crate::statics::{VECTORS, in_short, in_short_but_vectors};
use program::effects::{Cell, Cells};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Dependences between something and the criterion.
pub type Distance = u32;

/// Registers of one thread.
pub struct WantedCells<M> {
    /// Which.
    pub cells: Cells,
    /// The same in short.
    pub short: u64,
    marks: Box<[M; Cell::COUNT]>,
}

impl<M: Copy + Default> Default for WantedCells<M> {
    fn default() -> Self {
        WantedCells { cells: Cells::NONE, short: 0, marks: Box::new([M::default(); Cell::COUNT]) }
    }
}

impl<M: Copy + Default> WantedCells<M> {
    /// Looks for cells from now on.
    #[inline]
    pub fn add<F: Follow<Mark = M>>(&mut self, cells: Cells, mark: M, follow: &mut F) {
        let short = in_short(&cells);
        for &k in words_of(short) {
            let known = self.cells.words()[k];
            for n in ones(cells.words()[k]) {
                let at = &mut self.marks[64 * k + n];
                *at = if known >> n & 1 != 0 { follow.join(*at, mark) } else { mark };
            }
        }
        self.cells = self.cells.union(cells);
        self.short |= short;
    }

    /// The marks of some wanted cells, joined.
    #[inline]
    pub fn joined<F: Follow<Mark = M>>(&self, cells: Cells, follow: &mut F) -> Option<M> {
        let mut joined = None;
        for &k in words_of(self.short) {
            for n in ones(cells.words()[k]) {
                let mark = self.marks[64 * k + n];
                joined = Some(joined.map_or(mark, |j| follow.join(j, mark)));
            }
        }
        joined
    }

    /// Mark of one wanted cell.
    pub fn mark(&self, cell: Cell) -> M {
        self.marks[usize::from(cell.number())]
    }

    /// Stops looking for cells.
    pub fn remove(&mut self, cells: Cells) {
        self.cells = self.cells.minus(cells);
        self.short = match self.short & VECTORS {
            0 => in_short_but_vectors(&self.cells),
            _ => in_short(&self.cells),
        };
    }

    /// Takes over what another set looks for.
    pub fn merge<F: Follow<Mark = M>>(&mut self, other: &WantedCells<M>, follow: &mut F) {
        for cell in other.cells.iter() {
            self.add(cell.into(), other.mark(cell), follow);
        }
    }
}

/// The words of sets of cells that may have some of these: mostly no vector registers.
#[inline(always)]
fn words_of(short: u64) -> &'static [usize] {
    if short & VECTORS == 0 { &[0, 1, 10] } else { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
}

/// Bytes of memory. Addresses above all that a program may have name what the
/// kernel keeps for it.
pub struct WantedMemory<M> {
    lines: HashMap<u64, Line<M>, BuildHasherDefault<Multiply>>,
    /// How many lines there are for each value of a small hash: most questions end
    /// here.
    filter: Filter,
}

/// A bit for each hash that has any, which stays in the nearest cache, and how
/// many it has.
struct Filter {
    any: Box<[u64; FILTER / 64]>,
    counts: Vec<u32>,
}

const FILTER: usize = 1 << 17;
const LINE: u64 = 64;

impl Default for Filter {
    fn default() -> Self {
        let any = vec![0; FILTER / 64].into_boxed_slice();
        Filter { any: any.try_into().expect("as long"), counts: vec![0; FILTER] }
    }
}

impl Filter {
    #[inline(always)]
    fn has(&self, line: u64) -> bool {
        let slot = slot(line);
        self.any[slot / 64] >> (slot % 64) & 1 != 0
    }

    fn add(&mut self, line: u64) {
        let slot = slot(line);
        self.counts[slot] += 1;
        self.any[slot / 64] |= 1 << (slot % 64);
    }

    fn remove(&mut self, line: u64) {
        let slot = slot(line);
        self.counts[slot] -= 1;
        if self.counts[slot] == 0 {
            self.any[slot / 64] &= !(1 << (slot % 64));
        }
    }
}

struct Line<M> {
    bytes: u64,
    marks: [M; LINE as usize],
}

fn slot(line: u64) -> usize {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER.ilog2())) as usize
}

/// Bits of a line that a range covers.
fn bits(line: u64, start: u64, end: u64) -> u64 {
    let base = line * LINE;
    let from = start.max(base) - base;
    let until = end.min(base.saturating_add(LINE)) - base;
    let all = if until - from == 64 { u64::MAX } else { (1 << (until - from)) - 1 };
    all << from
}

impl<M> Default for WantedMemory<M> {
    fn default() -> Self {
        WantedMemory { lines: HashMap::default(), filter: Filter::default() }
    }
}

impl<M: Copy + Default> WantedMemory<M> {
    /// Nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// May some byte of the range be wanted? Never wrong when it says no.
    #[inline]
    pub fn may_have(&self, start: u64, len: u64) -> bool {
        if len == 0 {
            return false;
        }
        let (first, last) = (start / LINE, start.wrapping_add(len.wrapping_sub(1)) / LINE);
        self.filter.has(first) || (last != first && (last - first > 1 || self.filter.has(last)))
    }

    /// The same for a range of at most 64 bytes, or of noted ones.
    #[inline(always)]
    pub fn may_concern(&self, start: u64, len: u64) -> bool {
        let last = start.wrapping_add(len).wrapping_sub(1);
        self.filter.has(start / LINE) || self.filter.has(last / LINE) || len > LINE
    }

    /// Somebody else wants to be asked about writes to 8 bytes.
    pub fn note(&mut self, start: u64) {
        lines(start, 8).for_each(|line| self.filter.add(line));
    }

    /// He does no longer.
    pub fn forget(&mut self, start: u64) {
        lines(start, 8).for_each(|line| self.filter.remove(line));
    }

    /// Is some byte of the range wanted?
    #[inline]
    pub fn has(&self, start: u64, len: u64) -> bool {
        self.may_have(start, len) && self.really_has(start, len)
    }

    fn really_has(&self, start: u64, len: u64) -> bool {
        if len > LINE {
            return !self.hits(start, len).is_empty();
        }
        lines(start, len).any(|number| {
            let line = self.lines.get(&number);
            line.is_some_and(|l| l.bytes & bits(number, start, start.wrapping_add(len)) != 0)
        })
    }

    /// Looks for bytes from now on.
    pub fn add<F>(&mut self, start: u64, len: u64, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        for line in lines(start, len) {
            let mask = bits(line, start, start + len);
            let entry = self.lines.entry(line).or_insert_with(|| {
                self.filter.add(line);
                Line { bytes: 0, marks: [M::default(); LINE as usize] }
            });
            for n in ones(mask) {
                let at = &mut entry.marks[n];
                *at = if entry.bytes & 1 << n == 0 { mark } else { follow.join(*at, mark) };
            }
            entry.bytes |= mask;
        }
    }

    /// The wanted bytes of a range, each with its mark.
    pub fn hits(&self, start: u64, len: u64) -> Vec<(u64, M)> {
        let mut out = Vec::new();
        if !self.may_have(start, len) {
            return out;
        }
        let mut look = |number: u64, line: &Line<M>| {
            let mask = line.bytes & bits(number, start, start + len);
            out.extend(ones(mask).map(|n| (number * LINE + n as u64, line.marks[n])));
        };
        if len / LINE > self.lines.len() as u64 {
            // More lines in the range than are wanted at all.
            for (number, line) in &self.lines {
                if number * LINE < start + len && start < (number + 1) * LINE {
                    look(*number, line);
                }
            }
        } else {
            for number in lines(start, len) {
                if let Some(line) = self.lines.get(&number) {
                    look(number, line);
                }
            }
        }
        out
    }

    /// Stops looking for one byte.
    pub fn remove(&mut self, address: u64) {
        let number = address / LINE;
        if let Some(line) = self.lines.get_mut(&number) {
            line.bytes &= !(1 << (address % LINE));
            if line.bytes == 0 {
                self.lines.remove(&number);
                self.filter.remove(number);
            }
        }
    }

    /// Everything still wanted, in order.
    pub fn all(&self) -> Vec<(u64, M)> {
        let of_line = |(number, line): (&u64, &Line<M>)| {
            let number = *number;
            let marks = line.marks;
            ones(line.bytes).map(move |n| (number * LINE + n as u64, marks[n]))
        };
        let mut all: Vec<_> = self.lines.iter().flat_map(of_line).collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }
}

fn lines(start: u64, len: u64) -> impl Iterator<Item = u64> {
    let end = start.saturating_add(len);
    (start / LINE..end.div_ceil(LINE)).take_while(move |_| len > 0)
}

#[inline(always)]
fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let n = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            n
        })
    })
}

/// Addresses need no better hash.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::{Transitive, Visitor};
    use trace::{Instance, InstructionId};

    struct Nobody;

    impl Visitor for Nobody {
        fn instance(&mut self, _: Instance, _: InstructionId, _: Distance) {}
    }

    fn nearest() -> Transitive<Nobody> {
        Transitive { visitor: Nobody, depth: Distance::MAX }
    }

    #[test]
    fn bytes_are_wanted_one_by_one() {
        let mut wanted = WantedMemory::default();
        wanted.add(0x103e, 4, 7, &mut nearest());
        wanted.add(0x103f, 1, 3, &mut nearest());
        assert!(wanted.may_have(0x103d, 2));
        let hits = wanted.hits(0x1030, 0x20);
        assert_eq!(hits, [(0x103e, 7), (0x103f, 3), (0x1040, 7), (0x1041, 7)]);
        for (address, _) in hits {
            wanted.remove(address);
        }
        assert!(wanted.is_empty() && !wanted.may_have(0x103e, 4));
    }

    #[test]
    fn a_huge_range_is_searched_by_what_is_wanted() {
        let mut wanted = WantedMemory::default();
        wanted.add(1 << 40, 1, 1, &mut nearest());
        assert_eq!(wanted.hits(0, 1 << 47), [(1 << 40, 1)]);
    }
}
