//! Hashes of guest state, to notice the first instant at which a replay differs.

use crate::context::Registers;
use crate::guest::memory::{Backing, Memory};
use crate::layout::PAGE;
use crate::pages::Pages;
use std::ops::Range;

const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds a word to a hash.
pub fn mix(hash: u64, word: u64) -> u64 {
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

/// A hash of any bytes.
pub fn bytes(bytes: &[u8]) -> u64 {
    let mut lanes = [bytes.len() as u64, K, !K, K.rotate_left(7)];
    let (chunks, rest) = bytes.as_chunks::<32>();
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let whole = lanes.into_iter().fold(0, mix);
    rest.iter().fold(whole, |hash, byte| mix(hash, u64::from(*byte)))
}

/// A hash of all writable private guest memory. Pages of zeros count as absent,
/// so that it does not matter whether they were ever touched.
pub fn memory(memory: &Memory) -> u64 {
    let mut sum = 0u64;
    let pages = Pages::open();
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_WRITE == 0 || region.shared {
            continue;
        }
        let own = pages.as_ref().and_then(|p| p.own(start..region.end));
        // Without that knowledge, file pages are left out: they may lie past the
        // end of their file.
        let anonymous = !matches!(region.backing, Backing::File { .. });
        let all = || anonymous.then_some(start..region.end).into_iter().collect();
        for page in each_page(&own.unwrap_or_else(all)) {
            sum = sum.wrapping_add(page_hash(page));
        }
    }
    sum
}

fn each_page(ranges: &[Range<u64>]) -> impl Iterator<Item = u64> {
    ranges.iter().flat_map(|range| range.clone().step_by(PAGE as usize))
}

/// A hash of all private guest memory, but for what lies below an address in the region
/// that holds it: a stack without what is dead. `None` if it cannot be told which pages
/// have contents.
pub fn live_memory(memory: &Memory, stack: u64) -> Option<u64> {
    let mut sum = 0u64;
    let pages = Pages::open_anew()?;
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_READ == 0 || region.shared {
            continue;
        }
        let live = if (start..region.end).contains(&stack) { stack } else { start };
        let first = live / PAGE * PAGE;
        for page in each_page(&pages.own(first..region.end)?) {
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

/// Pages of private writable memory that this process wrote to and shares with no
/// other any more, since a fork; `None` if the kernel does not tell.
pub fn pages_written(memory: &Memory) -> Option<Vec<u64>> {
    written(memory, &Pages::open()?)
}

/// The same, in a process that may have forked since the page map was kept.
pub fn pages_written_anew(memory: &Memory) -> Option<Vec<u64>> {
    written(memory, &Pages::open_anew()?)
}

fn written(memory: &Memory, pages: &Pages) -> Option<Vec<u64>> {
    let mut written = Vec::new();
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_WRITE == 0 || region.shared {
            continue;
        }
        written.extend(each_page(&pages.exclusive(start..region.end)?));
    }
    Some(written)
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
