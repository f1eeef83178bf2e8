//! Writing to a cache, and copies of it for forks.

use super::maps::{map_views, populate, protect};
use super::spare;
use super::{CODE_BYTES, COLD, Cache, Exit, Header, TARGET_BYTES, TARGET_SLOTS, Unit};
use crate::layout;
use std::io;

impl Cache {
    /// Makes a part of the cache writable, if it is not so elsewhere. Few pages at a
    /// time: what it costs is the pages it touches.
    pub(super) fn unseal(&mut self, start: u64, len: usize) {
        if !self.private {
            return;
        }
        let mut page = layout::page_floor(start);
        while page < start + len as u64 {
            if !self.open.contains(&page) {
                protect(page, layout::PAGE as usize, libc::PROT_READ | libc::PROT_WRITE);
                self.open.push(page);
            }
            page += layout::PAGE;
        }
    }

    /// Before guest code runs: nothing of the cache can be written.
    pub fn seal(&mut self) {
        for page in self.open.drain(..) {
            let code = (page.wrapping_sub(self.code as u64) as usize) < CODE_BYTES;
            let prot = if code { libc::PROT_READ | libc::PROT_EXEC } else { libc::PROT_READ };
            protect(page, layout::PAGE as usize, prot);
        }
    }

    /// A copy for a process about to be forked, so that neither sees the other's
    /// translations or invalidations. Made before the fork: afterwards the parent
    /// may already be changing the original.
    pub fn copy(&mut self) -> io::Result<Cache> {
        let (code_used, cold_used, units, exits) = {
            let h = self.header();
            (h.code_used, h.cold_used, h.units, h.exits)
        };
        let mut new = Cache::in_file(spare::for_child()?)?;
        populate(new.code, code_used);
        populate(new.targets.cast(), TARGET_BYTES);
        populate(new.units.cast(), units * size_of::<Unit>());
        populate(new.exits.cast(), exits * size_of::<Exit>());
        // SAFETY: both maps have the same layout and the counts are in bounds.
        unsafe {
            populate(new.code.add(COLD), cold_used - COLD);
            std::ptr::copy_nonoverlapping(self.code, new.code, code_used);
            let cold = cold_used - COLD;
            std::ptr::copy_nonoverlapping(self.code.add(COLD), new.code.add(COLD), cold);
            std::ptr::copy_nonoverlapping(self.targets, new.targets, TARGET_SLOTS);
            std::ptr::copy_nonoverlapping(self.units, new.units, units);
            std::ptr::copy_nonoverlapping(self.exits, new.exits, exits);
            // Most of the table was never touched, and reading it would make it real.
            for n in 0..units {
                let bucket = Self::bucket_index((*self.units.add(n)).pc);
                *new.buckets.add(bucket) = *self.buckets.add(bucket);
            }
            let discarded = self.header().discarded;
            let has_targets = 1;
            *new.header = Header { code_used, cold_used, units, exits, discarded, has_targets };
        }
        new.pages = self.pages.clone();
        new.stock = self.stock_for_fork();
        new.resets = self.resets;
        Ok(new)
    }

    /// Uses a copy from now on, in the process it was made for.
    pub fn adopt(&mut self, copy: Cache) -> io::Result<()> {
        spare::forget();
        map_views(copy.file)?;
        *self = copy;
        Ok(())
    }
}
