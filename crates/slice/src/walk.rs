//! Records, latest first.

use crate::Ground;
use crate::digests::{BLOCK, Block, Digest, Written};
use crate::leap;
use crate::statics::Brief;
use trace::{Captured, PathId, SEGMENT, Time, Whole};

/// So many records passed by in a row are many.
const MANY: usize = SEGMENT;

/// Fewer segments than this are not worth asking for help.
const FEW: usize = 2;

/// What records are looked at for by those who pass them by. It may say yes in vain.
pub trait Interest: Sync {
    /// Is something in a record? What its segment captured, and where in it the record's own
    /// begins.
    fn is_in_record(&self, brief: &Brief, captured: Captured<'_>, own: usize) -> bool;
    /// Is something in one of the records of a block?
    fn is_in_block(&self, block: &Block, written: &[Written]) -> bool;

    /// Is something in one of the blocks of a segment?
    fn is_in_segment(&self, digest: &Digest) -> bool {
        digest.blocks().any(|(block, written)| self.is_in_block(block, written))
    }
}

/// Records, latest first.
pub struct Walk<'a> {
    ground: Ground<'a>,
    /// Records before this are still to come.
    next: u32,
    segment: usize,
    paths: &'a [PathId],
    captured: Whole<'a>,
    /// Captured registers still to come.
    left: usize,
    labels: usize,
}

impl<'a> Walk<'a> {
    /// From a record back.
    pub fn new(ground: Ground<'a>, last: Time) -> Walk<'a> {
        let Ground { trace, statics, .. } = ground;
        let segment = last.0 as usize / SEGMENT;
        let within = last.0 as usize % SEGMENT;
        let path = trace.records.path(last);
        let left = trace.records.captured_before(&trace.code, last)
            + usize::from(statics.path(path).captures);
        let labels = trace.control.first_label(last) + trace.control.labels(path);
        let paths = &trace.records.paths_of(segment)[..=within];
        let captured = trace.records.captured(segment);
        Walk { ground, next: last.0 + 1, segment, paths, captured, left, labels }
    }

    /// Records before this are still to come.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Passes records by as long as they are not of interest, at most down to `floor`.
    pub fn pass(&mut self, floor: Time, interest: &impl Interest) {
        loop {
            let passed = self.pass_here(floor, interest);
            if !self.paths.is_empty() || self.next <= floor.0 {
                return;
            }
            if self.pass_segment(floor, interest) {
                continue;
            }
            // Where many records were passed by, more of them may follow.
            if passed < MANY || !self.leap(floor, interest) {
                self.enter(self.segment - 1);
            }
        }
    }

    /// The same, at most to the beginning of the segment. How many were passed by?
    #[inline]
    fn pass_here(&mut self, floor: Time, interest: &impl Interest) -> usize {
        let most = self.paths.len().min(self.next.saturating_sub(floor.0) as usize);
        let here = Segment {
            briefs: self.ground.statics.briefs(),
            captured: self.captured.all(),
            digest: self.ground.digests.get(self.segment),
        };
        let passed = here.pass(self.paths, most, self.left, interest);
        self.paths = &self.paths[..self.paths.len() - passed.records];
        self.left -= passed.captured;
        self.labels -= passed.labels;
        self.next -= passed.records as u32;
        passed.records
    }

    /// Passes by all of the segment before, if it is known that nothing of interest is there.
    fn pass_segment(&mut self, floor: Time, interest: &impl Interest) -> bool {
        let before = self.segment - 1;
        let start = (before * SEGMENT) as u32;
        let known = self.ground.digests.get(before).filter(|_| start >= floor.0);
        let Some(digest) = known.filter(|digest| !interest.is_in_segment(digest)) else {
            return false;
        };
        self.labels -= digest.labels();
        self.leave(before);
        true
    }

    /// Passes by segments before the present one. Are there any?
    fn leap(&mut self, floor: Time, interest: &impl Interest) -> bool {
        let segments = (floor.0 as usize).div_ceil(SEGMENT)..self.segment;
        if segments.len() < FEW {
            return false;
        }
        let Ground { trace, statics, digests } = self.ground;
        let (records, source) = (&trace.records, self.ground.source());
        let look = |segment| {
            let digest = digests.get_or_make(segment, source);
            if digest.is_some_and(|digest| !interest.is_in_segment(digest)) {
                return None;
            }
            digests.note_look();
            let (paths, captured) = (records.paths_of(segment), records.captured(segment));
            let all = captured.all();
            let here = Segment { briefs: statics.briefs(), captured: all, digest };
            let passed = here.pass(paths, paths.len(), all.count(), interest);
            (passed.records < paths.len()).then_some(passed)
        };
        let stop = digests.alone(|| leap::latest(segments.clone(), look));
        match stop {
            None => {
                self.leave(segments.start);
                self.labels = trace.control.first_label(Time(self.next));
            }
            Some((segment, passed)) => {
                let end = Time(((segment + 1) * SEGMENT) as u32);
                self.enter(segment);
                self.paths = &self.paths[..self.paths.len() - passed.records];
                self.left -= passed.captured;
                self.next = end.0 - passed.records as u32;
                self.labels = trace.control.first_label(end) - passed.labels;
            }
        }
        true
    }

    /// All of a segment's records are still to come.
    fn enter(&mut self, segment: usize) {
        self.segment = segment;
        let Ground { trace, digests, .. } = self.ground;
        if digests.get(segment).is_none() {
            digests.note_look();
        }
        let records = &trace.records;
        self.paths = records.paths_of(segment);
        self.captured = records.captured(segment);
        self.left = self.captured.all().count();
    }

    /// None of a segment's records are still to come.
    fn leave(&mut self, segment: usize) {
        self.segment = segment;
        (self.paths, self.left) = (&[], 0);
        self.next = (segment * SEGMENT) as u32;
    }

    /// The next one, unless it is before `start`.
    #[inline]
    pub fn back_to(&mut self, start: Time) -> Option<(Time, PathId, Captured<'_>, usize)> {
        if self.next <= start.0 {
            return None;
        }
        if self.paths.is_empty() {
            self.enter(self.segment - 1);
        }
        let (path, paths) = self.paths.split_last()?;
        self.paths = paths;
        let facts = &self.ground.statics.briefs()[path.0 as usize];
        let end = self.left;
        self.left -= usize::from(facts.captures);
        let captured = self.captured.all().range(self.left..end);
        self.labels -= usize::from(facts.labels);
        self.next -= 1;
        Some((Time(self.next), *path, captured, self.labels))
    }
}

/// Records that were passed by, and what they captured and how many labels they have.
#[derive(Default)]
struct Passed {
    records: usize,
    captured: usize,
    labels: usize,
}

/// Where records are passed by.
#[derive(Clone, Copy)]
struct Segment<'a> {
    briefs: &'a [Brief],
    captured: Captured<'a>,
    digest: Option<&'a Digest>,
}

