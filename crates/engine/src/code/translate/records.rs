//! What tracing and watching add to a unit.

use super::Translator;
use super::exits::{Stub, StubKind};
use super::special::must_emulate;
use crate::code::tracing::Tracing;
use iced_x86::Instruction;

impl Translator<'_> {
    /// Watching: come back before the instruction if it may touch watched memory.
    pub(super) fn watch(&mut self, i: &Instruction) {
        if must_emulate(i) {
            return;
        }
        let (pc, index) = (i.ip(), self.index);
        for hole in self.request.watched.watch(&mut self.emit, i) {
            self.stubs.push(Stub { hole, kind: StubKind::Watch { pc, index } });
        }
    }

    /// Tracing: the record of a unit that ends here, after so many instructions.
    pub(super) fn close(&mut self, instructions: u32) {
        let Some(tracing) = &mut self.tracing else { return };
        tracing.close(&mut self.emit, instructions);
        if let Some((pc, spilled)) = self.places.last().map(|p| (p.pc, p.spilled)) {
            self.place(pc, spilled);
        }
    }

    /// Tracing: what comes behind a record that was written on one side of a
    /// branch belongs to the other side.
    pub(super) fn reopen(&mut self) {
        let Some(tracing) = &mut self.tracing else { return };
        tracing.open = true;
        if let Some(pc) = self.places.last().map(|p| p.pc) {
            self.place(pc, None);
        }
    }

    /// Tracing: addresses that registers alone do not tell are looked at by the
    /// engine, before the instruction.
    pub(super) fn must_stop_before(&self, i: &Instruction) -> bool {
        self.tracing.as_ref().is_some_and(Tracing::is_told) && i.is_vsib()
    }

    pub(super) fn write_side_exits(&mut self) {
        let Some(mut tracing) = self.tracing.take() else { return };
        let exits = tracing.take_side_exits();
        self.tracing = Some(tracing);
        if !exits.is_empty() {
            // The buffer may end in any of them.
            self.place(self.request.pc, None);
        }
        for (hole, target, end) in exits {
            self.emit.fill_here(hole);
            if let Some(tracing) = &mut self.tracing {
                tracing.write(&mut self.emit, end);
            }
            let hole = self.emit.jump();
            self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
        }
    }
}
