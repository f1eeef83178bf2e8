//! Code that earlier runs translated, for the machine that runs now.

use super::machine::Machine;
use super::memory::Backing;
use crate::code::cache::Loan;
use crate::code::{UnitId, stock};
use crate::layout::page_floor;
use recording::FileId;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// The pages in which a translation looked for code.
#[derive(Default)]
pub struct LookedAt {
    pages: RefCell<Vec<u64>>,
    /// What was looked at last: mostly that is looked at again.
    last: Cell<(u64, &'static [u8])>,
}

impl LookedAt {
    /// The code at an address, which is asked for where that was not just done.
    pub fn fetch(&self, pc: u64, code: impl Fn(u64) -> &'static [u8]) -> &'static [u8] {
        match self.last.get() {
            (last, bytes) if last == pc && !bytes.is_empty() => bytes,
            _ => {
                let bytes = self.note(pc, code(pc));
                self.last.set((pc, bytes));
                bytes
            }
        }
    }

    /// Notes where the code comes from.
    fn note(&self, pc: u64, code: &'static [u8]) -> &'static [u8] {
        let mut pages = self.pages.borrow_mut();
        let Some(last) = (code.len() as u64).checked_sub(1) else {
            // That there is nothing was looked at too, and is no page's contents.
            pages.push(u64::MAX);
            return code;
        };
        for page in [pc, pc + last].map(page_floor) {
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        code
    }
}

impl Machine {
    /// Uses what earlier runs of a program translated, and keeps what this one does. To be
    /// called before its first instruction.
    pub fn stock_for(&mut self, program: FileId) {
        let traced = self.tracer.is_some();
        // Traced code has the numbers of its paths in it: they must not be given yet.
        let fresh = self.tracer.as_ref().is_none_or(|tracer| tracer.next_path() == 0);
        let plain = crate::cpu::shown::shown().is_baseline() && fresh && self.cache.is_empty();
        let Some(path) = stock::path_of(program, self.profile, traced).filter(|_| plain) else {
            return;
        };
        let next_path = self.cache.stock_from(path, traced);
        if let Some(tracer) = &mut self.tracer {
            tracer.begin_at(next_path);
        }
    }

    /// Keeps what was translated, for the next run of the program.
    pub fn restock(&mut self) {
        if !self.cache.is_stocked() || !self.runs_freely() {
            return;
        }
        let maps: Vec<Range<u64>> =
            self.memory.regions().filter_map(|(start, _)| self.lasting_map(start)).collect();
        self.cache.restock(&maps);
    }

    /// The cache comes back from a process that it was lent to.
    pub fn take_back_cache(&mut self, loan: Loan, whole: bool) {
        let memory = &self.memory;
        self.cache.take_back(loan, whole, |page| memory.is_writable(page, 1));
    }

    /// Does code run as the program has it, without stops for whoever watches?
    fn runs_freely(&self) -> bool {
        self.stops.addresses().is_empty() && self.watches_nothing()
    }

    /// The unit at an address, if an earlier run translated it.
    pub(super) fn woken(&mut self, pc: u64, landing: bool) -> Option<UnitId> {
        let same_kind = self.cache.is_stocked_with_traced() == self.tracer.is_some();
        if !self.cache.is_stocked() || !same_kind || !self.runs_freely() {
            return None;
        }
        let map = self.lasting_map(pc)?;
        let meanings = self.cache.wake(&map)?;
        if let Some(tracer) = &mut self.tracer {
            tracer.know(&meanings);
        }
        let unit = self.cache.find(pc)?;
        if landing {
            self.cache.land(unit);
        }
        Some(unit)
    }

    /// The unit about to be installed was made from what is in these pages.
    pub(super) fn note_source(&mut self, pc: u64, looked_at: LookedAt) {
        if self.cache.is_stocked() {
            let map = self.lasting_map(pc);
            self.cache.came_from(&looked_at.pages.into_inner(), map.as_ref());
        }
    }

    /// The map that an address is in, if what it holds is a file's and stays.
    fn lasting_map(&self, address: u64) -> Option<Range<u64>> {
        let (start, region) = self.memory.region(address)?;
        let lasts = region.prot & libc::PROT_EXEC != 0
            && region.prot & libc::PROT_WRITE == 0
            && !region.shared
            && matches!(region.backing, Backing::File { .. });
        lasts.then_some(start..region.end)
    }
}
