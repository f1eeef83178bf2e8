//! Who writes the recording when the guest has given up its privileges.
//!
//! Credentials belong to kernel threads, and a guest's system calls are made by the
//! thread behind it: after `setuid` that thread may no longer reach the recording's
//! folder. So before the first such call a *clerk* is hired, a thread that keeps the
//! credentials of the beginning and does the engine's own work on files.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

static CLERK: Mutex<Option<Sender<Job>>> = Mutex::new(None);

fn clerk() -> MutexGuard<'static, Option<Sender<Job>>> {
    CLERK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hires the clerk, once. The caller must still have all credentials, and all
/// signals blocked, since the clerk shall never see one.
pub fn hire() {
    clerk().get_or_insert_with(|| {
        let (send, receive): (Sender<Job>, Receiver<Job>) = channel();
        let clerk = std::thread::Builder::new().stack_size(1 << 20);
        // Without a clerk the jobs fail where they need privileges, by name.
        let _ = clerk.spawn(move || receive.into_iter().for_each(|job| job()));
        send
    });
}

/// Is there one?
pub fn is_hired() -> bool {
    clerk().is_some()
}

/// In a fork: the clerk was another thread, which is not here.
pub fn forget() {
    std::mem::forget(clerk().take());
}

/// Does a job with the credentials of the beginning, and waits for it.
pub fn run<T: Send>(job: impl FnOnce() -> T + Send) -> T {
    let Some(clerk) = clerk().clone() else { return job() };
    let (send, receive) = channel();
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        let _ = send.send(job());
    });
    // SAFETY: only the lifetime changes. The job is over, and what it borrowed no
    // longer used, when its result or its end has been received below.
    let job: Job = unsafe { std::mem::transmute(job) };
    if let Err(refused) = clerk.send(job) {
        (refused.0)();
    }
    receive.recv().expect("a job sends its result")
}
