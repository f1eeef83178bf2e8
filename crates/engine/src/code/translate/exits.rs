//! The ways out of a unit: cold code, one stub for each.

use super::shared::leave_at_safepoint;
use super::{FLAGS_RAX_SLOT, FLAGS_SLOT, RCX_SLOT, Translator};
use crate::code::cache::{self, NewExit};
use crate::code::emit::Hole;
use crate::code::flags;
use crate::context::{address, reg};
use crate::crossing::Reason;

/// A branch out of the unit, waiting for its stub.
pub(super) struct Stub {
    pub(super) hole: Hole,
    pub(super) kind: StubKind,
}

pub(super) enum StubKind {
    /// Direct branch to a guest address.
    Direct { target: u64 },
    /// The safepoint count ran out on the way to `target`; uses that exit's number.
    Safepoint { exit: usize },
    /// The same at an indirect branch.
    SafepointIndirect,
    /// The instruction budget would run negative.
    Budget,
    /// The safepoint count ran out where an indirect branch arrived.
    Arrived { pc: u64 },
    /// A return came to a call it does not belong to.
    WrongReturn,
    /// An instruction, by address and number, may touch watched memory.
    Watch { pc: u64, index: u32 },
}

impl Translator<'_> {
    /// Counting profiles: take the unit's instructions off the budget at its
    /// head. Returns where the number is to be written once it is known.
    pub(super) fn budget_check(&mut self, pc: u64) -> Option<usize> {
        if !self.request.profile.count || self.request.stop_after.is_some() {
            return None;
        }
        let dead = flags::dead_at(pc, &self.request.fetch);
        if !dead {
            self.emit.save_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        self.emit.subtract_flags(address::BUDGET, 0);
        let number_at = self.emit.offset() - 4;
        let hole = self.emit.jump_if(8 /* sign */);
        self.stubs.push(Stub { hole, kind: StubKind::Budget });
        if !dead {
            self.emit.restore_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        Some(number_at)
    }

    /// Goes back to the engine with RIP = `pc`.
    pub(super) fn leave(&mut self, reason: Reason, pc: u64) {
        self.emit.store_u64(address::RIP, pc);
        self.emit.store_u32(address::REASON, reason as u32);
        self.emit.jump_through(address::EXIT);
    }

    /// The cold code behind the unit: one stub per way out.
    pub(super) fn write_stubs(&mut self) -> Vec<NewExit> {
        let stubs = std::mem::take(&mut self.stubs);
        let mut exits: Vec<NewExit> = Vec::new();
        let mut exit_numbers = vec![0u32; stubs.len()];
        for (n, stub) in stubs.iter().enumerate() {
            if let StubKind::Direct { target } = stub.kind {
                let number = self.request.first_exit + exits.len() as u32;
                exit_numbers[n] = number;
                let at = self.cold.offset();
                exits.push(NewExit { hole: stub.hole, stub: at, target });
                self.ask(stub.hole, Reason::Unlinked, number);
            }
        }
        for stub in &stubs {
            match stub.kind {
                StubKind::Direct { .. } => {}
                StubKind::Safepoint { exit } => {
                    self.ask(stub.hole, Reason::Safepoint, exit_numbers[exit]);
                }
                StubKind::SafepointIndirect => self.ask(stub.hole, Reason::SafepointIndirect, 0),
                StubKind::Budget => self.out_of_budget(stub.hole),
                StubKind::Arrived { pc } => {
                    self.emit.fill(stub.hole, self.cold.here());
                    leave_at_safepoint(&mut self.cold, pc);
                }
                StubKind::WrongReturn => self.emit.fill(stub.hole, cache::WRONG_RETURN),
                StubKind::Watch { pc, index } => self.watched(stub.hole, pc, index),
            }
        }
        exits
    }

    pub(super) fn ask(&mut self, hole: Hole, reason: Reason, arg: u32) {
        self.emit.fill(hole, self.cold.here());
        self.cold.store_u32(address::REASON, reason as u32);
        self.cold.store_u32(address::ARG, arg);
        self.cold.jump_through(address::EXIT);
    }

    pub(super) fn watched(&mut self, hole: Hole, pc: u64, index: u32) {
        self.emit.fill(hole, self.cold.here());
        self.cold.load(reg::RCX, RCX_SLOT);
        self.cold.store_u64(address::RIP, pc);
        self.cold.store_u32(address::ARG, self.index - index);
        self.cold.store_u32(address::REASON, Reason::Watch as u32);
        self.cold.jump_through(address::EXIT);
    }

    pub(super) fn out_of_budget(&mut self, hole: Hole) {
        self.emit.fill(hole, self.cold.here());
        if !flags::dead_at(self.request.pc, &self.request.fetch) {
            self.cold.restore_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        self.cold.store_u32(address::ARG, self.index);
        self.cold.store_u64(address::RIP, self.request.pc);
        self.cold.store_u32(address::REASON, Reason::Budget as u32);
        self.cold.jump_through(address::EXIT);
    }
}
