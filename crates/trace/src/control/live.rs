//! The activations of a thread that are not over, innermost last.

use super::open::{Open, Stack};
use super::shape::FunctionId;
use super::{FrameId, Instance};

/// An activation that is not over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Live {
    pub frame: FrameId,
    /// Calls between it and its thread's beginning.
    pub depth: u32,
    /// First of its open branches.
    pub base: usize,
    /// Where its return address lies.
    pub slot: u64,
    pub function: FunctionId,
    /// The one that was called, and the one before the last jump to another.
    pub earlier: [FunctionId; 2],
    pub handler: bool,
}

/// A thread, between two of its records.
#[derive(Clone, Default)]
pub(super) struct Thread {
    pub open: Stack,
    live: Vec<Live>,
    /// There never were fewer since the last time they were kept: what lies below them is as it
    /// was, but for the innermost.
    fewest: usize,
    /// The last record ended in a jump that may leave the function.
    pub jumped: Option<Instance>,
}

impl Thread {
    /// All of them.
    pub fn live(&self) -> &[Live] {
        &self.live
    }

    #[inline]
    pub fn top(&mut self) -> Option<&mut Live> {
        self.live.last_mut()
    }

    #[inline]
    pub fn push(&mut self, live: Live) {
        self.live.push(live);
    }

    /// The innermost is over, and what it had open.
    #[inline]
    pub fn pop(&mut self) {
        if let Some(top) = self.live.pop() {
            self.open.truncate(top.base);
            self.fewest = self.fewest.min(self.live.len());
        }
    }

    /// All are over but so many, and what they had open.
    pub fn truncate(&mut self, len: usize) {
        if let Some(above) = self.live.get(len) {
            self.open.truncate(above.base);
            self.live.truncate(len);
            self.fewest = self.fewest.min(len);
        }
    }

    /// Is this the same, as far as a pass is concerned?
    pub fn is_like(&self, other: &Thread) -> bool {
        let open = self.open.from(0) == other.open.from(0);
        open && self.live == other.live && self.jumped == other.jumped
    }

    /// What has changed since the last time.
    pub fn keep(&mut self, segment: usize) -> Kept {
        let from = self.fewest.saturating_sub(1).min(self.live.len());
        self.fewest = self.live.len();
        let live = self.live[from..].to_vec();
        let first = live.first().map_or(self.open.len(), |live| live.base);
        let open = self.open.from(first).to_vec();
        Kept { segment, from, live, first, open, jumped: self.jumped }
    }

    /// As it was before a segment, given all that was kept.
    pub fn of(kept: &[Kept], segment: usize) -> Thread {
        let known = kept.partition_point(|kept| kept.segment <= segment);
        let Some(last) = kept[..known].last() else { return Thread::default() };
        // Of each only what lies below all later ones is as it was.
        let mut pieces = Vec::new();
        let (mut from, mut first) = (usize::MAX, usize::MAX);
        for kept in kept[..known].iter().rev() {
            if kept.from < from {
                let live = &kept.live[..kept.live.len().min(from - kept.from)];
                let open = &kept.open[..kept.open.len().min(first - kept.first)];
                pieces.push((live, open));
                (from, first) = (kept.from, kept.first);
            }
            if from == 0 {
                break;
            }
        }
        let mut thread = Thread { jumped: last.jumped, ..Thread::default() };
        for (live, open) in pieces.iter().rev() {
            thread.live.extend_from_slice(live);
            thread.open.extend(open);
        }
        thread
    }
}

/// What had changed of a thread before a segment.
pub(super) struct Kept {
    segment: usize,
    /// So many activations were as before.
    from: usize,
    live: Vec<Live>,
    /// So many branches were as before.
    first: usize,
    open: Vec<Open>,
    jumped: Option<Instance>,
}

impl Kept {
    /// Bytes in memory.
    pub fn size(&self) -> usize {
        size_of::<Kept>() + size_of_val(&self.live[..]) + size_of_val(&self.open[..])
    }
}
