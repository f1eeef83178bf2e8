//! Shuffles whose pattern is in the instruction: where byte `k` comes from.

use super::builder::Builder;
use super::place::Place;
use super::vector::pair;

/// Where a byte of the result comes from.
pub(super) enum Pick {
    /// A byte of the first source, or the only one.
    A(usize),
    /// A byte of the second source.
    B(usize),
    /// It is cleared.
    Zero,
}

/// What the pattern depends on.
pub(super) struct Setting {
    /// The immediate operand.
    pub control: usize,
    /// Whether the second source is in memory.
    pub memory: bool,
}

use Pick::{A, B, Zero};

/// Applies a pattern to one source.
pub(super) fn one(b: &mut Builder<'_>, of: fn(usize, &Setting) -> Pick) {
    // `pslldq` names its register once, unless a VEX prefix names two.
    let source = if b.i.op_count() == 2 && b.immediate(1).is_some() { 0 } else { 1 };
    let a = b.read(source);
    place(b, a, Place::Constant, of);
}

/// Applies a pattern to two sources.
pub(super) fn two(b: &mut Builder<'_>, of: fn(usize, &Setting) -> Pick) {
    let (first, second) = pair(b);
    place(b, first, second, of);
}

fn place(b: &mut Builder<'_>, first: Place, second: Place, of: fn(usize, &Setting) -> Pick) {
    let setting = Setting {
        control: b.control().unwrap_or_default().into(),
        memory: matches!(second, Place::Memory { .. }),
    };
    let to = b.write(0);
    b.moved_bytes(to, |k| match of(k, &setting) {
        A(byte) => vec![first.byte(byte)],
        B(byte) => vec![second.byte(byte)],
        Zero => Vec::new(),
    });
}

/// The 16 bytes that byte `k` is in: most AVX shuffles stay inside them.
fn lane(k: usize) -> usize {
    k & !15
}

fn two_bits(control: usize, n: usize) -> usize {
    control >> (2 * n) & 3
}

pub(super) fn doublewords(k: usize, s: &Setting) -> Pick {
    A(lane(k) + 4 * two_bits(s.control, k % 16 / 4) + k % 4)
}

pub(super) fn low_words(k: usize, s: &Setting) -> Pick {
    match k % 16 {
        low @ 0..8 => A(lane(k) + 2 * two_bits(s.control, low / 2) + k % 2),
        _ => A(k),
    }
}

pub(super) fn high_words(k: usize, s: &Setting) -> Pick {
    match k % 16 {
        0..8 => A(k),
        high => A(lane(k) + 8 + 2 * two_bits(s.control, (high - 8) / 2) + k % 2),
    }
}

pub(super) fn low_quadwords(k: usize, _: &Setting) -> Pick {
    A(lane(k) + k % 8)
}

pub(super) fn even_doublewords(k: usize, _: &Setting) -> Pick {
    A(k & !4)
}

pub(super) fn odd_doublewords(k: usize, _: &Setting) -> Pick {
    A(k | 4)
}

pub(super) fn bytes_up(k: usize, s: &Setting) -> Pick {
    if k % 16 < s.control { Zero } else { A(k - s.control) }
}

pub(super) fn bytes_down(k: usize, s: &Setting) -> Pick {
    if k % 16 + s.control > 15 { Zero } else { A(k + s.control) }
}

pub(super) fn quadwords_across(k: usize, s: &Setting) -> Pick {
    A(8 * two_bits(s.control, k / 8) + k % 8)
}

pub(super) fn repeat<const WIDTH: usize>(k: usize, _: &Setting) -> Pick {
    A(k % WIDTH)
}

pub(super) fn two_and_two(k: usize, s: &Setting) -> Pick {
    let byte = lane(k) + 4 * two_bits(s.control, k % 16 / 4) + k % 4;
    if k % 16 < 8 { A(byte) } else { B(byte) }
}

pub(super) fn one_and_one(k: usize, s: &Setting) -> Pick {
    let byte = lane(k) + 8 * (s.control >> (k / 8) & 1) + k % 8;
    if k % 16 < 8 { A(byte) } else { B(byte) }
}

/// Elements in turn from both, beginning at byte `FROM` of each 16.
pub(super) fn interleave<const WIDTH: usize, const FROM: usize>(k: usize, _: &Setting) -> Pick {
    let element = k % 16 / WIDTH;
    let byte = lane(k) + FROM + element / 2 * WIDTH + k % WIDTH;
    if element.is_multiple_of(2) { A(byte) } else { B(byte) }
}

/// 16 bytes out of the 32 of the first source above the second.
pub(super) fn align(k: usize, s: &Setting) -> Pick {
    match k % 16 + s.control {
        byte @ 0..16 => B(lane(k) + byte),
        byte @ 16..32 => A(lane(k) + byte - 16),
        _ => Zero,
    }
}

pub(super) fn insert_single(k: usize, s: &Setting) -> Pick {
    let element = k / 4;
    let chosen = if s.memory { 0 } else { 4 * two_bits(s.control, 3) };
    match (s.control >> element & 1, two_bits(s.control, 2) == element) {
        (1, _) => Zero,
        (_, true) => B(chosen + k % 4),
        _ => A(k),
    }
}

pub(super) fn high_to_low(k: usize, _: &Setting) -> Pick {
    if k < 8 { B(k + 8) } else { A(k) }
}

pub(super) fn low_to_high(k: usize, _: &Setting) -> Pick {
    if k < 8 { A(k) } else { B(k - 8) }
}

pub(super) fn blend<const WIDTH: usize>(k: usize, s: &Setting) -> Pick {
    if s.control >> (k / WIDTH) & 1 == 0 { A(k) } else { B(k) }
}

/// Both halves of a `ymm` register follow the same eight bits.
pub(super) fn blend_words(k: usize, s: &Setting) -> Pick {
    if s.control >> (k % 16 / 2) & 1 == 0 { A(k) } else { B(k) }
}

pub(super) fn halves(k: usize, s: &Setting) -> Pick {
    let control = s.control >> (k / 16 * 4);
    let byte = 16 * (control & 1) + k % 16;
    match control & 0xa {
        0 => A(byte),
        2 => B(byte),
        _ => Zero,
    }
}

pub(super) fn insert_half(k: usize, s: &Setting) -> Pick {
    if k / 16 == s.control & 1 { B(k % 16) } else { A(k) }
}
