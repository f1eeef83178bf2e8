//! What whole blocks of records do to registers and memory, so that a walk need not look at each.
//!
//! Most of a run has nothing to do with most questions, and what has comes in a few places: in most
//! blocks, a slice meets nothing. A block's digest says which registers are defined in it, and
//! which memory is written; to ask it takes a fraction of the time that its records take. To make
//! it takes longer than to pass its records by once, so that no first slice gains by it: digests
//! are made as soon as walks have looked through as many segments as there are, from then on
//! beside them and wherever one leaps.

use crate::processors::processors;
use crate::statics::Statics;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use trace::{Captured, PathId, Records, SEGMENT, Span};

/// Records of a block.
pub const BLOCK: usize = 1 << 10;

/// Bytes of a line, and of a word of it.
const LINE: u64 = 64;
const WORD: u64 = 8;

/// A run of fewer segments is looked through before a thread has begun.
const FEW: usize = 4;

/// Of all segments, as far as they were made.
#[derive(Default)]
pub struct Digests {
    segments: Vec<OnceLock<Digest>>,
    /// Those before this one are made, or somebody is making them.
    next: AtomicUsize,
    /// So many times walks looked through a segment record by record.
    looked: AtomicUsize,
    /// Who uses all processors has it; who makes digests waits for it.
    processors: Mutex<()>,
}

/// Of the blocks of a segment.
pub struct Digest {
    blocks: Vec<Block>,
    /// What they write, one block after the other.
    written: Vec<Written>,
}

/// What is known of a block.
#[derive(Clone, Copy, Default)]
pub struct Block {
    /// Registers that are defined, in short, as in [`Brief`](crate::statics::Brief).
    pub defs: u64,
    /// Registers captured.
    pub captured: u32,
    /// Labels of control.
    pub labels: u32,
    /// Its records must be looked at: it is not whole, there are too many stores, or some of which
    /// it takes more to tell where they go.
    pub is_odd: bool,
    /// Where its own begin in [`Digest::written`].
    first: u32,
}

/// Words of a line, from one to another, in which something is written: the line's address, and
/// below that the first word's number and the last one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written(u64);

const WORD_BITS: u32 = 3;
const LAST_WORD: u64 = LINE / WORD - 1;

impl Written {
    /// Some words of a line, a bit for each: one at least.
    fn new(line: u64, words: u8) -> Written {
        let (first, last) = (words.trailing_zeros(), words.ilog2());
        Written(line | u64::from(first) << WORD_BITS | u64::from(last))
    }

    fn line(self) -> u64 {
        self.0 & !(LINE - 1)
    }

    fn first(self) -> u64 {
        self.0 >> WORD_BITS & LAST_WORD
    }

    fn last(self) -> u64 {
        self.0 & LAST_WORD
    }

    /// First address and length.
    #[inline(always)]
    pub fn range(self) -> (u64, u64) {
        let words = self.last() - self.first() + 1;
        (self.line() + WORD * self.first(), WORD * words)
    }
}

/// Whose digests are made, and what must be known for it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// What ran.
    pub records: &'a Records,
    /// Which thread's records are where.
    pub spans: &'a [Span],
    /// What paths do.
    pub statics: &'a Statics,
}

impl Digests {
    /// Of so many segments; none is made yet.
    pub fn new(segments: usize) -> Digests {
        let segments = (0..segments).map(|_| OnceLock::new()).collect();
        Digests { segments, ..Digests::default() }
    }

    /// A segment's, if it was made.
    #[inline]
    pub fn get(&self, segment: usize) -> Option<&Digest> {
        self.segments[segment].get()
    }

    /// A segment's, which is made if that pays.
    pub fn get_or_make(&self, segment: usize, source: Source<'_>) -> Option<&Digest> {
        match self.pays() {
            true => Some(self.make(segment, source)),
            false => self.get(segment),
        }
    }

    /// Somebody looks through a segment record by record.
    pub fn note_look(&self) {
        self.looked.fetch_add(1, Ordering::Relaxed);
    }

    /// Who has asked for much will ask for more.
    fn pays(&self) -> bool {
        self.looked.load(Ordering::Relaxed) >= self.segments.len()
    }

    fn make(&self, segment: usize, source: Source<'_>) -> &Digest {
        self.segments[segment].get_or_init(|| Digest::of(source, segment))
    }

