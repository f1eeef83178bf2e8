//! The dynamic side of a trace: which path ran when, and what it captured.

use crate::captured::{Captured, Shortener, Unpacked, Uppers, Whole};
use crate::code::{Code, PathId};
use crate::packed::{Guess, Layout, Packer, Unpacker};
use engine::large::{Ahead, Room};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

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
    /// As they can be read: where, among all that can, and their upper parts.
    Plain(Range<usize>, Box<Uppers>),
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
pub(crate) const MARK: usize = 1 << 10;

/// Records that were kept, segment by segment.
pub(crate) struct Kept {
    pub paths: Vec<PathId>,
    pub plain: Vec<u32>,
    pub held: Vec<Held>,
}

/// All records.
pub struct Records {
    paths: Vec<PathId>,
    /// Those that occur, in the order in which they first did.
    ran: Vec<PathId>,
    segments: Vec<Segment>,
    marks: Vec<Mark>,
    /// Captured registers that can be read as they are kept.
    plain: Vec<u32>,
    shortener: Box<Shortener>,
    /// Bytes that they take beside that.
    uppers: u64,
    /// Instructions executed before the first.
    before: u64,
    /// With those of the records.
    instructions: u64,
    layout: Layout,
    /// How many bytes of captured registers may be kept like that.
    limit: u64,
    packed: u64,
    /// Segments that were looked at in order to pack them.
    settled: usize,
    /// The segment that was unpacked last, for those who ask record by record.
    recent: Mutex<Option<(usize, Arc<Unpacked>)>>,
}

/// Bytes of a captured register in short.
pub(crate) const SHORT: usize = size_of::<u32>();

/// So many records have room without being moved: several hundred million instructions.
const ROOM: usize = 1 << 26;

impl Records {
    /// None yet; captured registers beyond `limit` bytes will be packed.
    pub fn new(limit: u64) -> Records {
        Records {
            paths: Vec::new(),
            ran: Vec::new(),
            segments: Vec::new(),
            marks: Vec::new(),
            plain: Vec::new(),
            shortener: Box::default(),
            uppers: 0,
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
        let most = self.limit.min(PLAIN_BYTES) as usize / SHORT;
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
        let ran = distinct(&paths);
        let mut all = Records { paths, ran, plain, layout, ..Records::new(limit) };
        for (n, held) in held.into_iter().enumerate() {
            let mut captured = 0;
            match &held {
                Held::Plain(_, uppers) => all.uppers += uppers.size(),
                Held::Packed(bytes) => all.packed += bytes.len() as u64,
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

    /// How many records may be added at once. What they captured is made short with what
    /// [`shortener`](Records::shortener) then is.
    pub(crate) fn room(&mut self) -> usize {
        let over = self.paths.len() % MARK;
        if over == 0 {
            self.mark();
        }
        MARK - over
    }

    /// What makes captured registers short.
    pub(crate) fn shortener(&mut self) -> &mut Shortener {
        &mut self.shortener
    }

    /// Adds some: their paths, what they captured, and how many instructions they executed.
    pub(crate) fn append(&mut self, paths: &[PathId], captured: &[u32], instructions: u64) {
        self.paths.extend_from_slice(paths);
        self.plain.extend_from_slice(captured);
        self.instructions += instructions;
    }

    fn mark(&mut self) {
        if self.marks.len() > self.paths.len() / MARK {
            return;
        }
        if self.paths.len().is_multiple_of(SEGMENT) {
            self.end_segment();
            let (instructions, start) = (self.instructions, self.plain.len());
            self.segments
                .push(Segment { instructions, held: Held::Plain(start..start, Box::default()) });
        }
        let captured = (self.plain.len() - self.start()) as u32;
        self.marks.push(Mark { captured, instructions: self.instructions });
    }

    /// Where what the last segment captured begins.
    fn start(&self) -> usize {
        match self.segments.last().map(|segment| &segment.held) {
            Some(Held::Plain(range, _)) => range.start,
            _ => self.plain.len(),
        }
    }

    /// The last segment is as long as it will be.
    fn end_segment(&mut self) {
        if let Some(Segment { held: Held::Plain(range, uppers), .. }) = self.segments.last_mut() {
            range.end = self.plain.len();
            **uppers = self.shortener.end();
            self.uppers += uppers.size();
        }
    }

    /// Packs full segments if there are too many. `packer` is made when needed.
    pub(crate) fn settle(&mut self, packer: &mut Option<Packer>) {
        while self.settled + 1 < self.segments.len() {
            let n = self.settled;
            self.settled += 1;
            let Held::Plain(range, uppers) = &self.segments[n].held else { continue };
            if (SHORT * range.end) as u64 + self.uppers <= self.limit {
                continue;
            }
            let (range, beside) = (range.clone(), uppers.size());
            if packer.is_none() {
                *packer = Packer::new(Guess::Last).ok();
            }
            let captured: Vec<u64> =
                Captured::new(&self.plain[range.clone()], uppers).all().collect();
            let paths = &self.paths[n * SEGMENT..(n + 1) * SEGMENT];
            let packed = packer.as_mut().and_then(|p| p.pack(paths, &captured, &self.layout).ok());
            if let Some(packed) = packed {
                self.packed += packed.len() as u64;
                self.uppers -= beside;
                self.segments[n].held = Held::Packed(packed.into());
                self.forget(range, n + 1);
            }
        }
    }

    /// Captured registers that have been packed are forgotten: those behind them move up.
    fn forget(&mut self, range: Range<usize>, next: usize) {
        for segment in &mut self.segments[next..] {
            if let Held::Plain(behind, _) = &mut segment.held {
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
        let short = (SHORT * self.plain.len()) as u64 + self.uppers;
        4 * self.paths.len() as u64 + short + self.packed
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

    /// A path will occur that did not occur before.
    pub(crate) fn begin(&mut self, path: PathId) {
        self.ran.push(path);
    }

    /// The paths that occur, each once.
    pub fn ran(&self) -> &[PathId] {
        &self.ran
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
    pub fn captured(&self, segment: usize) -> Whole<'_> {
        let bytes = match &self.segments[segment].held {
            Held::Plain(range, uppers) => {
                return Whole::Plain(Captured::new(&self.plain[range.clone()], uppers));
            }
            Held::Packed(bytes) => bytes,
        };
        if let Some((n, all)) = &*self.recent()
            && *n == segment
        {
            return Whole::Unpacked(all.clone());
        }
        // Without the lock: somebody else may unpack another one meanwhile.
        let unpacked = Unpacker::new().ok().and_then(|mut u| u.captured(bytes, &self.layout));
        let all = Arc::new(Unpacked::new(&unpacked.expect("what was packed can be unpacked")));
        *self.recent() = Some((segment, all.clone()));
        Whole::Unpacked(all)
    }

    fn recent(&self) -> MutexGuard<'_, Option<(usize, Arc<Unpacked>)>> {
        self.recent.lock().expect("nobody panics with it")
    }

    /// The path that ran at a time.
    #[inline]
    pub fn path(&self, at: Time) -> PathId {
        self.paths[at.0 as usize]
    }
}

/// In the order in which they first occur.
fn distinct(paths: &[PathId]) -> Vec<PathId> {
    let count = paths.iter().map(|path| path.0 as usize + 1).max().unwrap_or(0);
    let mut seen = vec![false; count];
    let new = |path: &&PathId| !std::mem::replace(&mut seen[path.0 as usize], true);
    paths.iter().filter(new).copied().collect()
}
