//! Records, latest first.

use crate::statics::Statics;
use trace::{PathId, Time, Trace};

/// Records, latest first.
pub struct Walk<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    /// Records before this are still to come.
    next: u32,
    segment: usize,
    paths: &'a [PathId],
    captured: &'a [u64],
    labels: usize,
}

impl<'a> Walk<'a> {
    /// From a record back.
    pub fn new(trace: &'a Trace, statics: &'a Statics, last: Time) -> Walk<'a> {
        let segment = last.0 as usize / trace::SEGMENT;
        let s = &trace.records.segments()[segment];
        let within = last.0 as usize % trace::SEGMENT;
        let captures = |p: &PathId| usize::from(statics.path(*p).captures);
        let used: usize = s.paths[..=within].iter().map(captures).sum();
        let labels = trace.control.first_label(&trace.records, last)
            + trace.control.labels(trace.records.path(last));
        let (paths, captured) = (&s.paths[..=within], &s.captured[..used]);
        Walk { trace, statics, next: last.0 + 1, segment, paths, captured, labels }
    }

    /// The next one, unless it is before `start`.
    #[inline]
    pub fn back_to(&mut self, start: Time) -> Option<(Time, PathId, &'a [u64], usize)> {
        if self.next <= start.0 {
            return None;
        }
        if self.paths.is_empty() {
            self.segment -= 1;
            let s = &self.trace.records.segments()[self.segment];
            (self.paths, self.captured) = (&s.paths, &s.captured);
        }
        let (path, paths) = self.paths.split_last()?;
        self.paths = paths;
        let facts = self.statics.path(*path);
        let at = self.captured.len() - usize::from(facts.captures);
        let (rest, captured) = self.captured.split_at(at);
        self.captured = rest;
        self.labels -= usize::from(facts.labels);
        self.next -= 1;
        Some((Time(self.next), *path, captured, self.labels))
    }
}