    /// Nothing is made beside some work that has use for all processors.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn();
        work()
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.processors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a walk, and makes digests beside it as long as it takes.
    pub fn beside<T>(&self, source: Source<'_>, walk: impl FnOnce() -> T) -> T {
        let left = self.segments.len().saturating_sub(self.next.load(Ordering::Relaxed));
        let helpers = (processors() - 1).min(left);
        if left < FEW || helpers == 0 || !self.pays() {
            return walk();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let help = || self.make_all(source, &over);
            let begin = || std::thread::Builder::new().name("digests".into());
            // Without another thread it takes longer and nothing else.
            let begun = (0..helpers).filter_map(|_| begin().spawn_scoped(scope, help).ok());
            let begun: Vec<_> = begun.collect();
            let walked = walk();
            over.store(true, Ordering::Relaxed);
            // Gone when this returns: who forks next is alone.
            begun.into_iter().for_each(|helper| helper.join().expect("nobody panics"));
            walked
        })
    }

    /// Makes one after the other, from the run's beginning on.
    fn make_all(&self, source: Source<'_>, over: &AtomicBool) {
        loop {
            drop(self.turn());
            if over.load(Ordering::Relaxed) {
                return;
            }
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n >= self.segments.len() {
                // It is not counted on and on.
                self.next.store(self.segments.len(), Ordering::Relaxed);
                return;
            }
            self.make(n, source);
        }
    }
}

impl Digest {
    fn of(source: Source<'_>, segment: usize) -> Digest {
        let Source { records, spans, statics } = source;
        let captured = records.captured(segment);
        let (blocks, lines) = (Vec::new(), Lines::default());
        let mut maker = Maker { statics, blocks, lines, captured: captured.all(), used: 0 };
        let start = segment * SEGMENT;
        for (n, paths) in records.paths_of(segment).chunks(BLOCK).enumerate() {
            maker.block(paths, start + n * BLOCK, spans);
        }
        let mut written = maker.lines.written;
        written.shrink_to_fit();
        Digest { blocks: maker.blocks, written }
    }

    /// Of a block that has all its records.
    #[inline]
    pub fn block(&self, n: usize) -> (&Block, &[Written]) {
        let block = &self.blocks[n];
        let end = self.blocks.get(n + 1).map_or(self.written.len(), |next| next.first as usize);
        (block, &self.written[block.first as usize..end])
    }

    /// All blocks.
    pub fn blocks(&self) -> impl Iterator<Item = (&Block, &[Written])> {
        (0..self.blocks.len()).map(|n| self.block(n))
    }

    /// Labels of the whole segment.
    pub fn labels(&self) -> usize {
        self.blocks.iter().map(|block| block.labels as usize).sum()
    }
}

/// A line of which some words are written in a block, a bit for each.
#[derive(Clone, Copy)]
struct Line {
    address: u64,
    words: u8,
}

/// No line begins there.
const NONE: Line = Line { address: u64::MAX, words: 0 };

/// Lines that were written lately: mostly each is written many times.
const LATELY: usize = 256;

/// A block that writes more lines is as odd as one of which they are not known: to ask for them
/// would take as long as to look at its records, and they would take as much room.
const MOST_LINES: usize = 512;

/// What is written, block after block.
struct Lines {
    written: Vec<Written>,
    /// Where lines of the present block are looked for.
    lately: [Line; LATELY],
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { written: Vec::new(), lately: [NONE; LATELY] }
    }
}

impl Lines {
    /// Something is written, of one byte at least. Can it be told?
    #[inline(always)]
    fn note(&mut self, start: u64, len: u64) -> bool {
        let last = start.wrapping_add(len - 1);
        let line = start & !(LINE - 1);
        // Words from that of an address on, and words up to it.
        let from = u8::MAX << (start / WORD % (LINE / WORD));
        let to = u8::MAX >> (LAST_WORD - last / WORD % (LINE / WORD));
        // Hardly any store reaches into another line.
        if last & !(LINE - 1) == line {
            self.note_words(line, from & to);
            return true;
        }
        if last < start || len > LINE {
            return false;
        }
        self.note_words(line, from);
        self.note_words(line + LINE, to);
        true
    }

