//! What slices pass by, found by going forward over a whole run.

use super::slicer::Reference;
use super::wanted::Spot;
use engine::lockstep::probe::Place;
use iced_x86::{Code, FlowControl, Instruction, OpKind, Register};
use std::collections::{HashMap, HashSet};
use trace::InstructionId;

/// Which copies of registers count as saves and restores.
pub trait Pairs {
    /// The register that an instruction saves.
    fn saved(&self, id: InstructionId) -> Option<u8>;
    /// The register that it restores.
    fn restored(&self, id: InstructionId) -> Option<u8>;
}

impl Pairs for slice::Slicer<'_> {
    fn saved(&self, id: InstructionId) -> Option<u8> {
        slice::Slicer::saved(self, id)
    }
    fn restored(&self, id: InstructionId) -> Option<u8> {
        slice::Slicer::restored(self, id)
    }
}

/// All of a run.
#[derive(Default)]
pub struct Bypasses {
    /// By the step that restores: the step that saved, and the register.
    pub saves: HashMap<usize, (usize, u8)>,
    /// By the last step of a symbol's binding: its first.
    pub bindings: HashMap<usize, usize>,
    /// Jumps through the table of bound symbols.
    pub linkage: HashSet<usize>,
    /// Steps that make RBP another name of the stack pointer.
    pub frames: HashSet<usize>,
}

impl Bypasses {
    /// Goes through a run.
    pub fn find(all: &Reference, activations: &[usize], pairs: &dyn Pairs) -> Bypasses {
        let mut found = Bypasses::default();
        found.find_saves(all, activations, pairs);
        found.find_bindings(all, activations);
        let is_frame = |n: &usize| {
            let step = &all.run.steps[*n];
            sets_frame(&all.trace.code.info(step.instruction).instruction)
        };
        // What is such a jump once is one always.
        let address = |n: &usize| all.run.steps[*n].address;
        let jumps: HashSet<u64> = found.linkage.iter().map(address).collect();
        found.linkage = (0..all.run.steps.len()).filter(|n| jumps.contains(&address(n))).collect();
        found.frames = (0..all.run.steps.len()).filter(is_frame).collect();
        found
    }

    /// A register is restored from a slot if its own save in the same activation is
    /// what last wrote all of the slot.
    fn find_saves(&mut self, all: &Reference, activations: &[usize], pairs: &dyn Pairs) {
        let mut writers: HashMap<u64, usize> = HashMap::new();
        for (n, step) in all.run.steps.iter().enumerate() {
            for call in all.calls.get(&n).into_iter().flatten() {
                let call = all.trace.call(&all.trace.spans.calls[*call]);
                for (start, len) in call.written.iter().chain(&call.mapped) {
                    writers.retain(|a, _| a.wrapping_sub(*start) >= *len);
                }
            }
            if let (Some(register), Some(slot)) =
                (pairs.restored(step.instruction), step.operands.first())
            {
                let writer = writers.get(slot).copied();
                let whole = (*slot..slot + 8).all(|a| writers.get(&a).copied() == writer);
                let is_save = |m: &usize| {
                    let save = &all.run.steps[*m];
                    pairs.saved(save.instruction) == Some(register)
                        && save.operands.first() == Some(slot)
                        && activations[*m] == activations[n]
                };
                if let Some(save) = writer.filter(|m| whole && is_save(m)) {
                    self.saves.insert(n, (save, register));
                }
            }
            for element in 0..step.elements {
                for place in all.from(step).keys().filter(|p| matches!(p, Place::Memory(..))) {
                    if let Some(Spot::Memory(a)) = all.spot(step, place, element) {
                        writers.insert(a, n);
                    }
                }
            }
        }
    }

    /// The first stub of a linkage table pushes the object and jumps to what binds;
    /// that ends with a jump through a register.
    fn find_bindings(&mut self, all: &Reference, activations: &[usize]) {
        let steps = &all.run.steps;
        let info = |n: usize| &all.trace.code.info(steps[n].instruction).instruction;
        for n in 1..steps.len() {
            let i = info(n);
            if i.flow_control() != FlowControl::IndirectBranch {
                continue;
            }
            if i.is_ip_rel_memory_operand() {
                let before = info(n - 1);
                let marked = before.mnemonic() == iced_x86::Mnemonic::Endbr64;
                let arrives = before.next_ip() != i.ip();
                let first = before.mnemonic() == iced_x86::Mnemonic::Push
                    && before.is_ip_rel_memory_operand();
                if marked || arrives || first {
                    self.linkage.insert(n);
                }
                if first {
                    self.find_end(all, activations, n + 1);
                }
            }
        }
    }

    fn find_end(&mut self, all: &Reference, activations: &[usize], first: usize) {
        let steps = &all.run.steps;
        for n in first..steps.len() {
            if activations[n] != activations[first] {
                continue;
            }
            let i = &all.trace.code.info(steps[n].instruction).instruction;
            if i.flow_control() == FlowControl::IndirectBranch && i.op0_kind() == OpKind::Register {
                self.bindings.insert(n, first);
                self.linkage.insert(n);
                return;
            }
        }
    }
}

/// `mov rbp, rsp` and `lea rbp, [rsp + x]`.
fn sets_frame(i: &Instruction) -> bool {
    let copies = i.code() == Code::Mov_rm64_r64 || i.code() == Code::Mov_r64_rm64;
    let copies = copies && i.op1_register() == Register::RSP;
    let adds = i.code() == Code::Lea_r64_m
        && i.memory_base() == Register::RSP
        && i.memory_index() == Register::None;
    i.op0_register() == Register::RBP && (copies || adds)
}
