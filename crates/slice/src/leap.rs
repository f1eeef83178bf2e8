//! Passing by many segments of records in which nothing of interest happens.
//!
//! Mostly the better part of a run has nothing to do with what is asked: what a slice wants
//! stays the same for hundreds of segments. As long as it does, each of them can be looked
//! through by itself, by whichever processor has time.

use crate::processors::processors;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The latest segment in which something is found, and what. Not every segment before it is
/// looked through.
pub fn latest<T: Send>(
    segments: Range<usize>,
    look: impl Fn(usize) -> Option<T> + Sync,
) -> Option<(usize, T)> {
    let lookers = processors().min(segments.len());
    let search = Search { next: AtomicUsize::new(segments.end), found: Mutex::new(None) };
    let work = || search.work(segments.start, &look);
    std::thread::scope(|scope| {
        let begin = || std::thread::Builder::new().name("leap".into());
        // Without another thread it takes longer and nothing else.
        let begun = (1..lookers).filter_map(|_| begin().spawn_scoped(scope, work).ok());
        let begun: Vec<_> = begun.collect();
        work();
        // Gone when this returns: who forks next is alone.
        begun.into_iter().for_each(|looker| looker.join().expect("nobody panics"));
    });
    search.found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Search<T> {
    /// Segments from this one on are being looked through.
    next: AtomicUsize,
    found: Mutex<Option<(usize, T)>>,
}

impl<T> Search<T> {
    fn work(&self, first: usize, look: &impl Fn(usize) -> Option<T>) {
        while let Some(segment) = self.take(first) {
            if let Some(here) = look(segment) {
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.as_ref().is_none_or(|(other, _)| *other < segment) {
                    *found = Some((segment, here));
                }
                // Who takes a segment from now on would look at an earlier one.
                self.next.store(first, Ordering::Relaxed);
                return;
            }
        }
    }

    /// The latest segment that nobody has looked at.
    fn take(&self, first: usize) -> Option<usize> {
        let before = |next: usize| (next > first).then(|| next - 1);
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, before);
        taken.ok().map(|next| next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_segment_counts_whoever_looks_at_it() {
        for wanted in [vec![], vec![3], vec![3, 4, 70], vec![99, 98, 0], vec![100]] {
            let look = |segment: usize| {
                // Later ones take longer, so that earlier ones are found before them.
                let spin = if segment.is_multiple_of(2) { 1000 } else { 10 };
                (0..spin).for_each(|_| std::hint::spin_loop());
                wanted.contains(&segment).then_some(7 * segment)
            };
            let expected = wanted.iter().filter(|n| (3..100).contains(*n)).max();
            assert_eq!(latest(3..100, look), expected.map(|n| (*n, 7 * n)));
        }
        assert_eq!(latest(5..5, Some), None);
    }
}
