//! A code cache in memory of one process and its forks: where code runs, or set
//! aside for forks that will run another kind of code.

use super::maps::{map_own, protect};
use super::{
    BUCKETS, CODE_BYTES, COLD, Cache, Exit, Header, OFF_BUCKETS, OFF_EXITS, OFF_HEADER,
    OFF_TARGETS, OFF_UNITS, RETURN_BYTES, TARGET_BYTES, TOTAL, Unit, UnitId, WRONG_RETURN,
};
use crate::layout;
use std::io;

/// Page tables of whole multiples of this are moved as they are.
const TABLE: usize = 1 << 21;
const RETURNS_LEN: usize = RETURN_BYTES + layout::PAGE as usize;

impl Cache {
    /// An empty cache that another process will fill.
    pub fn to_be_filled() -> io::Result<Cache> {
        let mut cache = Cache::new_unmapped()?;
        cache.reset();
        Ok(cache)
    }

    /// From now on changes are seen by this process and its forks only. What is in
    /// the cache already, from another process too, is used.
    ///
    /// Its memory becomes anonymous: a fork copies the page table's entries of that,
    /// but not those of a file, which it would have to fault in one by one.
    pub fn keep_to_itself(&mut self, trusted: bool) -> io::Result<()> {
        let code = map_own(layout::CACHE.start, CODE_BYTES)?;
        let targets = map_own(layout::TARGETS, TARGET_BYTES)?;
        self.take(code, targets, trusted)
    }

    /// The same, but code and tables stay away from where code is executed until a
    /// fork calls [`Self::move_in`].
    pub fn set_aside(&mut self) -> io::Result<()> {
        let code = map_aligned(CODE_BYTES)?;
        let targets = map_aligned(TARGET_BYTES)?;
        let returns = map_aligned(RETURNS_LEN)?;
        self.take(code, targets, true)?;
        // SAFETY: the map is ours and has this length.
        unsafe {
            std::slice::from_raw_parts_mut(returns.cast::<u64>(), RETURNS_LEN / 8)
                .fill(WRONG_RETURN);
        }
        self.returns = returns;
        Ok(())
    }

    /// Takes the place of the cache that was executed so far.
    pub fn move_in(&mut self) -> io::Result<()> {
        let moves = [
            (self.code, CODE_BYTES, layout::CACHE.start),
            (self.targets.cast(), TARGET_BYTES, layout::TARGETS),
            (self.returns, RETURNS_LEN, layout::RETURNS),
        ];
        for (from, len, to) in moves {
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: a map of our own goes to a range of the engine's in the window;
            // no guest code runs.
            let got = unsafe { libc::mremap(from.cast(), len, len, how, to as *mut libc::c_void) };
            if got == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        self.code = layout::CACHE.start as *mut u8;
        self.targets = layout::TARGETS as *mut u32;
        self.returns = std::ptr::null_mut();
        Ok(())
    }

    /// Whether forks get a copy of this cache, which is executed here.
    pub fn share_with_forks(&self, shared: bool) {
        let advice = if shared { libc::MADV_DOFORK } else { libc::MADV_DONTFORK };
        let ranges = [
            (self.code, CODE_BYTES),
            (self.targets.cast(), TARGET_BYTES),
            (layout::RETURNS as *mut u8, RETURNS_LEN),
            (self.whole, TOTAL),
        ];
        for (start, len) in ranges {
            // SAFETY: our own maps; this process sees no difference.
            unsafe { libc::madvise(start.cast(), len, advice) };
        }
    }

    /// Copies what is in use to memory of this process alone.
    fn take(&mut self, code: *mut u8, targets: *mut u8, trusted: bool) -> io::Result<()> {
        let (code_used, cold_used, units, exits) = {
            let h = self.header();
            (h.code_used, h.cold_used, h.units, h.exits)
        };
        let old = self.whole;
        let whole = map_own(0, TOTAL)?;
        // SAFETY: all maps have the same layout, and what is in use is in bounds.
        unsafe {
            let copy = |from: usize, to: *mut u8, len: usize| {
                std::ptr::copy_nonoverlapping(old.add(from), to, len);
            };
            copy(0, code, code_used);
            copy(COLD, code.add(COLD), cold_used - COLD);
            copy(OFF_TARGETS, targets, TARGET_BYTES);
            copy(OFF_HEADER, whole.add(OFF_HEADER), size_of::<Header>());
            copy(OFF_UNITS, whole.add(OFF_UNITS), units * size_of::<Unit>());
            copy(OFF_EXITS, whole.add(OFF_EXITS), exits * size_of::<Exit>());
            // Most of the table is empty, and pages that are never touched cost a fork
            // nothing.
            for page in (OFF_BUCKETS..OFF_BUCKETS + 4 * BUCKETS).step_by(layout::PAGE as usize) {
                let bytes = std::slice::from_raw_parts(old.add(page), layout::PAGE as usize);
                if bytes.iter().any(|b| *b != 0) {
                    copy(page, whole.add(page), bytes.len());
                }
            }
            libc::munmap(old.cast(), TOTAL);
            self.header = whole.add(OFF_HEADER).cast();
            self.units = whole.add(OFF_UNITS).cast();
            self.exits = whole.add(OFF_EXITS).cast();
            self.buckets = whole.add(OFF_BUCKETS).cast();
        }
        self.whole = whole;
        self.code = code;
        self.targets = targets.cast();
        protect(code as u64, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC);
        protect(targets as u64, TARGET_BYTES, libc::PROT_READ);
        self.private = true;
        self.trusted = trusted;
        for n in 0..self.header().units as u32 {
            let u = self.unit(UnitId(n));
            if self.is_alive(UnitId(n)) {
                let mut page = layout::page_floor(u.pc);
                while page < u.pc + u64::from(u.guest_len) + 15 {
                    self.pages.insert(page);
                    page += layout::PAGE;
                }
            }
        }
        Ok(())
    }
}

/// Memory of this process alone, where page tables can be moved as they are.
fn map_aligned(len: usize) -> io::Result<*mut u8> {
    let room = len.next_multiple_of(TABLE) + TABLE;
    let whole = map_own(0, room)? as usize;
    let start = whole.next_multiple_of(TABLE);
    let end = start + len.next_multiple_of(layout::PAGE as usize);
    // SAFETY: parts of the map just made that nobody uses.
    unsafe {
        if start > whole {
            libc::munmap(whole as *mut _, start - whole);
        }
        libc::munmap(end as *mut _, whole + room - end);
    }
    Ok(start as *mut u8)
}
