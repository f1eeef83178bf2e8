//! Units whose code changed are thrown away.

use super::maps::forget_returns;
use super::{Cache, DEAD, IN_USE, NONE, Unit, UnitId};
use crate::layout;

impl Cache {
    /// Does any unit come from this range of guest addresses?
    pub fn covers(&self, start: u64, end: u64) -> bool {
        if (end - start) / layout::PAGE > self.pages.len() as u64 {
            return self.pages.iter().any(|p| (layout::page_floor(start)..end).contains(p));
        }
        let mut page = layout::page_floor(start);
        while page < end {
            if self.pages.contains(&page) {
                return true;
            }
            page += layout::PAGE;
        }
        false
    }

    /// Discards every unit translated from the range of guest addresses.
    pub fn invalidate(&mut self, start: u64, end: u64) {
        self.note_change();
        if self.trusted || !self.covers(start, end) {
            return;
        }
        for i in 0..self.header().units as u32 {
            let u = self.unit(UnitId(i));
            if u.state == IN_USE && u.pc < end && start < u.pc + u.guest_len as u64 {
                self.discard(UnitId(i));
            }
        }
        // Of a page that is only met in part, other units may be left.
        self.pages.retain(|p| *p < start || *p + layout::PAGE > end);
        // Returns must not come back into discarded units.
        forget_returns();
    }

    pub(super) fn discard(&mut self, id: UnitId) {
        let unit = self.unit(id);
        self.header().discarded += 1;
        self.unhash(id, &unit);
        let mut e = unit.incoming;
        while e != NONE {
            let exit = *self.exit_mut(e);
            self.patch(exit.hole, exit.stub);
            let record = self.exit_mut(e);
            record.linked = NONE;
            record.next_incoming = NONE;
            e = exit.next_incoming;
        }
        self.unlink_own_exits(&unit);
        if unit.landing != 0 {
            self.unland(&unit);
        }
        let u = self.unit_mut(id);
        u.state = DEAD;
        u.incoming = NONE;
        u.landing = 0;
    }

    pub(super) fn unhash(&mut self, id: UnitId, unit: &Unit) {
        let head = self.bucket(unit.pc);
        if head == id.0 {
            self.set_bucket(unit.pc, unit.next);
            return;
        }
        let mut i = head;
        while i != NONE {
            let next = self.unit(UnitId(i)).next;
            if next == id.0 {
                self.unit_mut(UnitId(i)).next = unit.next;
                return;
            }
            i = next;
        }
    }

    /// Units in use that contain a guest address.
    pub fn covering(&mut self, address: u64) -> Vec<UnitId> {
        let all = (0..self.header().units as u32).map(UnitId);
        all.filter(|id| {
            let u = self.unit(*id);
            u.state == IN_USE && (u.pc..u.pc + u64::from(u.guest_len)).contains(&address)
        })
        .collect()
    }

    /// Discards units that are still in use.
    pub fn discard_units(&mut self, units: &[UnitId]) {
        for id in units {
            if self.is_alive(*id) {
                self.discard(*id);
            }
        }
        forget_returns();
    }

    /// How often everything was thrown away: numbers of units from before mean
    /// nothing.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// How many units were thrown away because their code changed.
    pub fn discarded(&self) -> u64 {
        // SAFETY: mapped for the life of the cache.
        unsafe { (*self.header).discarded as u64 }
    }

    /// Whether code is known not to change, so that nothing need be invalidated.
    pub fn trust(&mut self, trusted: bool) {
        self.trusted = trusted;
    }
}
