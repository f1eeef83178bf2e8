//! What the walk needs to know of code, worked out once per trace.

use crate::chores;
use crate::stores::{Store, join_near};
use program::effects::{Cells, Target};
use trace::{InstructionId, PathId, Trace};

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

/// Vector registers in short.
pub const VECTORS: u64 = 0xffff << 16;

/// Cells in short: one bit for each register or flag of which some cell is there.
#[inline]
pub fn in_short(cells: &Cells) -> u64 {
    let words = cells.words();
    let mut short = in_short_but_vectors(cells);
    for (n, word) in words[2..words.len() - 1].iter().enumerate() {
        // A vector register is half a word.
        let (low, high) = (*word as u32 != 0, word >> 32 != 0);
        short |= (u64::from(low) | u64::from(high) << 1) << (16 + 2 * n);
    }
    short
}

/// The same of cells without vector registers.
#[inline]
pub fn in_short_but_vectors(cells: &Cells) -> u64 {
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
    /// Decides where control goes: others are never the reason why something ran.
    pub decides: bool,
    /// First of its flows' targets among those of all instructions.
    pub first_target: u32,
}

/// Both, by number.
pub struct Statics {
    paths: Vec<PathFacts>,
    briefs: Vec<Brief>,
    stores: Vec<Store>,
    loads: Vec<Store>,
    instructions: Vec<InstructionFacts>,
    /// Registers that each flow of each instruction defines, in short.
    targets: Vec<u64>,
}

impl Statics {
    /// Looks at all code of a trace.
    pub fn of(trace: &Trace) -> Statics {
        let code = &trace.code;
        let (mut instructions, bindings) = chores::of(trace);
        let mut targets = Vec::new();
        for (facts, (_, info)) in instructions.iter_mut().zip(code.instructions()) {
            facts.first_target = targets.len() as u32;
            targets.extend(info.effects.flows.iter().map(|flow| match &flow.to {
                Target::Cells(cells) => in_short(cells),
                Target::Memory { .. } => 0,
            }));
        }
        let (mut stores, mut loads) = (Vec::new(), Vec::new());
        let facts = |(id, _)| path_facts(trace, id, &bindings, &mut stores, &mut loads);
        let mut paths: Vec<PathFacts> = code.paths().map(facts).collect();
        // Who asks for labels waits until all are found, so that comes last.
        for (facts, (id, _)) in paths.iter_mut().zip(code.paths()) {
            facts.labels = trace.control.labels(id) as u16;
        }
        let briefs = paths.iter().map(brief).collect();
        Statics { paths, briefs, stores, loads, instructions, targets }
    }

    /// Registers that each flow of an instruction defines, in short: all of them, and more.
    #[inline]
    pub fn targets(&self, id: InstructionId) -> &[u64] {
        &self.targets[self.instruction(id).first_target as usize..]
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
    let mut facts = PathFacts { captures: path.captures, ..PathFacts::default() };
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

fn brief(facts: &PathFacts) -> Brief {
    Brief {
        defs: in_short(&facts.defs) | if facts.binding.is_some() { BINDS } else { 0 },
        first_store: facts.stores.0,
        stores: facts.stores.1,
        captures: facts.captures,
        labels: facts.labels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::effects::Cell;

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
