//! What is worked out beside everything else, and waited for by whoever needs it first.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};

/// A value that is there, or that another thread is working out.
pub struct Later<T> {
    found: OnceLock<T>,
    thread: Mutex<Option<JoinHandle<T>>>,
}

impl<T: Send + 'static> Later<T> {
    /// Begins to work it out; at once, if there cannot be another thread.
    pub(crate) fn begin(name: &str, work: impl Fn() -> T + Send + Sync + 'static) -> Later<T> {
        let work = Arc::new(work);
        let theirs = work.clone();
        let thread = Builder::new().name(name.to_owned()).spawn(move || theirs()).ok();
        let found = OnceLock::new();
        if thread.is_none() {
            found.get_or_init(|| work());
        }
        Later { found, thread: Mutex::new(thread) }
    }
}

impl<T> Later<T> {
    #[cold]
    fn wait(&self) -> T {
        let thread = self.thread.lock().expect("nobody panics with it").take();
        let thread = thread.expect("there is a thread until it was waited for");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Nothing goes on working for nobody: whoever forks next is alone.
impl<T> Drop for Later<T> {
    fn drop(&mut self) {
        if let Ok(Some(thread)) = self.thread.get_mut().map(Option::take) {
            // Nobody wants what it found, nor how it failed.
            _ = thread.join();
        }
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.found.get_or_init(|| self.wait())
    }
}

#[cfg(test)]
mod tests {
    use super::Later;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn what_is_worked_out_beside_is_there_for_all_who_ask() {
        static TIMES: AtomicU32 = AtomicU32::new(0);
        let later = Later::begin("test", || 40 + TIMES.fetch_add(1, Ordering::Relaxed));
        let asked = || *later;
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..4).map(|_| scope.spawn(asked)).collect();
            others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 40));
        });
        assert_eq!((*later, TIMES.load(Ordering::Relaxed)), (40, 1));
    }

    #[test]
    fn nobody_works_on_when_nobody_waits_any_more() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        drop(Later::begin("test", || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            DONE.fetch_add(1, Ordering::Relaxed)
        }));
        assert_eq!(DONE.load(Ordering::Relaxed), 1);
    }
}
