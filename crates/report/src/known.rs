//! Which instances does a slice have? A bit for each that a run has, because there may be as many.

use slice::{Distance, Visitor};
use std::cell::Cell;
use trace::{Instance, InstructionId, Time, Trace};

/// Farther than this from the record before, the trace knows sooner.
const FAR: u32 = 512;

/// Instances of a run, from a record on.
#[derive(Clone)]
pub struct Known<'a> {
    trace: &'a Trace,
    first: Time,
    /// Those of a record lie side by side, with room for one that raised an exception.
    bits: Vec<u64>,
    /// A record, and its first bit: most that are asked for are near the one before.
    near: Cell<(Time, u64)>,
}

impl<'a> Known<'a> {
    /// None of the instances from a record on.
    pub fn none(trace: &'a Trace, first: Time) -> Known<'a> {
        let first = first.min(trace.last_instance().time);
        let records = u64::from(trace.records.len() - first.0);
        let before = trace.records.instructions_before(&trace.code, first);
        let bits = trace.records.instructions() - before + records;
        // Nothing but zeros: what is not used is never touched.
        let bits = vec![0; bits.div_ceil(64) as usize];
        Known { trace, first, bits, near: Cell::new((first, 0)) }
    }

    /// Is it known?
    pub fn has(&self, at: Instance) -> bool {
        self.place(at).is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }

    fn place(&self, at: Instance) -> Option<(usize, u64)> {
        if at.time < self.first {
            return None;
        }
        let bit = self.first_bit(at.time) + u64::from(at.index);
        Some(((bit / 64) as usize, 1 << (bit % 64)))
    }

    /// The first bit of a record.
    fn first_bit(&self, time: Time) -> u64 {
        let (near, bit) = self.near.get();
        let bit = match time.0.abs_diff(near.0) > FAR {
            true => self.counted(time),
            false if time < near => bit - self.bits_of(time, near),
            false => bit + self.bits_of(near, time),
        };
        self.near.set((time, bit));
        bit
    }

    /// The same, from what the trace knows.
    fn counted(&self, time: Time) -> u64 {
        let before = |time| self.trace.records.instructions_before(&self.trace.code, time);
        before(time) - before(self.first) + u64::from(time.0 - self.first.0)
    }

    /// Bits of the records between two.
    fn bits_of(&self, from: Time, to: Time) -> u64 {
        let len = |time| self.trace.code.path(self.trace.records.path(Time(time))).len;
        (from.0..to.0).map(|time| u64::from(len(time)) + 1).sum()
    }
}

impl Visitor for Known<'_> {
    fn instance(&mut self, at: Instance, _: InstructionId, _: Distance) {
        if let Some((word, bit)) = self.place(at) {
            self.bits[word] |= bit;
        }
    }
}
