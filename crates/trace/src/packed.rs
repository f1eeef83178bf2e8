//! A segment of records in few bytes.
//!
//! A path is written as its distance from the one before it, a captured register as
//! its distance from what the same path captured there last time, in columns of one
//! kind each. Loops and strides thus become repetitions, which zstd finds.
//! `docs/slicing.md` has the cleverer guesses that were tried, and what they bought.

use crate::code::{Code, PathId};

/// Columns: paths, lengths of differences, and differences of one to eight bytes.
const COLUMNS: usize = 10;
const PATHS: usize = 0;
const LENGTHS: usize = 1;
/// Differences of n bytes are in column `DIFFERENCES + n`.
const DIFFERENCES: usize = 1;
/// Columns can be read eight bytes at a time to their end.
const PADDING: usize = 8;

const LEVEL: i32 = 1;

/// Bytes before the columns: how many records, and how many captured registers.
const COUNTS: usize = 8;

/// What captured registers are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// Their values.
    Nothing,
    /// How they differ from the last value: what is used.
    Last,
    /// How they differ from the last value and stride.
    Stride,
}

/// What a segment's records look like.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// Number of its first capture among those of all paths.
    first: u32,
    captures: u16,
    instructions: u16,
}

/// The same for all paths.
#[derive(Default)]
pub(crate) struct Layout {
    shapes: Vec<Shape>,
    captures: u32,
}

impl Layout {
    /// Looks at paths that are new.
    pub fn extend(&mut self, code: &Code) {
        for (_, path) in code.paths().skip(self.shapes.len()) {
            self.add(path.captures, path.len);
        }
    }

    /// The next path captures so many registers and executes so many instructions.
    pub fn add(&mut self, captures: u16, instructions: u16) {
        self.shapes.push(Shape { first: self.captures, captures, instructions });
        self.captures += u32::from(captures);
    }

    /// How many registers a path captures, and how many instructions it executes.
    pub fn of(&self, path: PathId) -> (u16, u16) {
        let shape = &self.shapes[path.0 as usize];
        (shape.captures, shape.instructions)
    }
}

/// The last value of one capture of one path.
#[derive(Clone, Copy, Default)]
struct Last {
    value: u64,
    stride: u64,
    /// The segment it is of; older ones count as none.
    segment: u32,
}

/// What has been seen in a segment.
#[derive(Default)]
struct Seen {
    segment: u32,
    slots: Vec<Last>,
}

impl Seen {
    /// Forgets all: another segment begins.
    fn begin(&mut self, layout: &Layout) {
        self.segment += 1;
        self.slots.resize(layout.captures as usize, Last::default());
    }

    /// The last value of a capture; `other` if there is none.
    #[inline]
    fn last(&mut self, slot: usize, other: u64) -> &mut Last {
        let last = &mut self.slots[slot];
        if last.segment != self.segment {
            *last = Last { value: other, stride: 0, segment: self.segment };
        }
        last
    }
}

/// Packs segments.
pub(crate) struct Packer {
    guess: Guess,
    seen: Seen,
    zstd: zstd::bulk::Compressor<'static>,
}

/// Unpacks them.
pub(crate) struct Unpacker {
    seen: Seen,
    zstd: zstd::bulk::Decompressor<'static>,
}

/// How many records a packed segment has, and how many registers they captured; `None` if the
/// bytes are not those of one.
pub(crate) fn counts(mut bytes: &[u8], layout: &Layout) -> Option<(usize, usize)> {
    let records = take_u32(&mut bytes)? as usize;
    let captures = take_u32(&mut bytes)? as usize;
    let most = layout.shapes.iter().map(|s| usize::from(s.captures)).max().unwrap_or(0);
    let possible = records <= crate::SEGMENT && captures <= records.checked_mul(most)?;
    possible.then_some((records, captures))
}

