//! Packed and scalar arithmetic: element i of the result from element i of the
//! sources.

use super::builder::Builder;
use super::place::Place;
use super::vector::{Kind, first_source, pair};
use super::{Cell, Shape, integer, shifts};
use iced_x86::Mnemonic;

const ROUNDING: Place = Place::Cells { first: Cell::MXCSR.number(), len: 1 };

pub(super) fn apply(b: &mut Builder<'_>, kind: Kind) -> bool {
    match kind {
        Kind::Bitwise => packed(b, Form::plain(1)),
        Kind::BitwiseCancels => packed(b, Form { cancels: true, ..Form::plain(1) }),
        Kind::Packed(width) => packed(b, Form::plain(width)),
        Kind::Cancels(width) => packed(b, Form { cancels: true, ..Form::plain(width) }),
        Kind::Sum(width) => packed(b, Form { shape: Shape::Upward, ..Form::plain(width) }),
        Kind::Difference(width) => {
            let shape = Shape::Upward;
            packed(b, Form { shape, cancels: true, ..Form::plain(width) });
        }
        Kind::Float(width) => packed(b, Form { float: true, ..Form::plain(width) }),
        Kind::Unary(width) => unary(b, width, false),
        Kind::FloatUnary(width) => unary(b, width, true),
        Kind::FloatScalar(width) => scalar(b, width),
        Kind::Scalar { to, from, float } => scalar_from(b, to, from, float),
        Kind::Convert { from, to, float } => convert(b, from, to, float),
        Kind::Extend { from, to, signed } => extend(b, from, to, signed),
        Kind::Horizontal { width, float } => horizontal(b, width, float),
        Kind::Pack(width) => pack(b, width),
        Kind::MultiplyEven => multiply_even(b),
        Kind::Differences => differences(b),
        Kind::Shift { width, to } => shift(b, width, to),
        Kind::Fused { width, scalar } if b.i.op_count() == 3 => fused(b, width, scalar),
        Kind::ToInteger(width) => to_integer(b, width),
        _ => return false,
    }
    true
}

/// How elements of `width` bytes are combined.
#[derive(Clone, Copy)]
struct Form {
    width: usize,
    shape: Shape,
    cancels: bool,
    float: bool,
}

impl Form {
    fn plain(width: usize) -> Form {
        Form { width, shape: Shape::Whole, cancels: false, float: false }
    }
}

/// The exceptions that floating-point arithmetic on these operands may add.
pub(super) fn exceptions(b: &mut Builder<'_>, from: &[Place]) {
    let cell = Place::of(Cell::EXCEPTIONS);
    b.flow_also(cell, &[cell], Shape::Bytewise, &[from, &[ROUNDING]].concat());
}

fn rounding(float: bool) -> &'static [Place] {
    if float { &[ROUNDING] } else { &[] }
}

fn packed(b: &mut Builder<'_>, form: Form) {
    let first = first_source(b);
    if form.cancels && b.same(first, first + 1) {
        let to = b.write(0);
        return b.constant(to);
    }
    let (x, y) = pair(b);
    let to = b.write(0);
    elements(b, to, &[x, y], form);
    if form.float {
        exceptions(b, &[x, y]);
    }
}

/// Element by element; one flow for all if elements are bytes.
fn elements(b: &mut Builder<'_>, to: Place, from: &[Place], form: Form) {
    if form.width == 1 {
        return b.flow_also(to, from, Shape::Bytewise, rounding(form.float));
    }
    for at in (0..to.len()).step_by(form.width) {
        let parts: Vec<Place> = from.iter().map(|place| place.part(at, form.width)).collect();
        b.flow_also(to.part(at, form.width), &parts, form.shape, rounding(form.float));
    }
}

fn unary(b: &mut Builder<'_>, width: usize, float: bool) {
    let from = b.read(1);
    let to = b.write(0);
    elements(b, to, &[from], Form { float, ..Form::plain(width) });
    if float {
        exceptions(b, &[from]);
    }
}

/// With a VEX prefix, what is above the lowest element comes from the first source;
/// without, it stays.
pub(super) fn keep_rest(b: &mut Builder<'_>, to: Place, first: Place, width: usize) {
    if b.vex() && to != first {
        let len = to.len() - width;
        b.flow(to.part(width, len), &[first.part(width, len)], Shape::Bytewise);
    }
}

fn scalar(b: &mut Builder<'_>, width: usize) {
    let first = first_source(b);
    let x = b.read(first);
    let y = b.read_low(first + 1, width);
    let from = [x.low(width), y];
    let to = b.write(0);
    b.flow_also(to.low(width), &from, Shape::Whole, &[ROUNDING]);
    keep_rest(b, to, x, width);
    exceptions(b, &from);
}

