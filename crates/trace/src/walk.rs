//! Going forward through a trace, without looking anything up anew.

use crate::captured::Whole;
use crate::code::Path;
use crate::control::Instance;
use crate::records::{SEGMENT, Time};
use crate::{Range, Trace};
use std::ops;

/// Answers questions that come in the order of time: all of them together take one pass
/// over the records.
pub struct Walk<'a> {
    trace: &'a Trace,
    /// The present record.
    time: u32,
    /// Instructions executed before it.
    number: u64,
    /// What its segment captured, and how much of that before the record.
    captured: Option<Whole<'a>>,
    captured_before: usize,
    span: usize,
    /// Which paths write memory.
    writes: Vec<bool>,
}

impl<'a> Walk<'a> {
    /// Before everything.
    pub fn new(trace: &'a Trace) -> Walk<'a> {
        let writes = |path: &Path| {
            let ops = trace.code.ops(path).iter().chain(trace.code.faulting(path));
            ops.flat_map(|op| trace.code.operands(op)).any(|operand| operand.access().writes)
        };
        Walk {
            trace,
            time: 0,
            number: 0,
            captured: (!trace.records.is_empty()).then(|| trace.records.captured(0)),
            captured_before: 0,
            span: 0,
            writes: trace.code.paths().map(|(_, path)| writes(path)).collect(),
        }
    }

    /// How many instructions were executed before an instance.
    pub fn number(&mut self, at: Instance) -> u64 {
        let segment = at.time.0 as usize / SEGMENT;
        if segment > self.segment() {
            self.enter(segment);
        }
        while self.time < at.time.0 {
            self.next_record();
        }
        self.number + u64::from(at.index)
    }

    /// The instance that so many instructions were executed before.
    pub fn at_number(&mut self, number: u64) -> Option<Instance> {
        let segments = self.trace.records.segments();
        if segments.get(self.segment() + 1).is_some_and(|next| next.instructions <= number) {
            self.enter(segments.partition_point(|s| s.instructions <= number) - 1);
        }
        while let Some(path) = self.path() {
            if number < self.number + u64::from(path.len) {
                let index = (number - self.number) as u16;
                return Some(Instance { time: Time(self.time), index });
            }
            self.next_record();
        }
        None
    }

    /// The number that the first exception from here on, and not behind `to`, was raised
    /// at: the instruction that raised it was not executed and has none of its own.
    pub fn next_fault(&mut self, to: u64) -> Option<u64> {
        while let Some(path) = self.path() {
            let end = self.number + u64::from(path.len);
            if end > to {
                return None;
            }
            self.next_record();
            if path.faults {
                return Some(end);
            }
        }
        None
    }

    /// Adds the memory that the instructions between two numbers wrote by themselves, not
    /// by the kernel's help.
    pub fn stored(&mut self, numbers: ops::Range<u64>, memory: &mut Vec<Range>) {
        if self.at_number(numbers.start).is_none() {
            return;
        }
        while let Some(path) = self.path() {
            let end = self.number + u64::from(path.len);
            if self.writes[self.trace.records.path(Time(self.time)).0 as usize] {
                let first = numbers.start.saturating_sub(self.number);
                let last = numbers.end.min(end) - self.number;
                self.stored_here(path, first as usize..last as usize, memory);
                if path.faults && end <= numbers.end {
                    // What repeats may have written some of it before.
                    let at = Instance { time: Time(self.time), index: path.len };
                    memory.extend(self.trace.stored(at));
                }
            }
            if end > numbers.end {
                return;
            }
            self.next_record();
        }
    }

    fn stored_here(&mut self, path: &Path, ops: ops::Range<usize>, memory: &mut Vec<Range>) {
        let bases = self.bases();
        let Some(whole) = &self.captured else { return };
        let end = self.captured_before + usize::from(path.captures);
        let captured = whole.all().range(self.captured_before..end);
        for index in ops {
            let op = &self.trace.code.ops(path)[index];
            let written = self.trace.code.operands(op).iter().filter(|o| o.access().writes);
            for operand in written {
                match operand.range(captured, bases) {
                    Some(range) => memory.push(range),
                    None => {
                        let at = Instance { time: Time(self.time), index: index as u16 };
                        memory.extend(self.trace.stored(at));
                    }
                }
            }
        }
    }

    fn bases(&mut self) -> crate::Bases {
        let spans = &self.trace.spans.spans;
        while self.span + 1 < spans.len() && spans[self.span].end.0 <= self.time {
            self.span += 1;
        }
        spans.get(self.span).map(|span| span.bases).unwrap_or_default()
    }

    fn segment(&self) -> usize {
        self.time as usize / SEGMENT
    }

    /// The present record's path; `None` behind the last.
    fn path(&self) -> Option<&'a Path> {
        let records = &self.trace.records;
        (self.time < records.len()).then(|| self.trace.code.path(records.path(Time(self.time))))
    }

    fn next_record(&mut self) {
        let Some(path) = self.path() else { return };
        self.number += u64::from(path.len);
        self.captured_before += usize::from(path.captures);
        self.time += 1;
        if (self.time as usize).is_multiple_of(SEGMENT) && self.time < self.trace.records.len() {
            self.enter(self.segment());
        }
    }

    fn enter(&mut self, segment: usize) {
        self.time = (segment * SEGMENT) as u32;
        self.number = self.trace.records.segments()[segment].instructions;
        self.captured = Some(self.trace.records.captured(segment));
        self.captured_before = 0;
    }
}
