//! Sums, differences, products, quotients, and bitwise operations.

use super::builder::Builder;
use super::place::Place;
use super::{Cell, Cells, Shape};
use iced_x86::Mnemonic;

const RAX: u8 = 0;
const RDX: u8 = 2;
const CARRY: Place = Place::Cells { first: Cell::CF.number(), len: 1 };
const OVERFLOW: Place = Place::Cells { first: Cell::OF.number(), len: 1 };

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    match b.i.mnemonic() {
        Sub | Cmp if b.same(0, 1) => nothing_left(b),
        Xor if b.same(0, 1) => zeroed(b),
        Sbb if b.same(0, 1) => borrow_only(b),
        Add | Sub => sum(b, true, &[]),
        Cmp => sum(b, false, &[]),
        Adc | Sbb => sum(b, true, &[CARRY]),
        Inc | Dec => step(b),
        Neg => negate(b),
        And | Or | Xor => bitwise(b, true),
        Test => bitwise(b, false),
        Not => {
            let to = b.modify(0);
            b.flow(to, &[to], Shape::Bytewise);
        }
        Andn => and_not(b),
        Mul => multiply(b),
        Imul if b.i.op_count() == 1 => multiply(b),
        Imul => multiply_low(b),
        Mulx => multiply_apart(b),
        Div | Idiv => divide(b),
        Adcx => carry_chain(b, Cell::CF, CARRY),
        Adox => carry_chain(b, Cell::OF, OVERFLOW),
        _ => return false,
    }
    true
}

/// The difference of a register and itself: zero, and so are its flags.
fn nothing_left(b: &mut Builder<'_>) {
    if b.i.mnemonic() == Mnemonic::Sub {
        let to = b.write(0);
        b.constant(to);
    }
    b.flag_set(Cells::status(), &[]);
}

fn zeroed(b: &mut Builder<'_>) {
    let to = b.write(0);
    b.constant(to);
    let flags = [Cell::CF, Cell::PF, Cell::ZF, Cell::SF, Cell::OF];
    b.flags(&flags, &[]);
    b.undefined_flags(&[]);
}

/// `sbb r, r` is 0 or -1: parity is even and overflow impossible either way, and the
/// carry stays.
fn borrow_only(b: &mut Builder<'_>) {
    let to = b.write(0);
    b.flow(to, &[CARRY], Shape::Whole);
    b.flags(&[Cell::AF, Cell::ZF, Cell::SF], &[CARRY]);
    b.flags(&[Cell::PF, Cell::OF], &[]);
}

/// Addition, subtraction, comparison.
fn sum(b: &mut Builder<'_>, keeps_result: bool, carry: &[Place]) {
    let to = if keeps_result { b.modify(0) } else { b.read(0) };
    let from = b.read(1);
    let constant = b.immediate(1).filter(|_| carry.is_empty());
    // Bytes below the first that a constant changes stay, and pass no carry on.
    let still = constant.map_or(0, |value| value.trailing_zeros() as usize / 8).min(to.len());
    let rest = |place: Place| match place {
        Place::Constant => place,
        _ => place.part(still, to.len() - still),
    };
    if keeps_result && still < to.len() {
        b.flow_also(rest(to), &[rest(to), rest(from)], Shape::Upward, carry);
    }
    match constant {
        Some(constant) => sum_flags_with_constant(b, to, constant, still),
        None => sum_flags(b, to, from, carry),
    }
}

/// Flags of the sum or difference of `x` and a constant, whose lowest `still` bytes
/// are zero.
fn sum_flags_with_constant(b: &mut Builder<'_>, x: Place, constant: u64, still: usize) {
    b.flags(&[Cell::ZF], &[x]);
    b.flags(&[Cell::PF], &[x.low(1)]);
    let half: &[Place] = if constant & 0xf == 0 { &[] } else { &[x.low(1)] };
    b.flags(&[Cell::AF], half);
    if still == x.len() {
        b.flags(&[Cell::CF, Cell::OF], &[]);
        b.flags(&[Cell::SF], &[x.top()]);
    } else {
        b.flags(&[Cell::CF, Cell::SF, Cell::OF], &[x.part(still, x.len() - still)]);
    }
}

pub(super) fn sum_flags(b: &mut Builder<'_>, x: Place, y: Place, carry: &[Place]) {
    let all = [&[x, y], carry].concat();
    b.flags(&[Cell::CF, Cell::ZF, Cell::SF, Cell::OF], &all);
    low_flags(b, x, y, carry);
}

/// Parity and the carry out of the lowest four bits look at the lowest byte only.
fn low_flags(b: &mut Builder<'_>, x: Place, y: Place, carry: &[Place]) {
    let low = [&[x.low(1), y.low(1)], carry].concat();
    b.flags(&[Cell::PF, Cell::AF], &low);
}

/// `inc`, `dec`: as a sum, but the carry flag stays.
fn step(b: &mut Builder<'_>) {
    let to = b.modify(0);
    b.flow(to, &[to], Shape::Upward);
    b.flags(&[Cell::ZF, Cell::SF, Cell::OF], &[to]);
    low_flags(b, to, Place::Constant, &[]);
}

fn negate(b: &mut Builder<'_>) {
    let to = b.modify(0);
    b.flow(to, &[to], Shape::Upward);
    sum_flags(b, to, Place::Constant, &[]);
}

