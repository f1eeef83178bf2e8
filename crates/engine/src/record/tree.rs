//! What all recorded processes of a run share: a page with counters and the baton.

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

#[repr(C)]
struct Page {
    /// Logs begun so far.
    logs: AtomicU64,
    /// Pieces of output written so far.
    written: AtomicU64,
    /// Bytes of the recording so far.
    bytes: AtomicU64,
    /// Processes for which something was switched off.
    switched_off: AtomicU32,
    /// The process that had the baton last, and how many want it.
    holder: AtomicI32,
    wanted: AtomicU32,
    /// Who has locked it has the baton; a process that dies gives it back.
    baton: UnsafeCell<libc::pthread_mutex_t>,
}

// SAFETY: a mutex that is made for several processes.
unsafe impl Sync for Page {}

/// How long others may take to accept the baton.
const PATIENCE: u32 = 50;

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
            let page = &*map.cast::<Page>();
            let mut how = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut how);
            libc::pthread_mutexattr_setpshared(&mut how, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut how, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(page.baton.get(), &how);
            page
        };
        page.logs.store(recording::Process::FIRST, Ordering::Relaxed);
        Ok(Tree { page })
    }

    /// Where the page is. No other process has it.
    pub fn address(self) -> u64 {
        std::ptr::from_ref(self.page) as u64
    }

    /// Counts the bytes of all logs and captured files.
    pub fn bytes(&self) -> &'static AtomicU64 {
        &self.page.bytes
    }

    /// Number of a new log.
    pub fn new_log(self) -> u64 {
        self.page.logs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Has there ever been more than one log?
    pub fn has_branched(self) -> bool {
        self.page.logs.load(Ordering::Relaxed) > recording::Process::FIRST
    }

    /// Something was switched off for a process.
    pub fn note_switched_off(self) {
        self.page.switched_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Was anything switched off for any process?
    pub fn has_switched_off(self) -> bool {
        self.page.switched_off.load(Ordering::Relaxed) > 0
    }

    /// The place of something just written in the output of all processes.
    pub fn order(self) -> u64 {
        self.page.written.fetch_add(1, Ordering::SeqCst)
    }

    /// Waits for the baton. Did another process have it in between?
    pub fn take_baton(self) -> bool {
        // SAFETY: the mutex was made in `new`; the calls touch nothing else.
        unsafe {
            let me = libc::getpid();
            let mut patience = PATIENCE;
            while self.is_wanted() && self.page.holder.load(Ordering::Relaxed) == me && patience > 0
            {
                libc::usleep(20);
                patience -= 1;
            }
            self.page.wanted.fetch_add(1, Ordering::Relaxed);
            if libc::pthread_mutex_lock(self.page.baton.get()) == libc::EOWNERDEAD {
                libc::pthread_mutex_consistent(self.page.baton.get());
            }
            self.page.wanted.fetch_sub(1, Ordering::Relaxed);
            self.page.holder.swap(me, Ordering::Relaxed) != me
        }
    }

    /// Gives it to whoever waits.
    pub fn give_baton(self) {
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.page.baton.get()) };
    }

    /// Does another process wait for the baton?
    pub fn is_wanted(self) -> bool {
        self.page.wanted.load(Ordering::Relaxed) > 0
    }
}
