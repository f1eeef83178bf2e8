//! A segment of records in few bytes.
//!
//! Only what [`Predictor`] guesses wrong is written, in columns of one kind each,
//! and each column is compressed. Records that were guessed whole cost a third of a
//! byte before compression, and next to nothing after it.

use crate::code::PathId;
use crate::model::Model;
use crate::predict::{Guess, Guessing, Predictor};

/// Columns: heads of records, paths, marks of captures, and differences of one to
/// eight bytes.
const COLUMNS: usize = 11;
const HEADS: usize = 0;
const PATHS: usize = 1;
const MARKS: usize = 2;
const DIFFERENCES: usize = 2;

/// Heads are digits to this base, several in a byte.
const HEAD: u8 = 6;
const HEADS_PER_BYTE: usize = 3;
/// So are marks.
const MARK: u8 = 12;
const MARKS_PER_BYTE: usize = 2;
/// Marks from here on are a difference's length.
const FIRST_LENGTH: u8 = 3;

const LEVEL: i32 = 1;

/// Packs segments.
pub(crate) struct Packer {
    predictor: Predictor,
    zstd: zstd::bulk::Compressor<'static>,
}

/// Unpacks them.
pub(crate) struct Unpacker {
    predictor: Predictor,
    zstd: zstd::bulk::Decompressor<'static>,
}

/// A segment's records.
pub(crate) struct Unpacked {
    pub paths: Vec<PathId>,
    pub captured: Vec<u64>,
    /// Instructions executed in it.
    pub instructions: u64,
}

/// Digits to a base, several in a byte.
struct Digits {
    bytes: Vec<u8>,
    base: u8,
    per_byte: usize,
    now: u8,
    count: usize,
}

impl Digits {
    fn new(base: u8, per_byte: usize) -> Digits {
        Digits { bytes: Vec::new(), base, per_byte, now: 0, count: 0 }
    }

    #[inline]
    fn push(&mut self, digit: u8) {
        self.now = self.now * self.base + digit;
        self.count += 1;
        if self.count == self.per_byte {
            self.bytes.push(self.now);
            (self.now, self.count) = (0, 0);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        while self.count != 0 {
            self.push(0);
        }
        self.bytes
    }
}

/// Reads digits.
struct ReadDigits<'a> {
    bytes: &'a [u8],
    base: u8,
    unit: u8,
    now: u8,
    left: u8,
}

impl<'a> ReadDigits<'a> {
    fn new(bytes: &'a [u8], base: u8, per_byte: usize) -> ReadDigits<'a> {
        ReadDigits { bytes, base, unit: base.pow(per_byte as u32 - 1), now: 0, left: 0 }
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            let (first, rest) = self.bytes.split_first()?;
            (self.now, self.bytes, self.left) = (*first, rest, self.unit);
        }
        let digit = self.now / self.left;
        self.now %= self.left;
        self.left /= self.base;
        Some(digit)
    }
}

impl Packer {
    /// Begins.
    pub fn new(guessing: Guessing) -> std::io::Result<Packer> {
        let zstd = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(Packer { predictor: Predictor::new(guessing), zstd })
    }

    /// A segment as bytes.
    pub fn pack(
        &mut self,
        paths: &[PathId],
        captured: &[u64],
        model: &Model,
    ) -> std::io::Result<Vec<u8>> {
        let columns = self.columns(paths, captured, model);
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
        mut captured: &[u64],
        model: &Model,
    ) -> [Vec<u8>; COLUMNS] {
        self.predictor.begin(model);
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        let mut heads = Digits::new(HEAD, HEADS_PER_BYTE);
        let mut marks = Digits::new(MARK, MARKS_PER_BYTE);
        let mut record_marks = Vec::new();
        for path in paths {
            let known = self.path(path.0, &mut columns[PATHS]);
            let shape = model.path(*path);
            let (here, rest) = captured.split_at(shape.captures.len());
            record_marks.clear();
            for (n, origin) in shape.captures.iter().enumerate() {
                let guess = self.predictor.capture(shape.first + n, *origin, &here[..n]);
                record_marks.push(mark(&guess, here[n], &mut columns));
                let (before, value) = (&here[..n], here[n]);
                self.predictor.learn_capture(shape.first + n, *origin, before, &guess, value);
            }
            self.predictor.end(&shape, here);
            let wrong = record_marks.iter().any(|m| *m != 0);
            heads.push(2 * known + u8::from(wrong));
            if wrong {
                record_marks.iter().for_each(|m| marks.push(*m));
            }
            captured = rest;
        }
        columns[HEADS] = heads.finish();
        columns[MARKS] = marks.finish();
        columns
    }

