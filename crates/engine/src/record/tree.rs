//! What all recorded processes of a run share: a page of counters.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(C)]
struct Page {
    /// Logs begun so far.
    logs: AtomicU64,
    /// Pieces of output written so far.
    written: AtomicU64,
}

/// The page, which every fork inherits.
#[derive(Clone, Copy)]
pub struct Tree {
    page: &'static Page,
}

impl Tree {
    /// For a run that begins; it has one log.
    pub fn new() -> io::Result<Tree> {
        // SAFETY: a new map of zeros, which is a valid page, and which stays.
        let page = unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if map == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            &*map.cast::<Page>()
        };
        page.logs.store(recording::Process::FIRST, Ordering::Relaxed);
        Ok(Tree { page })
    }

    /// Number of a new log.
    pub fn new_log(self) -> u64 {
        self.page.logs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Has there ever been more than one log?
    pub fn has_branched(self) -> bool {
        self.page.logs.load(Ordering::Relaxed) > recording::Process::FIRST
    }

    /// The place of something just written in the output of all processes.
    pub fn order(self) -> u64 {
        self.page.written.fetch_add(1, Ordering::SeqCst)
    }
}
