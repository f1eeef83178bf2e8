//! Direct jumps, conditional or not, and the safepoints of those that go back.

use super::exits::{Stub, StubKind};
use super::shared::count_through_rcx;
use super::{FOLLOW_REACH, RCX_SLOT, Then, Translator};
use crate::code::flags;
use crate::context::{address, reg};
use crate::lanes;
use iced_x86::{Instruction, OpKind};

impl Translator<'_> {
    pub(super) fn direct_jump(&mut self, i: &Instruction) -> Then {
        if i.op0_kind() != OpKind::NearBranch64 {
            return self.emulated(i);
        }
        let target = i.near_branch_target();
        if self.looping.is_some_and(|l| l.back_edge == i.ip()) {
            self.loop_back();
            self.looping = None;
            return Then::End;
        }
        let near = target > i.ip() && target - self.request.pc < FOLLOW_REACH;
        let whole = !self.request.profile.basic_blocks() && self.request.stop_after.is_none();
        if near && whole && !(self.request.known)(target) {
            return Then::Follow(target);
        }
        self.close(self.index + 1);
        self.direct_exit(i.ip(), target);
        Then::End
    }

    /// A jump to a guest address, with a safepoint if it does not go forward.
    pub(super) fn direct_exit(&mut self, from: u64, target: u64) {
        self.exit_to(target, (target <= from).into());
    }

    /// A jump to a guest address, with so many safepoints.
    pub(super) fn exit_to(&mut self, target: u64, weight: i32) {
        let exit = self.stubs.len();
        if weight == 0 {
            return self.jump_out(target);
        }
        let lane = lanes::of(self.places.last().expect("inside an instruction").pc);
        let out = if weight == 1 && flags::dead_at(target, &self.request.fetch) {
            self.emit.decrement_flags(address::lane(lane));
            let out = self.emit.jump_if(4 /* zero */);
            self.jump_out(target);
            out
        } else {
            self.emit.store(RCX_SLOT, reg::RCX);
            let out = count_through_rcx(&mut self.emit, lane, weight);
            self.emit.load(reg::RCX, RCX_SLOT);
            self.jump_out(target);
            self.emit.fill_short(out);
            self.emit.load(reg::RCX, RCX_SLOT);
            self.emit.jump()
        };
        self.stubs.push(Stub { hole: out, kind: StubKind::Safepoint { exit } });
    }

    fn jump_out(&mut self, target: u64) {
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
    }

    pub(super) fn conditional(&mut self, i: &Instruction, raw: &[u8]) -> Then {
        let target = i.near_branch_target();
        if !i.is_jcc_short_or_near() {
            return self.loop_branch(i, raw);
        }
        // iced numbers conditions from 1 in the order of the encoding.
        let condition = i.condition_code() as u8 - 1;
        if let Some(l) = self.looping {
            return self.conditional_in_loop(i, condition, l);
        }
        if target > i.ip() {
            let hole = self.emit.jump_if(condition);
            match &mut self.tracing {
                Some(tracing) => tracing.side_exit(hole, target, self.index + 1),
                None => self.stubs.push(Stub { hole, kind: StubKind::Direct { target } }),
            }
        } else {
            let not = condition ^ 1;
            let over = self.emit.jump_if(not);
            self.close(self.index + 1);
            self.direct_exit(i.ip(), target);
            self.reopen();
            self.emit.fill_here(over);
        }
        self.after_branch(i)
    }

    /// Past a conditional branch the unit goes on, unless blocks are wanted.
    pub(super) fn after_branch(&mut self, i: &Instruction) -> Then {
        if !self.request.profile.basic_blocks() {
            return Then::Boundary;
        }
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: i.next_ip() } });
        Then::End
    }

    /// LOOP, LOOPE, LOOPNE, JRCXZ: only short forms exist.
    pub(super) fn loop_branch(&mut self, i: &Instruction, raw: &[u8]) -> Then {
        let taken = self.emit.short_branch(&raw[..raw.len() - 1]);
        let over = self.emit.jump();
        self.emit.fill_short(taken);
        self.close(self.index + 1);
        self.direct_exit(i.ip(), i.near_branch_target());
        self.reopen();
        self.emit.fill_here(over);
        self.after_branch(i)
    }
}