    /// 0 or 1 if the path was guessed, else 2.
    fn path(&mut self, path: u32, column: &mut Vec<u8>) -> u8 {
        let guesses = self.predictor.path();
        let known = guesses.iter().position(|g| *g == path).unwrap_or(2) as u8;
        if known == 2 {
            let difference = i64::from(path) - i64::from(self.predictor.last_path());
            put_varint(column, zigzag(difference as u64));
        }
        self.predictor.learn_path(path);
        known
    }
}

/// How a value is found again; what is needed for it goes into a column.
#[inline]
fn mark(guess: &Guess, value: u64, columns: &mut [Vec<u8>; COLUMNS]) -> u8 {
    if guess.best() == value {
        return 0;
    }
    let others = guess.others();
    if let Some(n) = others[..2].iter().position(|g| *g == value) {
        return 1 + n as u8;
    }
    let difference = zigzag(value.wrapping_sub(guess.base));
    let length = (8 - difference.leading_zeros() as usize / 8).max(1);
    columns[DIFFERENCES + length].extend(&difference.to_le_bytes()[..length]);
    FIRST_LENGTH + length as u8
}

impl Unpacker {
    /// Begins.
    pub fn new() -> std::io::Result<Unpacker> {
        let zstd = zstd::bulk::Decompressor::new()?;
        Ok(Unpacker { predictor: Predictor::new(Guessing::default()), zstd })
    }

    /// The segment that was packed; `None` if the bytes are not those of one.
    pub fn unpack(&mut self, mut bytes: &[u8], model: &Model) -> Option<Unpacked> {
        let records = take_u32(&mut bytes)? as usize;
        let captures = take_u32(&mut bytes)? as usize;
        if records > crate::SEGMENT || captures > records.checked_mul(u16::MAX.into())? {
            return None;
        }
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        for column in &mut columns {
            let len = take_u32(&mut bytes)? as usize;
            let packed = take_u32(&mut bytes)? as usize;
            let (this, rest) = bytes.split_at_checked(packed)?;
            bytes = rest;
            if len > 9 * captures.max(records) {
                return None;
            }
            if len > 0 {
                *column = self.zstd.decompress(this, len).ok().filter(|c| c.len() == len)?;
            }
        }
        self.records(records, captures, &columns, model)
    }

    fn records(
        &mut self,
        records: usize,
        captures: usize,
        columns: &[Vec<u8>; COLUMNS],
        model: &Model,
    ) -> Option<Unpacked> {
        self.predictor.begin(model);
        let mut heads = ReadDigits::new(&columns[HEADS], HEAD, HEADS_PER_BYTE);
        let mut marks = ReadDigits::new(&columns[MARKS], MARK, MARKS_PER_BYTE);
        let mut paths_left = &columns[PATHS][..];
        let mut left: [&[u8]; 8] = std::array::from_fn(|n| &columns[DIFFERENCES + 1 + n][..]);
        let mut paths = Vec::with_capacity(records);
        let mut instructions = 0;
        let mut captured: Vec<u64> = Vec::with_capacity(captures.min(8 * records));
        for _ in 0..records {
            let head = heads.next()?;
            let path = self.path(head / 2, &mut paths_left)?;
            if path as usize >= model.paths() {
                return None;
            }
            let shape = model.path(PathId(path));
            let first = captured.len();
            for (n, origin) in shape.captures.iter().enumerate() {
                let before = &captured[first..];
                let guess = self.predictor.capture(shape.first + n, *origin, before);
                let value = match head & 1 {
                    0 => guess.best(),
                    _ => value(&guess, marks.next()?, &mut left)?,
                };
                self.predictor.learn_capture(shape.first + n, *origin, before, &guess, value);
                captured.push(value);
            }
            self.predictor.end(&shape, &captured[first..]);
            instructions += u64::from(shape.instructions);
            paths.push(PathId(path));
        }
        (captured.len() == captures).then_some(Unpacked { paths, captured, instructions })
    }

