//! Memory that a backward walk is still looking for: bytes, each with a mark that says why.

use crate::census::Census;
use crate::follow::Follow;
use crate::lines::{LINE, Line, Lines};
use crate::wanted_cells::ones;

/// Dependences between something and the criterion.
pub type Distance = u32;

/// Bytes of memory. Addresses above all that a program may have name what the
/// kernel keeps for it.
#[derive(Clone)]
pub struct WantedMemory<M> {
    /// Those that were wanted once may be here with no byte wanted: most come back soon.
    lines: Lines<M>,
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

impl Default for Filter {
    fn default() -> Self {
        let any = vec![0; FILTER / 64].into_boxed_slice();
        Filter { any: any.try_into().expect("as long"), counts: vec![0; FILTER] }
    }
}

impl Filter {
    #[inline(always)]
    fn has(&self, line: u64) -> bool {
        Lookout { any: &self.any }.has(line)
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

/// What most questions end at, for those who ask about millions of writes in a row.
#[derive(Clone, Copy)]
pub struct Lookout<'a> {
    any: &'a [u64; FILTER / 64],
}

impl Lookout<'_> {
    #[inline(always)]
    fn has(self, line: u64) -> bool {
        let slot = slot(line);
        self.any[slot / 64] >> (slot % 64) & 1 != 0
    }

    /// May some byte of a range of at most 64 bytes, or of noted ones, be wanted? Never wrong when
    /// it says no.
    #[inline(always)]
    pub fn may_concern(self, start: u64, len: u64) -> bool {
        let (first, last) = (start / LINE, start.wrapping_add(len).wrapping_sub(1) / LINE);
        // Hardly any store reaches into another line.
        self.has(first) || first != last && (self.has(last) || len > LINE)
    }
}

/// Some of the 64 bytes from an address on, as bytes of its line and of the next one.
#[inline(always)]
fn by_line(start: u64, some: u64) -> (u64, u64) {
    let shift = start % LINE;
    // Two steps, because shifting by 64 is none.
    (some << shift, some >> 1 >> (LINE - 1 - shift))
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
        WantedMemory { lines: Lines::default(), filter: Filter::default(), census: None }
    }
}

