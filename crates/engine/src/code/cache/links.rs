//! Direct exits that jump straight to a unit.

use super::{Cache, ExitId, NONE, Unit, UnitId};

impl Cache {
    /// Lets a direct exit jump straight to a unit from now on.
    pub fn link(&mut self, exit: ExitId, to: UnitId) {
        let host = self.unit(to).host;
        let incoming = self.unit(to).incoming;
        let e = self.exit_mut(exit.0);
        if e.linked != NONE {
            return;
        }
        e.linked = to.0;
        e.next_incoming = incoming;
        let hole = e.hole;
        self.patch(hole, host);
        self.unit_mut(to).incoming = exit.0;
    }

    /// Lets all exits whose target there is jump straight to it.
    pub fn link_known(&mut self) {
        for n in 0..self.header().exits as u32 {
            let exit = *self.exit_mut(n);
            if exit.linked == NONE
                && let Some(unit) = self.find(exit.target)
            {
                self.link(ExitId(n), unit);
            }
        }
    }

    /// Lets all exits to a unit's address jump straight to it.
    pub fn link_all(&mut self, to: UnitId) {
        let pc = self.unit(to).pc;
        for n in 0..self.header().exits as u32 {
            let exit = *self.exit_mut(n);
            if exit.target == pc && exit.linked == NONE {
                self.link(ExitId(n), to);
            }
        }
    }

    /// The exits of a discarded unit must leave the lists of their targets.
    pub(super) fn unlink_own_exits(&mut self, unit: &Unit) {
        let range = unit.host..unit.host + unit.host_len;
        let n = self.header().exits;
        // Exits are numbered in the order of their units, hence of host addresses.
        // SAFETY: the first `n` records are initialised.
        let exits = unsafe { std::slice::from_raw_parts(self.exits, n) };
        let first = exits.partition_point(|e| e.hole < range.start);
        let last = exits.partition_point(|e| e.hole < range.end);
        for i in first..last {
            let exit = *self.exit_mut(i as u32);
            if exit.linked == NONE {
                continue;
            }
            let target = UnitId(exit.linked);
            self.remove_incoming(target, i as u32, exit.next_incoming);
            self.patch(exit.hole, exit.stub);
            let e = self.exit_mut(i as u32);
            e.linked = NONE;
            e.next_incoming = NONE;
        }
    }

    pub(super) fn remove_incoming(&mut self, target: UnitId, exit: u32, after: u32) {
        if self.unit(target).incoming == exit {
            self.unit_mut(target).incoming = after;
            return;
        }
        let mut i = self.unit(target).incoming;
        while i != NONE {
            let next = self.exit_mut(i).next_incoming;
            if next == exit {
                self.exit_mut(i).next_incoming = after;
                return;
            }
            i = next;
        }
    }
}