fn scalar_from(b: &mut Builder<'_>, width: usize, from: usize, float: bool) {
    let first = first_source(b);
    let rest = b.read(first);
    let source = if from == 0 { b.read(first + 1) } else { b.read_low(first + 1, from) };
    let to = b.write(0);
    b.flow_also(to.low(width), &[source], Shape::Whole, rounding(float));
    keep_rest(b, to, rest, width);
    if float {
        exceptions(b, &[source]);
    }
}

/// Elements that have no counterpart in the source are cleared.
fn convert(b: &mut Builder<'_>, from: usize, size: usize, float: bool) {
    let source = b.read(1);
    let to = b.write(0);
    let count = (source.len() / from).min(to.len() / size);
    let source = source.low(count * from);
    for k in 0..count {
        let element = source.part(k * from, from);
        b.flow_also(to.part(k * size, size), &[element], Shape::Whole, rounding(float));
    }
    if count * size < to.len() {
        b.constant(to.part(count * size, to.len() - count * size));
    }
    if float {
        exceptions(b, &[source]);
    }
}

fn extend(b: &mut Builder<'_>, from: usize, size: usize, signed: bool) {
    let source = b.read(1);
    let to = b.write(0);
    for k in 0..to.len() / size {
        let element = source.part(k * from, from);
        integer::extend_to(b, to.part(k * size, size), element, signed);
    }
}

/// In every 16 bytes: the lower half from pairs of the first source, the upper half
/// from pairs of the second.
fn horizontal(b: &mut Builder<'_>, width: usize, float: bool) {
    let (x, y) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(width) {
        let source = if at % 16 < 8 { x } else { y };
        let neighbours = source.part((at & !15) + at % 8 * 2, 2 * width);
        b.flow_also(to.part(at, width), &[neighbours], Shape::Whole, rounding(float));
    }
    if float {
        exceptions(b, &[x, y]);
    }
}

fn pack(b: &mut Builder<'_>, width: usize) {
    let (x, y) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(width / 2) {
        let source = if at % 16 < 8 { x } else { y };
        let element = source.part((at & !15) + at % 8 * 2, width);
        b.flow(to.part(at, width / 2), &[element], Shape::Whole);
    }
}

fn multiply_even(b: &mut Builder<'_>) {
    let (x, y) = pair(b);
    let to = b.write(0);
    for at in (0..to.len()).step_by(8) {
        let from = [x.part(at, 4), y.part(at, 4)];
        b.flow(to.part(at, 4), &from, Shape::Upward);
        b.flow(to.part(at + 4, 4), &from, Shape::Whole);
    }
}

fn differences(b: &mut Builder<'_>) {
    let first = first_source(b);
    let same = b.same(first, first + 1);
    let (x, y) = pair(b);
    let to = b.write(0);
    if same {
        return b.constant(to);
    }
    for at in (0..to.len()).step_by(8) {
        b.flow(to.part(at, 2), &[x.part(at, 8), y.part(at, 8)], Shape::Whole);
        b.constant(to.part(at + 2, 6));
    }
}

/// By a constant, to the byte; by the low eight bytes of a register, to the element.
fn shift(b: &mut Builder<'_>, width: usize, direction: Mnemonic) {
    let first = first_source(b);
    let value = b.read(first);
    let count = b.read_low(first + 1, 8);
    let by = b.control();
    let to = b.write(0);
    for at in (0..to.len()).step_by(width) {
        let (part, element) = (to.part(at, width), value.part(at, width));
        match by {
            Some(by) => shifts::lane(b, part, element, direction, by),
            None => b.flow(part, &[element, count], Shape::Whole),
        }
    }
}

fn fused(b: &mut Builder<'_>, width: usize, scalar: bool) {
    let to = b.modify(0);
    let from = [to, b.read(1), b.read(2)];
    if scalar {
        let from = from.map(|place| place.low(width));
        b.flow_also(to.low(width), &from, Shape::Whole, &[ROUNDING]);
        exceptions(b, &from);
    } else {
        elements(b, to, &from, Form { float: true, ..Form::plain(width) });
        exceptions(b, &from);
    }
}

fn to_integer(b: &mut Builder<'_>, width: usize) {
    let from = b.read_low(1, width);
    let to = b.write(0);
    b.flow_also(to, &[from], Shape::Whole, &[ROUNDING]);
    exceptions(b, &[from]);
}
