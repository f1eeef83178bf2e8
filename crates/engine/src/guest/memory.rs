//! The guest's address space: what the guest believes is mapped, and the host
//! maps behind it.
//!
//! The guest's own view of protections is kept here, because guest pages are
//! never executable for the host, and addresses are chosen here, because the
//! layout must be the same in every run.

use crate::layout::{self, PAGE, page_floor};
use crate::signal::careful;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// What lies behind a region.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Backing {
    /// Zero-filled memory.
    Anonymous,
    /// The main thread's stack.
    Stack,
    /// The `brk` heap.
    Heap,
    /// A file.
    File {
        /// The path the guest used, as `/proc/self/maps` shows it.
        path: Vec<u8>,
        /// Offset of the region's first byte.
        offset: u64,
    },
}

/// One region of guest memory.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Region {
    /// First address past it.
    pub end: u64,
    /// The protection the guest asked for.
    pub prot: i32,
    /// Shared with others (`MAP_SHARED`)?
    pub shared: bool,
    /// Device and inode of the file it shares, if it shares one.
    pub file: Option<(u64, u64)>,
    /// What lies behind.
    pub backing: Backing,
}

/// The guest's address space.
#[derive(Default)]
pub struct Memory {
    regions: BTreeMap<u64, Region>,
    /// Current end of the `brk` heap.
    pub brk: u64,
    /// What the engine changed since somebody last asked; `None` if nobody does.
    journal: RefCell<Option<Vec<Change>>>,
    /// Pages that are protected for the host because code came from them.
    watched: RefCell<HashSet<u64>>,
    /// Those of them that a write of the engine opened again.
    reopened: RefCell<Vec<u64>>,
}

/// A change of guest memory that no guest instruction made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes were written.
    Written(Range<u64>),
    /// What is mapped, or its contents as a whole, changed.
    Mapped(Range<u64>),
    /// Its protection changed.
    Protected(Range<u64>),
}

/// Protection of the host pages behind guest pages: never executable.
pub fn host_prot(guest: i32) -> i32 {
    let mut prot = guest & (libc::PROT_READ | libc::PROT_WRITE);
    if guest & (libc::PROT_EXEC | libc::PROT_WRITE) != 0 {
        // As on the CPU, what can be executed or written can be read.
        prot |= libc::PROT_READ;
    }
    prot
}

impl Memory {
    /// An empty address space.
    pub fn new() -> Memory {
        Memory { brk: layout::BRK.start, ..Memory::default() }
    }

    /// All regions in order.
    pub fn regions(&self) -> impl Iterator<Item = (u64, &Region)> {
        self.regions.iter().map(|(s, r)| (*s, r))
    }

