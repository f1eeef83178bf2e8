//! Which instructions only keep the books: save registers and bring them back, set frames
//! up, bind symbols.

use crate::statics::InstructionFacts;
use iced_x86::{Mnemonic, OpKind, Register};
use std::collections::HashSet;
use trace::{Code, Flow, Info, InstructionId, Op, Path, Trace};

/// Restores and saves are looked for this close to a function's end.
const MAX_SAVE: usize = 10;

/// What is known of every instruction, and the code that binds symbols: its first
/// address, and its jump's.
pub fn of(trace: &Trace) -> (Vec<InstructionFacts>, Vec<(u64, u64)>) {
    let code = &trace.code;
    let mut facts: Vec<InstructionFacts> =
        code.instructions().map(|(_, info)| instruction_facts(info)).collect();
    find_restores(trace, &mut facts);
    let bindings = bindings(trace);
    for id in code.paths().filter_map(|(_, path)| linkage(code, path)) {
        facts[id.0 as usize].is_linkage = true;
    }
    for (id, info) in code.instructions() {
        let binds = bindings.iter().any(|(_, end)| *end == info.address());
        facts[id.0 as usize].is_linkage |= binds;
    }
    (facts, bindings)
}

/// A register comes back near a function's end, if the function saves it in the same way.
fn find_restores(trace: &Trace, facts: &mut [InstructionFacts]) {
    let code = &trace.code;
    let saved = saved_registers(trace, facts);
    for (_, path) in code.paths() {
        let ops = code.ops(path);
        let returns = ops.last().is_some_and(|op| code.info(op.instruction).flow == Flow::Return);
        let near = if returns { ops.len().saturating_sub(MAX_SAVE + 1) } else { ops.len() };
        for op in &ops[near..] {
            let info = code.info(op.instruction);
            let restored = restored(info).filter(|register| {
                let function = trace.function_of(info.address()).unwrap_or(0);
                saved.contains(&(function, *register, pops(info)))
            });
            facts[op.instruction.0 as usize].restores = restored;
        }
    }
}

/// RBX, RBP, R12 to R15.
fn callee_saved(register: Register) -> Option<u8> {
    let n = register.number() as u8;
    (register.is_gpr64() && matches!(n, 3 | 5 | 12..=15)).then_some(n)
}

fn on_stack(info: &Info) -> bool {
    let i = &info.instruction;
    matches!(i.memory_base(), Register::RSP | Register::RBP) && i.memory_index() == Register::None
}

fn instruction_facts(info: &Info) -> InstructionFacts {
    let i = &info.instruction;
    let saves = match i.mnemonic() {
        Mnemonic::Push if i.op0_kind() == OpKind::Register => callee_saved(i.op0_register()),
        Mnemonic::Mov if i.op0_kind() == OpKind::Memory && on_stack(info) => {
            (i.op1_kind() == OpKind::Register).then(|| callee_saved(i.op1_register())).flatten()
        }
        _ => None,
    };
    let sets_frame = i.op0_kind() == OpKind::Register
        && i.op0_register() == Register::RBP
        && match i.mnemonic() {
            Mnemonic::Mov => i.op1_kind() == OpKind::Register && i.op1_register() == Register::RSP,
            Mnemonic::Lea => i.memory_base() == Register::RSP && i.memory_index() == Register::None,
            _ => false,
        };
    let (writes, defs) = (info.writes, info.short_defs);
    let decides = info.flow != Flow::Next;
    InstructionFacts { saves, sets_frame, writes, defs, decides, ..InstructionFacts::default() }
}

fn restored(info: &Info) -> Option<u8> {
    let i = &info.instruction;
    match i.mnemonic() {
        Mnemonic::Pop if i.op0_kind() == OpKind::Register => callee_saved(i.op0_register()),
        Mnemonic::Leave => Some(5),
        Mnemonic::Mov if i.op1_kind() == OpKind::Memory && on_stack(info) => {
            (i.op0_kind() == OpKind::Register).then(|| callee_saved(i.op0_register())).flatten()
        }
        _ => None,
    }
}

/// Does it take a register off the stack, as opposed to load it from there?
fn pops(info: &Info) -> bool {
    !matches!(info.instruction.mnemonic(), Mnemonic::Mov)
}

/// Which functions save which registers, and whether by pushing them.
fn saved_registers(trace: &Trace, facts: &[InstructionFacts]) -> HashSet<(u64, u8, bool)> {
    let saves = trace.code.instructions().filter_map(|(id, info)| {
        let register = facts[id.0 as usize].saves?;
        let pushes = info.instruction.mnemonic() == Mnemonic::Push;
        Some((trace.function_of(info.address()).unwrap_or(0), register, pushes))
    });
    saves.collect()
}

/// Code that saves all of the vector state, restores it and then jumps through
/// R11 binds symbols: its first address, and its jump's.
fn bindings(trace: &Trace) -> Vec<(u64, u64)> {
    use Mnemonic::*;
    let infos = || trace.code.instructions().map(|(_, info)| info);
    let saves = infos().filter(|i| {
        matches!(i.instruction.mnemonic(), Xsave | Xsavec | Fxsave | Xsave64 | Xsavec64 | Fxsave64)
    });
    let mut found = Vec::new();
    for save in saves {
        let near = |info: &Info| info.address().wrapping_sub(save.address()) < 512;
        let jump = infos().find(|info| {
            near(info)
                && info.flow == Flow::Indirect
                && info.instruction.op0_kind() == OpKind::Register
                && info.instruction.op0_register() == Register::R11
        });
        let start = trace.function_of(save.address());
        if let (Some(jump), Some(start)) = (jump, start) {
            found.push((start, jump.address()));
        }
    }
    found
}

/// The jump of a stub through the table of bound symbols. A stub does nothing else,
/// except the first of a table, which also says whose table it is.
fn linkage(code: &Code, path: &Path) -> Option<InstructionId> {
    let (last, before) = code.ops(path).split_last()?;
    let info = code.info(last.instruction);
    let begins_stub = |op: &Op| {
        let i = &code.info(op.instruction).instruction;
        i.mnemonic() == Mnemonic::Endbr64
            || i.mnemonic() == Mnemonic::Push && i.is_ip_rel_memory_operand()
            || i.next_ip() != info.address()
    };
    let jumps = info.flow == Flow::Indirect && info.instruction.is_ip_rel_memory_operand();
    (jumps && before.last().is_none_or(begins_stub)).then_some(last.instruction)
}