    #[inline(always)]
    fn note_words(&mut self, address: u64, words: u8) {
        let known = &mut self.lately[(address / LINE) as usize % LATELY];
        if known.address == address {
            known.words |= words;
        } else {
            let before = std::mem::replace(known, Line { address, words });
            self.tell(before);
        }
    }

    /// No more is known of a line, if it is one.
    #[inline(never)]
    fn tell(&mut self, line: Line) {
        if line.words != 0 {
            self.written.push(Written::new(line.address, line.words));
        }
    }

    /// A block is over, whose own begin here.
    fn end_block(&mut self) {
        let lately = std::mem::replace(&mut self.lately, [NONE; LATELY]);
        lately.into_iter().for_each(|line| self.tell(line));
    }
}

/// Makes a digest.
struct Maker<'a> {
    statics: &'a Statics,
    blocks: Vec<Block>,
    lines: Lines,
    captured: Captured<'a>,
    /// Of those, so many belong to records before.
    used: usize,
}

impl Maker<'_> {
    fn block(&mut self, paths: &[PathId], start: usize, spans: &[Span]) {
        let (first, used) = (self.lines.written.len(), self.used);
        let is_odd = paths.len() < BLOCK;
        let mut block = Block { first: first as u32, is_odd, ..Block::default() };
        let mut rest = start..start + paths.len();
        let n = spans.partition_point(|span| (span.end.0 as usize) <= start);
        for span in &spans[n..] {
            if rest.is_empty() {
                break;
            }
            let end = rest.end.min(span.end.0 as usize);
            let here = rest.start - start..end - start;
            self.stretch(&mut block, &paths[here], span);
            rest.start = end;
        }
        self.lines.end_block();
        block.captured = (self.used - used) as u32;
        block.is_odd |= self.lines.written.len() - first > MOST_LINES;
        if block.is_odd {
            self.lines.written.truncate(first);
        }
        self.blocks.push(block);
    }

    /// Records of one thread.
    fn stretch(&mut self, block: &mut Block, paths: &[PathId], span: &Span) {
        let (briefs, stores) = (self.statics.briefs(), self.statics.stores());
        let (all, mut used) = (self.captured, self.used);
        let (mut defs, mut labels, mut is_odd) = (0, 0, false);
        for path in paths {
            let brief = &briefs[path.0 as usize];
            let own = all.from(used);
            for store in brief.of(stores) {
                match store.range(own, span.bases) {
                    Some((start, len)) => is_odd |= !self.lines.note(start, len),
                    None => is_odd = true,
                }
            }
            used += usize::from(brief.captures);
            defs |= brief.defs;
            labels += u32::from(brief.labels);
        }
        self.used = used;
        block.defs |= defs;
        block.labels += labels;
        block.is_odd |= is_odd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words that are told of, by number.
    fn words(lines: Lines) -> Vec<u64> {
        let ranges = lines.written.iter().map(|written| written.range());
        let mut words: Vec<u64> =
            ranges.flat_map(|(start, len)| start / WORD..(start + len) / WORD).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    fn noted(stores: &[(u64, u64)]) -> Lines {
        let mut lines = Lines::default();
        assert!(stores.iter().all(|(start, len)| lines.note(*start, *len)));
        lines.end_block();
        lines
    }

    #[test]
    fn one_store_is_told_to_the_word_wherever_it_lies() {
        for (start, len) in (0..64).flat_map(|start| (1..=LINE).map(move |len| (start, len))) {
            let expected = start / WORD..=(start + len - 1) / WORD;
            assert!(words(noted(&[(start, len)])).into_iter().eq(expected), "{start}, {len}");
        }
    }

    #[test]
    fn what_is_too_long_or_ends_before_it_begins_cannot_be_told() {
        assert!(!Lines::default().note(60, LINE + 1));
        assert!(!Lines::default().note(u64::MAX - 3, 8));
    }

    proptest! {
        /// More lines than are kept in mind: those that make room are told of.
        #[test]
        fn whatever_is_written_is_told(
            stores in proptest::collection::vec((0u64..100_000, 1u64..=64), 0..2000)
        ) {
            let told = words(noted(&stores));
            for (start, len) in stores {
                for word in start / WORD..=(start + len - 1) / WORD {
                    prop_assert!(told.binary_search(&word).is_ok(), "{start}, {len}");
                }
            }
        }
    }
}
