//! Copying guest memory that may not be there: a map can go on beyond the end of its
//! file, and no table of ours tells.

use std::arch::global_asm;

global_asm!(
    ".text",
    // rdi: to, rsi: from, rdx: how many. 0 if all were copied.
    ".globl why_copy",
    ".p2align 4",
    "why_copy:",
    "mov rcx, rdx",
    ".globl why_copy_start",
    "why_copy_start:",
    "rep movsb",
    ".globl why_copy_end",
    "why_copy_end:",
    "xor eax, eax",
    "ret",
    ".globl why_copy_failed",
    "why_copy_failed:",
    "mov eax, 1",
    "ret",
);

unsafe extern "C" {
    fn why_copy(to: *mut u8, from: *const u8, len: usize) -> u32;
    fn why_copy_start();
    fn why_copy_end();
    fn why_copy_failed();
}

/// Copies; false if a part of either side is not there. What was copied until then
/// stays.
///
/// # Safety
/// Both ranges must be free to use as far as they are there: no reference to them
/// may exist, and the engine's signal handler must be installed.
#[must_use]
pub unsafe fn copy(to: *mut u8, from: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise; a fault leads to the failed end.
    unsafe { why_copy(to, from, len) == 0 }
}

/// Where the handler sends a fault in the copy; `None` if it is not one.
pub fn way_out(pc: u64) -> Option<u64> {
    let (start, end) = (why_copy_start as *const () as u64, why_copy_end as *const () as u64);
    (start..end).contains(&pc).then_some(why_copy_failed as *const () as u64)
}
