//! Vector instructions whose data selects: blends, variable shuffles, masks, tests.

use super::access::{Access, Address};
use super::builder::Builder;
use super::lanes::exceptions;
use super::place::Place;
use super::shuffles::{self, Pick, Setting};
use super::vector::{Kind, pair};
use super::{Cell, Shape};

const RDI: u8 = 7;
const ROUNDING: Place = Place::Cells { first: Cell::MXCSR.number(), len: 1 };

pub(super) fn apply(b: &mut Builder<'_>, kind: Kind) -> bool {
    match kind {
        Kind::Blend(width) => blend(b, width),
        Kind::ShuffleBytes => shuffle_bytes(b),
        Kind::Permute(4) if b.control().is_some() => shuffles::one(b, shuffles::doublewords),
        Kind::Permute(_) if b.control().is_some() => shuffles::one(b, quadwords),
        Kind::Permute(width) => permute(b, width),
        Kind::PermuteAcross(width) => permute_across(b, width),
        Kind::Signs(width) => signs(b, width),
        Kind::Test(width) => test(b, width),
        Kind::Compare(width) => compare(b, width),
        Kind::Masked(width) => masked(b, width),
        Kind::MaskedBytes => masked_bytes(b),
        Kind::Gather { width, index } => gather(b, width, index),
        _ => return false,
    }
    true
}

/// `vpermilpd` with a constant: one bit per element.
fn quadwords(k: usize, s: &Setting) -> Pick {
    Pick::A((k & !15) + 8 * (s.control >> (k / 8) & 1) + k % 8)
}

/// The mask is the fourth operand, or `xmm0`.
fn blend(b: &mut Builder<'_>, width: usize) {
    let (x, y) = pair(b);
    let mask = if b.vex() { b.read(3) } else { Place::ymm(0, 16) };
    let to = b.write(0);
    if width == 1 {
        return b.flow(to, &[x, y, mask], Shape::Bytewise);
    }
    for at in (0..to.len()).step_by(width) {
        let sign = mask.byte(at + width - 1);
        let from = [x.part(at, width), y.part(at, width)];
        b.flow_also(to.part(at, width), &from, Shape::Bytewise, &[sign]);
    }
}

/// `pshufb`: each byte of the second source selects one of 16, or zero.
fn shuffle_bytes(b: &mut Builder<'_>) {
    let (value, selector) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(16) {
        let lane = value.part(at, 16);
        b.flow_also(to.part(at, 16), &[selector.part(at, 16)], Shape::Bytewise, &[lane]);
    }
}

/// Of every selector only the lowest byte counts.
fn permute(b: &mut Builder<'_>, width: usize) {
    let (value, selector) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(width) {
        let lane = value.part(at & !15, 16);
        selected(b, to.part(at, width), lane, selector.byte(at));
    }
}

fn permute_across(b: &mut Builder<'_>, width: usize) {
    let (selector, value) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(width) {
        selected(b, to.part(at, width), value, selector.byte(at));
    }
}

/// One element of `values`: byte i is byte i of some element.
fn selected(b: &mut Builder<'_>, to: Place, values: Place, selector: Place) {
    let width = to.len();
    let candidates: Vec<Place> =
        (0..values.len()).step_by(width).map(|at| values.part(at, width)).collect();
    b.flow_also(to, &candidates, Shape::Bytewise, &[selector]);
}

/// `pmovmskb` and kin: bit i of the result is the sign of element i.
fn signs(b: &mut Builder<'_>, width: usize) {
    let from = b.read(1);
    let to = b.write(0);
    let count = from.len() / width;
    for k in 0..to.len() {
        let tops: Vec<Place> = (8 * k..count.min(8 * k + 8))
            .map(|element| from.byte(element * width + width - 1))
            .collect();
        b.flow(to.byte(k), &tops, Shape::Whole);
    }
}

/// `ptest` looks at all bits, `vtestps` at signs. CF tells whether the second source
/// has bits beyond the first: never, if they are the same register.
fn test(b: &mut Builder<'_>, width: usize) {
    let same = b.same(0, 1);
    let (x, y) = (b.read(0), b.read(1));
    let looked_at = |place: Place| match width {
        0 => vec![place],
        _ => (0..place.len() / width).map(|k| place.byte(k * width + width - 1)).collect(),
    };
    let from = [looked_at(x), looked_at(y)].concat();
    b.flags(&[Cell::ZF], &from);
    b.flags(&[Cell::CF], if same { &[] } else { &from });
    b.flags(&[Cell::OF, Cell::AF, Cell::PF, Cell::SF], &[]);
}

fn compare(b: &mut Builder<'_>, width: usize) {
    let (x, y) = (b.read_low(0, width), b.read_low(1, width));
    b.flags(&[Cell::ZF, Cell::PF, Cell::CF], &[x, y, ROUNDING]);
    b.flags(&[Cell::OF, Cell::SF, Cell::AF], &[]);
    exceptions(b, &[x, y]);
}

/// `vmaskmov`: loads clear what is not selected, stores leave it.
fn masked(b: &mut Builder<'_>, width: usize) {
    let mask = b.read(1);
    let store = b.is_memory(0);
    let from = b.read(2);
    let to = if store { b.modify(0) } else { b.write(0) };
    for at in (0..to.len()).step_by(width) {
        let part = to.part(at, width);
        let mut sources = vec![from.part(at, width)];
        if store {
            sources.push(part);
        }
        b.flow_also(part, &sources, Shape::Bytewise, &[mask.byte(at + width - 1)]);
    }
}

fn masked_bytes(b: &mut Builder<'_>) {
    let (value, mask) = (b.read(1), b.read(2));
    let mut address = Address::based(RDI, 0);
    address.segment = super::access::segment(b.i.memory_segment());
    address.wraps32 = b.i.op0_kind() == iced_x86::OpKind::MemorySegEDI;
    let access = Access { reads: true, writes: true, ..Access::new(address, 16) };
    let to = b.access(access);
    b.flow(to, &[value, mask, to], Shape::Bytewise);
}

/// Every element is loaded from an address of its own if the sign of its mask is
/// set, and kept otherwise. The mask is cleared at the end.
fn gather(b: &mut Builder<'_>, width: usize, index: usize) {
    let mask = b.read(2);
    let memory = b.adjust(1, |access| {
        access.size = width as u32;
        access.reads = true;
    });
    let to = b.write(0);
    let indices = if b.i.memory_index().is_ymm() { 32 } else { 16 } / index;
    let count = indices.min(to.len() / width);
    for k in 0..count {
        let part = to.part(k * width, width);
        let sign = mask.byte(k * width + width - 1);
        b.flow_also(part, &[memory, part], Shape::Bytewise, &[sign]);
    }
    if count * width < to.len() {
        b.constant(to.part(count * width, to.len() - count * width));
    }
    b.constant(mask);
    b.clear_above(b.i.op_register(2));
}
