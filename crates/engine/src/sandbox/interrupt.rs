//! ^C stops a search, which then reports what it knows.

use crate::sys;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Notes a ^C; one that is meant for a recorded program is for us when that has ended.
pub extern "C" fn note_only(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on the first ^C is only noted; a second one ends the process at once.
pub fn catch_interrupts() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    // SAFETY: the handler only stores a flag. It may come while guest code runs, so it
    // leaves the guest's stack alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note_only as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
    }
}

/// The process that ^C ends, and the group of those that work for it.
static ENDED: AtomicI32 = AtomicI32::new(0);
static HELPERS: AtomicI32 = AtomicI32::new(0);

/// Status of what was interrupted.
pub const INTERRUPTED_STATUS: u8 = 130;

const GOODBYE: &[u8] = b"why: interrupted; the recording is as it was\n";

/// May come while guest code runs, with the guest's thread pointer: nothing here uses ours.
extern "C" fn say_and_end(_: libc::c_int) {
    // SAFETY: writes our own bytes, ends processes of our own making, and this one.
    unsafe {
        let me = sys::raw(libc::SYS_getpid as u64, [0; 6]);
        if me == i64::from(ENDED.load(Ordering::Relaxed)) {
            let helpers = HELPERS.load(Ordering::Relaxed);
            if helpers > 0 {
                let group = -i64::from(helpers) as u64;
                sys::raw(libc::SYS_kill as u64, [group, libc::SIGKILL as u64, 0, 0, 0, 0]);
            }
            let text = [2, GOODBYE.as_ptr() as u64, GOODBYE.len() as u64, 0, 0, 0];
            sys::raw(libc::SYS_write as u64, text);
        }
        let status = u64::from(INTERRUPTED_STATUS);
        sys::raw(libc::SYS_exit_group as u64, [status, 0, 0, 0, 0, 0]);
    }
}

/// From now on ^C ends this process at once, with a word and the status for it. For work
/// that leaves nothing behind.
pub fn end_at_interrupt() {
    // SAFETY: the handler uses nothing but system calls, on a stack of its own.
    unsafe {
        ENDED.store(libc::getpid(), Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = say_and_end as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
    }
}

/// Does ^C end this process at once?
pub(crate) fn ends_at_interrupt() -> bool {
    ENDED.load(Ordering::Relaxed) == std::process::id() as i32
}

/// These processes end with this one.
pub(crate) fn has_helpers(group: i32) {
    HELPERS.store(group, Ordering::Relaxed);
}

/// Did somebody press ^C?
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
