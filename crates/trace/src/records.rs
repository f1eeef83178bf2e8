//! The dynamic side of a trace: which path ran when, and what it captured.

use crate::code::{Code, PathId};
use crate::packed::{Guess, Layout, Packer, Unpacker};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The number of a record: the n-th path that ran, over all threads. They begin
/// at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time(pub u32);

impl Time {
    /// Before everything.
    pub const START: Time = Time(0);
}

/// Records per segment.
pub const SEGMENT: usize = 1 << 16;

/// Captured registers beyond so many bytes are packed: a run of a billion
/// instructions fits into 4 GiB, and one of 200 million is never unpacked.
pub(crate) const PLAIN_BYTES: u64 = 1 << 30;

/// A stretch of records.
#[derive(Default)]
pub struct Segment {
    /// Paths, in order.
    pub paths: Vec<PathId>,
    /// Instructions executed before it.
    pub instructions: u64,
    pub(crate) held: Held,
}

/// How captured registers are kept.
pub(crate) enum Held {
    Plain(Vec<u64>),
    /// With the paths, as in a file.
    Packed(Box<[u8]>),
}

impl Default for Held {
    fn default() -> Self {
        Held::Plain(Vec::new())
    }
}

/// What the records of a segment captured, one after the other.
#[derive(Clone)]
pub enum Captured<'a> {
    /// As they are kept.
    Plain(&'a [u64]),
    /// Unpacked for the one who asks.
    Unpacked(Arc<[u64]>),
}

impl Deref for Captured<'_> {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        match self {
            Captured::Plain(all) => all,
            Captured::Unpacked(all) => all,
        }
    }
}

/// All records.
pub struct Records {
    segments: Vec<Segment>,
    /// Instructions executed before the first.
    before: u64,
    /// With those of the records.
    instructions: u64,
    len: u32,
    layout: Layout,
    /// How many bytes of captured registers are kept as they are, and may be.
    plain: u64,
    packed: u64,
    limit: u64,
    /// Segments that were looked at in order to pack them.
    settled: usize,
    /// The segment that was unpacked last, for those who ask record by record.
    recent: Mutex<Option<(usize, Arc<[u64]>)>>,
}

impl Records {
    /// None yet; captured registers beyond `limit` bytes will be packed.
    pub fn new(limit: u64) -> Records {
        Records {
            segments: Vec::new(),
            before: 0,
            instructions: 0,
            len: 0,
            layout: Layout::default(),
            plain: 0,
            packed: 0,
            limit,
            settled: 0,
            recent: Mutex::default(),
        }
    }

    /// The same, for the end of a run: so many instructions went before.
    pub fn after(self, before: u64) -> Records {
        Records { before, instructions: before, ..self }
    }

    /// Segments, full ones but for the last, each with the instructions in it.
    pub(crate) fn from_segments(mut segments: Vec<Segment>, layout: Layout, limit: u64) -> Records {
        let mut all = Records { layout, ..Records::new(limit) };
        for segment in &mut segments {
            let executed = std::mem::replace(&mut segment.instructions, all.instructions);
            all.instructions += executed;
            all.len += segment.paths.len() as u32;
        }
        all.settled = segments.len();
        all.segments = segments;
        all
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, path: PathId, captured: &[u8], instructions: u16) {
        if (self.len as usize).is_multiple_of(SEGMENT) {
            self.begin_segment();
        }
        let segment = self.segments.last_mut().expect("just begun");
        segment.paths.push(path);
        if let Held::Plain(all) = &mut segment.held {
            let numbers = captured.chunks_exact(8);
            all.extend(numbers.map(|b| u64::from_le_bytes(b.try_into().expect("eight"))));
        }
        self.len += 1;
        self.instructions += u64::from(instructions);
    }

    fn begin_segment(&mut self) {
        if let Some(Segment { held: Held::Plain(last), .. }) = self.segments.last_mut() {
            last.shrink_to_fit();
        }
        self.segments.push(Segment {
            paths: Vec::with_capacity(SEGMENT),
            held: Held::Plain(Vec::with_capacity(3 * SEGMENT)),
            instructions: self.instructions,
        });
    }

    /// Packs full segments if there are too many. `packer` is made when needed.
    pub(crate) fn settle(&mut self, code: &Code, packer: &mut Option<Packer>) {
        while self.settled + 1 < self.segments.len() {
            let segment = &mut self.segments[self.settled];
            self.settled += 1;
            let Held::Plain(captured) = &segment.held else { continue };
            self.plain += 8 * captured.len() as u64;
            if self.plain <= self.limit {
                continue;
            }
            self.layout.extend(code);
            if packer.is_none() {
                *packer = Packer::new(Guess::Last).ok();
            }
            let packed =
                packer.as_mut().and_then(|p| p.pack(&segment.paths, captured, &self.layout).ok());
            if let Some(packed) = packed {
                self.plain -= 8 * captured.len() as u64;
                self.packed += packed.len() as u64;
                segment.held = Held::Packed(packed.into());
            }
        }
    }

    /// No more records come.
    pub(crate) fn finish(&mut self, code: &Code) {
        self.layout.extend(code);
    }

    /// What records look like.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        let bytes = |s: &Segment| {
            let captured = match &s.held {
                Held::Plain(all) => 8 * all.len() as u64,
                Held::Packed(bytes) => bytes.len() as u64,
            };
            4 * s.paths.len() as u64 + captured
        };
        self.segments.iter().map(bytes).sum()
    }

    /// The same, of those that have been looked at in order to pack them: known at once.
    pub(crate) fn kept(&self) -> u64 {
        4 * u64::from(self.len) + self.plain + self.packed
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

    /// Instructions that were executed before the first record.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Instructions executed in all, those before the first record too.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What the records of a segment captured.
    pub fn captured(&self, segment: usize) -> Captured<'_> {
        let bytes = match &self.segments[segment].held {
            Held::Plain(all) => return Captured::Plain(all),
            Held::Packed(bytes) => bytes,
        };
        let mut recent = self.recent.lock().expect("nobody panics with it");
        if let Some((n, all)) = &*recent
            && *n == segment
        {
            return Captured::Unpacked(all.clone());
        }
        let unpacked = Unpacker::new().ok().and_then(|mut u| u.unpack(bytes, &self.layout));
        let all: Arc<[u64]> = unpacked.expect("what was packed can be unpacked").captured.into();
        *recent = Some((segment, all.clone()));
        Captured::Unpacked(all)
    }

    /// The path that ran at a time.
    #[inline]
    pub fn path(&self, at: Time) -> PathId {
        self.segments[at.0 as usize / SEGMENT].paths[at.0 as usize % SEGMENT]
    }
}
