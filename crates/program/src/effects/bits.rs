//! Single bits: testing, counting, selecting.

use super::builder::Builder;
use super::place::Place;
use super::{Cell, Cells, Shape};
use iced_x86::Mnemonic;

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    match b.i.mnemonic() {
        Bt => bit(b, false),
        Bts | Btr | Btc => bit(b, true),
        Bsf | Bsr => scan(b),
        Popcnt | Lzcnt | Tzcnt => count(b),
        Blsi | Blsr | Blsmsk => lowest_set(b),
        Bextr => extract(b),
        Bzhi => clear_high(b),
        Pdep => {
            let (from, mask) = (b.read(1), b.read(2));
            let to = b.write(0);
            b.flow(to, &[from, mask], Shape::Upward);
        }
        Pext => gather(b),
        Crc32 => checksum(b),
        _ => return false,
    }
    true
}

/// The flags that iced calls written, from all of `from`; cleared and undefined
/// ones as such.
fn flags(b: &mut Builder<'_>, from: &[Place]) {
    b.flag_set(Cells::of_flags(b.i.rflags_written()), from);
    b.constant_flags();
    b.undefined_flags(from);
}

/// `bt` and its kin. A register as bit number reaches beyond a memory operand.
fn bit(b: &mut Builder<'_>, changes: bool) {
    let value = if changes { b.modify(0) } else { b.read(0) };
    let number = b.immediate(1).map(|bit| bit as usize % (8 * value.len()) / 8);
    if let Some(byte) = number {
        let place = value.byte(byte);
        b.flags(&[Cell::CF], &[place]);
        if changes {
            b.flow(place, &[place], Shape::Bytewise);
        }
        b.undefined_flags(&[place]);
        return;
    }
    let index = b.read(1);
    if b.is_memory(0) {
        let register = (b.i.op1_register().number() as u8, index.len() as u8);
        b.adjust(0, |access| access.address.bit_index = Some(register));
    }
    let from = [value, index.low(1)];
    b.flags(&[Cell::CF], &from);
    if changes {
        b.flow_also(value, &[value], Shape::Bytewise, &[index.low(1)]);
    }
    b.undefined_flags(&from);
}

/// `bsf`, `bsr`: without a set bit the target keeps its value, the upper half too.
fn scan(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.read(0);
    let to = if to.len() == 4 { to.stretched(8) } else { to };
    b.flow_also(to, &[to], Shape::Bytewise, &[from]);
    b.flags(&[Cell::ZF], &[from]);
    b.undefined_flags(&[from]);
}

/// A count fits into the lowest byte.
fn count(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.write(0);
    b.flow(to.low(1), &[from], Shape::Whole);
    b.constant(to.part(1, to.len() - 1));
    flags(b, &[from]);
}

/// `blsi`, `blsr`, `blsmsk` add or subtract one somewhere: carries go upward.
fn lowest_set(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.write(0);
    b.flow(to, &[from], Shape::Upward);
    flags(b, &[from]);
}

/// `bextr`: byte 0 of the control is the first bit, byte 1 the number of bits.
fn extract(b: &mut Builder<'_>) {
    let (from, control) = (b.read(1), b.read_low(2, 2));
    let to = b.write(0);
    for k in 0..to.len() {
        b.flow(to.byte(k), &[from.part(k, from.len() - k), control], Shape::Whole);
    }
    flags(b, &[from, control]);
}

fn clear_high(b: &mut Builder<'_>) {
    let (from, count) = (b.read(1), b.read(2).low(1));
    let to = b.write(0);
    b.flow_also(to, &[from], Shape::Bytewise, &[count]);
    b.flags(&[Cell::CF], &[count]);
    b.flags(&[Cell::ZF], &[from, count]);
    b.flags(&[Cell::SF], &[from.top(), count]);
    b.constant_flags();
    b.undefined_flags(&[from, count]);
}

/// `pext` moves bits down only; where to depends on the whole mask.
fn gather(b: &mut Builder<'_>) {
    let (from, mask) = (b.read(1), b.read(2));
    let to = b.write(0);
    for k in 0..to.len() {
        b.flow(to.byte(k), &[from.part(k, from.len() - k), mask], Shape::Whole);
    }
}

fn checksum(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.write(0);
    let sum = to.low(4);
    b.flow(sum, &[sum, from], Shape::Whole);
    if to.len() == 8 {
        b.constant(to.part(4, 4));
    }
}
