//! A unit that is a loop keeps the safepoint count in a register meanwhile, and where
//! instructions are counted, their budget in another.

use super::exits::{Stub, StubKind};
use super::{BUDGET_SLOT, LOOP_SLOT, Then, Translator};
use crate::code::loops::{self, SelfLoop};
use crate::code::{Profile, dense};
use crate::context::address;
use crate::crossing::Reason;
use crate::lanes;
use iced_x86::Instruction;

/// How a loop that counts in a register is left.
pub(super) enum LoopExit {
    /// To a guest address.
    To(u64),
    /// The count has run out.
    Safepoint,
    /// The instruction budget would run negative.
    Budget,
}

impl Translator<'_> {
    /// A unit that is a loop keeps the safepoint count in a register meanwhile.
    pub(super) fn enter_loop(&mut self, pc: u64) {
        let r = self.request;
        let whole = r.stop_after.is_none() && r.trace.is_none() && r.watched.watches.is_empty();
        if !whole || dense::is_dense() {
            return;
        }
        let find = match r.profile {
            Profile::PLAIN => loops::find,
            Profile::COUNTING => loops::find_counted,
            _ => return,
        };
        // A stop inside would end the unit in the middle, with the count in a register.
        let stop = r.stops.get(r.stops.partition_point(|stop| *stop < pc)).copied();
        let is_free = |l: &SelfLoop| stop.is_none_or(|stop| stop > l.back_edge);
        self.looping = find(pc, r.fetch, r.limit).filter(is_free);
        if let Some(l) = self.looping {
            self.emit.store(LOOP_SLOT, l.register);
            self.emit.load(l.register, self.loop_lane());
            if let Some(budget) = l.budget {
                self.emit.store(BUDGET_SLOT, budget);
                self.emit.load(budget, address::BUDGET);
            }
        }
        self.loop_head = self.emit.here();
    }

    pub(super) fn conditional_in_loop(
        &mut self,
        i: &Instruction,
        condition: u8,
        l: SelfLoop,
    ) -> Then {
        if i.ip() != l.back_edge {
            let hole = self.emit.jump_if(condition);
            self.loop_exits.push((hole, LoopExit::To(i.near_branch_target())));
            return Then::Boundary;
        }
        let over = self.emit.jump_if(condition ^ 1);
        self.loop_back();
        self.emit.fill_here(over);
        self.leave_loop(l);
        self.looping = None;
        self.after_branch(i)
    }

    /// Counts one iteration and goes on with the next.
    pub(super) fn loop_back(&mut self) {
        let l = self.looping.expect("only called within a loop");
        self.left_loop = Some(l);
        if l.flags_dead {
            self.emit.decrement_register_flags(l.register);
            let zero = self.emit.jump_if(4 /* zero */);
            self.loop_exits.push((zero, LoopExit::Safepoint));
        } else {
            self.emit.add_constant(l.register, -1);
            let zero = self.emit.jump_if_rcx_zero();
            let again = self.emit.jump();
            self.emit.fill(again, self.loop_head);
            self.emit.fill_short(zero);
            let hole = self.emit.jump();
            self.loop_exits.push((hole, LoopExit::Safepoint));
            return;
        }
        if let Some(budget) = l.budget {
            // The branch back is the last instruction of the unit.
            self.emit.subtract_register_flags(budget, self.index as i32 + 1);
            let negative = self.emit.jump_if(8 /* sign */);
            self.loop_exits.push((negative, LoopExit::Budget));
        }
        let again = self.emit.jump();
        self.emit.fill(again, self.loop_head);
    }

    /// Where the count is while it is in no register.
    fn loop_lane(&self) -> i32 {
        address::lane(lanes::of(self.request.pc))
    }

    /// Puts counts and registers back where they belong.
    pub(super) fn leave_loop(&mut self, l: SelfLoop) {
        self.emit.store(self.loop_lane(), l.register);
        self.emit.load(l.register, LOOP_SLOT);
        if let Some(budget) = l.budget {
            self.emit.store(address::BUDGET, budget);
            self.emit.load(budget, BUDGET_SLOT);
        }
    }

    /// The ways out of a loop, behind the unit.
    pub(super) fn write_loop_exits(&mut self) {
        for (hole, exit) in std::mem::take(&mut self.loop_exits) {
            let left = self.left_loop.expect("a loop was translated");
            self.emit.fill_here(hole);
            self.leave_loop(left);
            match exit {
                LoopExit::To(target) => {
                    let hole = self.emit.jump();
                    self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
                }
                LoopExit::Safepoint => self.leave(Reason::SafepointHere, self.request.pc),
                LoopExit::Budget => {
                    self.emit.store_u32(address::ARG, self.index);
                    self.leave(Reason::Budget, self.request.pc);
                }
            }
        }
    }
}
