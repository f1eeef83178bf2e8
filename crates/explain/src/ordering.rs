//! What of one thread had another one seen? Clocks as Lamport, Fidge and Mattern have them:
//! starting a thread, its end, and words that are changed in one step hand them on.

use rustc_hash::FxHashMap;

/// Of each thread, by its place in the order of their appearance: how often it had handed
/// its clock on.
type Clock = Vec<u64>;

/// The clocks of a run at one instant.
#[derive(Default)]
pub struct Ordering {
    /// Places of threads.
    places: FxHashMap<u32, usize>,
    clocks: Vec<Clock>,
    /// What was handed on through a word, by its number.
    words: FxHashMap<u64, Clock>,
}

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    thread: u32,
    time: u64,
}

/// Memory is looked at in words of eight bytes.
pub fn words(start: u64, len: u64) -> std::ops::RangeInclusive<u64> {
    start / 8..=(start + len.max(1) - 1) / 8
}

impl Ordering {
    fn place(&mut self, thread: u32) -> usize {
        let next = self.places.len();
        let place = *self.places.entry(thread).or_insert(next);
        if place == next {
            let mut clock = vec![0; next + 1];
            clock[next] = 1;
            self.clocks.push(clock);
        }
        place
    }

    /// What a thread does now.
    pub fn stamp(&mut self, thread: u32) -> Stamp {
        let place = self.place(thread);
        Stamp { thread, time: self.clocks[place][place] }
    }

    /// Had a thread seen what another one did?
    pub fn has_seen(&mut self, thread: u32, stamp: Stamp) -> bool {
        let (place, of) = (self.place(thread), self.place(stamp.thread));
        place == of || self.clocks[place].get(of).is_some_and(|time| *time >= stamp.time)
    }

    /// A thread starts another one.
    pub fn start(&mut self, thread: u32, new: u32) {
        let (place, new) = (self.place(thread), self.place(new));
        let clock = self.clocks[place].clone();
        join(&mut self.clocks[new], &clock);
        self.clocks[place][place] += 1;
    }

    /// Do threads hand on through this word what they have seen?
    pub fn is_shared(&self, word: u64) -> bool {
        self.words.contains_key(&word)
    }

    /// A thread writes a word that others look at in order to know.
    pub fn release(&mut self, thread: u32, word: u64) {
        let place = self.place(thread);
        join(self.words.entry(word).or_default(), &self.clocks[place]);
        self.clocks[place][place] += 1;
    }

    /// A thread looks at such a word.
    pub fn acquire(&mut self, thread: u32, word: u64) {
        let place = self.place(thread);
        if let Some(clock) = self.words.get(&word) {
            join(&mut self.clocks[place], clock);
        }
    }
}

/// The later of both, thread by thread.
fn join(clock: &mut Clock, other: &Clock) {
    clock.resize(clock.len().max(other.len()), 0);
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_thread_has_seen_what_went_before_and_no_more() {
        let mut order = Ordering::default();
        let before = order.stamp(1);
        order.start(1, 2);
        let after = order.stamp(1);
        assert!(order.has_seen(2, before));
        assert!(!order.has_seen(2, after));
    }

    #[test]
    fn a_word_hands_on_what_was_done_before_it_was_written() {
        let mut order = Ordering::default();
        order.start(1, 2);
        let (before, lock) = (order.stamp(2), 7);
        order.release(2, lock);
        let after = order.stamp(2);
        assert!(!order.has_seen(1, before), "not looked at yet");
        order.acquire(1, lock);
        assert!(order.has_seen(1, before));
        assert!(!order.has_seen(1, after));
        assert!(order.is_shared(lock) && !order.is_shared(8));
    }

    #[test]
    fn what_is_handed_on_twice_arrives() {
        let mut order = Ordering::default();
        let first = order.stamp(1);
        order.release(1, 7);
        order.acquire(2, 7);
        order.release(2, 8);
        order.acquire(3, 8);
        assert!(order.has_seen(3, first));
    }
}
