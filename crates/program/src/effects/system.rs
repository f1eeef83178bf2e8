//! Flags by themselves, what the processor says of itself, and saved state.

use super::access::{Access, Address};
use super::builder::Builder;
use super::place::Place;
use super::{Cell, Cells, Shape, stack};
use iced_x86::{FlowControl, Mnemonic};

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    match b.i.mnemonic() {
        Clc | Stc | Cld | Std => b.constant_flags(),
        Cmc => b.flags(&[Cell::CF], &[Place::of(Cell::CF)]),
        Lahf => b.flow(ah(), &stack::LOW.map(Place::of), Shape::Whole),
        Sahf => b.flags(&stack::LOW, &[ah()]),
        Cpuid => cpuid(b),
        Rdtsc => clock(b, &[RAX, RDX]),
        Rdtscp => clock(b, &[RAX, RDX, RCX]),
        Rdpid => {
            let to = b.write(0);
            b.constant(to);
        }
        Rdrand | Rdseed => random(b),
        Xgetbv => {
            for register in [RAX, RDX] {
                b.define_gpr(register, 4, &[Place::gpr(RCX, 4)], Shape::Whole);
            }
        }
        Syscall => syscall(b),
        Rdfsbase => base(b, Cell::FS, false),
        Rdgsbase => base(b, Cell::GS, false),
        Wrfsbase => base(b, Cell::FS, true),
        Wrgsbase => base(b, Cell::GS, true),
        Ldmxcsr | Vldmxcsr => load_mxcsr(b),
        Stmxcsr | Vstmxcsr => store_mxcsr(b),
        Fxsave | Fxsave64 => save(b, 512, &[]),
        Xsave | Xsave64 | Xsaveopt | Xsaveopt64 => save(b, 832, &MASK),
        Fxrstor | Fxrstor64 => restore(b, 512, &[]),
        Xrstor | Xrstor64 => restore(b, 832, &MASK),
        Fnstenv | Fstenv => return environment(b, 28),
        Fnsave | Fsave => return environment(b, 108),
        Xlatb => translate(b),
        _ => return does_nothing(b),
    }
    true
}

/// Instructions without effect on registers and memory.
fn does_nothing(b: &Builder<'_>) -> bool {
    use Mnemonic::*;
    let idle = matches!(
        b.i.mnemonic(),
        Nop | Reservednop
            | Endbr64
            | Endbr32
            | Pause
            | Lfence
            | Mfence
            | Sfence
            | Serialize
            | Clflush
            | Clflushopt
            | Clwb
            | Cldemote
            | Prefetch
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Prefetchwt1
            | Hlt
            | Int3
            | Int1
            | Ud0
            | Ud1
            | Ud2
    );
    idle || b.i.flow_control() == FlowControl::Exception
}

fn ah() -> Place {
    Place::of(Cell::gpr(RAX, 1))
}

fn cpuid(b: &mut Builder<'_>) {
    let from = [Place::gpr(RAX, 4), Place::gpr(RCX, 4)];
    for register in [RAX, RBX, RCX, RDX] {
        b.define_gpr(register, 4, &from, Shape::Whole);
    }
}

fn clock(b: &mut Builder<'_>, registers: &[u8]) {
    for register in registers {
        b.define_gpr(*register, 4, &[], Shape::Whole);
    }
}

fn random(b: &mut Builder<'_>) {
    let to = b.write(0);
    b.constant(to);
    b.flag_set(Cells::status(), &[]);
}

/// What the instruction itself does. The rest is the kernel's.
fn syscall(b: &mut Builder<'_>) {
    b.constant(Place::gpr(RCX, 8));
    stack::store_flags(b, Place::gpr(11, 8));
}

fn base(b: &mut Builder<'_>, cell: Cell, writes: bool) {
    if writes {
        let from = b.read(0);
        b.flow(Place::of(cell), &[from], Shape::Whole);
    } else {
        let to = b.write(0);
        b.flow(to, &[Place::of(cell)], Shape::Whole);
    }
}

/// The exceptions are in the low six bits, modes and masks above and beside.
fn load_mxcsr(b: &mut Builder<'_>) {
    let from = b.read(0);
    b.flow(Place::of(Cell::EXCEPTIONS), &[from.byte(0)], Shape::Whole);
    b.flow(Place::of(Cell::MXCSR), &[from], Shape::Whole);
}

fn store_mxcsr(b: &mut Builder<'_>) {
    let to = b.write(0);
    let (modes, exceptions) = (Place::of(Cell::MXCSR), Place::of(Cell::EXCEPTIONS));
    b.flow(to.byte(0), &[modes, exceptions], Shape::Whole);
    b.flow(to.part(1, 3), &[modes], Shape::Whole);
}

/// `edx:eax` selects what `xsave` and `xrstor` touch.
const MASK: [Place; 2] = [
    Place::Cells { first: Cell::gpr(RAX, 0).number(), len: 4 },
    Place::Cells { first: Cell::gpr(RDX, 0).number(), len: 4 },
];