    fn path(&mut self, known: u8, column: &mut &[u8]) -> Option<u32> {
        let path = match self.predictor.path().get(usize::from(known)) {
            Some(path) => *path,
            None => {
                let difference = unzigzag(take_varint(column)?) as i64;
                u32::try_from(i64::from(self.predictor.last_path()).checked_add(difference)?).ok()?
            }
        };
        self.predictor.learn_path(path);
        Some(path)
    }
}

#[inline]
fn value(guess: &Guess, mark: u8, left: &mut [&[u8]; 8]) -> Option<u64> {
    if mark == 0 {
        return Some(guess.best());
    }
    if mark < FIRST_LENGTH {
        return Some(guess.others()[usize::from(mark) - 1]);
    }
    let length = usize::from(mark - FIRST_LENGTH);
    let column = left.get_mut(length.checked_sub(1)?)?;
    let (this, rest) = column.split_at_checked(length)?;
    *column = rest;
    let mut bytes = [0; 8];
    bytes[..length].copy_from_slice(this);
    Some(guess.base.wrapping_add(unzigzag(u64::from_le_bytes(bytes))))
}

fn zigzag(n: u64) -> u64 {
    n << 1 ^ ((n as i64) >> 63) as u64
}

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
    use crate::code::Code;
    use engine::trace::Unit;

    /// `mov rax,[rdi]; mov rcx,[rax]; add rdi,8; jmp` and `mov rax,[rdi]; ret`.
    fn model() -> Model {
        let unit = |first_path, start: u64, code: &[&[u8]], paths: &[(u16, u16)]| Unit {
            first_path,
            instructions: code
                .iter()
                .enumerate()
                .map(|(n, bytes)| (start + 4 * n as u64, bytes.to_vec()))
                .collect(),
            paths: paths.to_vec(),
        };
        let mut code = Code::default();
        let walk: [&[u8]; 4] =
            [&[0x48, 0x8b, 7], &[0x48, 0x8b, 8], &[0x48, 0x83, 0xc7, 8], &[0xeb, 0xf4]];
        code.add(&unit(0, 0x1000, &walk, &[(4, 2)]));
        code.add(&unit(1, 0x2000, &[&[0x48, 0x8b, 7], &[0xc3]], &[(2, 2)]));
        let mut model = Model::default();
        model.extend(&code);
        model
    }

    fn round_trip(paths: &[u32], captured: &[u64]) -> usize {
        let model = model();
        let paths: Vec<PathId> = paths.iter().map(|p| PathId(*p)).collect();
        let mut packer = Packer::new(Guessing::default()).unwrap();
        let bytes = packer.pack(&paths, captured, &model).unwrap();
        let again = Unpacker::new().unwrap().unpack(&bytes, &model).unwrap();
        assert_eq!((again.paths, &again.captured[..]), (paths, captured));
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
        let model = model();
        let mut packer = Packer::new(Guessing::default()).unwrap();
        let bytes = packer.pack(&[PathId(0); 9], &[5; 18], &model).unwrap();
        let mut unpacker = Unpacker::new().unwrap();
        for cut in 0..bytes.len() {
            assert!(unpacker.unpack(&bytes[..cut], &model).is_none());
        }
    }
}