impl Packer {
    /// Begins. Only what is packed with [`Guess::Last`] can be unpacked.
    pub fn new(guess: Guess) -> std::io::Result<Packer> {
        let zstd = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(Packer { guess, seen: Seen::default(), zstd })
    }

    /// A segment as bytes.
    pub fn pack(
        &mut self,
        paths: &[PathId],
        captured: &[u64],
        layout: &Layout,
    ) -> std::io::Result<Vec<u8>> {
        let columns = self.columns(paths, captured, layout);
        let mut out = Vec::new();
        for n in [paths.len(), captured.len()] {
            out.extend((n as u32).to_le_bytes());
        }
        for column in &columns {
            let packed = if column.is_empty() { Vec::new() } else { self.zstd.compress(column)? };
            out.extend((column.len() as u32).to_le_bytes());
            out.extend((packed.len() as u32).to_le_bytes());
            out.extend(packed);
        }
        Ok(out)
    }

    fn columns(
        &mut self,
        paths: &[PathId],
        captured: &[u64],
        layout: &Layout,
    ) -> [Vec<u8>; COLUMNS] {
        self.seen.begin(layout);
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        columns[LENGTHS] = vec![0; captured.len().div_ceil(2)];
        let (mut path_before, mut before, mut n) = (0, 0, 0);
        for path in paths {
            let shape = layout.shapes[path.0 as usize];
            put_varint(&mut columns[PATHS], zigzag(u64::from(path.0).wrapping_sub(path_before)));
            path_before = path.0.into();
            for slot in shape.first..shape.first + u32::from(shape.captures) {
                let value = captured[n];
                let last = self.seen.last(slot as usize, before);
                let base = match self.guess {
                    Guess::Nothing => 0,
                    Guess::Last => last.value,
                    Guess::Stride => last.value.wrapping_add(last.stride),
                };
                let difference = zigzag(value.wrapping_sub(base));
                let length = 8 - difference.leading_zeros() as usize / 8;
                columns[LENGTHS][n / 2] |= (length as u8) << (n % 2 * 4);
                let bytes = &difference.to_le_bytes()[..length];
                if length > 0 {
                    columns[DIFFERENCES + length].extend_from_slice(bytes);
                }
                *last = Last { value, stride: value.wrapping_sub(last.value), ..*last };
                before = value;
                n += 1;
            }
        }
        columns
    }
}

impl Unpacker {
    /// Begins.
    pub fn new() -> std::io::Result<Unpacker> {
        Ok(Unpacker { seen: Seen::default(), zstd: zstd::bulk::Decompressor::new()? })
    }

    /// The registers that were captured in a packed segment; `None` if the bytes are not those
    /// of one.
    pub fn captured(&mut self, bytes: &[u8], layout: &Layout) -> Option<Vec<u64>> {
        let (records, captures) = counts(bytes, layout)?;
        let mut captured = vec![0; captures];
        self.unpack(bytes, layout, &mut vec![PathId(0); records], &mut captured)?;
        Some(captured)
    }

    /// The segment that was packed, where there is room for as much as it [`counts`]; `None` if
    /// the bytes are not those of one.
    pub fn unpack(
        &mut self,
        bytes: &[u8],
        layout: &Layout,
        paths: &mut [PathId],
        captured: &mut [u64],
    ) -> Option<()> {
        let (records, captures) = (paths.len(), captured.len());
        let mut bytes = bytes.get(COUNTS..)?;
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        for column in &mut columns {
            let len = take_u32(&mut bytes)? as usize;
            let packed = take_u32(&mut bytes)? as usize;
            let (this, rest) = bytes.split_at_checked(packed)?;
            bytes = rest;
            if len > 10 * captures.max(records) {
                return None;
            }
            if len > 0 {
                *column = self.zstd.decompress(this, len).ok().filter(|c| c.len() == len)?;
            }
            column.resize(len + PADDING, 0);
        }
        self.records(&columns, layout, paths, captured)
    }

