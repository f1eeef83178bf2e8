//! How deep the stack is at each instruction of a function, by its code alone.

use crate::unrun::{RBP, RSP, decode, on};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use program::effects::{Cells, effects};
use std::collections::HashMap;
use trace::Trace;

/// How many instructions of a function are looked at.
const MOST: usize = 20_000;

/// How far below the stack pointer at the function's entry the two registers point that frames
/// are counted from; `None` if the code does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    pub stack: Option<i64>,
    pub frame: Option<i64>,
}

/// The depth before each instruction that can be reached from an entry without a computed jump.
#[derive(Default)]
pub struct Depths(HashMap<u64, Depth>);

impl Depths {
    /// Follows the code of a function.
    pub fn of(trace: &Trace, entry: u64) -> Depths {
        let mut known: HashMap<u64, Depth> = HashMap::new();
        let mut work = vec![(entry, Depth { stack: Some(0), frame: None })];
        while let Some((at, depth)) = work.pop() {
            let met = known.get(&at).map_or(depth, |before| before.meet(depth));
            if known.insert(at, met) == Some(met) {
                continue;
            }
            if known.len() > MOST {
                return Depths::default();
            }
            let Some(i) = decode(trace, at) else { continue };
            let next = met.after(&i);
            work.extend(on(trace, &i).into_iter().flatten().map(|to| (to, next)));
        }
        Depths(known)
    }

    /// Before the instruction at an address.
    pub fn at(&self, address: u64) -> Option<Depth> {
        self.0.get(&address).copied()
    }
}

impl Depth {
    /// What holds whichever way control came.
    fn meet(self, other: Depth) -> Depth {
        let same = |a: Option<i64>, b: Option<i64>| a.filter(|_| a == b);
        Depth { stack: same(self.stack, other.stack), frame: same(self.frame, other.frame) }
    }

    fn after(self, i: &Instruction) -> Depth {
        let register =
            |n: u32, r: Register| i.op_kind(n) == OpKind::Register && i.op_register(n) == r;
        let set = |depth: Option<i64>| Depth { stack: depth, ..self };
        let plain = i.memory_index() == Register::None;
        let constant = !matches!(i.op1_kind(), OpKind::Register | OpKind::Memory);
        let moved = i64::from(i.stack_pointer_increment());
        match i.mnemonic() {
            Mnemonic::Call | Mnemonic::Syscall => self,
            Mnemonic::Leave => Depth { stack: self.frame.map(|f| f - 8), frame: None },
            Mnemonic::Sub if register(0, Register::RSP) && constant => {
                set(self.stack.map(|d| d + i.immediate(1) as i64))
            }
            Mnemonic::Add if register(0, Register::RSP) && constant => {
                set(self.stack.map(|d| d - i.immediate(1) as i64))
            }
            Mnemonic::Sub | Mnemonic::Add if register(0, Register::RSP) => set(None),
            Mnemonic::Lea if register(0, Register::RSP) && plain => {
                let by = i.memory_displacement64() as i64;
                set(match i.memory_base() {
                    Register::RSP => self.stack.map(|d| d - by),
                    Register::RBP => self.frame.map(|d| d - by),
                    _ => None,
                })
            }
            Mnemonic::Mov if register(0, Register::RSP) => {
                set(self.frame.filter(|_| register(1, Register::RBP)))
            }
            Mnemonic::Mov if register(0, Register::RBP) && register(1, Register::RSP) => {
                Depth { frame: self.stack, ..self }
            }
            Mnemonic::Lea
                if register(0, Register::RBP) && plain && i.memory_base() == Register::RSP =>
            {
                let by = i.memory_displacement64() as i64;
                Depth { frame: self.stack.map(|d| d - by), ..self }
            }
            Mnemonic::Push => set(self.stack.map(|d| d - moved)),
            Mnemonic::Pop if !register(0, Register::RSP) => {
                let frame = self.frame.filter(|_| !register(0, Register::RBP));
                Depth { stack: self.stack.map(|d| d - moved), frame }
            }
            Mnemonic::Pushfq | Mnemonic::Popfq => set(self.stack.map(|d| d - moved)),
            _ => {
                let defs = effects(i).defs();
                let keeps = |n: u8| !defs.overlaps(&Cells::gpr(n, 8));
                Depth {
                    stack: self.stack.filter(|_| keeps(RSP)),
                    frame: self.frame.filter(|_| keeps(RBP)),
                }
            }
        }
    }
}
