//! The memory a cache is in.

use super::{CODE_BYTES, OFF_TARGETS, RETURN_BYTES, TARGET_BYTES, WRONG_RETURN};
use crate::layout;
use std::io;

const MADV_POPULATE_WRITE: i32 = 23;

/// Maps the executable view and the target table at their fixed addresses.
pub(super) fn map_views(file: libc::c_int) -> io::Result<()> {
    let rx = libc::PROT_READ | libc::PROT_EXEC;
    map(file, layout::CACHE.start, 0, CODE_BYTES, rx)?;
    map(file, layout::TARGETS, OFF_TARGETS, TARGET_BYTES, libc::PROT_READ)?;
    Ok(())
}

/// Maps the table of expected returns. It is written by translated code, so it is
/// ordinary memory: what it holds is checked before it is trusted.
pub(super) fn map_returns() -> io::Result<()> {
    // SAFETY: a fixed map in the engine's own range.
    let got = unsafe {
        libc::mmap(
            layout::RETURNS as *mut _,
            RETURN_BYTES + layout::PAGE as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            // All of it is filled at once.
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    if got == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// No return is expected anywhere.
pub fn forget_returns() {
    // SAFETY: mapped by `map_returns`; a misaligned stack pointer may reach eight
    // bytes past the 64 KiB, hence the page behind them.
    unsafe {
        let words = (RETURN_BYTES + layout::PAGE as usize) / 8;
        std::slice::from_raw_parts_mut(layout::RETURNS as *mut u64, words).fill(WRONG_RETURN);
    }
}

pub(super) fn map(
    file: libc::c_int,
    at: u64,
    offset: usize,
    len: usize,
    prot: i32,
) -> io::Result<*mut u8> {
    let fixed = if at != 0 { libc::MAP_FIXED } else { 0 };
    // SAFETY: either the kernel chooses a free place, or `at` is in the engine's
    // own range of the window.
    let p = unsafe {
        libc::mmap(
            at as *mut _,
            len,
            prot,
            libc::MAP_SHARED | libc::MAP_NORESERVE | fixed,
            file,
            offset as i64,
        )
    };
    if p == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(p.cast())
}

/// Memory of this process alone, at an address of the engine's or where the kernel
/// likes. Small pages: a fork that writes to one copies it whole.
pub(super) fn map_own(at: u64, len: usize) -> io::Result<*mut u8> {
    let fixed = if at != 0 { libc::MAP_FIXED } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: either the kernel chooses a free place, or `at` is in the engine's
    // own range of the window.
    unsafe {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let got = libc::mmap(at as *mut _, len, rw, flags, -1, 0);
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::madvise(got, len, libc::MADV_NOHUGEPAGE);
        Ok(got.cast())
    }
}

/// Makes memory that is about to be filled real: all its pages at once cost less than one
/// by one. Where that is not possible, nothing is lost.
pub(super) fn populate(start: *mut u8, len: usize) {
    let first = start as usize & !4095;
    let end = start as usize + len;
    // SAFETY: pages of a map of the cache's.
    unsafe { libc::madvise(first as *mut _, end - first, MADV_POPULATE_WRITE) };
}

/// Protects a part of the cache where it is executed or read.
pub(super) fn protect(start: u64, len: usize, prot: i32) {
    // SAFETY: the engine's own ranges of the window.
    let done = unsafe { libc::mprotect(start as *mut _, len, prot) };
    assert!(done == 0, "our own maps can be protected");
}
