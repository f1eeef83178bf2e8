//! String instructions, with and without `rep`.

use super::access::{self, Access, Address, Repeat};
use super::arithmetic::sum_flags;
use super::builder::Builder;
use super::place::Place;
use super::{Cell, Cells, Shape};
use iced_x86::{Instruction, Mnemonic, OpKind};

const RAX: u8 = 0;
const RCX: u8 = 1;
const RSI: u8 = 6;
const RDI: u8 = 7;
const DIRECTION: Place = Place::Cells { first: Cell::DF.number(), len: 1 };

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    // `movsd` and `cmpsd` are names of vector instructions too.
    if !b.i.is_string_instruction() {
        return false;
    }
    match b.i.mnemonic() {
        Movsb | Movsw | Movsd | Movsq => copy(b),
        Stosb | Stosw | Stosd | Stosq => store(b),
        Lodsb | Lodsw | Lodsd | Lodsq => load(b),
        Cmpsb | Cmpsw | Cmpsd | Cmpsq => compare(b),
        Scasb | Scasw | Scasd | Scasq => scan(b),
        _ => return false,
    }
    true
}

fn repeats(i: &Instruction) -> Option<Repeat> {
    use Mnemonic::*;
    let conditional =
        matches!(i.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq);
    let counter = if narrow(i) { 4 } else { 8 };
    (i.has_rep_prefix() || i.has_repne_prefix())
        .then(|| Repeat { counter, while_zero: conditional.then(|| i.has_rep_prefix()) })
}

/// Whether it addresses with 32-bit registers.
fn narrow(i: &Instruction) -> bool {
    let narrow = |n| matches!(i.op_kind(n), OpKind::MemorySegESI | OpKind::MemoryESEDI);
    (0..i.op_count()).any(narrow)
}

fn operand(b: &mut Builder<'_>, register: u8, writes: bool) -> Place {
    let mut address = Address::based(register, 0);
    address.wraps32 = narrow(b.i);
    if register == RSI {
        address.segment = access::segment(b.i.memory_segment());
    }
    let size = b.i.memory_size().size() as u32;
    b.access(Access { address, size, reads: !writes, writes, repeats: repeats(b.i) })
}

/// The pointers move by the number of elements done, in the direction of DF. What
/// was compared decides that number too.
fn advance(b: &mut Builder<'_>, pointers: &[u8], compared: &[Place]) {
    let repeats = repeats(b.i);
    let counter = Place::gpr(RCX, 8);
    let also = [&[DIRECTION], compared].concat();
    for register in pointers {
        let pointer = Place::gpr(*register, 8);
        match repeats {
            // With 32-bit pointers, whether the upper half is cleared depends on
            // whether there is a first element.
            Some(_) if narrow(b.i) => {
                b.flow(pointer, &[&[pointer, counter], &also[..]].concat(), Shape::Whole);
            }
            Some(_) if compared.is_empty() => {
                b.flow_also(pointer, &[pointer, counter], Shape::Upward, &also);
            }
            Some(_) => {
                b.flow_also(pointer, &[pointer], Shape::Upward, &[&[counter], &also[..]].concat());
            }
            None if narrow(b.i) => {
                b.flow_also(pointer.low(4), &[pointer.low(4)], Shape::Upward, &also);
                b.constant(pointer.part(4, 4));
            }
            None => b.flow_also(pointer, &[pointer], Shape::Upward, &also),
        }
    }
    match repeats {
        None => {}
        Some(_) if narrow(b.i) || !compared.is_empty() => {
            b.flow_also(counter, &[counter], Shape::Upward, &[&[counter], &also[..]].concat());
        }
        // It ends at zero wherever it began.
        Some(_) => b.constant(counter),
    }
}

fn copy(b: &mut Builder<'_>) {
    let from = operand(b, RSI, false);
    let to = operand(b, RDI, true);
    b.flow(to, &[from], Shape::Bytewise);
    advance(b, &[RSI, RDI], &[]);
}

fn store(b: &mut Builder<'_>) {
    let to = operand(b, RDI, true);
    b.flow(to, &[Place::gpr(RAX, to.len() as u16)], Shape::Bytewise);
    advance(b, &[RDI], &[]);
}

fn load(b: &mut Builder<'_>) {
    let from = operand(b, RSI, false);
    let to = Place::gpr(RAX, from.len() as u16);
    if repeats(b.i).is_some() {
        // Nothing is loaded if the counter is zero.
        let counter = Place::gpr(RCX, 8);
        b.flow_also(to, &[from, to], Shape::Bytewise, &[counter]);
        if to.len() == 4 {
            let upper = Place::gpr(RAX, 8).part(4, 4);
            b.flow_also(upper, &[upper], Shape::Bytewise, &[counter]);
        }
    } else {
        b.define_gpr(RAX, to.len(), &[from], Shape::Bytewise);
    }
    advance(b, &[RSI], &[]);
}

fn compare(b: &mut Builder<'_>) {
    let x = operand(b, RSI, false);
    let y = operand(b, RDI, false);
    compared(b, x, y, &[RSI, RDI]);
}

fn scan(b: &mut Builder<'_>) {
    let y = operand(b, RDI, false);
    let x = Place::gpr(RAX, y.len() as u16);
    compared(b, x, y, &[RDI]);
}

fn compared(b: &mut Builder<'_>, x: Place, y: Place, pointers: &[u8]) {
    if repeats(b.i).is_some() {
        b.flags_or_kept(Cells::status(), &[x, y, Place::gpr(RCX, 8)]);
        advance(b, pointers, &[x, y]);
    } else {
        sum_flags(b, x, y, &[]);
        advance(b, pointers, &[]);
    }
}
