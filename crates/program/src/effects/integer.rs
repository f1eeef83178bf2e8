//! Instructions that move and extend: values change place, not content.

use super::builder::Builder;
use super::place::Place;
use super::{Cells, Shape};
use iced_x86::{Code, ConditionCode, Instruction, Mnemonic, OpKind, Register};

const RAX: u8 = 0;
const RDX: u8 = 2;

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    let i = b.i;
    match i.mnemonic() {
        Mov | Movnti => copy(b),
        Movzx => extend(b, false),
        Movsx | Movsxd => extend(b, true),
        Cbw => widen(b, 1),
        Cwde => widen(b, 2),
        Cdqe => widen(b, 4),
        Cwd => sign_to_rdx(b, 2),
        Cdq => sign_to_rdx(b, 4),
        Cqo => sign_to_rdx(b, 8),
        Movbe => reverse(b, 1),
        // What it makes of 16 bits is undefined.
        Bswap if i.op0_register().size() > 2 => reverse(b, 0),
        Lea => lea(b),
        _ if is_cmov(i) => cmov(b),
        _ if is_setcc(i) => {
            let to = b.write(0);
            let flags = flags_read(i);
            b.flow(to, &flags, Shape::Whole);
        }
        _ => return false,
    }
    true
}

/// The flags an instruction tests, as sources.
pub(super) fn flags_read(i: &Instruction) -> Vec<Place> {
    Cells::of_flags(i.rflags_read()).iter().map(Place::of).collect()
}

fn is_cmov(i: &Instruction) -> bool {
    i.condition_code() != ConditionCode::None
        && (Code::Cmovo_r16_rm16..=Code::Cmovg_r64_rm64).contains(&i.code())
}

fn is_setcc(i: &Instruction) -> bool {
    i.condition_code() != ConditionCode::None
        && (Code::Seto_rm8..=Code::Setg_rm8).contains(&i.code())
}

fn copy(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.write(0);
    if from != to {
        b.flow(to, &[from], Shape::Bytewise);
    }
}

fn extend(b: &mut Builder<'_>, signed: bool) {
    let from = b.read(1);
    let to = b.write(0);
    extend_to(b, to, from, signed);
}

/// Copies the low part; what is above comes from the sign, or from nothing.
pub(super) fn extend_to(b: &mut Builder<'_>, to: Place, from: Place, signed: bool) {
    let len = from.len().min(to.len());
    if to.low(len) != from.low(len) {
        b.flow(to.low(len), &[from.low(len)], Shape::Bytewise);
    }
    if to.len() > len {
        let sign = [from.top()];
        let sources: &[Place] = if signed { &sign } else { &[] };
        b.flow(to.part(len, to.len() - len), sources, Shape::Whole);
    }
}

/// `cbw`, `cwde`, `cdqe`: only the upper half of the result is new.
fn widen(b: &mut Builder<'_>, size: usize) {
    let rax = Place::gpr(RAX, 8);
    b.flow(rax.part(size, size), &[rax.byte(size - 1)], Shape::Whole);
    if size == 2 {
        b.constant(rax.part(4, 4));
    }
}

fn sign_to_rdx(b: &mut Builder<'_>, size: usize) {
    let sign = Place::gpr(RAX, 8).byte(size - 1);
    b.define_gpr(RDX, size, &[sign], Shape::Whole);
}

fn reverse(b: &mut Builder<'_>, source: u32) {
    let from = b.read(source);
    let to = b.write(0);
    b.bytes(to, |k| vec![from.byte(to.len() - 1 - k)]);
}

/// The result is either operand, byte by byte; the flags say which.
fn cmov(b: &mut Builder<'_>) {
    let from = b.read(1);
    let to = b.write(0);
    let flags = flags_read(b.i);
    if from != to {
        b.flow_also(to, &[from, to], Shape::Bytewise, &flags);
    }
}

/// An addition of registers; a plain copy if there is nothing to add.
fn lea(b: &mut Builder<'_>) {
    let i = b.i;
    let to = b.write(0);
    let registers: Vec<Register> =
        [i.memory_base(), i.memory_index()].into_iter().filter(|r| r.is_gpr()).collect();
    let narrow = i.op_kind(1) == OpKind::Memory
        && (registers.iter().any(|r| r.is_gpr32()) || i.memory_base() == Register::EIP);
    let len = if narrow { to.len().min(4) } else { to.len() };
    let from: Vec<Place> =
        registers.iter().map(|r| Place::gpr(r.number() as u8, len as u16)).collect();
    let relative = i.memory_base().is_ip();
    let copies = registers.len() == 1
        && !relative
        && i.memory_displacement64() == 0
        && (i.memory_index() == Register::None || i.memory_index_scale() == 1);
    let shape = if copies { Shape::Bytewise } else { Shape::Upward };
    let shape = if from.is_empty() { Shape::Whole } else { shape };
    b.flow(to.low(len), &from, shape);
    if len < to.len() {
        b.constant(to.part(len, to.len() - len));
    }
}
