//! What the walk needs to know of code, worked out once per trace.

use iced_x86::{Mnemonic, OpKind, Register};
use program::effects::Cells;
use std::collections::HashSet;
use trace::{Bases, Code, Flow, Info, InstructionId, Op, Operand, Path, PathId, Trace};

/// Restores and saves are looked for this close to a function's end.
const MAX_SAVE: usize = 10;

/// Of a path.
#[derive(Clone, Debug, Default)]
pub struct PathFacts {
    /// Register cells that some instruction of it defines.
    pub defs: Cells,
    /// Register cells that some instruction of it uses, in whatever way.
    pub uses: Cells,
    /// Memory that it may read: a range of all loads.
    loads: (u32, u16),
    /// Memory that it may write: a range of all stores.
    stores: (u32, u16),
    /// Registers captured.
    pub captures: u16,
    /// Labels of control.
    pub labels: u16,
    /// It is where binding a symbol late ends, or begins.
    pub binding: Option<Binding>,
}

/// Part of the code that binds a symbol when it is first called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Its first path.
    Begins,
    /// Its last path, which jumps to the bound function.
    Ends,
}

/// Of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstructionFacts {
    /// Copies this callee-saved register to the stack.
    pub saves: Option<u8>,
    /// Copies it back, near the end of a function.
    pub restores: Option<u8>,
    /// Jumps through the table of bound symbols, or to one that was just bound.
    pub is_linkage: bool,
    /// Sets the frame pointer up: the stack pointer by another name.
    pub sets_frame: bool,
}

/// Where a store goes, in a form that is quick to work out.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    base: u16,
    index: u16,
    scale: u8,
    segment: bool,
    size: u32,
    displacement: i64,
}

/// No register.
const NONE: u16 = u16::MAX;

impl Store {
    /// First address and length; `None` if it takes more to tell.
    #[inline]
    pub fn range(&self, captured: &[u64], bases: Bases) -> Option<(u64, u64)> {
        if self.size == 0 {
            return None;
        }
        let mut address = self.displacement as u64;
        if self.base != NONE {
            address = address.wrapping_add(captured[self.base as usize]);
        }
        if self.index != NONE {
            let index = captured[self.index as usize].wrapping_mul(self.scale.into());
            address = address.wrapping_add(index);
        }
        if self.segment {
            address = address.wrapping_add(bases.fs);
        }
        Some((address, self.size.into()))
    }

    fn new(operand: &Operand) -> Store {
        let slow =
            Store { base: NONE, index: NONE, scale: 0, segment: false, size: 0, displacement: 0 };
        let Some(linear) = operand.linear() else { return slow };
        Store {
            base: linear.base.unwrap_or(NONE),
            index: linear.index.map_or(NONE, |(n, _)| n),
            scale: linear.index.map_or(0, |(_, scale)| scale),
            segment: linear.fs,
            size: operand.access().size,
            displacement: linear.displacement,
        }
    }
}

/// Both, by number.
pub struct Statics {
    paths: Vec<PathFacts>,
    stores: Vec<Store>,
    loads: Vec<Store>,
    instructions: Vec<InstructionFacts>,
}

impl Statics {
    /// Looks at all code of a trace.
    pub fn of(trace: &Trace) -> Statics {
        let code = &trace.code;
        let mut instructions: Vec<InstructionFacts> =
            code.instructions().map(|(_, info)| instruction_facts(info)).collect();
        let saved = saved_registers(trace, &instructions);
        for (_, path) in code.paths() {
            let ops = code.ops(path);
            let returns =
                ops.last().is_some_and(|op| code.info(op.instruction).flow == Flow::Return);
            let near = if returns { ops.len().saturating_sub(MAX_SAVE + 1) } else { ops.len() };
            for op in &ops[near..] {
                let info = code.info(op.instruction);
                let function = trace.function_of(info.address()).unwrap_or(0);
                let restored =
                    restored(info).filter(|r| saved.contains(&(function, *r, pops(info))));
                instructions[op.instruction.0 as usize].restores = restored;
            }
        }
        let bindings = bindings(trace);
        for id in code.paths().filter_map(|(_, path)| linkage(code, path)) {
            instructions[id.0 as usize].is_linkage = true;
        }
        for (id, info) in code.instructions() {
            let binds = bindings.iter().any(|(_, end)| *end == info.address());
            instructions[id.0 as usize].is_linkage |= binds;
        }
        let (mut stores, mut loads) = (Vec::new(), Vec::new());
        let facts = |(id, _)| path_facts(trace, id, &bindings, &mut stores, &mut loads);
        let paths = code.paths().map(facts).collect();
        Statics { paths, stores, loads, instructions }
    }

    /// Memory that a path may write.
    #[inline]
    pub fn stores(&self, facts: &PathFacts) -> &[Store] {
        let (first, count) = facts.stores;
        &self.stores[first as usize..first as usize + count as usize]
    }

    /// Memory that a path may read.
    #[inline]
    pub fn loads(&self, facts: &PathFacts) -> &[Store] {
        let (first, count) = facts.loads;
        &self.loads[first as usize..first as usize + count as usize]
    }

    /// Of a path.
    #[inline]
    pub fn path(&self, id: PathId) -> &PathFacts {
        &self.paths[id.0 as usize]
    }

    /// Of an instruction.
    #[inline]
    pub fn instruction(&self, id: InstructionId) -> &InstructionFacts {
        &self.instructions[id.0 as usize]
    }
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

fn path_facts(
    trace: &Trace,
    id: PathId,
    bindings: &[(u64, u64)],
    stores: &mut Vec<Store>,
    loads: &mut Vec<Store>,
) -> PathFacts {
    let code = &trace.code;
    let path = code.path(id);
    let (first_store, first_load) = (stores.len(), loads.len());
    let mut facts = PathFacts {
        captures: path.captures,
        labels: trace.control.labels(id) as u16,
        ..PathFacts::default()
    };
    for op in code.ops(path).iter().chain(code.faulting(path)) {
        let info = code.info(op.instruction);
        facts.defs = facts.defs.union(info.defs);
        facts.uses = facts.uses.union(info.uses).union(info.condition);
        for operand in code.operands(op) {
            facts.uses = facts.uses.union(crate::sweep::address_registers(operand));
            if operand.access().reads {
                loads.push(Store::new(operand));
            }
        }
        let written = code.operands(op).iter().filter(|o| o.access().writes);
        stores.extend(written.map(Store::new));
        if bindings.iter().any(|(_, end)| *end == info.address()) {
            facts.binding = Some(Binding::Ends);
        }
    }
    if facts.binding.is_none() && bindings.iter().any(|(start, _)| *start == code.start(path)) {
        facts.binding = Some(Binding::Begins);
    }
    facts.loads = (first_load as u32, (loads.len() - first_load) as u16);
    facts.stores = (first_store as u32, (stores.len() - first_store) as u16);
    facts
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
    InstructionFacts { saves, restores: None, is_linkage: false, sets_frame }
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
