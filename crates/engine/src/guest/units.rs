//! Units of code for the machine: found, or translated.

use super::machine::Machine;
use super::stock::LookedAt;
use crate::code::UnitId;
use crate::code::cache::Unit;
use crate::code::tracing::Tells;
use crate::code::translate::{Place, Request, Translation, translate};

impl Machine {
    /// First address past the guest code of the unit at a guest address.
    pub fn unit_end(&mut self, pc: u64) -> Option<u64> {
        let unit = self.unit(pc)?;
        Some(pc + u64::from(self.cache.unit(unit).guest_len))
    }

    /// The unit at a guest address, translated if need be.
    pub(super) fn unit(&mut self, pc: u64) -> Option<UnitId> {
        if let Some(unit) = self.cache.find(pc) {
            return Some(unit);
        }
        if self.cache.is_full() {
            self.cache.begin_anew().expect("there is memory for code");
        }
        self.unit_unless_full(pc, false)
    }

    /// Like [`Self::unit`], but never throws other units away: exits and units
    /// the caller holds stay valid.
    pub(super) fn unit_unless_full(&mut self, pc: u64, landing: bool) -> Option<UnitId> {
        if self.cache.is_full() {
            return None;
        }
        self.translate_unit(pc, landing, false)
    }

    fn translate_unit(&mut self, pc: u64, landing: bool, past: bool) -> Option<UnitId> {
        if !past && let Some(unit) = self.woken(pc, landing) {
            return Some(unit);
        }
        let memory = &self.memory;
        let looked_at = LookedAt::default();
        let fetch = |pc| looked_at.fetch(pc, |pc| memory.code(pc));
        let (host, cold) = (self.cache.next_host(), self.cache.next_cold());
        let first_exit = self.cache.next_exit();
        let cache = &self.cache;
        let request = Request {
            pc,
            host,
            cold,
            landing,
            first_exit,
            profile: self.profile,
            watched: &self.watched,
            trace: self.tracer.as_ref().map(|tracer| Tells::Paths(tracer.next_path())),
            stop_after: None,
            stops: self.stops.addresses(),
            past,
            limit: self.profile.unit_limit(),
            known: &|pc| cache.find(pc).is_some(),
            fetch: &fetch,
        };
        let t = translate(&request)?;
        if let (Some(tracer), Some(unit)) = (&mut self.tracer, &t.trace) {
            let (meaning, next_path) = tracer.add_unit(unit, &fetch);
            self.cache.note_meaning(&meaning, next_path);
        }
        self.watch_code(&t.places);
        self.stops.expect(pc..pc + u64::from(t.guest_len), self.cache.next_unit());
        self.note_source(pc, looked_at);
        if past {
            return Some(self.cache.add_apart(pc, &t));
        }
        if let Some(learnt) = &mut self.stops.learnt {
            learnt.push(pc);
        }
        Some(self.cache.add(pc, &t))
    }

    /// A unit at a stop that does not stop.
    pub(super) fn unit_past(&mut self, pc: u64) -> Option<UnitId> {
        if self.cache.is_full() {
            self.cache.begin_anew().expect("there is memory for code");
        }
        self.translate_unit(pc, false, true)
    }

    /// The next run begins with this unit.
    pub(super) fn begin_at(&mut self, unit: UnitId) {
        self.first = Some(unit);
    }

    /// Translates a unit before it is needed, and lets all that would come to it go
    /// there directly.
    pub(super) fn translate_ahead(&mut self, pc: u64) {
        if let Some(unit) = self.unit_unless_full(pc, false) {
            self.cache.link_all(unit);
            self.cache.land(unit);
        }
    }

    /// Pages that are both writable and executed are write-protected, so that a
    /// store into them is noticed and their translations discarded.
    pub(super) fn watch_code(&mut self, places: &[Place]) {
        let mut last = 0;
        for place in places {
            for page in [place.pc, place.pc + 15].map(crate::layout::page_floor) {
                if page != last && self.memory.is_writable(page, 1) {
                    // SAFETY: a guest page; its guest-visible protection stays.
                    unsafe { libc::mprotect(page as *mut _, 4096, libc::PROT_READ) };
                    self.memory.watch(page);
                    self.watches = true;
                }
                last = page;
            }
        }
    }

    pub(super) fn translate_again(&self, unit: &Unit) -> Translation {
        let memory = &self.memory;
        let fetch = |pc| memory.code(pc);
        let request = Request {
            pc: unit.pc,
            host: unit.start as u64,
            // Does not matter for the places, but must be in reach.
            cold: crate::layout::CACHE.start,
            landing: unit.host != unit.start,
            first_exit: 0,
            profile: self.profile,
            watched: &self.watched,
            trace: self.tracer.as_ref().map(|_| Tells::Paths(0)),
            stop_after: None,
            // Its length says where it ended.
            stops: &[],
            past: false,
            // The unit may have ended early where another one began.
            limit: unit.instructions as usize,
            known: &|_| false,
            fetch: &fetch,
        };
        translate(&request).expect("it was translated before")
    }
}
