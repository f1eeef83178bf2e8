//! Records, latest first.

use crate::leap;
use crate::statics::{Brief, Statics};
use trace::{Captured, PathId, Time, Trace, Whole};

/// So many records passed by in a row are many.
const MANY: usize = trace::SEGMENT;

/// Fewer segments than this are not worth asking for help.
const FEW: usize = 2;

/// Records, latest first.
pub struct Walk<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
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
    pub fn new(trace: &'a Trace, statics: &'a Statics, last: Time) -> Walk<'a> {
        let segment = last.0 as usize / trace::SEGMENT;
        let within = last.0 as usize % trace::SEGMENT;
        let path = trace.records.path(last);
        let left = trace.records.captured_before(&trace.code, last)
            + usize::from(statics.path(path).captures);
        let labels = trace.control.first_label(last) + trace.control.labels(path);
        let paths = &trace.records.paths_of(segment)[..=within];
        let captured = trace.records.captured(segment);
        Walk { trace, statics, next: last.0 + 1, segment, paths, captured, left, labels }
    }

    /// Records before this are still to come.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Passes records by as long as they are not of interest, at most down to `floor`. Who is asked
    /// gets all that the segment captured, and where in it the record's own begins.
    pub fn pass(
        &mut self,
        floor: Time,
        is_of_interest: impl Fn(&Brief, Captured<'_>, usize) -> bool + Sync,
    ) {
        loop {
            let passed = self.pass_here(floor, &is_of_interest);
            if !self.paths.is_empty() || self.next <= floor.0 {
                return;
            }
            // Where many records were passed by, more of them may follow.
            if passed < MANY || !self.leap(floor, &is_of_interest) {
                self.enter(self.segment - 1);
            }
        }
    }

    /// The same, at most to the beginning of the segment. How many were passed by?
    #[inline]
    fn pass_here(
        &mut self,
        floor: Time,
        is_of_interest: &impl Fn(&Brief, Captured<'_>, usize) -> bool,
    ) -> usize {
        let most = self.paths.len().min(self.next.saturating_sub(floor.0) as usize);
        let (_, paths) = self.paths.split_at(self.paths.len() - most);
        let briefs = self.statics.briefs();
        let passed = passed(briefs, paths, self.captured.all(), self.left, is_of_interest);
        self.paths = &self.paths[..self.paths.len() - passed.records];
        self.left -= passed.captured;
        self.labels -= passed.labels;
        self.next -= passed.records as u32;
        passed.records
    }

    /// The same, by whole segments before the present one. Are there any?
    fn leap(
        &mut self,
        floor: Time,
        is_of_interest: &(impl Fn(&Brief, Captured<'_>, usize) -> bool + Sync),
    ) -> bool {
        let segments = (floor.0 as usize).div_ceil(trace::SEGMENT)..self.segment;
        if segments.len() < FEW {
            return false;
        }
        let (records, briefs) = (&self.trace.records, self.statics.briefs());
        let stop = leap::latest(segments.clone(), |segment| {
            let (paths, captured) = (records.paths_of(segment), records.captured(segment));
            let (all, left) = (captured.all(), captured.all().count());
            let passed = passed(briefs, paths, all, left, is_of_interest);
            (passed.records < paths.len()).then_some(passed)
        });
        match stop {
            None => {
                self.enter(segments.start);
                (self.paths, self.left) = (&[], 0);
                self.next = (segments.start * trace::SEGMENT) as u32;
                self.labels = self.trace.control.first_label(Time(self.next));
            }
            Some((segment, passed)) => {
                let end = Time(((segment + 1) * trace::SEGMENT) as u32);
                self.enter(segment);
                self.paths = &self.paths[..self.paths.len() - passed.records];
                self.left -= passed.captured;
                self.next = end.0 - passed.records as u32;
                self.labels = self.trace.control.first_label(end) - passed.labels;
            }
        }
        true
    }

    /// All of a segment's records are still to come.
    fn enter(&mut self, segment: usize) {
        self.segment = segment;
        let records = &self.trace.records;
        self.paths = records.paths_of(segment);
        self.captured = records.captured(segment);
        self.left = self.captured.all().count();
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
        let facts = &self.statics.briefs()[path.0 as usize];
        let end = self.left;
        self.left -= usize::from(facts.captures);
        let captured = self.captured.all().range(self.left..end);
        self.labels -= usize::from(facts.labels);
        self.next -= 1;
        Some((Time(self.next), *path, captured, self.labels))
    }
}

/// Records that were passed by, and what they captured and how many labels they have.
struct Passed {
    records: usize,
    captured: usize,
    labels: usize,
}

/// Passes by the last of some records, as long as they are not of interest. Before them and by
/// them, so many registers were captured.
#[inline]
fn passed(
    briefs: &[Brief],
    paths: &[PathId],
    captured: Captured<'_>,
    mut left: usize,
    is_of_interest: &impl Fn(&Brief, Captured<'_>, usize) -> bool,
) -> Passed {
    let mut passed = Passed { records: 0, captured: left, labels: 0 };
    for path in paths.iter().rev() {
        let brief = &briefs[path.0 as usize];
        let first = left - usize::from(brief.captures);
        if is_of_interest(brief, captured, first) {
            break;
        }
        left = first;
        passed.labels += usize::from(brief.labels);
        passed.records += 1;
    }
    passed.captured -= left;
    passed
}
