//! The dynamic side of a trace: which path ran when, and what it captured.

use crate::code::{Code, PathId};
use crate::packed::{Guess, Layout, Packer, Unpacker};
use engine::large::{Ahead, Room};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, Range};
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
pub struct Segment {
    /// Instructions executed before it.
    pub instructions: u64,
    pub(crate) held: Held,
}

/// How captured registers are kept.
pub(crate) enum Held {
    /// As they are: where, among all that are.
    Plain(Range<usize>),
    /// With the paths, as in a file.
    Packed(Box<[u8]>),
}

/// What goes before a record within its segment.
#[derive(Clone, Copy)]
struct Mark {
    captured: u32,
    instructions: u64,
}

/// There is a mark for so many records.
const MARK: usize = 1 << 10;

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

/// Records that were kept, segment by segment.
pub(crate) struct Kept {
    pub paths: Vec<PathId>,
    pub plain: Vec<u64>,
    pub held: Vec<Held>,
}

/// All records.
pub struct Records {
    paths: Vec<PathId>,
    segments: Vec<Segment>,
    marks: Vec<Mark>,
    /// Captured registers that are kept as they are.
    plain: Vec<u64>,
    /// Instructions executed before the first.
    before: u64,
    /// With those of the records.
    instructions: u64,
    layout: Layout,
    /// How many bytes of captured registers may be kept as they are.
    limit: u64,
    packed: u64,
    /// Segments that were looked at in order to pack them.
    settled: usize,
    /// The segment that was unpacked last, for those who ask record by record.
    recent: Mutex<Option<(usize, Arc<[u64]>)>>,
}

/// So many records have room without being moved: several hundred million instructions.
const ROOM: usize = 1 << 26;

impl Records {
    /// None yet; captured registers beyond `limit` bytes will be packed.
    pub fn new(limit: u64) -> Records {
        Records {
            paths: Vec::new(),
            segments: Vec::new(),
            marks: Vec::new(),
            plain: Vec::new(),
            before: 0,
            instructions: 0,
            layout: Layout::default(),
            limit,
            packed: 0,
            settled: 0,
            recent: Mutex::default(),
        }
    }

    /// The same, for the end of a run: so many instructions went before.
    pub fn after(self, before: u64) -> Records {
        Records { before, instructions: before, ..self }
    }

    /// The same, with room for as many as will come; what is not used is never touched.
    pub(crate) fn with_room(mut self) -> Records {
        engine::large::reserve(&mut self.paths, ROOM);
        let most = self.limit.min(PLAIN_BYTES) as usize / 8;
        engine::large::reserve(&mut self.plain, most + 8 * SEGMENT);
        self
    }

    /// The room that was made.
    pub(crate) fn rooms(&self) -> Vec<Room> {
        vec![Room::of(&self.paths), Room::of(&self.plain)]
    }

    /// Says how much of it is used.
    pub(crate) fn note(&self, ahead: &Ahead) {
        ahead.filled(0, &self.paths);
        ahead.filled(1, &self.plain);
    }

    /// From segments that were kept, full ones but for the last.
    pub(crate) fn from_kept(kept: Kept, layout: Layout, limit: u64) -> Records {
        let Kept { paths, plain, held } = kept;
        let mut all = Records { paths, plain, layout, ..Records::new(limit) };
        for (n, held) in held.into_iter().enumerate() {
            let mut captured = 0;
            if let Held::Packed(bytes) = &held {
                all.packed += bytes.len() as u64;
            }
            all.segments.push(Segment { instructions: all.instructions, held });
            let end = all.paths.len().min((n + 1) * SEGMENT);
            for (k, path) in all.paths[n * SEGMENT..end].iter().enumerate() {
                if k.is_multiple_of(MARK) {
                    all.marks.push(Mark { captured, instructions: all.instructions });
                }
                let (captures, instructions) = all.layout.of(*path);
                captured += u32::from(captures);
                all.instructions += u64::from(instructions);
            }
        }
        all.settled = all.segments.len();
        all
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, path: PathId, captured: &[u8], instructions: u16) {
        if self.paths.len().is_multiple_of(MARK) {
            self.mark();
        }
        self.paths.push(path);
        let numbers = captured.chunks_exact(8);
        self.plain.extend(numbers.map(|b| u64::from_le_bytes(b.try_into().expect("eight"))));
        self.instructions += u64::from(instructions);
    }

    #[inline(never)]
    fn mark(&mut self) {
        if self.paths.len().is_multiple_of(SEGMENT) {
            self.end_segment();
            let (instructions, start) = (self.instructions, self.plain.len());
            self.segments.push(Segment { instructions, held: Held::Plain(start..start) });
        }
        let captured = (self.plain.len() - self.start()) as u32;
        self.marks.push(Mark { captured, instructions: self.instructions });
    }

