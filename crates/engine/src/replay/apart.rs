//! A process for replaying, apart from the one that asks.

use crate::Error;
use std::os::unix::net::UnixStream;

/// Does something in a child process, in a process group of its own so that ^C at
/// a terminal does not reach it. Returns our end of a socket to it. The child ends
/// when the work does; its own children are never waited for.
///
/// The process must not have other threads.
pub fn apart(work: impl FnOnce(UnixStream)) -> Result<UnixStream, Error> {
    let (ours, theirs) = UnixStream::pair().map_err(Error::io("cannot make a socket"))?;
    // SAFETY: the caller promises that there is one thread.
    match unsafe { libc::fork() } {
        -1 => Err(Error::Io { what: "cannot fork", error: std::io::Error::last_os_error() }),
        0 => {
            drop(ours);
            // SAFETY: changes only this new process: its group, and what it does
            // about signals.
            unsafe {
                libc::setpgid(0, 0);
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            work(theirs);
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        _ => Ok(ours),
    }
}
