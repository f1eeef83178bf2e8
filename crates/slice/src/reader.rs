//! Records in order of time.

use crate::statics::Statics;
use trace::{Captured, PathId, Time, Trace, Whole};

/// Records in order of time.
pub struct Reader<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    next: u32,
    segment: usize,
    paths: &'a [PathId],
    captured: Whole<'a>,
    /// Captured registers that were read.
    used: usize,
    labels: usize,
}

impl<'a> Reader<'a> {
    /// From a record on.
    pub fn new(trace: &'a Trace, statics: &'a Statics, first: Time) -> Reader<'a> {
        let segment = first.0 as usize / trace::SEGMENT;
        let within = first.0 as usize % trace::SEGMENT;
        let used = trace.records.captured_before(&trace.code, first);
        let labels = trace.control.first_label(first);
        let paths = &trace.records.paths_of(segment)[within..];
        let captured = trace.records.captured(segment);
        Reader { trace, statics, next: first.0, segment, paths, captured, used, labels }
    }

    /// The next one, if it is before `end`.
    pub fn next_before(&mut self, end: Time) -> Option<(Time, PathId, Captured<'_>, usize)> {
        if self.next >= end.0 {
            return None;
        }
        if self.paths.is_empty() {
            self.segment += 1;
            let records = &self.trace.records;
            self.paths = records.paths_of(self.segment);
            self.captured = records.captured(self.segment);
            self.used = 0;
        }
        let (path, paths) = self.paths.split_first()?;
        self.paths = paths;
        let facts = self.statics.path(*path);
        let begin = self.used;
        self.used += usize::from(facts.captures);
        let captured = self.captured.all().range(begin..self.used);
        let labels = self.labels;
        self.labels += usize::from(facts.labels);
        self.next += 1;
        Some((Time(self.next - 1), *path, captured, labels))
    }
}
