//! Exchanges, with and without a condition.

use super::arithmetic::sum_flags;
use super::builder::Builder;
use super::place::Place;
use super::{Cell, Shape};
use iced_x86::Mnemonic;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    match b.i.mnemonic() {
        Mnemonic::Xchg => swap(b),
        Mnemonic::Xadd => swap_and_add(b),
        Mnemonic::Cmpxchg if !touches_rax(b) => compare_and_swap(b),
        Mnemonic::Cmpxchg8b => compare_and_swap_pair(b, 4),
        Mnemonic::Cmpxchg16b => compare_and_swap_pair(b, 8),
        _ => return false,
    }
    true
}

fn swap(b: &mut Builder<'_>) {
    let x = b.modify(0);
    if b.same(0, 1) {
        return b.flow(x, &[x], Shape::Bytewise);
    }
    let y = b.modify(1);
    b.flow(x, &[y], Shape::Bytewise);
    b.flow(y, &[x], Shape::Bytewise);
}

fn swap_and_add(b: &mut Builder<'_>) {
    let x = b.modify(0);
    let y = b.read(1);
    b.flow(x, &[x, y], Shape::Upward);
    if !b.same(0, 1) {
        b.write(1);
        b.flow(y, &[x], Shape::Bytewise);
    }
    sum_flags(b, x, y, &[]);
}

/// Comparing `rax` with itself: no compiler does, and its writes overlap.
fn touches_rax(b: &Builder<'_>) -> bool {
    b.is_register(0) && b.i.op0_register().full_register() == iced_x86::Register::RAX
}

/// If `rax` is equal to the target it stays, else it becomes the target: either
/// way it holds what the target held.
fn compare_and_swap(b: &mut Builder<'_>) {
    let target = b.read(0);
    b.adjust_write(0);
    let new = b.read(1);
    let rax = Place::gpr(RAX, target.len() as u16);
    b.flow_also(target, &[target, new], Shape::Bytewise, &[rax, target]);
    b.flow(rax, &[target], Shape::Bytewise);
    if target.len() == 4 {
        // Whether the half that is not written is cleared or kept depends on
        // the outcome.
        let upper = Place::gpr(RAX, 8).part(4, 4);
        b.flow_also(upper, &[upper], Shape::Bytewise, &[rax, target]);
        if b.is_register(0) {
            let upper = target.stretched(8).part(4, 4);
            b.flow_also(upper, &[upper], Shape::Bytewise, &[rax, target]);
        }
    }
    sum_flags(b, rax, target, &[]);
}

/// `cmpxchg8b`, `cmpxchg16b`: halves of `size` bytes.
fn compare_and_swap_pair(b: &mut Builder<'_>, size: usize) {
    let memory = b.modify(0);
    let half = |number| Place::gpr(number, size as u16);
    let (low, high) = (memory.low(size), memory.part(size, size));
    let all = [half(RAX), half(RDX), memory];
    b.flow_also(low, &[low, half(RBX)], Shape::Bytewise, &all);
    b.flow_also(high, &[high, half(RCX)], Shape::Bytewise, &all);
    for (number, from) in [(RAX, low), (RDX, high)] {
        b.flow(half(number), &[from], Shape::Bytewise);
        if size == 4 {
            let upper = Place::gpr(number, 8).part(4, 4);
            b.flow_also(upper, &[upper], Shape::Bytewise, &all);
        }
    }
    b.flags(&[Cell::ZF], &all);
}
