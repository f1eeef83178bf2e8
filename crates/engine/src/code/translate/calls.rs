//! Calls, returns and indirect jumps.

use super::exits::{Stub, StubKind};
use super::shared::{compare_target, count_through_rcx};
use super::{RAX_SLOT, RCX_SLOT, Spilled, TARGET_SLOT, Then, Translator};
use crate::code::emit::Hole;
use crate::code::{cache, dense};
use crate::context::reg;
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
    /// Where RAX says, and so many safepoints.
    Rax(i32),
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
        let wrong = compare_target(&mut self.emit, i.next_ip());
        self.stubs.push(Stub { hole: wrong, kind: StubKind::WrongReturn });
        // The slot below the stack pointer held the host's address for a moment.
        self.emit.store_stack(-8, i.next_ip());
        self.emit.load(reg::RCX, RCX_SLOT);
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
                Target::Rax(weight) => {
                    self.expect_return(call.back);
                    self.jump_to_rax(lanes::of(call.returns_to), weight);
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
        // A bad stack pointer must fault here, not in the shared stub.
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.load_top();
        self.close(self.index + 1);
        let hole = self.emit.jump();
        self.emit.fill(hole, cache::return_at(lanes::of(i.ip())));
        Then::End
    }

    /// `ret n`: too rare to be predicted.
    pub(super) fn ret_popping(&mut self, i: &Instruction) -> Then {
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.store(RAX_SLOT, reg::RAX);
        self.emit.pop_rcx();
        self.close(self.index + 1);
        self.emit.add_constant(reg::RSP, i.immediate16().into());
        self.emit.store(TARGET_SLOT, reg::RCX);
        let zero = count_through_rcx(&mut self.emit, lanes::of(i.ip()), 1);
        self.emit.load(reg::RCX, TARGET_SLOT);
        self.emit.low16_rcx();
        self.emit.jump_table_rcx(layout::TARGETS as i32);
        self.emit.fill_short(zero);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::SafepointIndirect });
        Then::End
    }

    /// The target goes through RAX, the count through RCX: neither waits for the
    /// other.
    pub(super) fn indirect(&mut self, i: &Instruction, call: bool) -> Then {
        if !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64) {
            return self.emulated(i);
        }
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.store(RAX_SLOT, reg::RAX);
        self.load_target(i);
        self.place(i.ip(), Some(Spilled { register: reg::RAX, slot: 6 }));
        self.emit.store(TARGET_SLOT, reg::RAX);
        if call {
            return self.call(i, Target::Rax(dense::branch_weight(i)));
        }
        self.close(self.index + 1);
        self.jump_to_rax(lanes::of(i.ip()), dense::branch_weight(i));
        Then::End
    }

    /// An indirect branch whose registers are spilled and whose target is in RAX
    /// and in its slot.
    pub(super) fn jump_to_rax(&mut self, lane: usize, weight: i32) {
        self.emit.low16_rax();
        let out = count_through_rcx(&mut self.emit, lane, weight);
        self.emit.load_table_rax(layout::TARGETS as i32);
        self.emit.load(reg::RAX, RAX_SLOT);
        self.emit.jump_rcx();
        self.emit.fill_short(out);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::SafepointIndirect });
    }

    /// The branch's operand into RAX, which still has the guest's value should the
    /// load fault.
    pub(super) fn load_target(&mut self, i: &Instruction) {
        if i.op0_kind() == OpKind::Register {
            let from = i.op0_register().number();
            if from != reg::RAX {
                self.emit.copy(reg::RAX, from);
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
        let load = Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory).expect("valid");
        self.encode(&load);
    }

    pub(super) fn load_target_rip(&mut self, target: u64) {
        let next = self.emit.here() + 7;
        match i32::try_from(target.wrapping_sub(next) as i64) {
            Ok(d) => {
                self.emit.raw(&[0x48, 0x8b, 0x05]);
                self.emit.raw(&d.to_le_bytes());
            }
            Err(_) => {
                self.emit.load_constant(reg::RAX, target);
                let pc = self.places.last().expect("inside an instruction").pc;
                self.place(pc, Some(Spilled { register: reg::RAX, slot: 6 }));
                self.emit.load_through(reg::RAX);
            }
        }
    }
}
