//! Landings: the ways into units for indirect branches, chained by slot.

use super::{Cache, IN_USE, TARGET_SLOTS, Unit, UnitId};
use crate::code::translate;
use crate::layout;

impl Cache {
    /// Makes a unit reachable by indirect branches.
    pub fn land(&mut self, id: UnitId) {
        let unit = self.unit(id);
        if unit.landing != 0 || self.is_full() {
            return;
        }
        let host = self.next_cold();
        let (bytes, next) = translate::landing(host, unit.pc, unit.host as u64);
        let offset = self.header().cold_used;
        self.write_code(offset, &bytes);
        self.header().cold_used += bytes.len();
        self.install_landing(id, host as u32, host as u32 + next.0 as u32);
    }

    /// Puts a landing first in the chain of its slot.
    pub(super) fn install_landing(&mut self, id: UnitId, landing: u32, hole: u32) {
        let slot = self.unit(id).pc as usize & (TARGET_SLOTS - 1);
        self.unseal(self.targets as u64 + 4 * slot as u64, 4);
        // SAFETY: `slot` is in range.
        let old = unsafe { *self.targets.add(slot) };
        self.patch(hole, old);
        let u = self.unit_mut(id);
        u.landing = landing;
        u.landing_next = hole;
        // SAFETY: `slot` is in range.
        unsafe { *self.targets.add(slot) = landing };
    }

    pub(super) fn unland(&mut self, unit: &Unit) {
        let slot = unit.pc as usize & (TARGET_SLOTS - 1);
        let next = self.jump_target(unit.landing_next);
        self.unseal(self.targets as u64 + 4 * slot as u64, 4);
        // SAFETY: `slot` is in range.
        let head = unsafe { *self.targets.add(slot) };
        if head == unit.landing {
            // SAFETY: as above.
            unsafe { *self.targets.add(slot) = next };
            return;
        }
        let n = self.header().units as u32;
        let before = (0..n).map(|i| self.unit(UnitId(i))).find(|u| {
            u.state == IN_USE && u.landing != 0 && self.jump_target(u.landing_next) == unit.landing
        });
        if let Some(u) = before {
            self.patch(u.landing_next, next);
        }
    }

    pub(super) fn jump_target(&self, hole: u32) -> u32 {
        let offset = hole as usize - layout::CACHE.start as usize;
        // SAFETY: a hole is four bytes within the code.
        let bytes = unsafe { std::slice::from_raw_parts(self.code.add(offset), 4) };
        let displacement = u32::from_le_bytes(bytes.try_into().expect("four"));
        hole.wrapping_add(4).wrapping_add(displacement)
    }
}
