//! What a walk passes by: saved registers, and the binding of symbols.

use crate::follow::Follow;
use crate::restores::Restore;
use crate::rote::Chore;
use crate::sources::address_registers;
use crate::sweep::{Record, Sweep};
use crate::wanted_cells::{ones, part_of};
use program::effects::{Cell, Cells};
use trace::{Instance, Op};

impl<F: Follow> Sweep<'_, F> {
    /// An instruction that does nothing but save a register, or bring it back. Says whether
    /// it is done with; if not, it is met like any other.
    #[inline]
    pub(crate) fn chore(&mut self, chore: &Chore, record: &Record) -> bool {
        let Some((slot, _)) = chore.slot.range(record.captured, record.bases) else {
            return false;
        };
        let at = Instance { time: record.time, index: chore.index };
        if chore.saves {
            return !self.memory.may_concern(slot, 8) || self.meet_latest_save(chore, slot, at);
        }
        let is_wanted = self.thread.wanted.short >> chore.register & 1 != 0;
        !is_wanted || self.restore_later(chore.register, slot, at)
    }

    /// A save whose register came back latest: the usual one.
    fn meet_latest_save(&mut self, chore: &Chore, slot: u64, at: Instance) -> bool {
        let frame = self.trace.control.frame_of(at.time);
        let usual = |restore: &Restore<F::Mark>| {
            (restore.slot, restore.register, restore.frame) == (slot, chore.register, frame)
        };
        let Some(restore) = self.restores.take_latest(usual) else { return false };
        self.memory.forget(slot);
        self.bring_back(&restore);
        // Somebody else may want the slot's contents all the same.
        !self.memory.has(slot, 8)
    }

    /// A saved register comes back: look for the save instead of the slot.
    pub(crate) fn bypass_restore(&mut self, record: &Record, op: &Op, at: Instance) -> bool {
        let facts = self.statics.instruction(op.instruction);
        let Some(register) = facts.restores.filter(|_| !self.options.bookkeeping) else {
            return false;
        };
        let read = self.trace.code.operands(op).iter().find(|o| o.access().reads);
        let slot = read.and_then(|o| o.address(record.captured, record.bases));
        slot.is_some_and(|slot| self.restore_later(register, slot, at))
    }

    /// Looks for the save of a register that comes back from a slot, if it is wanted.
    fn restore_later(&mut self, register: u8, slot: u64, at: Instance) -> bool {
        let wanted = &mut self.thread.wanted;
        let part = part_of(&wanted.cells, register);
        if part == 0 || !self.refuted.is_empty() && self.refuted.contains(&at) {
            return false;
        }
        let marks = std::array::from_fn(|n| wanted.mark(Cell::gpr(register, n as u8)));
        let frame = self.trace.control.frame_of(at.time);
        let bypassed = self.restores.add(Restore { slot, frame, register, part, marks, at });
        if bypassed {
            self.memory.note(slot);
            // The stack pointer is never looked for.
            wanted.remove_register(register);
        }
        bypassed
    }

    /// Something writes slots that saved registers came from.
    pub(crate) fn bypass_save(&mut self, record: &Record, op: &Op, at: Instance) -> bool {
        let mut bypassed = false;
        for operand in self.trace.code.operands(op).iter().filter(|o| o.access().writes) {
            let Some(range) = operand.range(record.captured, record.bases) else { continue };
            if !self.restores.may_have(range.start, range.len) {
                continue;
            }
            while let Some(restore) = self.take_restore(range.start, range.len) {
                let whole = (range.start, range.len) == (restore.slot, 8);
                bypassed |= self.meet_save(op, at, &restore, whole);
            }
        }
        bypassed
    }

    /// Takes a restore whose slot a write reaches.
    pub(crate) fn take_restore(&mut self, start: u64, len: u64) -> Option<Restore<F::Mark>> {
        let restore = self.restores.take(start, len)?;
        self.memory.forget(restore.slot);
        Some(restore)
    }

    fn meet_save(
        &mut self,
        op: &Op,
        at: Instance,
        restore: &Restore<F::Mark>,
        whole: bool,
    ) -> bool {
        let saved = self.statics.instruction(op.instruction).saves;
        let frame = self.trace.control.frame_of(at.time);
        if !whole || saved != Some(restore.register) || frame != restore.frame {
            // The slot was overwritten: the restore is a dependence like any other.
            match self.mend(restore, at) {
                true => _ = self.refuted.insert(restore.at),
                false => self.refute(restore),
            }
            return false;
        }
        self.bring_back(restore);
        // Somebody else may want the slot's contents all the same.
        !self.memory.has(restore.slot, 8)
    }

    /// A register was saved: it is wanted again as it was when it came back.
    fn bring_back(&mut self, restore: &Restore<F::Mark>) {
        let (register, part, marks) = (restore.register, restore.part, &restore.marks);
        match marks.iter().all(|mark| *mark == marks[0]) {
            true => self.thread.wanted.add_part(register, part, marks[0], self.follow),
            false => ones(part.into()).for_each(|n| {
                self.thread.wanted.add_part(register, 1 << n, marks[n], self.follow);
            }),
        }
    }

    /// Includes a restore that was passed by and is none, now that the walk has come to where
    /// its slot was written. Nothing else wrote there in between. Says whether that is all: what
    /// it wants besides must be still to come.
    fn mend(&mut self, restore: &Restore<F::Mark>, now: Instance) -> bool {
        let trace = self.trace;
        let id = trace.instruction(restore.at);
        let path = trace.code.path(trace.records.path(restore.at.time));
        let op = &trace.code.ops(path)[usize::from(restore.at.index)];
        let addresses = trace.code.operands(op).iter().map(address_registers);
        let addresses = addresses.fold(Cells::NONE, Cells::union).minus(self.never);
        let parent = trace.parent(restore.at).filter(|_| self.options.control);
        let late = !addresses.is_empty() || parent.is_some_and(|parent| parent >= now);
        if !F::TALLIES || self.potential.is_some() || late {
            return false;
        }
        let marks = ones(restore.part.into()).map(|n| restore.marks[n]);
        let mark = marks.reduce(|a, b| self.follow.join(a, b)).unwrap_or_default();
        if let Some(next) = self.include(restore.at, id, mark) {
            for n in ones(restore.part.into()) {
                self.want_memory(restore.slot + n as u64, 1, next);
            }
            self.want_branch(parent, next);
        }
        true
    }

    pub(crate) fn refute(&mut self, restore: &Restore<F::Mark>) {
        self.refuted.insert(restore.at);
        self.refuted_since = self.refuted_since.max(Some(restore.at));
    }

    /// Binding a symbol leaves registers as they are: what is wanted behind it is
    /// wanted before it.
    pub(crate) fn binding_ends(&mut self, record: &Record) {
        let frame = self.trace.control.frame_of(record.time);
        let wanted = std::mem::take(&mut self.thread.wanted);
        self.thread.behind_binding = Some(Box::new((frame, wanted)));
    }

    pub(crate) fn binding_begins(&mut self, record: &Record) {
        let frame = self.trace.control.frame_of(record.time);
        let matches = self.thread.behind_binding.as_ref().is_some_and(|b| b.0 == frame);
        if matches && let Some(behind) = self.thread.behind_binding.take() {
            self.thread.wanted.merge(&behind.1, self.follow);
        }
    }
}
