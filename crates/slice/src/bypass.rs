//! What a walk passes by: saved registers, and the binding of symbols.

use crate::follow::Follow;
use crate::restores::Restore;
use crate::sweep::{Record, Sweep};
use crate::wanted_cells::{ones, part_of};
use program::effects::Cell;
use trace::{Instance, Op};

impl<F: Follow> Sweep<'_, F> {
    /// A saved register comes back: look for the save instead of the slot.
    pub(crate) fn bypass_restore(&mut self, record: &Record, op: &Op, at: Instance) -> bool {
        let facts = self.statics.instruction(op.instruction);
        let Some(register) = facts.restores.filter(|_| !self.options.bookkeeping) else {
            return false;
        };
        if self.refuted.contains(&at) {
            return false;
        }
        let info = self.trace.code.info(op.instruction);
        let read = self.trace.code.operands(op).iter().find(|o| o.access().reads);
        let slot = read.and_then(|o| o.address(record.captured, record.bases));
        let Some(slot) = slot else { return false };
        let wanted = &mut self.thread.wanted;
        let part = part_of(&wanted.cells, register);
        if part == 0 {
            return false;
        }
        let marks = std::array::from_fn(|n| wanted.mark(Cell::gpr(register, n as u8)));
        let frame = self.trace.control.frame_of(record.time);
        let bypassed = self.restores.add(Restore { slot, frame, register, part, marks, at });
        if bypassed {
            self.memory.note(slot);
            wanted.remove(info.defs);
        }
        bypassed
    }

    /// Something writes slots that saved registers came from.
    pub(crate) fn bypass_save(&mut self, record: &Record, op: &Op) -> bool {
        let mut bypassed = false;
        for operand in self.trace.code.operands(op).iter().filter(|o| o.access().writes) {
            let Some(range) = operand.range(record.captured, record.bases) else { continue };
            if !self.restores.may_have(range.start, range.len) {
                continue;
            }
            while let Some(restore) = self.take_restore(range.start, range.len) {
                let whole = (range.start, range.len) == (restore.slot, 8);
                bypassed |= self.meet_save(record, op, &restore, whole);
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
        record: &Record,
        op: &Op,
        restore: &Restore<F::Mark>,
        whole: bool,
    ) -> bool {
        let saved = self.statics.instruction(op.instruction).saves;
        let frame = self.trace.control.frame_of(record.time);
        if !whole || saved != Some(restore.register) || frame != restore.frame {
            // The slot was overwritten: the restore is a dependence like any other.
            self.refute(restore);
            return false;
        }
        let (register, part, marks) = (restore.register, restore.part, &restore.marks);
        match marks.iter().all(|mark| *mark == marks[0]) {
            true => self.thread.wanted.add_part(register, part, marks[0], self.follow),
            false => ones(part.into()).for_each(|n| {
                self.thread.wanted.add_part(register, 1 << n, marks[n], self.follow);
            }),
        }
        // Somebody else may want the slot's contents all the same.
        !self.memory.may_have(restore.slot, 8) || self.memory.hits(restore.slot, 8).is_empty()
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
