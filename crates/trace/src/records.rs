//! The dynamic side of a trace: which path ran when, and what it captured.

use crate::code::PathId;

/// The number of a record: the n-th path that ran, over all threads. They begin
/// at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub u32);

impl Time {
    /// Before everything.
    pub const START: Time = Time(0);
}

/// Records per segment.
pub const SEGMENT: usize = 1 << 16;

/// A stretch of records.
#[derive(Default)]
pub struct Segment {
    /// Paths, in order.
    pub paths: Vec<PathId>,
    /// What they captured, one after the other.
    pub captured: Vec<u64>,
    /// Instructions executed before it.
    pub instructions: u64,
}

/// All records.
#[derive(Default)]
pub struct Records {
    segments: Vec<Segment>,
    instructions: u64,
    len: u32,
}

impl Records {
    /// Adds one.
    #[inline]
    pub fn push(&mut self, path: PathId, captured: &[u8], instructions: u16) {
        if (self.len as usize).is_multiple_of(SEGMENT) {
            self.begin_segment();
        }
        let segment = self.segments.last_mut().expect("just begun");
        segment.paths.push(path);
        let numbers = captured.chunks_exact(8);
        segment.captured.extend(numbers.map(|b| u64::from_le_bytes(b.try_into().expect("eight"))));
        self.len += 1;
        self.instructions += u64::from(instructions);
    }

    fn begin_segment(&mut self) {
        if let Some(last) = self.segments.last_mut() {
            last.captured.shrink_to_fit();
        }
        self.segments.push(Segment {
            paths: Vec::with_capacity(SEGMENT),
            captured: Vec::with_capacity(3 * SEGMENT),
            instructions: self.instructions,
        });
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        let bytes = |s: &Segment| 4 * s.paths.len() as u64 + 8 * s.captured.len() as u64;
        self.segments.iter().map(bytes).sum()
    }

    /// The time of the next record.
    pub fn now(&self) -> Time {
        Time(self.len)
    }

    /// Number of records.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Instructions executed in all.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The path that ran at a time.
    #[inline]
    pub fn path(&self, at: Time) -> PathId {
        self.segments[at.0 as usize / SEGMENT].paths[at.0 as usize % SEGMENT]
    }
}
