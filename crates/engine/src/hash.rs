//! Hashes of guest state, to notice the first instant at which a replay differs.

use crate::context::Registers;
use crate::guest::memory::{Backing, Memory};
use crate::layout::PAGE;
use std::fs::File;
use std::sync::OnceLock;

const K: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(K).rotate_left(29)
}

/// A hash of the general registers and RIP.
pub fn registers(regs: &Registers) -> u32 {
    // Four independent lanes: the multiplications overlap.
    let mut lanes = [regs.rip, K, !K, K.rotate_left(7)];
    for four in regs.gpr.chunks_exact(4) {
        for (lane, word) in lanes.iter_mut().zip(four) {
            *lane = mix(*lane, *word);
        }
    }
    let hash = lanes.into_iter().fold(0, mix);
    (hash ^ (hash >> 32)) as u32
}

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
    use std::os::fd::AsRawFd;
    if let (Some(kept), Some(own)) = (KEPT.get(), open_pagemap()) {
        // SAFETY: both descriptors are ours.
        unsafe { libc::dup3(own.as_raw_fd(), kept.as_raw_fd(), libc::O_CLOEXEC) };
    }
}

pub fn open_pagemap() -> Option<File> {
    File::open("/proc/self/pagemap").ok()
}

/// A hash of all writable private guest memory. Pages of zeros count as absent,
/// so that it does not matter whether they were ever touched.
pub fn memory(memory: &Memory) -> u64 {
    let mut sum = 0u64;
    let opened = match KEPT.get() {
        Some(_) => None,
        None => open_pagemap(),
    };
    let pagemap = KEPT.get().or(opened.as_ref());
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_WRITE == 0 || region.shared {
            continue;
        }
        let own = pagemap.and_then(|f| own_pages(f, start, region.end));
        // Without that knowledge, file pages are left out: they may lie past the
        // end of their file.
        let anonymous = !matches!(region.backing, Backing::File { .. });
        let mut page = start;
        while page < region.end {
            let index = ((page - start) / PAGE) as usize;
            if own.as_ref().map_or(anonymous, |p| p[index]) {
                sum = sum.wrapping_add(page_hash(page));
            }
            page += PAGE;
        }
    }
    sum
}

/// A hash of all private guest memory, but for what lies below an address in the region
/// that holds it: a stack without what is dead. `None` if it cannot be told which pages
/// have contents.
pub fn live_memory(memory: &Memory, stack: u64) -> Option<u64> {
    let mut sum = 0u64;
    let pagemap = open_pagemap()?;
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_READ == 0 || region.shared {
            continue;
        }
        let live = if (start..region.end).contains(&stack) { stack } else { start };
        let first = live / PAGE * PAGE;
        let own = own_pages(&pagemap, first, region.end)?;
        for (page, _) in (first..).step_by(PAGE as usize).zip(own).filter(|(_, own)| *own) {
            sum = sum.wrapping_add(match page < live {
                true => part_hash(live, page + PAGE),
                false => page_hash(page),
            });
        }
    }
    Some(sum)
}

/// A hash of a part of a page.
fn part_hash(start: u64, end: u64) -> u64 {
    // SAFETY: readable bytes of a guest region; guest code is not running.
    let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, (end - start) as usize) };
    bytes.iter().fold(start, |hash, byte| mix(hash, u64::from(*byte)))
}

/// Which pages of a range have contents of the process's own: neither absent nor
/// still those of a file.
pub fn own_pages(file: &File, start: u64, end: u64) -> Option<Vec<bool>> {
    use std::os::unix::fs::FileExt;
    let count = ((end - start) / PAGE) as usize;
    let mut bytes = vec![0u8; count * 8];
    file.read_exact_at(&mut bytes, start / PAGE * 8).ok()?;
    // Bit 63: present; bit 62: swapped out; bit 61: a page of a file.
    Some(bytes.chunks_exact(8).map(|b| b[7] & 0xc0 != 0 && b[7] & 0x20 == 0).collect())
}

/// Pages of private writable memory that this process wrote to and shares with no
/// other any more, since a fork; `None` if the kernel does not tell.
pub fn pages_written(memory: &Memory) -> Option<Vec<u64>> {
    use std::os::unix::fs::FileExt;
    let opened = open_pagemap();
    let file = KEPT.get().or(opened.as_ref())?;
    let mut pages = Vec::new();
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_WRITE == 0 || region.shared {
            continue;
        }
        let count = ((region.end - start) / PAGE) as usize;
        let mut bytes = vec![0u8; count * 8];
        file.read_exact_at(&mut bytes, start / PAGE * 8).ok()?;
        for (n, entry) in bytes.chunks_exact(8).enumerate() {
            // Bit 63: present; bit 61: a page of a file; bit 56: mapped here only.
            if entry[7] & 0xa1 == 0x81 {
                pages.push(start + n as u64 * PAGE);
            }
        }
    }
    Some(pages)
}

fn page_hash(page: u64) -> u64 {
    // SAFETY: a writable page of a guest region; guest code is not running.
    let words = unsafe { std::slice::from_raw_parts(page as *const u64, 512) };
    let mut lanes = [page, K, !page, K.rotate_left(17)];
    let mut any = 0;
    for chunk in words.chunks_exact(4) {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            any |= word;
            *lane = (*lane ^ word).wrapping_mul(K).rotate_left(31);
        }
    }
    if any == 0 { 0 } else { lanes.into_iter().fold(0, mix) }
}
