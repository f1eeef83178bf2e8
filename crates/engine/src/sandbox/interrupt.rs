//! ^C stops a search, which then reports what it knows.

use crate::sys;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// When the first ^C came, in milliseconds.
static FIRST: AtomicI64 = AtomicI64::new(0);

/// Whoever passes a ^C on may send it twice (`timeout` does, to its child and to the
/// group): what comes within this time is the same one.
const SAME_MILLISECONDS: i64 = 300;

/// Notes a ^C; one that is meant for a recorded program is for us when that has ended.
pub extern "C" fn note_only(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Milliseconds of the machine's clock, never 0. Uses nothing of the thread: it may come
/// while guest code runs, with the guest's thread pointer.
fn now() -> i64 {
    let mut time = [0i64; 2];
    let clock = [libc::CLOCK_MONOTONIC as u64, time.as_mut_ptr() as u64, 0, 0, 0, 0];
    // SAFETY: the kernel writes the two words.
    unsafe { sys::raw(libc::SYS_clock_gettime as u64, clock) };
    (time[0] * 1000 + time[1] / 1_000_000).max(1)
}

/// Notes the first ^C; with a second one ^C is what it is for any program.
extern "C" fn note_once(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
    let now = now();
    match FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if now - first > SAME_MILLISECONDS => end_as_any_program(),
        _ => {}
    }
}

/// ^C again, when this handler has returned, ends the process.
fn end_as_any_program() {
    let default = [libc::SIG_DFL as u64, 0, 0, 0];
    let set_of_signals = 8;
    let interrupt = libc::SIGINT as u64;
    // SAFETY: system calls that touch nothing of ours; the words outlive them.
    unsafe {
        let change = [interrupt, default.as_ptr() as u64, 0, set_of_signals, 0, 0];
        sys::raw(libc::SYS_rt_sigaction as u64, change);
        let me = sys::raw(libc::SYS_getpid as u64, [0; 6]) as u64;
        sys::raw(libc::SYS_kill as u64, [me, interrupt, 0, 0, 0, 0]);
    }
}

/// From now on the first ^C is only noted; another one, later, ends the process at once.
pub fn catch_interrupts() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    FIRST.store(0, Ordering::Relaxed);
    // SAFETY: the handler stores words and makes system calls. It may come while guest
    // code runs, so it leaves the guest's stack alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note_once as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
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
