//! What the walk needs to know of code, worked out once per trace.

use crate::chores;
use crate::stores::{Store, join_near};
use program::effects::Cells;
use std::sync::OnceLock;
use trace::{Code, InstructionId, PathId, Trace};

/// What a record may use or define by its path alone: asked by those who go forward.
#[derive(Clone, Debug, Default)]
pub struct Touching {
    /// Register cells that some instruction of it defines.
    pub defs: Cells,
    /// Register cells that some instruction of it uses, in whatever way.
    pub uses: Cells,
    /// Memory that it may read.
    pub loads: Vec<Store>,
}

/// Of a path: what every record is asked for. There are many paths, and all of this stays in a
/// near cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brief {
    /// Registers that some instruction of it defines, in short, and [`BINDS`].
    pub defs: u64,
    /// Memory that it may write: a range of all stores.
    first_store: u32,
    stores: u16,
    /// Registers captured.
    pub captures: u16,
    /// Labels of control.
    pub labels: u16,
    /// It is where binding a symbol late ends, or begins.
    pub binding: Option<Binding>,
}

impl Brief {
    /// Its own, of all stores.
    #[inline(always)]
    pub fn of<'a>(&self, stores: &'a [Store]) -> &'a [Store] {
        &stores[self.first_store as usize..][..self.stores as usize]
    }

    /// May it write memory?
    #[inline(always)]
    pub fn stores(&self) -> bool {
        self.stores > 0
    }
}

/// Stands beside registers in short for code that binds symbols.
pub const BINDS: u64 = 1 << 63;

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
}

/// Both, by number.
pub struct Statics {
    /// Of those that ran; of others, nothing.
    briefs: Vec<Brief>,
    stores: Vec<Store>,
    instructions: Vec<InstructionFacts>,
    /// Where each path that ran is among them, and what is known of it.
    touching: OnceLock<(Vec<u32>, Vec<Touching>)>,
}

impl Statics {
    /// Looks at all code of a trace.
    pub fn of(trace: &Trace) -> Statics {
        let (instructions, bindings) = chores::of(trace);
        let (mut stores, ran) = (Vec::new(), trace.records.ran());
        let mut briefs = vec![Brief::default(); trace.code.paths().len()];
        for id in ran {
            briefs[id.0 as usize] = brief(&trace.code, *id, &bindings, &mut stores);
        }
        // Who asks for control waits until its states are found, so that comes last.
        for id in ran {
            briefs[id.0 as usize].labels = trace.control.labels(*id) as u16;
        }
        Statics { briefs, stores, instructions, touching: OnceLock::new() }
    }

    /// What every record is asked for, by path.
    #[inline]
    pub fn briefs(&self) -> &[Brief] {
        &self.briefs
    }

    /// Of a path that ran.
    #[inline]
    pub fn path(&self, id: PathId) -> &Brief {
        &self.briefs[id.0 as usize]
    }

    /// Memory that a path may write.
    #[inline]
    pub fn stores_of(&self, brief: &Brief) -> &[Store] {
        brief.of(&self.stores)
    }

    /// The same of all paths.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    /// What a path that ran may use or define. Found for all of them when it is first asked.
    #[inline]
    pub fn touching(&self, trace: &Trace, id: PathId) -> &Touching {
        let (numbers, all) = self.touching.get_or_init(|| touching_of_all(trace));
        &all[numbers[id.0 as usize] as usize]
    }

    /// Of an instruction.
    #[inline]
    pub fn instruction(&self, id: InstructionId) -> &InstructionFacts {
        &self.instructions[id.0 as usize]
    }
}

fn brief(code: &Code, id: PathId, bindings: &[(u64, u64)], stores: &mut Vec<Store>) -> Brief {
    let path = code.path(id);
    let first = stores.len();
    let mut brief = Brief { captures: path.captures, ..Brief::default() };
    for op in code.ops(path).iter().chain(code.faulting(path)) {
        let info = code.info(op.instruction);
        brief.defs |= info.short_defs;
        if info.writes {
            let written = code.operands(op).iter().filter(|o| o.access().writes);
            stores.extend(written.map(Store::new));
        }
        if bindings.iter().any(|(_, end)| *end == info.address()) {
            brief.binding = Some(Binding::Ends);
        }
    }
    if brief.binding.is_none() && bindings.iter().any(|(start, _)| *start == code.start(path)) {
        brief.binding = Some(Binding::Begins);
    }
    if brief.binding.is_some() {
        brief.defs |= BINDS;
    }
    join_near(stores, first);
    (brief.first_store, brief.stores) = (first as u32, (stores.len() - first) as u16);
    brief
}

fn touching_of_all(trace: &Trace) -> (Vec<u32>, Vec<Touching>) {
    let ran = trace.records.ran();
    let mut numbers = vec![0; trace.code.paths().len()];
    for (n, id) in ran.iter().enumerate() {
        numbers[id.0 as usize] = n as u32;
    }
    (numbers, ran.iter().map(|id| touching(&trace.code, *id)).collect())
}

fn touching(code: &Code, id: PathId) -> Touching {
    let path = code.path(id);
    let mut all = Touching::default();
    for op in code.ops(path).iter().chain(code.faulting(path)) {
        let info = code.info(op.instruction);
        all.defs = all.defs.union(info.defs);
        all.uses = all.uses.union(info.uses).union(info.condition);
        for operand in code.operands(op) {
            all.uses = all.uses.union(crate::sources::address_registers(operand));
            if operand.access().reads {
                all.loads.push(Store::new(operand));
            }
        }
    }
    join_near(&mut all.loads, 0);
    all
}
