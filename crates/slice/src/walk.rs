//! Records, latest first.

use crate::statics::{Brief, Statics};
use trace::{Captured, PathId, Time, Trace};

/// Records, latest first.
pub struct Walk<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    /// Records before this are still to come.
    next: u32,
    segment: usize,
    paths: &'a [PathId],
    captured: Captured<'a>,
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
        let labels = trace.control.first_label(&trace.records, last) + trace.control.labels(path);
        let paths = &trace.records.paths_of(segment)[..=within];
        let captured = trace.records.captured(segment);
        Walk { trace, statics, next: last.0 + 1, segment, paths, captured, left, labels }
    }

    /// Records before this are still to come.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Passes records by as long as they are not of interest, at most down to `floor` and
    /// to the beginning of a segment.
    #[inline]
    pub fn pass(&mut self, floor: Time, mut is_of_interest: impl FnMut(&Brief, &[u64]) -> bool) {
        let briefs = self.statics.briefs();
        let captured: &[u64] = &self.captured;
        let most = self.paths.len().min(self.next.saturating_sub(floor.0) as usize);
        let (mut left, mut labels, mut passed) = (self.left, self.labels, 0);
        for path in self.paths.iter().rev().take(most) {
            let brief = &briefs[path.0 as usize];
            let first = left - usize::from(brief.captures);
            if is_of_interest(brief, &captured[first..left]) {
                break;
            }
            left = first;
            labels -= usize::from(brief.labels);
            passed += 1;
        }
        self.paths = &self.paths[..self.paths.len() - passed];
        (self.left, self.labels) = (left, labels);
        self.next -= passed as u32;
    }

    /// The next one, unless it is before `start`.
    #[inline]
    pub fn back_to(&mut self, start: Time) -> Option<(Time, PathId, &[u64], usize)> {
        if self.next <= start.0 {
            return None;
        }
        if self.paths.is_empty() {
            self.segment -= 1;
            let records = &self.trace.records;
            self.paths = records.paths_of(self.segment);
            self.captured = records.captured(self.segment);
            self.left = self.captured.len();
        }
        let (path, paths) = self.paths.split_last()?;
        self.paths = paths;
        let facts = &self.statics.briefs()[path.0 as usize];
        let end = self.left;
        self.left -= usize::from(facts.captures);
        let captured = &self.captured[self.left..end];
        self.labels -= usize::from(facts.labels);
        self.next -= 1;
        Some((Time(self.next), *path, captured, self.labels))
    }
}