/// Where the vector registers are in a saved image, and how many of their bytes.
fn image(size: usize) -> Vec<(usize, Place)> {
    let low = (0..16).map(|n| (160 + 16 * usize::from(n), Place::ymm(n, 16)));
    let high = (0..16).map(|n| (576 + 16 * usize::from(n), Place::ymm(n, 32).part(16, 16)));
    if size > 512 { low.chain(high).collect() } else { low.collect() }
}

const STATE: [Place; 3] = [
    Place::Cells { first: Cell::X87.number(), len: 1 },
    Place::Cells { first: Cell::MXCSR.number(), len: 1 },
    Place::Cells { first: Cell::EXCEPTIONS.number(), len: 1 },
];

/// `fnstenv`, `fnsave`: the words of control, status and tags, each with a half that is constant;
/// pointers to the last instruction and its operand, which no guest sees other than zero; and
/// what else there is. Both change the state that they save.
fn environment(b: &mut Builder<'_>, size: u32) -> bool {
    const POINTERS: std::ops::Range<usize> = 12..28;
    let to = b.write(0);
    if to.len() != size as usize {
        return false;
    }
    let state = Place::of(Cell::X87);
    for word in [0, 4, 8] {
        b.flow(to.part(word, 2), &[state], Shape::Whole);
        b.constant(to.part(word + 2, 2));
    }
    b.constant(to.part(POINTERS.start, POINTERS.len()));
    let rest = size as usize - POINTERS.end;
    if rest > 0 {
        b.flow(to.part(POINTERS.end, rest), &[state], Shape::Whole);
    }
    b.flow(state, &[state], Shape::Whole);
    true
}

/// `fxsave`, `xsave`: parts that are not selected keep what memory held.
fn save(b: &mut Builder<'_>, size: u32, mask: &[Place]) {
    b.modify(0);
    let to = b.adjust(0, |access| access.size = size);
    let kept = |b: &mut Builder<'_>, part: Place| {
        b.flow_also(part, &[part], Shape::Bytewise, &[&STATE, mask].concat());
    };
    kept(b, to.low(160));
    for (at, register) in image(size as usize) {
        let part = to.part(at, 16);
        b.flow_also(part, &[part, register], Shape::Bytewise, mask);
    }
    kept(b, to.part(416, if size > 512 { 160 } else { 96 }));
}

/// `fxrstor`, `xrstor`: the mask and the header of the image decide what is loaded,
/// what is reset and what is kept.
fn restore(b: &mut Builder<'_>, size: u32, mask: &[Place]) {
    b.read(0);
    let from = b.adjust(0, |access| access.size = size);
    let mut also = mask.to_vec();
    if size > 512 {
        also.push(from.part(512, 64));
    }
    for state in STATE {
        b.flow(state, &[&[state, from.low(160)], &also[..]].concat(), Shape::Whole);
    }
    for (at, register) in image(size as usize) {
        let part = from.part(at, 16);
        b.flow_also(register, &[part, register], Shape::Bytewise, &also);
    }
}

/// `xlat`: al = [rbx + al].
fn translate(b: &mut Builder<'_>) {
    let address = Address {
        base: Some(RBX),
        index: Some((RAX, 1)),
        byte_index: true,
        wraps32: b.i.op0_kind() == iced_x86::OpKind::Memory
            && b.i.memory_base() == iced_x86::Register::EBX,
        segment: super::access::segment(b.i.memory_segment()),
        ..Address::default()
    };
    let from = b.access(Access { reads: true, ..Access::new(address, 1) });
    b.flow(Place::gpr(RAX, 1), &[from], Shape::Bytewise);
}

#[cfg(test)]
mod tests {
    use super::super::{Source, effects};
    use super::*;
    use crate::effects::Target;
    use iced_x86::{Decoder, DecoderOptions};

    /// Offsets in memory that come from the x87's state.
    fn from_x87(code: &[u8]) -> Vec<u16> {
        let i = Decoder::new(64, code, DecoderOptions::NONE).decode();
        let flows = effects(&i).flows.into_iter();
        let from_state = flows.filter(|flow| flow.from == [Source::Cells(Cell::X87.into())]);
        let offsets = from_state.flat_map(|flow| match flow.to {
            Target::Memory { first, len, .. } => first..first + len,
            Target::Cells(_) => 0..0,
        });
        offsets.collect()
    }

    #[test]
    fn a_stored_environment_has_words_of_the_state_and_pointers_that_are_always_zero() {
        let words: Vec<u16> = vec![0, 1, 4, 5, 8, 9];
        assert_eq!(from_x87(&[0xd9, 0x30]), words, "fnstenv [rax]");
        let with_numbers: Vec<u16> = words.into_iter().chain(28..108).collect();
        assert_eq!(from_x87(&[0xdd, 0x30]), with_numbers, "fnsave [rax]");
    }
}
