//! Registers that functions save and bring back, on their way from restore to save.

use trace::{FrameId, Instance};

/// A callee-saved register that was restored, until its save is met.
#[derive(Clone)]
pub struct Restore<M> {
    pub slot: u64,
    pub frame: FrameId,
    pub register: u8,
    /// Its wanted bytes, and the marks of all.
    pub part: u32,
    pub marks: [M; 8],
    pub at: Instance,
}

/// All of those, found by their slots. There are few, and the latest is met first.
#[derive(Clone)]
pub struct Restores<M> {
    list: Vec<Restore<M>>,
    filter: Box<[u8; 4096]>,
}

impl<M> Default for Restores<M> {
    fn default() -> Self {
        Restores { list: Vec::new(), filter: Box::new([0; 4096]) }
    }
}

impl<M> Restores<M> {
    /// Is none on its way?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn bucket(slot: u64) -> usize {
        (slot >> 3) as usize % 4096
    }

    /// Adds one, unless its slot is taken.
    pub fn add(&mut self, restore: Restore<M>) -> bool {
        // Slots are seldom taken, and the filter mostly knows that they are not.
        let taken = self.may_have(restore.slot, 8)
            && self.list.iter().any(|r| r.slot.abs_diff(restore.slot) < 8);
        let count = &mut self.filter[Self::bucket(restore.slot)];
        let new = *count < u8::MAX && !taken;
        if new {
            *count += 1;
            self.list.push(restore);
        }
        new
    }

    /// May a write reach one of the slots? Never wrong when it says no.
    #[inline]
    pub fn may_have(&self, start: u64, len: u64) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let end = start.wrapping_add(len);
        if len > 64 {
            return self.list.iter().any(|r| r.slot < end && start < r.slot + 8);
        }
        let (first, last) = (start >> 3, (end.wrapping_sub(1)) >> 3);
        (first.wrapping_sub(1)..=last).any(|w| self.filter[w as usize % 4096] != 0)
    }

    /// Takes out the latest, if it is this one.
    #[inline]
    pub fn take_latest(&mut self, is_it: impl Fn(&Restore<M>) -> bool) -> Option<Restore<M>> {
        let restore = self.list.pop_if(|latest| is_it(latest))?;
        self.filter[Self::bucket(restore.slot)] -= 1;
        Some(restore)
    }

    /// Takes out one that a write reaches.
    pub fn take(&mut self, start: u64, len: u64) -> Option<Restore<M>> {
        let end = start.saturating_add(len);
        let n = self.list.iter().rposition(|r| r.slot < end && start < r.slot + 8)?;
        let restore = self.list.remove(n);
        self.filter[Self::bucket(restore.slot)] -= 1;
        Some(restore)
    }
}
