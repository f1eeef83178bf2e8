//! What can be found of each of many things by itself, by all processors, for one who wants it in
//! turn.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{Builder, available_parallelism, scope};

/// So many may be found before they are wanted, for each who looks.
const AHEAD: usize = 4;

/// And so many in all.
const MOST_AHEAD: usize = 32;

/// How far all have come.
struct Progress<T> {
    /// Nobody looks for this one yet, nor for those behind it.
    next: usize,
    /// Those before this one have been handed on.
    wanted: usize,
    /// What waits to be handed on.
    found: BTreeMap<usize, T>,
}

/// Those who look, and the one who waits for what they find.
struct Search<'a, T> {
    find: &'a (dyn Fn(usize) -> T + Sync),
    count: usize,
    ahead: usize,
    progress: Mutex<Progress<T>>,
    /// Something was found.
    found: Condvar,
    /// Something was handed on.
    taken: Condvar,
}

/// Finds something for each number below `count`, and hands it on in turn. Who waits for one that
/// another thread looks for looks for those behind it meanwhile.
pub(super) fn find_in_turn<T: Send>(
    name: &str,
    count: usize,
    find: impl Fn(usize) -> T + Sync,
    mut then: impl FnMut(usize, T),
) {
    let others = available_parallelism().map_or(1, NonZero::get).saturating_sub(1).min(count);
    let search = Search {
        find: &find,
        count,
        ahead: (AHEAD * (others + 1)).min(MOST_AHEAD),
        progress: Mutex::new(Progress { next: 0, wanted: 0, found: BTreeMap::new() }),
        found: Condvar::new(),
        taken: Condvar::new(),
    };
    scope(|scope| {
        let begin = || Builder::new().name(name.to_owned());
        // Who there is finds all, if there cannot be more threads.
        let begun = (0..others).filter_map(|_| begin().spawn_scoped(scope, || search.look()).ok());
        let begun: Vec<_> = begun.collect();
        (0..count).for_each(|n| then(n, search.take(n)));
        // Gone when this returns: who forks next is alone.
        begun.into_iter().for_each(|other| other.join().expect("nobody panics"));
    });
}

impl<T> Search<'_, T> {
    fn progress(&self) -> MutexGuard<'_, Progress<T>> {
        self.progress.lock().expect("nobody panics with it")
    }

    /// Looks for what nobody looks for yet, until there is nothing left.
    fn look(&self) {
        let mut progress = self.progress();
        while progress.next < self.count {
            progress = match progress.next < progress.wanted + self.ahead {
                true => self.look_for_next(progress),
                false => self.taken.wait(progress).expect("nobody panics with it"),
            };
        }
    }

    fn look_for_next<'a>(
        &'a self,
        mut progress: MutexGuard<'a, Progress<T>>,
    ) -> MutexGuard<'a, Progress<T>> {
        let n = progress.next;
        progress.next += 1;
        drop(progress);
        let found = (self.find)(n);
        let mut progress = self.progress();
        progress.found.insert(n, found);
        self.found.notify_one();
        progress
    }

    /// The n-th, the one behind that which was taken last.
    fn take(&self, n: usize) -> T {
        let mut progress = self.progress();
        loop {
            if let Some(found) = progress.found.remove(&n) {
                progress.wanted = n + 1;
                self.taken.notify_all();
                return found;
            }
            let may_look = progress.next < self.count && progress.next < n + self.ahead;
            progress = match may_look {
                true => self.look_for_next(progress),
                false => self.found.wait(progress).expect("nobody panics with it"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn whatever_takes_long_all_is_handed_on_in_turn() {
        for slow in [0, 1, 7, 40] {
            let find = |n: usize| {
                sleep(Duration::from_millis(if n == slow { 20 } else { 0 }));
                10 * n
            };
            let mut taken = Vec::new();
            find_in_turn("test", 60, find, |n, found| taken.push((n, found)));
            assert!(taken.into_iter().eq((0..60).map(|n| (n, 10 * n))), "{slow}");
        }
        find_in_turn("test", 0, |n| n, |_, _| unreachable!("there is nothing"));
    }
}