    fn records(
        &mut self,
        columns: &[Vec<u8>; COLUMNS],
        layout: &Layout,
        paths: &mut [PathId],
        captured: &mut [u64],
    ) -> Option<()> {
        self.seen.begin(layout);
        let (mut column, mut at) = (&columns[PATHS][..], [0; 9]);
        let (mut path, mut before, mut n) = (0u64, 0, 0);
        for record in paths {
            path = path.wrapping_add(unzigzag(take_varint(&mut column)?));
            let shape = layout.shapes.get(usize::try_from(path).ok()?)?;
            *record = PathId(path as u32);
            for slot in shape.first..shape.first + u32::from(shape.captures) {
                let length = usize::from(columns[LENGTHS].get(n / 2)? >> (n % 2 * 4) & 15);
                let last = self.seen.last(slot as usize, before);
                if length > 0 {
                    let source = columns.get(DIFFERENCES + length)?;
                    let bytes = source.get(at[length]..)?.first_chunk()?;
                    at[length] += length;
                    let difference = u64::from_le_bytes(*bytes) & u64::MAX >> (64 - 8 * length);
                    last.value = last.value.wrapping_add(unzigzag(difference));
                }
                before = last.value;
                *captured.get_mut(n)? = before;
                n += 1;
            }
        }
        (n == captured.len()).then_some(())
    }
}

#[inline]
fn zigzag(n: u64) -> u64 {
    n << 1 ^ ((n as i64) >> 63) as u64
}

#[inline]
fn unzigzag(n: u64) -> u64 {
    n >> 1 ^ (n & 1).wrapping_neg()
}

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two paths with two captures each.
    fn layout() -> Layout {
        let shape = |first| Shape { first, captures: 2, instructions: 3 };
        Layout { shapes: vec![shape(0), shape(2)], captures: 4 }
    }

    fn round_trip(paths: &[u32], captured: &[u64]) -> usize {
        let layout = layout();
        let paths: Vec<PathId> = paths.iter().map(|p| PathId(*p)).collect();
        let mut packer = Packer::new(Guess::Last).unwrap();
        let bytes = packer.pack(&paths, captured, &layout).unwrap();
        let (mut again, mut values) = (vec![PathId(9); paths.len()], vec![9; captured.len()]);
        assert_eq!(counts(&bytes, &layout), Some((paths.len(), captured.len())));
        Unpacker::new().unwrap().unpack(&bytes, &layout, &mut again, &mut values).unwrap();
        assert_eq!((again, &values[..]), (paths, captured));
        assert_eq!(Unpacker::new().unwrap().captured(&bytes, &layout).unwrap(), captured);
        bytes.len()
    }

    // F-002-41: a strided stream costs next to nothing, and comes back exactly.
    #[test]
    fn a_walk_over_an_array_costs_next_to_nothing() {
        let records = 60_000;
        let captured: Vec<u64> =
            (0..records).flat_map(|n| [0x7000_0000 + 8 * n, 0x10_0000 + 48 * n]).collect();
        assert!(round_trip(&vec![0; records as usize], &captured) < 300);
    }

    #[test]
    fn what_cannot_be_guessed_comes_back_too() {
        let mut random = 7u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random ^ random >> 29
        };
        let paths: Vec<u32> = (0..5000).map(|_| (next() >> 40) as u32 % 2).collect();
        let captured: Vec<u64> = (0..10_000).map(|n| next() >> (n % 64)).collect();
        round_trip(&paths, &captured);
        round_trip(&[], &[]);
    }

    #[test]
    fn bytes_that_are_no_segment_are_refused() {
        let layout = layout();
        let mut packer = Packer::new(Guess::Last).unwrap();
        let bytes = packer.pack(&[PathId(0); 9], &[5; 18], &layout).unwrap();
        let mut unpacker = Unpacker::new().unwrap();
        for cut in 0..bytes.len() {
            assert!(unpacker.captured(&bytes[..cut], &layout).is_none());
        }
    }
}
