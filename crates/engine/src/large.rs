//! Memory that will be used as a whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where large pages begin.
const LARGE: usize = 2 << 20;

/// The C library never puts more than this into a heap, whatever it was [told](generous_heaps).
const MAPPED: usize = 33 << 20;

/// Of the pages that there always are.
const SMALL: usize = 4 << 10;

/// Makes room in an empty vector for so many elements and, where they [pay](large_pages_pay),
/// tells the kernel that large pages are welcome: getting hundreds of megabytes page by page takes
/// as long as filling them. Where there is no such room, the vector grows as any other does.
pub fn reserve<T>(vec: &mut Vec<T>, capacity: usize) {
    if vec.try_reserve_exact(capacity).is_ok() {
        welcome(vec);
    }
}

/// So many zeros, likewise. They are not touched.
pub fn zeros(len: usize) -> Vec<u32> {
    let zeros = vec![0; len];
    welcome(&zeros);
    zeros
}

fn welcome<T>(vec: &Vec<T>) {
    let bytes = vec.capacity() * size_of::<T>();
    // Anything smaller may lie in a heap, beside what others put there.
    if bytes < MAPPED || !large_pages_pay() {
        return;
    }
    // The allocator's own words lie before the first element: with them, the page is whole.
    let start = vec.as_ptr().addr() & !0xfff;
    let end = (vec.as_ptr().addr() + bytes) & !0xfff;
    // SAFETY: a hint about pages that the vector, or its allocator, has. It changes no contents.
    // That it is refused does not matter.
    unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
}

/// Are large pages got sooner than as much memory in small ones? Tried out once for a process.
///
/// Mostly they are, by far. But a virtual machine may hand free memory back to its host, and does
/// so with what could be a large page. To get that again takes longer than to reuse small pages,
/// which it keeps: six times as long on a machine where this was measured.
fn large_pages_pay() -> bool {
    static PAY: OnceLock<bool> = OnceLock::new();
    *PAY.get_or_init(|| pays(time_to_get(libc::MADV_HUGEPAGE), time_to_get(libc::MADV_NOHUGEPAGE)))
}

/// Where there are no large pages, or nothing could be tried, there is nothing to welcome.
fn pays(large: Option<Duration>, small: Option<Duration>) -> bool {
    large.zip(small).is_some_and(|(large, small)| large < small)
}

/// So many large pages are got to see how long it takes. A single one may be at hand when no
/// others are.
const TRIED: usize = 2;

/// How long it takes to get memory, with this advice about its pages.
fn time_to_get(advice: i32) -> Option<Duration> {
    let (room, len) = ((TRIED + 1) * LARGE, TRIED * LARGE);
    let (read_write, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // Not from the heap, which may have pages already and would keep the advice.
    // SAFETY: a new map where the kernel likes.
    let scratch = unsafe { libc::mmap(std::ptr::null_mut(), room, read_write, private, -1, 0) };
    if scratch == libc::MAP_FAILED {
        return None;
    }
    let start = scratch.addr().next_multiple_of(LARGE);
    // SAFETY: advice about whole pages within the map.
    let taken = unsafe { libc::madvise(start as *mut _, len, advice) } == 0;
    let begin = Instant::now();
    let time = taken.then(|| {
        for page in (start..start + len).step_by(SMALL) {
            // SAFETY: within the map, which is nobody else's.
            unsafe { std::ptr::write_volatile(page as *mut u8, 0) };
        }
        begin.elapsed()
    });
    // SAFETY: our own map.
    unsafe { libc::munmap(scratch, room) };
    time
}

/// From now on, the heaps of this process grow by much at a time and keep what they have.
///
/// The heap of any thread but the first grows page by page otherwise, each time with a system
/// call. What is known of every instruction is in many small pieces that another thread makes:
/// growing took more time than making them.
pub fn generous_heaps() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: it changes where memory comes from, not what was given out.
        unsafe {
            libc::mallopt(libc::M_TOP_PAD, HEAP);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            libc::mallopt(libc::M_MMAP_THRESHOLD, HEAP / 2);
        }
    });
}

/// So large a heap is that the C library makes for a thread: all of it is had at once. What is
/// not used is never touched.
const HEAP: i32 = 64 << 20;

