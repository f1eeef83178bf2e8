//! The turn: guest threads run one at a time, in the order they asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Whoever holds it may run guest code and touch the session.
#[derive(Default)]
pub struct Turn {
    state: Mutex<State>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    held: bool,
    queue: VecDeque<Arc<Place>>,
    /// Threads that are held back, and for how many safepoints of others.
    late: Vec<(u64, Arc<Place>)>,
}

#[derive(Default)]
struct Place {
    granted: Mutex<bool>,
    changed: Condvar,
}

impl Turn {
    /// One that the caller holds.
    pub fn held() -> Turn {
        let turn = Turn::default();
        lock(&turn.state).held = true;
        turn
    }

    /// Waits for the turn.
    pub fn acquire(&self) {
        self.acquire_late(0);
    }

    /// Waits for the turn, and until so much time has passed, as long as another has it.
    pub fn acquire_late(&self, time: u64) {
        let place = {
            let mut state = lock(&self.state);
            if !state.held {
                state.held = true;
                return;
            }
            let place = Arc::new(Place::default());
            if time > 0 {
                state.late.push((time, place.clone()));
            } else {
                state.queue.push_back(place.clone());
                self.waiting.fetch_add(1, Ordering::Relaxed);
            }
            place
        };
        let mut granted = lock(&place.granted);
        while !*granted {
            granted = place.changed.wait(granted).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Time passes for those that are held back.
    pub fn pass(&self, time: u64) {
        self.let_in(&mut lock(&self.state), time);
    }

    /// Those whose time has come wait like others.
    fn let_in(&self, state: &mut State, time: u64) {
        let State { queue, late, .. } = state;
        late.retain_mut(|(left, place)| {
            *left = left.saturating_sub(time);
            if *left > 0 {
                return true;
            }
            queue.push_back(place.clone());
            self.waiting.fetch_add(1, Ordering::Relaxed);
            false
        });
    }

    /// Hands the turn to whoever waited longest.
    pub fn release(&self) {
        self.release_to(|_| 0);
    }

    /// Hands the turn to the one that `pick` chooses, given how many wait.
    pub fn release_to(&self, pick: impl FnOnce(usize) -> usize) {
        let next = {
            let mut state = lock(&self.state);
            if state.queue.is_empty() {
                // Rather those that are held back than nobody.
                self.let_in(&mut state, u64::MAX);
            }
            let waiting = state.queue.len();
            let next = match waiting {
                0 => None,
                _ => state.queue.remove(pick(waiting).min(waiting - 1)),
            };
            if next.is_none() {
                state.held = false;
            }
            next
        };
        if let Some(place) = next {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            *lock(&place.granted) = true;
            place.changed.notify_one();
        }
    }

    /// Does another thread want it?
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
