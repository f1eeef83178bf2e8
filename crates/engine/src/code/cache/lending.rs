//! A cache lent to a process whose parent waits until it executes a program: what `vfork`
//! and `posix_spawn` make.
//!
//! Such a process hardly runs, and all that it runs its parent has translated, or will want
//! to have translated the next time. So both have the same memory file at the same places,
//! and one of them uses it at a time.

use super::maps::forget_returns;
use super::{Cache, IN_USE, MAX_EXITS, MAX_UNITS, UnitId};
use crate::layout;
use std::io;
use std::os::fd::OwnedFd;

/// What was in a cache when it was lent.
#[derive(Clone, Copy, Debug)]
pub struct Loan {
    units: usize,
    discarded: usize,
}

impl Cache {
    /// Lets a process that is about to be forked use this cache, if that is possible.
    pub fn lend(&mut self) -> Option<Loan> {
        let (private, borrowed) = (self.private, self.next.is_some());
        let h = self.header();
        let room = h.units < MAX_UNITS / 2 && h.exits < MAX_EXITS / 2;
        let loan = Loan { units: h.units, discarded: h.discarded };
        (room && !private && !borrowed).then_some(loan)
    }

    /// In that process: the cache is the parent's, and `next` is for this one's own.
    pub fn borrow_until_exec(&mut self, next: OwnedFd) {
        super::spare::forget();
        self.next = Some(next);
        self.forget_stock();
    }

    /// Maps or code changed: if in a process that has its parent's cache, then not in the
    /// parent. Hardly any does that.
    pub(super) fn note_change(&mut self) {
        self.spoilt |= self.next.is_some();
    }

    /// The parent is about to go on. Can it use what is here?
    pub fn give_back(&mut self) -> bool {
        if self.next.is_some() {
            self.forget_stock();
        }
        !std::mem::take(&mut self.spoilt)
    }

    /// What is kept is the parent's affair. Giving the memory back would copy it first.
    fn forget_stock(&mut self) {
        std::mem::forget(self.stock.take());
    }

    /// Throws everything away; what was borrowed stays with its owner.
    pub fn begin_anew(&mut self) -> io::Result<()> {
        let Some(next) = self.next.take() else {
            self.reset();
            return Ok(());
        };
        let resets = self.resets;
        let mut new = Cache::new_in(next)?;
        new.resets += resets;
        new.spoilt = self.spoilt;
        let mut old = std::mem::replace(self, new);
        // Not worth the copies that giving it back would make.
        std::mem::forget(std::mem::take(&mut old.pages));
        Ok(())
    }

    /// In the parent, which has waited: uses what the other process left, if it left it
    /// `whole`. Pages that can be written may have held something else there: what was
    /// translated from them is not used.
    pub fn take_back(&mut self, loan: Loan, whole: bool, is_writable: impl Fn(u64) -> bool) {
        let units = self.header().units;
        if !whole || units < loan.units {
            return self.reset();
        }
        for n in loan.units..units {
            let id = UnitId(n as u32);
            let unit = self.unit(id);
            let first = layout::page_floor(unit.pc);
            let end = unit.pc + u64::from(unit.guest_len) + 15;
            let mut pages = (first..end).step_by(layout::PAGE as usize);
            if unit.state == IN_USE && pages.clone().any(&is_writable) {
                self.discard(id);
            }
            self.pages.extend(&mut pages);
        }
        if self.header().discarded != loan.discarded {
            // Returns must not come back into discarded units.
            forget_returns();
        }
    }
}
