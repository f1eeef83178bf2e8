//! ^C stops a search, which then reports what it knows.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
    // A second one ends the process at once.
    // SAFETY: async-signal-safe.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

/// Notes a ^C that is meant for a recorded program, and for us when that has ended.
pub extern "C" fn note_only(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on the first ^C is only noted.
pub fn catch_interrupts() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    // SAFETY: the handler only stores a flag.
    unsafe { libc::signal(libc::SIGINT, note as *const () as libc::sighandler_t) };
}

/// Did somebody press ^C?
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