impl<M: Copy + Default + PartialEq> WantedMemory<M> {
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
        self.lookout().may_concern(start, len)
    }

    /// For who asks about many writes while nothing changes.
    pub fn lookout(&self) -> Lookout<'_> {
        Lookout { any: &self.filter.any }
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
            let wanted = self.lines.find(number).map_or(0, |id| self.lines.get(id).bytes);
            wanted & bits(number, start, start.wrapping_add(len)) != 0
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
        let (here, next) = by_line(start, some);
        if here != 0 {
            self.add_to_line(start / LINE, here, mark, follow);
        }
        if next != 0 {
            self.add_to_line((start / LINE).wrapping_add(1), next, mark, follow);
        }
    }

    #[inline]
    fn add_to_line<F>(&mut self, number: u64, some: u64, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        self.uncount(number, some);
        if self.lines.add(number, some, mark, follow) {
            self.filter.add(number);
        }
        self.count(number, some);
    }

    /// Bytes of a line that are wanted are in the census, if there is one.
    #[inline(always)]
    fn count(&mut self, number: u64, some: u64) {
        let Some(census) = &mut self.census else { return };
        let Some(id) = self.lines.find(number) else { return };
        let line = self.lines.get(id);
        census.add_line(number * LINE, line.bytes & some, |n| self.lines.mark(line, n));
    }

    /// They are not.
    #[inline(always)]
    fn uncount(&mut self, number: u64, some: u64) {
        let Some(census) = &mut self.census else { return };
        let Some(id) = self.lines.find(number) else { return };
        let line = self.lines.get(id);
        census.remove_line(number * LINE, line.bytes & some, |n| self.lines.mark(line, n));
    }

    /// Which of at most 64 bytes from an address on are wanted?
    #[inline]
    pub fn wanted(&self, start: u64, len: u64) -> u64 {
        let (number, shift) = (start / LINE, start % LINE);
        let bytes = |number| self.lines.find(number).map_or(0, |id| self.lines.get(id).bytes);
        let mut found = bytes(number) >> shift;
        if shift + len > LINE {
            found |= bytes(number.wrapping_add(1)) << 1 << (LINE - 1 - shift);
        }
        found & u64::MAX >> (LINE - len)
    }

    /// The marks of some wanted bytes among the 64 from an address on, joined.
    #[inline]
    pub fn joined<F>(&self, start: u64, some: u64, follow: &mut F) -> M
    where
        F: Follow<Mark = M>,
    {
        let (number, (here, next)) = (start / LINE, by_line(start, some));
        let mut joined = None;
        if let Some(id) = self.lines.find(number) {
            joined = self.lines.joined(id, here, joined, follow);
        }
        if next != 0
            && let Some(id) = self.lines.find(number.wrapping_add(1))
        {
            joined = self.lines.joined(id, next, joined, follow);
        }
        joined.unwrap_or_default()
    }

    /// Stops looking for some of the 64 bytes from an address on.
    #[inline]
    pub fn remove_some(&mut self, start: u64, some: u64) {
        let (here, next) = by_line(start, some);
        self.remove_from_line(start / LINE, here);
        if next != 0 {
            self.remove_from_line((start / LINE).wrapping_add(1), next);
        }
    }

    #[inline]
    fn remove_from_line(&mut self, number: u64, some: u64) {
        let Some(id) = self.lines.find(number) else { return };
        self.uncount(number, some);
        if self.lines.remove(id, some) {
            self.filter.remove(number);
            self.lines.tidy();
        }
    }

    /// The wanted bytes of a range, each with its mark.
    pub fn hits(&self, start: u64, len: u64) -> Vec<(u64, M)> {
        let mut out = Vec::new();
        if !self.may_have(start, len) {
            return out;
        }
        let mut look = |line: &Line<M>| {
            let mask = line.bytes & bits(line.number, start, start + len);
            let hit = |n: usize| (line.number * LINE + n as u64, self.lines.mark(line, n));
            out.extend(ones(mask).map(hit));
        };
        if len / LINE > self.lines.len() as u64 {
            // More lines in the range than are wanted at all.
            for line in self.lines.iter() {
                if line.number * LINE < start + len && start < (line.number + 1) * LINE {
                    look(line);
                }
            }
        } else {
            for number in lines(start, len) {
                if let Some(id) = self.lines.find(number) {
                    look(self.lines.get(id));
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
        for line in self.lines.iter() {
            let wanted = |n: usize| (line.number * LINE + n as u64, self.lines.mark(line, n));
            all.extend(ones(line.bytes).map(wanted));
        }
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }
}

fn lines(start: u64, len: u64) -> impl Iterator<Item = u64> {
    let end = start.saturating_add(len);
    (start / LINE..end.div_ceil(LINE)).take_while(move |_| len > 0)
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

    /// Marks kept one by one, with nothing clever.
    #[test]
    fn marks_of_bytes_are_kept_apart() {
        let follow = &mut nearest();
        let mut wanted = WantedMemory::default();
        let mut plain = std::collections::BTreeMap::new();
        let mut seed = 1u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..20_000 {
            let (start, some) = (4096 + random(180), random(1 << 31) >> random(31) | 1);
            let bytes = ones(some).map(|n| start + n as u64);
            if random(3) == 0 {
                wanted.remove_some(start, some);
                bytes.for_each(|at| _ = plain.remove(&at));
            } else {
                let mark = random(5) as Distance;
                wanted.add_some(start, some, mark, follow);
                bytes.for_each(|at| {
                    let known = plain.entry(at).or_insert(mark);
                    *known = mark.min(*known);
                });
            }
            assert_eq!(wanted.all(), plain.clone().into_iter().collect::<Vec<_>>());
            let (from, len) = (4096 + random(180), 1 + random(64));
            let hit = plain.range(from..from + len).map(|(_, mark)| *mark).min();
            let set = plain.range(from..from + len).fold(0, |set, (at, _)| set | 1 << (at - from));
            assert_eq!(wanted.wanted(from, len), set);
            assert_eq!(wanted.joined(from, set, follow), hit.unwrap_or_default());
            assert_eq!(wanted.is_empty(), plain.is_empty());
        }
    }

    #[test]
    fn a_huge_range_is_searched_by_what_is_wanted() {
        let mut wanted = WantedMemory::default();
        wanted.add(1 << 40, 1, 1, &mut nearest());
        assert_eq!(wanted.hits(0, 1 << 47), [(1 << 40, 1)]);
    }
}