/// Gets the pages of memory that is about to be filled, from first to last, while it is being
/// filled: in a virtual machine that takes longer than filling them, and another processor can
/// do it.
pub struct Ahead {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    rooms: Vec<Room>,
    over: AtomicBool,
}

/// The room of one vector, in bytes.
pub struct Room {
    start: usize,
    len: usize,
    used: AtomicUsize,
}

impl Room {
    /// As [reserved](reserve).
    pub fn of<T>(vec: &Vec<T>) -> Room {
        let (start, len) = (vec.as_ptr().addr(), vec.capacity() * size_of::<T>());
        Room { start, len, used: AtomicUsize::new(0) }
    }
}

/// So far it goes ahead at most, and so far at first: a short trace needs little.
const MOST: usize = 16 << 20;
const LEAST: usize = LARGE;

impl Ahead {
    /// Begins. Whoever forks must have ended it before.
    pub fn begin(rooms: Vec<Room>) -> Ahead {
        let shared = Arc::new(Shared { rooms, over: AtomicBool::new(false) });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("ahead".into()).spawn(move || theirs.work());
        // Without it, everything takes longer and nothing else.
        Ahead { shared, thread: thread.ok() }
    }

    /// The n-th vector has come so far.
    pub fn filled<T>(&self, n: usize, vec: &[T]) {
        self.shared.rooms[n].used.store(size_of_val(vec), Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that could panic.
            _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut done = vec![0; self.rooms.len()];
        while !self.over.load(Ordering::Relaxed) {
            let mut idle = true;
            for (room, done) in self.rooms.iter().zip(&mut done) {
                let used = room.used.load(Ordering::Relaxed);
                let wanted = room.len.min(used + used.clamp(LEAST, MOST));
                // What was filled has its pages.
                *done = (*done).max(used);
                if *done >= wanted {
                    continue;
                }
                let next = wanted.min(*done + LARGE);
                // Where the kernel is not willing, or the vector has moved, nothing is ahead of it.
                let willing = populate(room.start + *done, room.start + next);
                *done = if willing { next } else { usize::MAX };
                idle = false;
            }
            if idle {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
    }
}

/// Gets pages as if they were written to. Is the kernel willing?
fn populate(start: usize, end: usize) -> bool {
    let (start, end) = (start & !0xfff, end & !0xfff);
    // SAFETY: it changes no contents and no protection, whosever memory it is by now.
    start >= end
        || unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_POPULATE_WRITE) == 0 }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, Room, pays, reserve, time_to_get, zeros};

    #[test]
    fn room_that_cannot_be_had_is_no_mishap() {
        let mut much: Vec<u64> = Vec::new();
        reserve(&mut much, usize::MAX / 16);
        assert_eq!(much.capacity(), 0);
        reserve(&mut much, 1 << 20);
        assert!(much.capacity() >= 1 << 20);
        much.push(7);
        assert_eq!(much, [7]);
        assert!(zeros(1 << 20).iter().all(|n| *n == 0));
    }

    #[test]
    fn whether_large_pages_pay_is_told_by_getting_some() {
        let small = time_to_get(libc::MADV_NOHUGEPAGE).expect("small pages are always to be had");
        assert!(!small.is_zero());
        let nothing = time_to_get(-1);
        assert_eq!(nothing, None, "advice that the kernel does not take tells nothing");
        assert!(pays(Some(small / 2), Some(small)));
        assert!(!pays(Some(2 * small), Some(small)));
        assert!(!pays(nothing, Some(small)));
    }

    #[test]
    fn pages_are_got_ahead_of_what_is_filled_and_hold_what_was_put_there() {
        let (mut words, mut bytes): (Vec<u64>, Vec<u8>) = (Vec::new(), Vec::new());
        reserve(&mut words, 2 << 20);
        reserve(&mut bytes, 8 << 20);
        let ahead = Ahead::begin(vec![Room::of(&words), Room::of(&bytes)]);
        for n in 0..2 << 20 {
            words.push(n);
            bytes.push(n as u8);
            if n % (1 << 16) == 0 {
                ahead.filled(0, &words);
                ahead.filled(1, &bytes);
            }
        }
        drop(ahead);
        assert!(words.iter().copied().eq(0..2 << 20));
        assert!(bytes.iter().enumerate().all(|(n, byte)| *byte == n as u8));
    }
}