impl Segment<'_> {
    /// Passes by the last of its first records, so many at most, as long as they are not of
    /// interest. Before them and by them, so many registers were captured.
    #[inline]
    fn pass(self, paths: &[PathId], most: usize, left: usize, interest: &impl Interest) -> Passed {
        let Some(digest) = self.digest else {
            return self.one_by_one(&paths[paths.len() - most..], left, interest);
        };
        let mut passed = Passed::default();
        while passed.records < most {
            let end = paths.len() - passed.records;
            let before = (end - 1) / BLOCK;
            let (start, floor) = (before * BLOCK, paths.len() - most);
            let (block, written) = digest.block(before);
            let is_whole = end - start == BLOCK && start >= floor;
            if is_whole && !interest.is_in_block(block, written) {
                passed.records += BLOCK;
                passed.captured += block.captured as usize;
                passed.labels += block.labels as usize;
                continue;
            }
            let some = &paths[start.max(floor)..end];
            let here = self.one_by_one(some, left - passed.captured, interest);
            passed.records += here.records;
            passed.captured += here.captured;
            passed.labels += here.labels;
            if here.records < some.len() {
                break;
            }
        }
        passed
    }

    /// The same, of all that are given.
    #[inline]
    fn one_by_one(self, paths: &[PathId], mut left: usize, interest: &impl Interest) -> Passed {
        let mut passed = Passed { captured: left, ..Passed::default() };
        for path in paths.iter().rev() {
            let brief = &self.briefs[path.0 as usize];
            let first = left - usize::from(brief.captures);
            if interest.is_in_record(brief, self.captured, first) {
                break;
            }
            left = first;
            passed.labels += usize::from(brief.labels);
            passed.records += 1;
        }
        passed.captured -= left;
        passed
    }
}
