//! The stack, and branches that use it or count.

use super::access::{Access, Address};
use super::builder::Builder;
use super::place::Place;
use super::{Cell, Shape};
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

const RSP: u8 = 4;
const RBP: u8 = 5;

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    let i = b.i;
    match i.mnemonic() {
        Push => push(b),
        Pop => pop(b),
        Call if !i.is_call_far_indirect() && !i.is_call_far() => call(b),
        Ret => ret(b),
        Leave if i.stack_pointer_increment() == 0 => leave(b),
        Enter if i.immediate8_2nd() == 0 && i.code() == Code::Enterq_imm16_imm8 => enter(b),
        Pushfq => push_flags(b),
        Popfq => pop_flags(b),
        Jmp if i.is_jmp_near_indirect() => {
            b.read(0);
        }
        Loop | Loope | Loopne => count_down(b),
        _ => return i.is_jcc_short_or_near() || i.is_jmp_short_or_near() || is_jrcxz(i),
    }
    true
}

fn is_jrcxz(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Jrcxz | Mnemonic::Jecxz)
}

/// A slot of the stack, relative to `rsp` before the instruction.
fn slot(b: &mut Builder<'_>, displacement: i64, size: u32, writes: bool) -> Place {
    let access = Access::new(Address::based(RSP, displacement), size);
    b.access(Access { reads: !writes, writes, ..access })
}

fn move_rsp(b: &mut Builder<'_>) {
    let rsp = Place::gpr(RSP, 8);
    b.flow(rsp, &[rsp], Shape::Upward);
}

fn push(b: &mut Builder<'_>) {
    let size = b.i.stack_pointer_increment().unsigned_abs();
    let from = b.read(0);
    let to = slot(b, -i64::from(size), size, true);
    b.flow(to, &[from], Shape::Bytewise);
    move_rsp(b);
}

fn pop(b: &mut Builder<'_>) {
    let size = b.i.stack_pointer_increment().unsigned_abs();
    let from = slot(b, 0, size, false);
    let to = b.write(0);
    if b.is_memory(0) {
        // An address with `rsp` in it is computed after the increment.
        b.adjust(0, |access| {
            if access.address.base == Some(RSP) {
                access.address.displacement += i64::from(size);
            }
        });
    }
    b.flow(to, &[from], Shape::Bytewise);
    if !(b.is_register(0) && b.i.op0_register().full_register() == Register::RSP) {
        move_rsp(b);
    } else if size == 2 {
        let rsp = Place::gpr(RSP, 8);
        b.flow(rsp.part(2, 6), &[rsp], Shape::Whole);
    }
}

fn call(b: &mut Builder<'_>) {
    if b.i.op0_kind() == OpKind::Memory {
        b.read(0);
    }
    let to = slot(b, -8, 8, true);
    b.constant(to);
    move_rsp(b);
}

fn ret(b: &mut Builder<'_>) {
    slot(b, 0, 8, false);
    move_rsp(b);
}

fn leave(b: &mut Builder<'_>) {
    let access = Access { reads: true, ..Access::new(Address::based(RBP, 0), 8) };
    let from = b.access(access);
    let (rsp, rbp) = (Place::gpr(RSP, 8), Place::gpr(RBP, 8));
    b.flow(rsp, &[rbp], Shape::Upward);
    b.flow(rbp, &[from], Shape::Bytewise);
}

/// Without nested frames: `push rbp; mov rbp, rsp; sub rsp, size`.
fn enter(b: &mut Builder<'_>) {
    let to = slot(b, -8, 8, true);
    let (rsp, rbp) = (Place::gpr(RSP, 8), Place::gpr(RBP, 8));
    b.flow(to, &[rbp], Shape::Bytewise);
    b.flow(rbp, &[rsp], Shape::Upward);
    b.flow(rsp, &[rsp], Shape::Upward);
}

/// The flags in byte 0 and byte 1 of the flags register.
pub(super) const LOW: [Cell; 5] = [Cell::CF, Cell::PF, Cell::AF, Cell::ZF, Cell::SF];
pub(super) const HIGH: [Cell; 2] = [Cell::OF, Cell::DF];

/// An image of the flags register.
pub(super) fn store_flags(b: &mut Builder<'_>, to: Place) {
    b.flow(to.byte(0), &LOW.map(Place::of), Shape::Whole);
    b.flow(to.byte(1), &HIGH.map(Place::of), Shape::Whole);
    b.constant(to.part(2, to.len() - 2));
}

fn push_flags(b: &mut Builder<'_>) {
    let to = slot(b, -8, 8, true);
    store_flags(b, to);
    move_rsp(b);
}

fn pop_flags(b: &mut Builder<'_>) {
    let from = slot(b, 0, 8, false);
    b.flags(&LOW, &[from.byte(0)]);
    b.flags(&HIGH, &[from.byte(1)]);
    move_rsp(b);
}

/// Bytes of `rcx` that a `loop` counts with.
pub(super) fn loop_counter_size(i: &Instruction) -> u16 {
    use Code::*;
    match i.code() {
        Loop_rel8_64_RCX | Loope_rel8_64_RCX | Loopne_rel8_64_RCX => 8,
        _ => 4,
    }
}

fn count_down(b: &mut Builder<'_>) {
    let size = loop_counter_size(b.i);
    let counter = Place::gpr(1, size);
    b.define_gpr(1, size.into(), &[counter], Shape::Upward);
}
