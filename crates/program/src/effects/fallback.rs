//! Everything without a description of its own: all that is written comes from all
//! that is read, as iced's tables have it.

use super::access::{Access, Address, segment};
use super::{Cell, Cells, Effects, Flow, Shape, Source, Target};
use iced_x86::{
    CpuidFeature, EncodingKind, Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory,
};

/// For operands whose size iced does not know: no instruction touches more.
const UNKNOWN_SIZE: u32 = 4096;

pub(super) fn effects(i: &Instruction) -> Effects {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(i);
    let (mut reads, mut writes) = (Cells::NONE, Cells::NONE);
    for used in info.used_registers() {
        let cells = cells_of(i, used.register());
        let (read, written, kept) = kinds(used.access());
        if read || kept {
            reads = reads.union(cells);
        }
        if written {
            writes = writes.union(cells);
        }
    }
    let addresses = addresses_only(i, info.used_memory());
    reads = reads.minus(addresses);
    reads = reads.union(Cells::of_flags(i.rflags_read()));
    writes = writes.union(Cells::of_flags(i.rflags_modified()));
    if shares_x87(i) {
        reads.insert(Cell::X87);
        writes.insert(Cell::X87);
    }
    let evex_vector = i.encoding() == EncodingKind::EVEX;
    if evex_vector {
        reads.insert(Cell::MXCSR);
    }
    // What shares a cell is never overwritten whole.
    if writes.contains(Cell::X87) {
        reads.insert(Cell::X87);
    }
    let accesses: Vec<Access> = info.used_memory().iter().filter_map(access).collect();
    let mut effects = flows(accesses, reads, writes);
    if evex_vector {
        let mut also = effects.flows.first().map_or_else(Vec::new, |flow| flow.from.clone());
        also.push(Source::Cells(Cell::EXCEPTIONS.into()));
        let to = Target::Cells(Cell::EXCEPTIONS.into());
        effects.flows.push(Flow { to, from: also, also: Vec::new(), shape: Shape::Whole });
    }
    effects
}

/// iced names a whole `zmm` register where a VEX instruction clears its upper part.
fn cells_of(i: &Instruction, register: Register) -> Cells {
    let cells = Cells::of_register(register);
    if register.is_zmm() && i.encoding() == EncodingKind::VEX {
        return cells.minus(Cell::X87.into());
    }
    cells
}

/// Every access is a source if it is read, or if it may be kept.
fn flows(accesses: Vec<Access>, reads: Cells, writes: Cells) -> Effects {
    let bytes = |access: usize| {
        let len = accesses[access].size.min(u16::MAX.into()) as u16;
        (access as u8, 0u16, len)
    };
    let mut from = vec![Source::Cells(reads)];
    from.retain(|source| *source != Source::Cells(Cells::NONE));
    for (n, _) in accesses.iter().enumerate().filter(|(_, access)| access.reads) {
        let (access, first, len) = bytes(n);
        from.push(Source::Memory { access, first, len });
    }
    let mut targets = Vec::new();
    if !writes.is_empty() {
        targets.push(Target::Cells(writes));
    }
    for (n, _) in accesses.iter().enumerate().filter(|(_, access)| access.writes) {
        let (access, first, len) = bytes(n);
        targets.push(Target::Memory { access, first, len });
    }
    let flow = |to| Flow { to, from: from.clone(), also: Vec::new(), shape: Shape::Whole };
    let flows = targets.into_iter().map(flow).collect();
    Effects { accesses, flows }
}

/// Whether it reads, writes, and may keep what was there.
fn kinds(access: OpAccess) -> (bool, bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false, false),
        OpAccess::Write => (false, true, false),
        OpAccess::CondWrite => (false, true, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true, true),
        _ => (false, false, false),
    }
}

/// Registers that are read for an address and nothing else. iced does not tell the
/// two apart, so this is only for instructions that imply no general register.
fn addresses_only(i: &Instruction, memory: &[UsedMemory]) -> Cells {
    let explicit = shares_x87(i) || i.encoding() == EncodingKind::EVEX;
    if !explicit || memory.len() != 1 {
        return Cells::NONE;
    }
    let operands = (0..i.op_count())
        .map(|n| Cells::of_register(i.op_register(n).full_register()))
        .fold(Cells::NONE, Cells::union);
    [i.memory_base(), i.memory_index()]
        .map(|register| Cells::of_register(register.full_register()))
        .into_iter()
        .fold(Cells::NONE, Cells::union)
        .minus(operands)
}

fn access(used: &UsedMemory) -> Option<Access> {
    let (read, written, kept) = kinds(used.access());
    if !read && !written {
        return None;
    }
    let vector = used.index().is_vector_register();
    let address = Address {
        base: used.base().is_gpr().then(|| used.base().number() as u8),
        index: (used.index() != Register::None)
            .then(|| (used.index().number() as u8 & 15, used.scale() as u8)),
        displacement: used.displacement() as i64,
        segment: segment(used.segment()),
        wraps32: used.base().is_gpr32() || used.index().is_gpr32(),
        vector_index: vector,
        ..Address::default()
    };
    let size = match used.memory_size().size() as u32 {
        0 => UNKNOWN_SIZE,
        size => size,
    };
    Some(Access { address, size, reads: read || kept, writes: written, repeats: None })
}

/// Whether it works on the x87 stack, or shares its state as MMX does.
fn shares_x87(i: &Instruction) -> bool {
    use CpuidFeature::*;
    let x87 = i
        .cpuid_features()
        .iter()
        .any(|feature| matches!(feature, FPU | FPU287 | FPU387 | MMX | D3NOW | D3NOWEXT));
    x87 || (0..i.op_count()).any(|n| i.op_register(n).is_mm() || i.op_register(n).is_st())
}
