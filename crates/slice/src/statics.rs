//! What the walk needs to know of code, worked out once per trace.

use iced_x86::{Mnemonic, OpKind, Register};
use program::effects::Cells;
use trace::{Code, Flow, Info, InstructionId, PathId, Trace};

/// Restores and saves are looked for this close to a function's end.
const MAX_SAVE: usize = 10;

/// Of a path.
#[derive(Clone, Debug, Default)]
pub struct PathFacts {
    /// Register cells that some instruction of it defines.
    pub defs: Cells,
    /// Memory that it may write: instruction, operand.
    pub stores: Vec<(u16, u8)>,
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
    /// Jumps through the table of bound symbols.
    pub is_linkage: bool,
}

/// Both, by number.
pub struct Statics {
    paths: Vec<PathFacts>,
    instructions: Vec<InstructionFacts>,
}

impl Statics {
    /// Looks at all code of a trace.
    pub fn of(trace: &Trace) -> Statics {
        let code = &trace.code;
        let mut instructions: Vec<InstructionFacts> =
            code.instructions().map(|(_, info)| instruction_facts(info)).collect();
        for (_, path) in code.paths() {
            let ops = code.ops(path);
            let returns = ops.last().is_some_and(|op| code.info(op.instruction).flow == Flow::Return);
            let near = if returns { ops.len().saturating_sub(MAX_SAVE + 1) } else { ops.len() };
            for op in &ops[near..] {
                let info = code.info(op.instruction);
                instructions[op.instruction.0 as usize].restores = restored(info);
            }
        }
        let bindings = bindings(trace);
        let paths = code.paths().map(|(id, _)| path_facts(code, id, &bindings)).collect();
        Statics { paths, instructions }
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

fn path_facts(code: &Code, id: PathId, bindings: &[(u64, u64)]) -> PathFacts {
    let path = code.path(id);
    let mut facts = PathFacts::default();
    for (n, op) in code.ops(path).iter().enumerate() {
        let info = code.info(op.instruction);
        facts.defs = facts.defs.union(info.defs);
        for (m, operand) in code.operands(op).iter().enumerate() {
            if operand.access().writes {
                facts.stores.push((n as u16, m as u8));
            }
        }
        if bindings.iter().any(|(_, end)| *end == info.address()) {
            facts.binding = Some(Binding::Ends);
        }
    }
    if facts.binding.is_none() && bindings.iter().any(|(start, _)| *start == code.start(path)) {
        facts.binding = Some(Binding::Begins);
    }
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
    let is_linkage = info.flow == Flow::Indirect && i.is_ip_rel_memory_operand();
    InstructionFacts { saves, restores: None, is_linkage }
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