/// `and`, `or`, `xor`, `test`. A byte that the constant decides has no source, and
/// one that it leaves alone is not defined.
fn bitwise(b: &mut Builder<'_>, keeps_result: bool) {
    let to = if keeps_result { b.modify(0) } else { b.read(0) };
    let from = b.read(1);
    let decided = decided_by_constant(b);
    let kept = kept_by_constant(b) | if from == to { u64::MAX } else { 0 };
    let byte = |mask: u64, k: usize| mask >> (8 * k) & 0xff == 0xff;
    let sources = |k: usize| match from {
        _ if byte(decided, k) => Vec::new(),
        _ if from == Place::Constant || from == to => vec![to.byte(k)],
        _ => vec![to.byte(k), from.byte(k)],
    };
    if keeps_result {
        b.bytes_unless(to, sources, |k| byte(kept, k));
    }
    b.flags(&[Cell::CF, Cell::OF], &[]);
    let never_zero = b.i.mnemonic() == Mnemonic::Or && decided != 0;
    let all = if never_zero { Vec::new() } else { (0..to.len()).flat_map(sources).collect() };
    b.flags(&[Cell::ZF], &all);
    b.flags(&[Cell::PF], &sources(0));
    let top = to.len() - 1;
    let sign_decided = decided >> (8 * top + 7) & 1 != 0;
    b.flags(&[Cell::SF], &if sign_decided { Vec::new() } else { sources(top) });
    b.undefined_flags(&[to, from]);
}

/// The bits that an immediate operand leaves as they are.
fn kept_by_constant(b: &Builder<'_>) -> u64 {
    match (b.i.mnemonic(), b.immediate(1)) {
        (Mnemonic::And, Some(value)) => value,
        (Mnemonic::Or | Mnemonic::Xor, Some(value)) => !value,
        _ => 0,
    }
}

/// The bits of the result that an immediate operand alone decides.
fn decided_by_constant(b: &Builder<'_>) -> u64 {
    match (b.i.mnemonic(), b.immediate(1)) {
        (Mnemonic::And | Mnemonic::Test, Some(value)) => !value,
        (Mnemonic::Or, Some(value)) => value,
        _ => 0,
    }
}

fn and_not(b: &mut Builder<'_>) {
    let (x, y) = (b.read(1), b.read(2));
    let to = b.write(0);
    let from: &[Place] = if b.same(1, 2) { &[] } else { &[x, y] };
    b.flow(to, from, Shape::Bytewise);
    b.flags(&[Cell::CF, Cell::OF], &[]);
    b.flags(&[Cell::ZF], from);
    let tops: Vec<Place> = from.iter().map(|place| place.top()).collect();
    b.flags(&[Cell::SF], &tops);
    b.undefined_flags(from);
}

/// `mul` and one-operand `imul`. A byte of the product needs no higher byte of the
/// factors.
fn multiply(b: &mut Builder<'_>) {
    let factor = b.read(0);
    let size = factor.len();
    let rax = Place::gpr(RAX, size as u16);
    let both = [rax, factor];
    if size == 1 {
        b.flow(rax, &both, Shape::Upward);
        b.flow(Place::gpr(RAX, 2).part(1, 1), &both, Shape::Whole);
    } else {
        b.define_gpr(RAX, size, &both, Shape::Upward);
        b.define_gpr(RDX, size, &both, Shape::Whole);
    }
    product_flags(b, &both);
}

fn product_flags(b: &mut Builder<'_>, factors: &[Place]) {
    b.flags(&[Cell::CF, Cell::OF], factors);
    b.undefined_flags(factors);
}

fn multiply_low(b: &mut Builder<'_>) {
    let last = b.i.op_count() - 1;
    let (x, y) = (b.read(last - 1), b.read(last));
    let to = b.write(0);
    b.flow(to, &[x, y], Shape::Upward);
    product_flags(b, &[x, y]);
}

/// `mulx high, low, factor`. If both halves go to one register, the high one stays.
fn multiply_apart(b: &mut Builder<'_>) {
    let factor = b.read(2);
    let both = [Place::gpr(RDX, factor.len() as u16), factor];
    let high = b.write(0);
    b.flow(high, &both, Shape::Whole);
    if !b.same(0, 1) {
        let low = b.write(1);
        b.flow(low, &both, Shape::Upward);
    }
}

fn divide(b: &mut Builder<'_>) {
    let divisor = b.read(0);
    let size = divisor.len();
    let all = if size == 1 {
        vec![Place::gpr(RAX, 2), divisor]
    } else {
        vec![Place::gpr(RAX, size as u16), Place::gpr(RDX, size as u16), divisor]
    };
    if size == 1 {
        b.flow(Place::gpr(RAX, 2), &all, Shape::Whole);
    } else {
        b.define_gpr(RAX, size, &all, Shape::Whole);
        b.define_gpr(RDX, size, &all, Shape::Whole);
    }
    b.undefined_flags(&all);
}

/// `adcx`, `adox`: an addition with a carry flag of its own.
fn carry_chain(b: &mut Builder<'_>, flag: Cell, carry: Place) {
    let to = b.modify(0);
    let from = b.read(1);
    b.flow_also(to, &[to, from], Shape::Upward, &[carry]);
    b.flags(&[flag], &[to, from, carry]);
}
