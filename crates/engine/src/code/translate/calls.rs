//! Calls, returns and indirect jumps.

use super::exits::{Stub, StubKind};
use super::shared::{Arrival, From, count_through_rcx};
use super::{RCX_SLOT, Spilled, TARGET_SLOT, Then, Translator};
use crate::code::dense;
use crate::code::emit::Hole;
use crate::context::{address, reg};
use crate::{lanes, layout};
use iced_x86::{Code, Instruction, MemoryOperand, OpKind, Register};

/// A call whose other half is still to be written.
pub(super) struct Call {
    /// The host call.
    pub(super) into: Hole,
    /// Host address it returns to.
    pub(super) back: u64,
    /// Guest address of the instruction behind it.
    pub(super) returns_to: u64,
    /// Where it goes.
    pub(super) target: Target,
}

/// Where a call goes.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Direct(u64),
    /// Where the slot says, and so many safepoints.
    Slot(i32),
}

impl Translator<'_> {
    pub(super) fn direct_call(&mut self, i: &Instruction) -> Then {
        if i.op0_kind() != OpKind::NearBranch64 {
            return self.emulated(i);
        }
        self.call(i, Target::Direct(i.near_branch_target()))
    }

    /// A call is a host call, so that the CPU predicts the return: it pushes the
    /// address of the code behind it, which is replaced at once by the guest's
    /// return address. The part that does so and makes the call is behind the
    /// unit; here stands what the return comes to, and the unit goes on.
    pub(super) fn call(&mut self, i: &Instruction, target: Target) -> Then {
        self.close(self.index + 1);
        let into = self.emit.call();
        let back = self.emit.here();
        self.calls.push(Call { into, back, returns_to: i.next_ip(), target });
        let Arrival { wrong, out } = self.arrive(i.next_ip(), From::Return);
        self.stubs.push(Stub { hole: wrong, kind: StubKind::WrongReturn });
        self.stubs.push(Stub { hole: out, kind: StubKind::Arrived { pc: i.next_ip() } });
        let whole = !self.request.profile.basic_blocks() && self.tracing.is_none();
        if whole && self.request.stop_after.is_none() {
            return Then::Boundary;
        }
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: i.next_ip() } });
        Then::End
    }

    /// The parts of calls that stand behind the unit.
    pub(super) fn write_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.emit.fill_here(call.into);
            self.emit.store_stack(0, call.returns_to);
            match call.target {
                Target::Direct(target) => {
                    self.emit.store(RCX_SLOT, reg::RCX);
                    self.expect_return(call.back);
                    self.emit.load(reg::RCX, RCX_SLOT);
                    let hole = self.emit.jump();
                    self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
                }
                Target::Slot(weight) => {
                    self.emit.store_u32(address::BRANCH, call.back as u32);
                    self.expect_return(call.back);
                    self.weigh(lanes::of(call.returns_to), weight);
                    self.emit.load_low16_rcx(TARGET_SLOT);
                    self.emit.jump_table_rcx(layout::TARGETS as i32);
                }
            }
        }
    }

    /// Remembers, by stack depth, where the call returns to. Clobbers RCX.
    pub(super) fn expect_return(&mut self, back: u64) {
        self.emit.low16_rsp();
        self.emit.store_at_rcx(layout::RETURNS as i32, back as i32);
    }

    pub(super) fn ret(&mut self, i: &Instruction) -> Then {
        match i.code() {
            Code::Retnq => {}
            Code::Retnq_imm16 => return self.ret_popping(i),
            _ => return self.emulated(i),
        }
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.load_top();
        self.close(self.index + 1);
        // Leaves through a host `ret`, which the CPU predicts, to where the call at this
        // stack depth said it would continue.
        self.note_branch(i);
        self.emit.store(TARGET_SLOT, reg::RCX);
        self.emit.low16_rsp();
        self.emit.load_at_rcx(layout::RETURNS as i32);
        self.place(i.ip(), None);
        self.places.last_mut().expect("just put there").returns = true;
        self.emit.store_top();
        self.emit.ret();
        Then::End
    }

    /// `ret n`: too rare to be predicted.
    pub(super) fn ret_popping(&mut self, i: &Instruction) -> Then {
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.pop_rcx();
        self.close(self.index + 1);
        self.note_branch(i);
        self.emit.add_constant(reg::RSP, i.immediate16().into());
        self.emit.store(TARGET_SLOT, reg::RCX);
        self.emit.low16_rcx();
        self.emit.jump_table_rcx(layout::TARGETS as i32);
        Then::End
    }

    /// An indirect branch goes through RCX to the landings of its target's slot.
    pub(super) fn indirect(&mut self, i: &Instruction, call: bool) -> Then {
        if !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64) {
            return self.emulated(i);
        }
        self.emit.store(RCX_SLOT, reg::RCX);
        self.load_target(i);
        self.place(i.ip(), Some(Spilled { register: reg::RCX as u8, slot: 0 }));
        self.emit.store(TARGET_SLOT, reg::RCX);
        let weight = dense::branch_weight(i);
        if call {
            return self.call(i, Target::Slot(weight));
        }
        self.close(self.index + 1);
        self.note_branch(i);
        self.weigh(lanes::of(i.ip()), weight);
        if weight > 1 {
            self.emit.load(reg::RCX, TARGET_SLOT);
        }
        self.emit.low16_rcx();
        self.emit.jump_table_rcx(layout::TARGETS as i32);
        Then::End
    }

    /// Says which branch is about to leave: one whose target cannot be an address faults
    /// itself, and this is noticed only where nothing is found at the target.
    fn note_branch(&mut self, i: &Instruction) {
        self.place(i.ip(), None);
        self.emit.store_u32(address::BRANCH, self.emit.here() as u32);
    }

    /// Counts the safepoints of an indirect branch but the one that is counted where it
    /// arrives. Clobbers RCX.
    fn weigh(&mut self, lane: usize, weight: i32) {
        if weight == 1 {
            return;
        }
        let out = count_through_rcx(&mut self.emit, lane, weight - 1);
        let over = self.emit.jump_short();
        self.emit.fill_short(out);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::SafepointIndirect });
        self.emit.fill_short(over);
    }

    /// The branch's operand into RCX, which still has the guest's value should the
    /// load fault.
    pub(super) fn load_target(&mut self, i: &Instruction) {
        let replaced = self.tracing.as_ref().and_then(|tracing| tracing.replaced(i));
        let i = &replaced.unwrap_or(*i);
        if i.op0_kind() == OpKind::Register {
            let from = i.op0_register().number();
            if from != reg::RCX {
                self.emit.copy(reg::RCX, from);
            }
            return;
        }
        if i.is_ip_rel_memory_operand() {
            return self.load_target_rip(i.ip_rel_memory_address());
        }
        let memory = MemoryOperand::new(
            i.memory_base(),
            i.memory_index(),
            i.memory_index_scale(),
            i.memory_displacement64() as i64,
            i.memory_displ_size(),
            false,
            i.segment_prefix(),
        );
        let load = Instruction::with2(Code::Mov_r64_rm64, Register::RCX, memory).expect("valid");
        self.encode(&load);
    }

    pub(super) fn load_target_rip(&mut self, target: u64) {
        let next = self.emit.here() + 7;
        match i32::try_from(target.wrapping_sub(next) as i64) {
            Ok(d) => {
                self.emit.raw(&[0x48, 0x8b, 0x0d]);
                self.emit.raw(&d.to_le_bytes());
            }
            Err(_) => {
                self.emit.load_constant(reg::RCX, target);
                let pc = self.places.last().expect("inside an instruction").pc;
                self.place(pc, Some(Spilled { register: reg::RCX as u8, slot: 0 }));
                self.emit.load_through(reg::RCX);
            }
        }
    }
}
