//! Our own code in huge pages.
//!
//! A fork does not get the page-table entries of what is mapped from a file: each
//! trial would fault in every page of our own code that it needs, which is half of all
//! its faults. It does get those of anonymous memory, and a huge page has one.

use std::ops::Range;

const HUGE: usize = 1 << 21;
/// `MADV_COLLAPSE`
const COLLAPSE: i32 = 25;

/// Copies this program's code to huge pages, as far as it fills whole ones. Where
/// there are none, all stays as it is.
pub fn use_huge_pages() {
    for code in own_code() {
        let first = code.start.next_multiple_of(HUGE);
        for block in (first..).step_by(HUGE).take_while(|block| block + HUGE <= code.end) {
            if copy(block).is_none() {
                return;
            }
        }
    }
}

/// Where this program's executable segments lie.
fn own_code() -> Vec<Range<usize>> {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return Vec::new() };
    let here = use_huge_pages as *const () as usize;
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" r-xp ")) {
        let Some((start, rest)) = line.split_once('-') else { continue };
        let end = rest.split(' ').next().unwrap_or_default();
        let (start, end) = (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16));
        if let (Ok(start), Ok(end)) = (start, end)
            && (start..end).contains(&here)
        {
            found.push(start..end);
        }
    }
    found
}

/// Puts a copy of a block of code in its place.
fn copy(block: usize) -> Option<()> {
    // SAFETY: a new map is made, filled with the same bytes, and put where the old
    // ones were, in one step; the code that runs meanwhile does not change.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let room = libc::mmap(std::ptr::null_mut(), 2 * HUGE, rw, flags, -1, 0);
        if room == libc::MAP_FAILED {
            return None;
        }
        let start = (room as usize).next_multiple_of(HUGE);
        libc::munmap(room, start - room as usize);
        libc::munmap((start + HUGE) as *mut _, room as usize + HUGE - start);
        let map = start as *mut libc::c_void;
        libc::madvise(map, HUGE, libc::MADV_HUGEPAGE);
        std::ptr::copy_nonoverlapping(block as *const u8, start as *mut u8, HUGE);
        let rx = libc::PROT_READ | libc::PROT_EXEC;
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::madvise(map, HUGE, COLLAPSE) == 0
            && libc::mprotect(map, HUGE, rx) == 0
            && libc::mremap(map, HUGE, HUGE, how, block as *mut libc::c_void) != libc::MAP_FAILED;
        if !moved {
            libc::munmap(map, HUGE);
        }
        moved.then_some(())
    }
}
