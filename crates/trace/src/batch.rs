//! Raw records, taken apart some at a time.
//!
//! Whoever traces waits for whoever reads, so little may be done for every record: where the next
//! one begins follows from its head alone, for the processor would have to wait for anything
//! else; and what is done for few records is done when all are taken apart.

use crate::captured::Shortener;
use crate::code::PathId;
use crate::records::MARK;
use engine::trace::{HEADER, Head};

/// What there is to know of a path at every record.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Its number here, once it has run: units get their numbers when they first run, and code
    /// that was kept and did not run has none.
    pub path: PathId,
    pub captures: u16,
    instructions: u16,
}

/// Set in [`Shape::instructions`], which never are so many: ends in an indirect jump or call.
const INDIRECT: u16 = 1 << 15;

/// A path that has not run yet.
pub(crate) const IDLE: PathId = PathId(u32::MAX);

impl Default for Shape {
    fn default() -> Shape {
        Shape { path: IDLE, captures: 0, instructions: 0 }
    }
}

impl Shape {
    pub fn new(path: PathId, captures: u16, instructions: u16, indirect: bool) -> Shape {
        assert!(instructions < INDIRECT, "units are shorter");
        Shape { path, captures, instructions: instructions | if indirect { INDIRECT } else { 0 } }
    }
}

/// Hardly any record has more captured registers.
const MANY: usize = 14;

/// So many bytes, or fewer, such a record has.
const WINDOW: usize = HEADER + 8 * MANY;

/// Room for what is captured: as much as most batches need.
const ROOM: usize = 4 * MARK;

/// Records that were taken apart.
pub(crate) struct Batch {
    paths: [PathId; MARK],
    len: usize,
    captured: Vec<u32>,
    captures: usize,
    instructions: u64,
    /// Those behind which control went to a computed place.
    jumps: [u16; MARK],
    jumped: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            paths: [IDLE; MARK],
            len: 0,
            captured: vec![0; ROOM],
            captures: 0,
            instructions: 0,
            jumps: [0; MARK],
            jumped: 0,
        }
    }
}

/// Why a batch ended.
pub(crate) enum Stop {
    /// There are no more bytes, or the batch is full.
    Done,
    /// The next record's path, by its number in the raw trace, has not run before.
    New(u32),
}

impl Batch {
    /// Takes records apart, so many at most; returns the bytes that are left.
    pub fn read<'a>(
        &mut self,
        mut bytes: &'a [u8],
        most: usize,
        shapes: &[Shape],
        shortener: &mut Shortener,
    ) -> (&'a [u8], Stop) {
        let (mut len, mut captures, mut instructions, mut jumped) = (0, 0, 0, 0);
        let mut stop = Stop::Done;
        while len < most && !bytes.is_empty() {
            let head = head(bytes);
            let shape = shapes[head.path() as usize];
            if shape.path == IDLE {
                stop = Stop::New(head.path());
                break;
            }
            let own = match head.captures() {
                Some(few) => few,
                None => many(&shape),
            };
            if own > MANY || !self.at_once(bytes, own, captures, shortener) {
                self.one_by_one(&bytes[HEADER..], own, captures, shortener);
            }
            self.paths[len] = shape.path;
            self.jumps[jumped] = len as u16;
            jumped += usize::from(shape.instructions >= INDIRECT);
            instructions += u64::from(shape.instructions & !INDIRECT);
            captures += own;
            len += 1;
            bytes = &bytes[HEADER + 8 * own..];
        }
        (self.len, self.captures) = (len, captures);
        (self.instructions, self.jumped) = (instructions, jumped);
        (bytes, stop)
    }

    /// Makes a record's registers short, if that takes no more than a look at what was met lately.
    #[inline(always)]
    fn at_once(&mut self, bytes: &[u8], own: usize, at: usize, shortener: &Shortener) -> bool {
        let places = self.captured.get_mut(at..at + MANY);
        let (Some(window), Some(places)) = (bytes.first_chunk::<WINDOW>(), places) else {
            return false;
        };
        let mut known = true;
        for (place, value) in places.iter_mut().zip(window[HEADER..].chunks_exact(8)).take(own) {
            let value = value.try_into().expect("eight");
            let (short, met) = shortener.known(u64::from_le_bytes(value));
            *place = short;
            known &= met;
        }
        known
    }

    #[cold]
    #[inline(never)]
    fn one_by_one(&mut self, bytes: &[u8], own: usize, at: usize, shortener: &mut Shortener) {
        if self.captured.len() < at + own + MANY {
            self.captured.resize(at + own + ROOM, 0);
        }
        for (place, value) in self.captured[at..at + own].iter_mut().zip(bytes.chunks_exact(8)) {
            *place = shortener.short(u64::from_le_bytes(value.try_into().expect("eight")));
        }
    }

    /// The records' paths.
    pub fn paths(&self) -> &[PathId] {
        &self.paths[..self.len]
    }

    /// What they captured, in short.
    pub fn captured(&self) -> &[u32] {
        &self.captured[..self.captures]
    }

    /// Instructions executed.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Which of them ended in an indirect jump or call.
    pub fn jumps(&self) -> impl Iterator<Item = usize> {
        self.jumps[..self.jumped].iter().map(|n| usize::from(*n))
    }
}

/// So many that the head does not say.
#[cold]
#[inline(never)]
fn many(shape: &Shape) -> usize {
    shape.captures.into()
}

#[inline(always)]
fn head(bytes: &[u8]) -> Head {
    Head::from_bytes(*bytes.first_chunk().expect("whole records"))
}
