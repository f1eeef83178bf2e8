//! The turn: guest threads run one at a time, in the order they asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a thread that was woken may take to ask for the turn before it is not waited
/// for any longer.
const PATIENCE: Duration = Duration::from_millis(5);

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

/// A place in the queue.
#[derive(Default)]
pub struct Place {
    granted: Mutex<bool>,
    changed: Condvar,
}

impl Place {
    /// Waits until the turn is handed to this place.
    pub fn wait(&self) {
        let mut granted = lock(&self.granted);
        while !*granted {
            granted = self.changed.wait(granted).unwrap_or_else(PoisonError::into_inner);
        }
    }
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
        self.acquire_after(0);
    }

    /// Waits for the turn, and lets others go first until so much time has passed.
    pub fn acquire_after(&self, time: u64) {
        let place = {
            let mut state = lock(&self.state);
            if !state.held {
                state.held = true;
                return;
            }
            let place = Arc::new(Place::default());
            self.stand_after(&mut state, &place, time);
            place
        };
        place.wait();
    }

    /// Puts a thread into the queue, or holds it back until so much time has passed. The
    /// caller has the turn. Whoever starts a thread does this for it: the thread itself
    /// would come whenever the machine lets it.
    pub fn reserve(&self, place: &Arc<Place>, time: u64) {
        self.stand_after(&mut lock(&self.state), place, time);
    }

    fn stand_after(&self, state: &mut State, place: &Arc<Place>, time: u64) {
        if time > 0 {
            state.late.push((time, place.clone()));
            return;
        }
        state.queue.push_back(place.clone());
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives threads that were just woken time to come into the queue. The caller has the
    /// turn.
    pub fn await_arrivals(&self, arrivals: usize) {
        let before = self.waiting.load(Ordering::Relaxed);
        let begin = Instant::now();
        while self.waiting.load(Ordering::Relaxed) < before + arrivals && begin.elapsed() < PATIENCE
        {
            std::thread::yield_now();
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
