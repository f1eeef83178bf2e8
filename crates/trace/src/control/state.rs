//! What a pass over the records carries along, and how it is kept for later.

use super::live::{Kept, Thread};
use super::{Instance, NOBODY};
use std::collections::HashMap;

/// All that a pass knows between two records.
pub(super) struct State {
    /// Threads whose turn it is not.
    threads: HashMap<u32, Thread>,
    current: u32,
    pub thread: Thread,
    /// Those that had a turn since the last time it was kept, and have it no more.
    ran: Vec<u32>,
    pub spawned: Spawned,
    /// The signal that a thread asked for last, and where.
    pub sent: Option<(i32, Instance)>,
    /// Number of the next activation.
    pub next_frame: u32,
}

impl Default for State {
    /// Nothing has run.
    fn default() -> State {
        State {
            threads: HashMap::new(),
            current: NOBODY,
            thread: Thread::default(),
            ran: Vec::new(),
            spawned: Spawned::default(),
            sent: None,
            next_frame: 0,
        }
    }
}

impl State {
    /// Another thread's records come.
    pub fn switch(&mut self, to: u32) {
        let next = self.threads.remove(&to).unwrap_or_default();
        let before = std::mem::replace(&mut self.thread, next);
        self.threads.insert(self.current, before);
        self.ran.push(self.current);
        self.current = to;
    }

    /// Is this the same, as far as a pass is concerned?
    pub fn is_like(&self, other: &State) -> bool {
        let of = |state: &State| {
            let State { current, sent, next_frame, .. } = *state;
            (current, sent, next_frame, state.spawned.all.len())
        };
        // A thread that has not had a turn is as good as none.
        let none = Thread::default();
        let ids = || self.threads.keys().chain(other.threads.keys());
        let like = |id: &u32| {
            let of = |state: &State| state.threads.get(id).unwrap_or(&none).clone();
            of(self).is_like(&of(other))
        };
        of(self) == of(other) && self.thread.is_like(&other.thread) && ids().all(like)
    }

    /// The call that started the thread whose turn it is.
    pub fn spawned_by(&self) -> Option<Instance> {
        self.spawned.by.get(&self.current).copied()
    }
}

/// The call that started each thread.
#[derive(Clone, Default)]
pub(super) struct Spawned {
    by: HashMap<u32, Instance>,
    /// In order: a number may be given again.
    all: Vec<(u32, Instance)>,
}

impl Spawned {
    pub fn insert(&mut self, thread: u32, call: Instance) {
        self.by.insert(thread, call);
        self.all.push((thread, call));
    }

    fn first(&self, n: usize) -> Spawned {
        let all = self.all[..n].to_vec();
        Spawned { by: all.iter().copied().collect(), all }
    }
}

/// What was known before the records of a segment.
struct Begin {
    /// So many labels went before.
    labels: u64,
    /// Number of the next activation.
    next_frame: u32,
    current: u32,
    sent: Option<(i32, Instance)>,
    /// So many threads had been started.
    spawned: usize,
}

/// The states before all segments, and in the end. Of each thread only that is kept which
/// changed: of a deep stack, that is mostly little.
#[derive(Default)]
pub(super) struct States {
    begins: Vec<Begin>,
    threads: HashMap<u32, Vec<Kept>>,
    spawned: Spawned,
}

impl States {
    /// The next segment begins, or the last is over.
    pub fn keep(&mut self, state: &mut State, labels: u64) {
        let segment = self.begins.len();
        let State { current, sent, next_frame, .. } = *state;
        let spawned = state.spawned.all.len();
        self.begins.push(Begin { labels, next_frame, current, sent, spawned });
        let mut ran = std::mem::take(&mut state.ran);
        ran.sort_unstable();
        ran.dedup();
        for id in ran {
            if let Some(thread) = state.threads.get_mut(&id) {
                self.threads.entry(id).or_default().push(thread.keep(segment));
            }
        }
        self.threads.entry(current).or_default().push(state.thread.keep(segment));
    }

    /// There are no more segments.
    pub fn finish(&mut self, state: State) {
        self.spawned = state.spawned;
    }

    /// The one before a segment.
    pub fn before(&self, segment: usize) -> State {
        let begin = &self.begins[segment];
        let all = self.threads.iter();
        let mut threads: HashMap<u32, Thread> =
            all.map(|(id, kept)| (*id, Thread::of(kept, segment))).collect();
        let thread = threads.remove(&begin.current).unwrap_or_default();
        State {
            threads,
            current: begin.current,
            thread,
            ran: Vec::new(),
            spawned: self.spawned.first(begin.spawned),
            sent: begin.sent,
            next_frame: begin.next_frame,
        }
    }

    /// How many labels go before a segment.
    #[inline]
    pub fn labels_before(&self, segment: usize) -> u64 {
        self.begins[segment].labels
    }

    /// How many activations began before a segment.
    #[inline]
    pub fn frames_before(&self, segment: usize) -> u32 {
        self.begins[segment].next_frame
    }

    /// The segment in which an activation began.
    #[inline]
    pub fn segment_of(&self, frame: u32) -> usize {
        self.begins.partition_point(|begin| begin.next_frame <= frame) - 1
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        let kept = self.threads.values().flatten().map(Kept::size).sum::<usize>();
        kept + size_of_val(&self.begins[..])
    }
}