    /// The region that contains an address.
    pub fn region(&self, address: u64) -> Option<(u64, &Region)> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        (address < region.end).then_some((*start, region))
    }

    /// Bytes the guest may execute at an address, up to a few hundred.
    pub fn code(&self, pc: u64) -> &'static [u8] {
        let Some(end) = self.run_with(pc, libc::PROT_EXEC, pc.saturating_add(2048)) else {
            return &[];
        };
        let end = self.run_there(pc, end);
        // SAFETY: the range lies in guest regions that are readable for the host;
        // guest memory is only changed by guest code, which does not run while
        // the engine looks. The slice is not kept past the translation.
        unsafe { std::slice::from_raw_parts(pc as *const u8, (end - pc) as usize) }
    }

    /// How far from `address` there is memory: a map may go on beyond its file.
    fn run_there(&self, address: u64, end: u64) -> u64 {
        let mut at = address;
        while at < end {
            let file =
                matches!(self.region(at), Some((_, Region { backing: Backing::File { .. }, .. })));
            let mut byte = 0u8;
            // SAFETY: a byte of a guest region, into one of ours.
            if file && !unsafe { careful::copy(&mut byte, at as *const u8, 1) } {
                break;
            }
            at = (page_floor(at) + PAGE).min(end);
        }
        at
    }

    /// How far from `address` every region has `prot`, at most to `limit`.
    fn run_with(&self, address: u64, prot: i32, limit: u64) -> Option<u64> {
        let mut at = address;
        while at < limit {
            match self.region(at) {
                Some((_, r)) if r.prot & prot != 0 => at = r.end.min(limit),
                _ => break,
            }
        }
        (at > address).then_some(at)
    }

    /// Is the whole range readable (or executable) for the guest?
    pub fn is_readable(&self, address: u64, len: u64) -> bool {
        self.has(address, len, libc::PROT_READ | libc::PROT_EXEC | libc::PROT_WRITE)
    }

    /// Is the whole range writable for the guest?
    pub fn is_writable(&self, address: u64, len: u64) -> bool {
        self.has(address, len, libc::PROT_WRITE)
    }

    fn has(&self, address: u64, len: u64, prot: i32) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        len == 0 || self.run_with(address, prot, end) == Some(end)
    }

    /// A copy of guest memory, if all of it is readable.
    pub fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        if !self.is_readable(address, len as u64) {
            return None;
        }
        let mut bytes = Vec::with_capacity(len);
        // SAFETY: mapped and readable as far as we know; guest code is not running.
        // All of the vector's new length was written.
        unsafe {
            if !careful::copy(bytes.as_mut_ptr(), address as *const u8, len) {
                return None;
            }
            bytes.set_len(len);
        }
        Some(bytes)
    }

    /// A NUL-terminated string, without the NUL, at most `limit` bytes.
    pub fn read_string(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut at = address;
        while out.len() < limit {
            let page_end = page_floor(at) + PAGE;
            let chunk = self.read(at, (page_end - at) as usize)?;
            if let Some(n) = chunk.iter().position(|b| *b == 0) {
                out.extend_from_slice(&chunk[..n]);
                return Some(out);
            }
            out.extend_from_slice(&chunk);
            at = page_end;
        }
        None
    }

    /// A little-endian number.
    pub fn read_u64(&self, address: u64) -> Option<u64> {
        let bytes = self.read(address, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Writes guest memory, if all of it is writable for the guest.
    #[must_use]
    pub fn write(&self, address: u64, bytes: &[u8]) -> bool {
        if !self.is_writable(address, bytes.len() as u64) {
            return false;
        }
        self.open_watched(address, bytes.len() as u64);
        // SAFETY: mapped and writable as far as we know; guest code is not running.
        if !unsafe { careful::copy(address as *mut u8, bytes.as_ptr(), bytes.len()) } {
            return false;
        }
        self.note(Change::Written(address..address + bytes.len() as u64));
        true
    }

    /// A page is protected for the host now, because code came from it.
    pub fn watch(&self, page: u64) {
        self.watched.borrow_mut().insert(page);
    }

    /// Pages whose translations are stale because the engine wrote to them.
    pub fn take_reopened(&self) -> Vec<u64> {
        std::mem::take(&mut self.reopened.borrow_mut())
    }

    /// Lets the engine write to pages that are watched.
    fn open_watched(&self, address: u64, len: u64) {
        let mut watched = self.watched.borrow_mut();
        if watched.is_empty() || len == 0 {
            return;
        }
        let mut page = page_floor(address);
        while page < address + len {
            if watched.remove(&page)
                && let Some((_, region)) = self.region(page)
            {
                // SAFETY: a guest page, given the protection the guest asked for.
                unsafe { libc::mprotect(page as *mut _, PAGE as usize, host_prot(region.prot)) };
                self.reopened.borrow_mut().push(page);
            }
            page += PAGE;
        }
    }

    /// Notes a change for whoever keeps a second copy of the guest in step.
    pub fn note(&self, change: Change) {
        if let Some(journal) = self.journal.borrow_mut().as_mut() {
            journal.push(change);
        }
    }

    /// All changes since the last time; from the first time on, they are kept.
    pub fn take_changes(&self) -> Vec<Change> {
        self.journal.borrow_mut().replace(Vec::new()).unwrap_or_default()
    }

    /// Is the range one that guests may use at all?
    pub fn is_allowed(start: u64, len: u64) -> bool {
        let Some(end) = start.checked_add(len) else { return false };
        let meets_engine = start < layout::ENGINE.end && layout::ENGINE.start < end;
        start >= layout::LOWEST && end <= layout::HIGHEST && !meets_engine
    }

    /// Is nothing mapped in the range?
    pub fn is_free(&self, start: u64, len: u64) -> bool {
        let end = start + len;
        self.regions.range(..end).next_back().is_none_or(|(_, r)| r.end <= start)
    }

    /// A free place, lowest first, as images get it.
    pub fn find_low(&self, len: u64, align: u64) -> Option<u64> {
        let within = layout::IMAGES;
        let mut at = within.start;
        loop {
            at = at.checked_next_multiple_of(align)?;
            let end = at.checked_add(len)?;
            if end > within.end {
                return None;
            }
            match self.regions.range(..end).next_back() {
                Some((_, r)) if r.end > at => at = r.end,
                _ => return Some(at),
            }
        }
    }

    /// A free place, highest first, as anonymous maps get it.
    pub fn find_high(&self, len: u64) -> Option<u64> {
        self.find_within(layout::MAPS, len).or_else(|| self.find_within(layout::LARGE_MAPS, len))
    }

    fn find_within(&self, within: Range<u64>, len: u64) -> Option<u64> {
        let mut end = within.end;
        loop {
            let start = end.checked_sub(len)?;
            if start < within.start {
                return None;
            }
            match self.regions.range(..end).next_back() {
                Some((s, r)) if r.end > start => end = *s,
                _ => return Some(start),
            }
        }
    }

    /// Notes a new region, replacing what was there.
    pub fn insert(&mut self, start: u64, region: Region) {
        self.remove(start, region.end);
        self.note(Change::Mapped(start..region.end));
        self.regions.insert(start, region);
        self.merge_around(start);
    }

    /// Forgets a range.
    pub fn remove(&mut self, start: u64, end: u64) {
        self.note(Change::Mapped(start..end));
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.regions.range(start..end).map(|(s, _)| *s).collect();
        for s in gone {
            self.regions.remove(&s);
        }
    }

    /// Changes the protection the guest sees. False if a part is not mapped.
    pub fn protect(&mut self, start: u64, end: u64, prot: i32) -> bool {
        if self.run_mapped(start, end) != end {
            return false;
        }
        self.split(start);
        self.split(end);
        for (_, region) in self.regions.range_mut(start..end) {
            region.prot = prot;
        }
        self.note(Change::Protected(start..end));
        self.merge_around(start);
        true
    }

    /// How far everything from `start` on is mapped.
    pub fn run_mapped(&self, start: u64, end: u64) -> u64 {
        let mut at = start;
        while at < end {
            match self.region(at) {
                Some((_, r)) => at = r.end.min(end),
                None => break,
            }
        }
        at
    }

    fn split(&mut self, at: u64) {
        let Some((start, region)) = self.region(at).map(|(s, r)| (s, r.clone())) else { return };
        if start == at {
            return;
        }
        let mut upper = region.clone();
        if let Backing::File { offset, .. } = &mut upper.backing {
            *offset += at - start;
        }
        self.regions.insert(start, Region { end: at, ..region });
        self.regions.insert(at, upper);
    }

    /// Joins equal anonymous neighbours, so that programs which map and unmap a
    /// great deal do not fill the table.
    fn merge_around(&mut self, start: u64) {
        let Some(mut current) = self.regions.get(&start).cloned() else { return };
        let mut at = start;
        if let Some((s, before)) = self.regions.range(..start).next_back()
            && joinable(before, &current)
            && before.end == start
        {
            at = *s;
        }
        if at != start {
            self.regions.remove(&start);
            self.regions.get_mut(&at).expect("just seen").end = current.end;
            current = self.regions[&at].clone();
        }
        if let Some(after) = self.regions.get(&current.end).cloned()
            && joinable(&current, &after)
        {
            self.regions.remove(&current.end);
            self.regions.get_mut(&at).expect("just seen").end = after.end;
        }
    }

    /// Maps anonymous memory on the host and notes it.
    pub fn map_anonymous(
        &mut self,
        start: u64,
        len: u64,
        prot: i32,
        backing: Backing,
    ) -> Result<(), i32> {
        host_map(start, len, host_prot(prot), libc::MAP_ANONYMOUS | libc::MAP_PRIVATE, -1, 0)?;
        self.insert(start, Region { end: start + len, prot, shared: false, file: None, backing });
        Ok(())
    }

    /// Unmaps a range on the host and forgets it.
    pub fn unmap(&mut self, start: u64, end: u64) {
        // SAFETY: the range is the guest's (checked by `is_allowed` in callers).
        unsafe { libc::munmap(start as *mut _, (end - start) as usize) };
        self.remove(start, end);
    }

    /// Unmaps everything, as `execve` does.
    pub fn clear(&mut self) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (start, region) in self.regions() {
            match runs.last_mut() {
                Some((_, end)) if *end == start => *end = region.end,
                _ => runs.push((start, region.end)),
            }
        }
        for (start, end) in runs {
            self.unmap(start, end);
        }
        self.brk = layout::BRK.start;
    }
}

fn joinable(a: &Region, b: &Region) -> bool {
    a.backing == Backing::Anonymous
        && b.backing == Backing::Anonymous
        && a.prot == b.prot
        && a.shared == b.shared
}

/// A fixed host map. The error is an errno.
pub fn host_map(
    start: u64,
    len: u64,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: u64,
) -> Result<(), i32> {
    assert!(Memory::is_allowed(start, len), "guest maps stay in guest ranges");
    // SAFETY: the range is the guest's, so no engine memory is replaced.
    let got = unsafe {
        libc::mmap(
            start as *mut _,
            len as usize,
            prot,
            flags | libc::MAP_FIXED | libc::MAP_NORESERVE,
            fd,
            offset as i64,
        )
    };
    if got == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM));
    }
    Ok(())
}
