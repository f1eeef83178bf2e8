//! Moves between vector registers, general registers and memory.

use super::Shape;
use super::builder::Builder;
use super::lanes::keep_rest;
use super::place::Place;
use super::shuffles;
use super::vector::{Kind, first_source};

pub(super) fn apply(b: &mut Builder<'_>, kind: Kind) -> bool {
    match kind {
        Kind::Move => {
            let from = b.read(1);
            let to = b.write(0);
            b.flow(to, &[from], Shape::Bytewise);
        }
        Kind::MoveScalar(width) => scalar(b, width),
        Kind::MoveLow(width) => low(b, width),
        Kind::MoveHalf { high } => half(b, if high { 8 } else { 0 }),
        Kind::Extract(width) => extract(b, width),
        Kind::ExtractHalf => {
            let at = 16 * usize::from(b.control().unwrap_or_default() & 1);
            let from = b.read(1).part(at, 16);
            let to = b.write(0);
            b.flow(to, &[from], Shape::Bytewise);
        }
        Kind::Insert(width) => insert(b, width),
        Kind::Shuffle(pattern) => shuffles::one(b, pattern),
        Kind::Shuffle2(pattern) => shuffles::two(b, pattern),
        Kind::Zero(from) => {
            for number in 0..16 {
                b.constant(Place::ymm(number, 32).part(from, 32 - from));
            }
        }
        _ => return false,
    }
    true
}

/// Copies `from` to the beginning of `to`; what is above is cleared.
fn copy_and_clear(b: &mut Builder<'_>, to: Place, from: Place) {
    let len = from.len().min(to.len());
    b.flow(to.low(len), &[from.low(len)], Shape::Bytewise);
    if len < to.len() {
        b.constant(to.part(len, to.len() - len));
    }
}

/// `movss`, `movsd`: a load clears what is above, a move between registers does not.
fn scalar(b: &mut Builder<'_>, width: usize) {
    let last = b.i.op_count() - 1;
    let from = b.read_low(last, width);
    let to = b.write(0);
    if b.is_memory(0) {
        b.flow(to, &[from], Shape::Bytewise);
    } else if b.is_memory(last) {
        copy_and_clear(b, to, from);
    } else {
        b.flow(to.low(width), &[from], Shape::Bytewise);
        let first = b.read(first_source(b));
        keep_rest(b, to, first, width);
    }
}

/// `movd`, `movq`: whatever the target, the rest of it is cleared. With a 64-bit
/// operand `movd` is called `movq`.
fn low(b: &mut Builder<'_>, width: usize) {
    let from = b.read_low(1, width);
    let to = b.write(0);
    copy_and_clear(b, to, from);
}

/// `movlps`, `movhps`: between memory and half a register.
fn half(b: &mut Builder<'_>, at: usize) {
    if b.is_memory(0) {
        let from = b.read(1).part(at, 8);
        let to = b.write(0);
        return b.flow(to, &[from], Shape::Bytewise);
    }
    let first = first_source(b);
    let rest = b.read(first);
    let from = b.read_low(first + 1, 8);
    let to = b.write(0);
    b.flow(to.part(at, 8), &[from], Shape::Bytewise);
    if b.vex() && to != rest {
        b.flow(to.part(8 - at, 8), &[rest.part(8 - at, 8)], Shape::Bytewise);
    }
}

fn extract(b: &mut Builder<'_>, width: usize) {
    let element = usize::from(b.control().unwrap_or_default()) % (16 / width);
    let from = b.read(1).part(element * width, width);
    let to = b.write(0);
    copy_and_clear(b, to, from);
}

fn insert(b: &mut Builder<'_>, width: usize) {
    let element = usize::from(b.control().unwrap_or_default()) % (16 / width);
    let first = first_source(b);
    let rest = b.read(first);
    let from = b.read_low(first + 1, width);
    let to = b.write(0);
    b.moved_bytes(to, |k| {
        vec![if k / width == element { from.byte(k % width) } else { rest.byte(k) }]
    });
}
