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

/// The part of a path's facts that every record is asked for. There are many paths, and
/// this much of each stays in a near cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brief {
    /// Registers that it defines, in short, and [`BINDS`].
    pub defs: u64,
    first_store: u32,
    stores: u16,
    /// Registers captured.
    pub captures: u16,
    /// Labels of control.
    pub labels: u16,
}

/// Stands beside registers in short for code that binds symbols.
pub const BINDS: u64 = 1 << 63;

/// Cells in short: one bit for each register or flag of which some cell is there.
#[inline]
pub fn in_short(cells: &Cells) -> u64 {
    let words = cells.words();
    let mut short = words[words.len() - 1] << 32;
    for (n, word) in words[..2].iter().enumerate() {
        // A general register is a byte of a word.
        let mut any = word | word >> 4;
        any |= any >> 2;
        any |= any >> 1;
        let bits = (any & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        short |= bits << (8 * n);
    }
    for (n, word) in words[2..words.len() - 1].iter().enumerate() {
        // A vector register is half a word.
        let (low, high) = (*word as u32 != 0, word >> 32 != 0);
        short |= (u64::from(low) | u64::from(high) << 1) << (16 + 2 * n);
    }
    short
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
    /// Writes memory.
    pub writes: bool,
    /// Registers that it defines, in short.
    pub defs: u64,
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

/// Stores of a path so near each other are taken together: what lies between them is
/// then looked at without need, but hardly ever in vain.
const NEAR: i64 = 64;

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

    /// Both in one, if they are at a constant distance and near each other.
    fn joined(&self, other: &Store) -> Option<Store> {
        let place = |s: &Store| (s.base, s.index, s.scale, s.segment);
        if self.size == 0 || other.size == 0 || place(self) != place(other) {
            return None;
        }
        let displacement = self.displacement.min(other.displacement);
        let end = |s: &Store| s.displacement.saturating_add(s.size.into());
        let size = end(self).max(end(other)).checked_sub(displacement)?;
        (size <= NEAR).then_some(Store { displacement, size: size as u32, ..*self })
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
    briefs: Vec<Brief>,
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
        let paths: Vec<PathFacts> = code.paths().map(facts).collect();
        let briefs = paths.iter().map(brief).collect();
        Statics { paths, briefs, stores, loads, instructions }
    }

    /// What every record is asked for, by path.
    #[inline]
    pub fn briefs(&self) -> &[Brief] {
        &self.briefs
    }

    /// Memory that a path may write.
    #[inline]
    pub fn stores_of(&self, brief: &Brief) -> &[Store] {
        &self.stores[brief.first_store as usize..][..brief.stores as usize]
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
            facts.uses = facts.uses.union(crate::sources::address_registers(operand));
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
    join_near(stores, first_store);
    join_near(loads, first_load);
    facts.loads = (first_load as u32, (loads.len() - first_load) as u16);
    facts.stores = (first_store as u32, (stores.len() - first_store) as u16);
    facts
}

/// Takes together what is near each other, from `first` on.
fn join_near(all: &mut Vec<Store>, first: usize) {
    let mut own = all.split_off(first);
    own.sort_by_key(|s| (s.base, s.index, s.scale, s.segment, s.displacement));
    for store in own {
        match all[first..].last().and_then(|last| last.joined(&store)) {
            Some(joined) => *all.last_mut().expect("there is one") = joined,
            None => all.push(store),
        }
    }
}

fn brief(facts: &PathFacts) -> Brief {
    Brief {
        defs: in_short(&facts.defs) | if facts.binding.is_some() { BINDS } else { 0 },
        first_store: facts.stores.0,
        stores: facts.stores.1,
        captures: facts.captures,
        labels: facts.labels,
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
    let writes = info.effects.accesses.iter().any(|a| a.writes);
    let defs = in_short(&info.defs);
    InstructionFacts { saves, restores: None, is_linkage: false, sets_frame, writes, defs }
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

#[cfg(test)]
mod tests {
    use super::*;
    use program::effects::Cell;

    #[test]
    fn stores_near_each_other_are_one() {
        let store = |base, displacement, size| Store {
            base,
            index: NONE,
            scale: 0,
            segment: false,
            size,
            displacement,
        };
        let mut all = vec![store(9, 0, 8)];
        all.extend([store(0, -8, 8), store(1, 0, 4), store(0, -24, 8), store(0, 100, 8)]);
        join_near(&mut all, 1);
        let found: Vec<_> = all.iter().map(|s| (s.base, s.displacement, s.size)).collect();
        assert_eq!(found, [(9, 0, 8), (0, -24, 24), (0, 100, 8), (1, 0, 4)]);
    }

    #[test]
    fn in_short_every_register_and_flag_has_its_bit() {
        let mut seen = 0;
        for n in 0..Cell::COUNT as u16 {
            let bit = in_short(&Cell::new(n).into());
            assert_eq!(bit.count_ones(), 1, "{}", Cell::new(n));
            seen |= bit;
        }
        assert_eq!(seen.count_ones(), 16 + 16 + 12);
        assert_eq!(in_short(&Cells::gpr(9, 8)), in_short(&Cell::gpr(9, 7).into()));
        assert_ne!(in_short(&Cells::gpr(9, 8)), in_short(&Cells::gpr(8, 8)));
        assert_ne!(in_short(&Cells::ymm(2, 8)), in_short(&Cells::ymm(3, 8)));
    }
}
