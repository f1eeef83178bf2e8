//! ^C stops a search, which then reports what it knows.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// Did somebody press ^C?
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
