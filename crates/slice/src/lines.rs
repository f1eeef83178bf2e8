//! Lines of memory that are wanted, with marks: a table that is asked for every instruction of
//! a slice.
//!
//! Marks are nearly always the same for all bytes of a word. So a line has one for each word
//! and fits into a line of the cache; where bytes of a word differ, theirs are kept apart.

use crate::follow::Follow;
use crate::wanted_cells::ones;

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Words of a line.
const WORDS: usize = 8;
/// A slot of the table that has no line.
const FREE: u32 = u32::MAX;
/// So many lines may be kept though nothing of them is wanted.
const SPARE: usize = 1 << 15;

/// 64 bytes.
#[derive(Clone)]
pub struct Line<M> {
    /// Its address, divided by its length.
    pub number: u64,
    /// Which are wanted.
    pub bytes: u64,
    marks: [M; WORDS],
    /// Words whose bytes have marks of their own: a bit for each.
    uneven: u8,
    /// Where those are, or [`FREE`].
    apart: u32,
}

/// Lines of which some byte is or was wanted.
#[derive(Clone)]
pub struct Lines<M> {
    /// Where each line is among all: at the slot that follows from its number, or behind it.
    slots: Vec<u32>,
    all: Vec<Line<M>>,
    /// Marks byte by byte, of lines that have or had uneven words.
    apart: Vec<[M; LINE as usize]>,
    /// Lines of which some byte is wanted.
    live: usize,
}

/// Where a line is, until one is added or dropped.
#[derive(Clone, Copy)]
pub struct LineId(u32);

impl<M> Default for Lines<M> {
    fn default() -> Self {
        Lines { slots: vec![FREE; 1024], all: Vec::new(), apart: Vec::new(), live: 0 }
    }
}

/// A word of a line: its number, and which of its bytes a set has.
fn words(mut some: u64) -> impl Iterator<Item = (usize, u8)> {
    std::iter::from_fn(move || {
        let word = some.trailing_zeros() as usize / 8;
        (some != 0).then(|| {
            let part = (some >> (8 * word)) as u8;
            some &= !(0xff << (8 * word));
            (word, part)
        })
    })
}

impl<M: Copy + Default + PartialEq> Lines<M> {
    /// Is nothing wanted?
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many there are, wanted or not.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Line<M>> {
        self.all.iter()
    }

    /// The slot where the search for a line begins.
    #[inline(always)]
    fn slot(&self, number: u64) -> usize {
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot that a line has or would get.
    #[inline(always)]
    fn search(&self, number: u64) -> (usize, u32) {
        let mut slot = self.slot(number);
        loop {
            let n = self.slots[slot];
            if n == FREE || self.all[n as usize].number == number {
                return (slot, n);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// A line that is or was wanted.
    #[inline(always)]
    pub fn find(&self, number: u64) -> Option<LineId> {
        let (_, n) = self.search(number);
        (n != FREE).then_some(LineId(n))
    }

    #[inline(always)]
    pub fn get(&self, id: LineId) -> &Line<M> {
        &self.all[id.0 as usize]
    }

    #[inline(always)]
    fn find_or_add(&mut self, number: u64) -> LineId {
        let (slot, n) = self.search(number);
        if n != FREE { LineId(n) } else { self.insert(slot, number) }
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, slot: usize, number: u64) -> LineId {
        let n = self.all.len() as u32;
        let marks = [M::default(); WORDS];
        self.all.push(Line { number, bytes: 0, marks, uneven: 0, apart: FREE });
        self.slots[slot] = n;
        // Half of the slots are free, so that no search is long.
        if 2 * self.all.len() > self.slots.len() {
            self.spread(2 * self.slots.len());
        }
        LineId(n)
    }

    /// Finds a slot for each line anew.
    fn spread(&mut self, slots: usize) {
        self.slots = vec![FREE; slots];
        for n in 0..self.all.len() {
            let (slot, _) = self.search(self.all[n].number);
            self.slots[slot] = n as u32;
        }
    }

    /// Looks for some bytes of a line from now on. Says whether none was wanted before.
    #[inline]
    pub fn add<F>(&mut self, number: u64, some: u64, mark: M, follow: &mut F) -> bool
    where
        F: Follow<Mark = M>,
    {
        let id = self.find_or_add(number);
        let line = &mut self.all[id.0 as usize];
        let is_new = line.bytes == 0;
        self.live += usize::from(is_new);
        for (word, part) in words(some) {
            let wanted = (line.bytes >> (8 * word)) as u8;
            let is_uneven = line.uneven >> word & 1 != 0;
            if wanted == 0 {
                line.marks[word] = mark;
                line.uneven &= !(1 << word);
                continue;
            }
            let old = line.marks[word];
            let joined = follow.join(old, mark);
            // All that is wanted then has the joined mark, or had it before.
            let all = joined == mark && wanted & !part == 0;
            let known = old == mark || joined == old && part & !wanted == 0;
            if !is_uneven && (all || known || part == wanted) {
                line.marks[word] = joined;
            } else {
                if line.apart == FREE {
                    line.apart = self.apart.len() as u32;
                    self.apart.push([M::default(); LINE as usize]);
                }
                let marks = &mut self.apart[line.apart as usize][8 * word..8 * word + 8];
                if !is_uneven {
                    marks.fill(old);
                    line.uneven |= 1 << word;
                }
                for n in ones(part.into()) {
                    let is_wanted = wanted >> n & 1 != 0;
                    marks[n] = if is_wanted { follow.join(marks[n], mark) } else { mark };
                }
            }
        }
        line.bytes |= some;
        is_new
    }

    /// Stops looking for some bytes of a line. Says whether they were the last.
    #[inline]
    pub fn remove(&mut self, id: LineId, some: u64) -> bool {
        let line = &mut self.all[id.0 as usize];
        let was_live = line.bytes != 0;
        line.bytes &= !some;
        let is_last = was_live && line.bytes == 0;
        self.live -= usize::from(is_last);
        is_last
    }

    /// Drops lines of which nothing is wanted, if there are many.
    #[inline]
    pub fn tidy(&mut self) {
        if self.all.len() > 2 * self.live + SPARE {
            self.all.retain(|line| line.bytes != 0);
            self.gather_apart();
            self.spread(self.slots.len());
        }
    }

    /// Keeps marks byte by byte only of lines that have uneven words.
    fn gather_apart(&mut self) {
        let mut kept = Vec::new();
        for line in &mut self.all {
            if line.uneven == 0 {
                line.apart = FREE;
            } else {
                kept.push(self.apart[line.apart as usize]);
                line.apart = kept.len() as u32 - 1;
            }
        }
        self.apart = kept;
    }

    /// The mark of a wanted byte.
    #[inline]
    pub fn mark(&self, line: &Line<M>, byte: usize) -> M {
        match line.uneven >> (byte / 8) & 1 {
            0 => line.marks[byte / 8],
            _ => self.apart[line.apart as usize][byte],
        }
    }

    /// The marks of some wanted bytes of a line, joined with another.
    #[inline]
    pub fn joined<F>(&self, id: LineId, some: u64, with: Option<M>, follow: &mut F) -> Option<M>
    where
        F: Follow<Mark = M>,
    {
        let line = self.get(id);
        let mut joined = with;
        let mut join = |mark| joined = Some(joined.map_or(mark, |j| follow.join(j, mark)));
        for (word, part) in words(some & line.bytes) {
            if line.uneven >> word & 1 == 0 {
                join(line.marks[word]);
            } else {
                ones(part.into()).for_each(|n| join(self.mark(line, 8 * word + n)));
            }
        }
        joined
    }
}