    /// Where what the last segment captured begins.
    fn start(&self) -> usize {
        match self.segments.last().map(|segment| &segment.held) {
            Some(Held::Plain(range)) => range.start,
            _ => self.plain.len(),
        }
    }

    /// The last segment is as long as it will be.
    fn end_segment(&mut self) {
        if let Some(Segment { held: Held::Plain(range), .. }) = self.segments.last_mut() {
            range.end = self.plain.len();
        }
    }

    /// Packs full segments if there are too many. `packer` is made when needed.
    pub(crate) fn settle(&mut self, packer: &mut Option<Packer>) {
        while self.settled + 1 < self.segments.len() {
            let n = self.settled;
            self.settled += 1;
            let Held::Plain(range) = &self.segments[n].held else { continue };
            let range = range.clone();
            if 8 * range.end as u64 <= self.limit {
                continue;
            }
            if packer.is_none() {
                *packer = Packer::new(Guess::Last).ok();
            }
            let captured = &self.plain[range.clone()];
            let paths = &self.paths[n * SEGMENT..(n + 1) * SEGMENT];
            let packed = packer.as_mut().and_then(|p| p.pack(paths, captured, &self.layout).ok());
            if let Some(packed) = packed {
                self.packed += packed.len() as u64;
                self.segments[n].held = Held::Packed(packed.into());
                self.forget(range, n + 1);
            }
        }
    }

    /// Captured registers that have been packed are forgotten: those behind them move up.
    fn forget(&mut self, range: Range<usize>, next: usize) {
        for segment in &mut self.segments[next..] {
            if let Held::Plain(behind) = &mut segment.held {
                *behind = behind.start - range.len()..behind.end - range.len();
            }
        }
        self.plain.drain(range);
    }

    /// No more records come.
    pub(crate) fn finish(&mut self) {
        self.end_segment();
    }

    /// The next path captures so many registers and executes so many instructions.
    pub(crate) fn add_path(&mut self, captures: u16, instructions: u16) {
        self.layout.add(captures, instructions);
    }

    /// What records look like.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        4 * self.paths.len() as u64 + 8 * self.plain.len() as u64 + self.packed
    }

    /// The time of the next record.
    pub fn now(&self) -> Time {
        Time(self.len())
    }

    /// Number of records.
    pub fn len(&self) -> u32 {
        self.paths.len() as u32
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
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

    /// All paths, in order.
    pub fn paths(&self) -> &[PathId] {
        &self.paths
    }

    /// The paths of a segment, in order.
    pub fn paths_of(&self, segment: usize) -> &[PathId] {
        let end = self.paths.len().min((segment + 1) * SEGMENT);
        &self.paths[segment * SEGMENT..end]
    }

    /// How many registers the records of a segment captured before one of them.
    pub fn captured_before(&self, code: &Code, at: Time) -> usize {
        let (mark, rest) = self.mark_before(at);
        let captures = |path: &PathId| usize::from(code.path(*path).captures);
        mark.captured as usize + rest.iter().map(captures).sum::<usize>()
    }

    /// How many instructions were executed before a record.
    pub fn instructions_before(&self, code: &Code, at: Time) -> u64 {
        let (mark, rest) = self.mark_before(at);
        let executed = |path: &PathId| u64::from(code.path(*path).len);
        mark.instructions + rest.iter().map(executed).sum::<u64>()
    }

    /// The nearest mark, and the paths between it and a record.
    fn mark_before(&self, at: Time) -> (Mark, &[PathId]) {
        let (at, n) = (at.0 as usize, at.0 as usize / MARK);
        (self.marks[n], &self.paths[n * MARK..at])
    }

    /// What the records of a segment captured.
    pub fn captured(&self, segment: usize) -> Captured<'_> {
        let bytes = match &self.segments[segment].held {
            Held::Plain(range) => return Captured::Plain(&self.plain[range.clone()]),
            Held::Packed(bytes) => bytes,
        };
        let mut recent = self.recent.lock().expect("nobody panics with it");
        if let Some((n, all)) = &*recent
            && *n == segment
        {
            return Captured::Unpacked(all.clone());
        }
        let unpacked = Unpacker::new().ok().and_then(|mut u| u.captured(bytes, &self.layout));
        let all: Arc<[u64]> = unpacked.expect("what was packed can be unpacked").into();
        *recent = Some((segment, all.clone()));
        Captured::Unpacked(all)
    }

    /// The path that ran at a time.
    #[inline]
    pub fn path(&self, at: Time) -> PathId {
        self.paths[at.0 as usize]
    }
}
