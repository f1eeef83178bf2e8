//! The memory file that the last forked process had its cache in, for the next one.
//!
//! A shell makes one process after the other, and for a short one nothing costs more than
//! the pages of its cache: getting them, and giving them back. So the parent keeps the
//! file, and when the process is gone, the next one finds the pages there.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Spare {
    file: OwnedFd,
    /// The process that keeps it: a fork of that must not lend it too.
    keeper: u32,
    /// The process that uses it; 0 if none does yet.
    user: i32,
}

static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

fn spare() -> MutexGuard<'static, Option<Spare>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file for the cache of a process that is about to be forked.
pub fn for_child() -> io::Result<OwnedFd> {
    let mut spare = spare();
    let keeper = std::process::id();
    if spare.as_ref().is_none_or(|spare| spare.keeper != keeper || is_there(spare.user)) {
        *spare = Some(Spare { file: memory_file()?, keeper, user: 0 });
    }
    let file = &spare.as_ref().expect("just made").file;
    copy(file.as_raw_fd())
}

/// Another descriptor for a file.
pub fn copy(file: i32) -> io::Result<OwnedFd> {
    // SAFETY: copies our own descriptor.
    let copy = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, sys::first_engine_fd()) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// In the parent: who has the file that was asked for last.
pub fn is_of(pid: i32) {
    if let Some(spare) = spare().as_mut() {
        spare.user = pid;
    }
}

/// In the child: what there is to spare is the parent's.
pub fn forget() {
    *spare() = None;
}

/// The file of a cache that is no more, and the process that had it to itself.
static RECYCLED: Mutex<Option<(u32, OwnedFd)>> = Mutex::new(None);

/// The next new cache of this process shall be where another one was.
pub fn recycle(file: OwnedFd) {
    let mut recycled = RECYCLED.lock().unwrap_or_else(PoisonError::into_inner);
    *recycled = Some((std::process::id(), file));
}

/// A file for a new cache of this process.
pub fn own_file() -> io::Result<OwnedFd> {
    let recycled = RECYCLED.lock().unwrap_or_else(PoisonError::into_inner).take();
    match recycled {
        Some((keeper, file)) if keeper == std::process::id() => Ok(file),
        _ => memory_file(),
    }
}

/// An empty file in memory, out of the guest's way.
pub fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: plain system call with a static name.
    let file = unsafe { libc::memfd_create(c"why-code".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    let file = sys::move_high(file)?;
    // SAFETY: a new descriptor, and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    // SAFETY: our own descriptor.
    match unsafe { libc::ftruncate(file.as_raw_fd(), super::TOTAL as i64) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Is there such a process, or one whose number may be this one's?
fn is_there(pid: i32) -> bool {
    // SAFETY: asks only.
    let gone = pid == 0
        || unsafe { libc::kill(pid, 0) } != 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    !gone
}
