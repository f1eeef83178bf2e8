//! Caches of one process and its forks, and of another.

use super::maps::{map_own, map_views, protect};
use super::{
    BUCKETS, CODE_BYTES, COLD, Cache, Exit, Header, OFF_BUCKETS, OFF_EXITS, OFF_HEADER,
    OFF_TARGETS, OFF_UNITS, TARGET_BYTES, TARGET_SLOTS, TOTAL, Unit, UnitId,
};
use crate::layout;
use std::io;

impl Cache {
    /// From now on changes are seen by this process and its forks only. What is in
    /// the cache already, from another process too, is used.
    ///
    /// Its memory becomes anonymous: a fork copies the page table's entries of that,
    /// but not those of a file, which it would have to fault in one by one.
    pub fn keep_to_itself(&mut self, trusted: bool) -> io::Result<()> {
        let (code_used, cold_used, units, exits) = {
            let h = self.header();
            (h.code_used, h.cold_used, h.units, h.exits)
        };
        let old = self.code;
        let whole = map_own(0, TOTAL)?;
        map_own(layout::CACHE.start, CODE_BYTES)?;
        map_own(layout::TARGETS, TARGET_BYTES)?;
        // SAFETY: all maps have the same layout, and what is in use is in bounds.
        unsafe {
            let copy = |from: usize, to: *mut u8, len: usize| {
                std::ptr::copy_nonoverlapping(old.add(from), to, len);
            };
            let code = layout::CACHE.start as *mut u8;
            copy(0, code, code_used);
            copy(COLD, code.add(COLD), cold_used - COLD);
            copy(OFF_TARGETS, layout::TARGETS as *mut u8, TARGET_BYTES);
            copy(OFF_HEADER, whole.add(OFF_HEADER), size_of::<Header>());
            copy(OFF_UNITS, whole.add(OFF_UNITS), units * size_of::<Unit>());
            copy(OFF_EXITS, whole.add(OFF_EXITS), exits * size_of::<Exit>());
            copy(OFF_BUCKETS, whole.add(OFF_BUCKETS), BUCKETS * 4);
            libc::munmap(old.cast(), TOTAL);
            self.header = whole.add(OFF_HEADER).cast();
            self.units = whole.add(OFF_UNITS).cast();
            self.exits = whole.add(OFF_EXITS).cast();
            self.buckets = whole.add(OFF_BUCKETS).cast();
        }
        self.whole = whole;
        protect(layout::CACHE.start, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC);
        protect(layout::TARGETS, TARGET_BYTES, libc::PROT_READ);
        self.code = layout::CACHE.start as *mut u8;
        self.targets = layout::TARGETS as *mut u64;
        self.private = true;
        self.trusted = trusted;
        for n in 0..self.header().units as u32 {
            let u = self.unit(UnitId(n));
            if u.alive != 0 {
                let mut page = layout::page_floor(u.pc);
                while page < u.pc + u64::from(u.guest_len) + 15 {
                    self.pages.insert(page);
                    page += layout::PAGE;
                }
            }
        }
        Ok(())
    }

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
            let code = layout::CACHE.contains(&page);
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
        let mut new = Cache::new_unmapped()?;
        // SAFETY: both maps have the same layout and the counts are in bounds.
        unsafe {
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
            *new.header = Header { code_used, cold_used, units, exits };
        }
        new.pages = self.pages.clone();
        Ok(new)
    }

    /// Uses a copy from now on, in the process it was made for.
    pub fn adopt(&mut self, copy: Cache) -> io::Result<()> {
        map_views(copy.file)?;
        *self = copy;
        Ok(())
    }
}
