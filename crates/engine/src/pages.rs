//! Which pages of this process have contents of their own?
//!
//! Programs reserve terabytes that they hardly touch (the shadow memory of sanitizers, the
//! heaps of managed languages), so the answer must not cost a byte per reserved page. Newer
//! kernels list what is there; older ones are asked page by page, a part at a time.

use crate::layout::PAGE;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Pages whose entries are read at once.
const AT_ONCE: u64 = 1 << 16;

/// The page map of this process, opened while that was allowed.
static KEPT: OnceLock<File> = OnceLock::new();

/// Opens the page map for good: a guest may give up the right to. Not for processes
/// that fork without [`renew_pagemap`], whose page map it would not be.
pub fn keep_pagemap() {
    use std::os::fd::{FromRawFd, IntoRawFd};
    let Some(file) = open_pagemap() else { return };
    if let Ok(high) = crate::sys::move_high(file.into_raw_fd()) {
        // SAFETY: a descriptor that is only ours.
        KEPT.get_or_init(|| unsafe { File::from_raw_fd(high) });
    }
}

/// In a fork: what is kept becomes the page map of this process.
pub fn renew_pagemap() {
    if let (Some(kept), Some(own)) = (KEPT.get(), open_pagemap()) {
        // SAFETY: both descriptors are ours.
        unsafe { libc::dup3(own.as_raw_fd(), kept.as_raw_fd(), libc::O_CLOEXEC) };
    }
}

fn open_pagemap() -> Option<File> {
    File::open("/proc/self/pagemap").ok()
}

/// What the kernel says about pages of this process.
pub enum Pages {
    Kept(&'static File),
    Opened(File),
}

impl Pages {
    /// Those of this process; `None` if the kernel does not tell.
    pub fn open() -> Option<Pages> {
        match KEPT.get() {
            Some(file) => Some(Pages::Kept(file)),
            None => Pages::open_anew(),
        }
    }

    /// As `open`, in a process that may have forked since the page map was kept.
    pub fn open_anew() -> Option<Pages> {
        open_pagemap().map(Pages::Opened)
    }

    fn file(&self) -> &File {
        match self {
            Pages::Kept(file) => file,
            Pages::Opened(file) => file,
        }
    }

    /// Pages of a range that have contents of the process's own: neither absent nor
    /// still those of a file. In order.
    pub fn own(&self, range: Range<u64>) -> Option<Vec<Range<u64>>> {
        scan(self.file(), range.clone()).or_else(|| self.ask_each(range, is_own))
    }

    /// Those of them that no other process shares.
    pub fn exclusive(&self, range: Range<u64>) -> Option<Vec<Range<u64>>> {
        let mut all = Vec::new();
        for part in self.own(range)? {
            all.extend(self.ask_each(part, is_exclusive)?);
        }
        Some(all)
    }

    fn ask_each(&self, range: Range<u64>, wanted: fn(u8) -> bool) -> Option<Vec<Range<u64>>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let pages = ((range.end - at) / PAGE).min(AT_ONCE);
            let mut bytes = vec![0u8; pages as usize * 8];
            self.file().read_exact_at(&mut bytes, at / PAGE * 8).ok()?;
            for entry in bytes.chunks_exact(8) {
                if wanted(entry[7]) {
                    match found.last_mut() {
                        Some(last) if last.end == at => last.end += PAGE,
                        _ => found.push(at..at + PAGE),
                    }
                }
                at += PAGE;
            }
        }
        Some(found)
    }
}

/// The upper byte of an entry: bit 63 present, 62 swapped out, 61 a page of a file.
fn is_own(flags: u8) -> bool {
    flags & 0xc0 != 0 && flags & 0x20 == 0
}

/// Bit 56: mapped here only.
fn is_exclusive(flags: u8) -> bool {
    flags & 0xa1 == 0x81
}

/// The request of an `ioctl` on a page map.
pub const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;

/// `struct pm_scan_arg` of the kernel.
#[repr(C)]
#[derive(Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// `PAGEMAP_SCAN` (Linux 6.7): own pages, in time that grows with what is there.
/// `None` on older kernels.
fn scan(file: &File, range: Range<u64>) -> Option<Vec<Range<u64>>> {
    const PAGE_IS_FILE: u64 = 1 << 2;
    const PAGE_IS_PRESENT: u64 = 1 << 3;
    const PAGE_IS_SWAPPED: u64 = 1 << 4;
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut regions = [PageRegion::default(); 512];
    let mut start = range.start;
    while start < range.end {
        let mut arguments = ScanArguments {
            size: size_of::<ScanArguments>() as u64,
            start,
            end: range.end,
            regions: regions.as_mut_ptr() as u64,
            regions_len: regions.len() as u64,
            category_inverted: PAGE_IS_FILE,
            category_mask: PAGE_IS_FILE,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT,
            ..ScanArguments::default()
        };
        // SAFETY: the kernel fills our own array, whose length it is told.
        let count = unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN, &mut arguments) };
        if count < 0 || arguments.walk_end <= start {
            return None;
        }
        for region in &regions[..count as usize] {
            match found.last_mut() {
                Some(last) if last.end == region.start => last.end = region.end,
                _ => found.push(region.start..region.end),
            }
        }
        start = arguments.walk_end;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reserves so many bytes.
    fn reserve(len: usize) -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory, touched by nobody else.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: as above; huge pages would make neighbours of a touched page present.
        unsafe { libc::madvise(at, len, libc::MADV_NOHUGEPAGE) };
        at as u64
    }

    fn touch(address: u64) {
        // SAFETY: an address in what was reserved.
        unsafe { *(address as *mut u8) = 1 };
    }

    #[test]
    fn touched_pages_of_a_terabyte_are_found_without_asking_for_each() {
        let (len, file) = (1 << 40, open_pagemap().unwrap());
        let start = reserve(len);
        let wanted = [start + PAGE, start + (1 << 39), start + (1 << 39) + PAGE];
        wanted.into_iter().for_each(touch);
        let Some(found) = scan(&file, start..start + len as u64) else {
            eprintln!("not tested: this kernel has no PAGEMAP_SCAN");
            return;
        };
        assert_eq!(found, [wanted[0]..wanted[0] + PAGE, wanted[1]..wanted[2] + PAGE]);
    }

    #[test]
    fn both_ways_of_asking_give_the_same_answer() {
        let pages = Pages::open_anew().unwrap();
        let len = AT_ONCE * PAGE * 2;
        let start = reserve(len as usize);
        for n in 0..2000 {
            touch(start + n * n % (2 * AT_ONCE) * PAGE);
        }
        let range = start..start + len;
        let each = pages.ask_each(range.clone(), is_own).unwrap();
        assert_eq!(pages.own(range).unwrap(), each);
        assert!(each.len() > 100);
    }
}
