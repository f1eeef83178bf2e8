//! Memory that a backward walk is still looking for: bytes, each with a mark that says why.

use crate::census::Census;
use crate::follow::Follow;
use crate::wanted_cells::ones;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Dependences between something and the criterion.
pub type Distance = u32;

/// Bytes of memory. Addresses above all that a program may have name what the
/// kernel keeps for it.
#[derive(Clone)]
pub struct WantedMemory<M> {
    /// Those that were wanted once may be here with no byte wanted: most come back soon.
    lines: HashMap<u64, Line<M>, BuildHasherDefault<Multiply>>,
    /// Lines of which some byte is wanted.
    live: usize,
    /// How many lines there are for each value of a small hash: most questions end
    /// here.
    filter: Filter,
    /// For relevant slices.
    census: Option<Box<Census<M>>>,
}

/// A bit for each hash that has any, which stays in the nearest cache, and how
/// many it has.
#[derive(Clone)]
struct Filter {
    any: Box<[u64; FILTER / 64]>,
    counts: Vec<u32>,
}

const FILTER: usize = 1 << 17;
const LINE: u64 = 64;
/// So many lines may be kept though nothing of them is wanted.
const SPARE: usize = 1 << 15;

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

#[derive(Clone)]
struct Line<M> {
    bytes: u64,
    marks: [M; LINE as usize],
}

impl<M: Copy + Default> Default for Line<M> {
    fn default() -> Self {
        Line { bytes: 0, marks: [M::default(); LINE as usize] }
    }
}

/// Some of the 64 bytes from an address on, line by line.
#[inline(always)]
fn by_line(start: u64, some: u64) -> impl Iterator<Item = (u64, u64)> {
    let (line, shift) = (start / LINE, start % LINE);
    let here = (line, some << shift);
    // Two steps, because shifting by 64 is none.
    let next = (line.wrapping_add(1), some >> 1 >> (LINE - 1 - shift));
    [here, next].into_iter().filter(|(_, mask)| *mask != 0)
}

/// Bytes of the line that `mask` is of, as bytes from an address on.
#[inline(always)]
fn by_start(start: u64, bytes: u64, mask: u64) -> u64 {
    let shift = start % LINE;
    match mask.trailing_zeros() as u64 == shift {
        true => bytes >> shift,
        false => bytes << 1 << (LINE - 1 - shift),
    }
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
        let (lines, filter) = (HashMap::default(), Filter::default());
        WantedMemory { lines, live: 0, filter, census: None }
    }
}

impl<M: Copy + Default> WantedMemory<M> {
    /// The same, ready for questions about any memory.
    pub fn counted<F: Follow<Mark = M>>() -> Self {
        WantedMemory { census: Some(Box::new(Census::new(F::rank))), ..Self::default() }
    }

    /// May some byte of a long range be wanted?
    pub fn has_nearby(&self, start: u64, len: u64) -> bool {
        self.census.as_ref().is_none_or(|census| census.has(start, len))
    }

    /// The marks of all that is wanted, joined.
    pub fn joined_all<F: Follow<Mark = M>>(&self, follow: &mut F) -> Option<M> {
        follow.join_all(self.census.as_ref()?.marks())
    }

    /// Nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.live == 0
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
            self.add_to_line(line, bits(line, start, start + len), mark, follow);
        }
    }

    /// Looks for some of the 64 bytes from an address on.
    #[inline]
    pub fn add_some<F>(&mut self, start: u64, some: u64, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        for (line, mask) in by_line(start, some) {
            self.add_to_line(line, mask, mark, follow);
        }
    }

    #[inline]
    fn add_to_line<F>(&mut self, number: u64, mask: u64, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        let line = self.lines.entry(number).or_default();
        if line.bytes == 0 {
            self.filter.add(number);
            self.live += 1;
        }
        if let Some(census) = &mut self.census {
            census.remove_line(number * LINE, line.bytes & mask, &line.marks);
        }
        if line.bytes & mask == 0 {
            ones(mask).for_each(|n| line.marks[n] = mark);
        } else {
            for n in ones(mask) {
                let at = &mut line.marks[n];
                *at = if line.bytes & 1 << n == 0 { mark } else { follow.join(*at, mark) };
            }
        }
        line.bytes |= mask;
        if let Some(census) = &mut self.census {
            census.add_line(number * LINE, mask, &line.marks);
        }
    }

    /// Which of at most 64 bytes from an address on are wanted?
    #[inline]
    pub fn wanted(&self, start: u64, len: u64) -> u64 {
        let all = u64::MAX >> (LINE - len);
        let mut found = 0;
        for (line, mask) in by_line(start, all) {
            if let Some(line) = self.lines.get(&line) {
                found |= by_start(start, line.bytes & mask, mask);
            }
        }
        found
    }

    /// The marks of some wanted bytes among the 64 from an address on, joined.
    pub fn joined<F>(&self, start: u64, some: u64, follow: &mut F) -> M
    where
        F: Follow<Mark = M>,
    {
        let mut joined = None;
        for (line, mask) in by_line(start, some) {
            let Some(line) = self.lines.get(&line) else { continue };
            for n in ones(mask & line.bytes) {
                let mark = line.marks[n];
                joined = Some(joined.map_or(mark, |j| follow.join(j, mark)));
            }
        }
        joined.unwrap_or_default()
    }

    /// Stops looking for some of the 64 bytes from an address on.
    #[inline]
    pub fn remove_some(&mut self, start: u64, some: u64) {
        for (line, mask) in by_line(start, some) {
            self.remove_from_line(line, mask);
        }
    }

    #[inline]
    fn remove_from_line(&mut self, number: u64, mask: u64) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        if line.bytes == 0 {
            return;
        }
        if let Some(census) = &mut self.census {
            census.remove_line(number * LINE, line.bytes & mask, &line.marks);
        }
        line.bytes &= !mask;
        if line.bytes == 0 {
            self.filter.remove(number);
            self.live -= 1;
            if self.lines.len() > 2 * self.live + SPARE {
                self.lines.retain(|_, line| line.bytes != 0);
            }
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
        self.remove_from_line(address / LINE, 1 << (address % LINE));
    }

    /// Everything still wanted, in order.
    pub fn all(&self) -> Vec<(u64, M)> {
        let mut all = Vec::new();
        for (number, line) in &self.lines {
            all.extend(ones(line.bytes).map(|n| (number * LINE + n as u64, line.marks[n])));
        }
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }
}

fn lines(start: u64, len: u64) -> impl Iterator<Item = u64> {
    let end = start.saturating_add(len);
    (start / LINE..end.div_ceil(LINE)).take_while(move |_| len > 0)
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
