//! What a pass over the records tells, to whom it may concern.

use super::hops::Hop;
use super::{Frame, FrameId};

/// Hears what a pass finds, in order of time.
pub(super) trait Tell {
    /// The next record comes, which belongs to this activation.
    fn record(&mut self, now: u32, frame: FrameId);
    /// Its next label.
    fn label(&mut self, time: u32, index: u8);
    /// The next activation.
    fn frame(&mut self, frame: Frame);
    /// What a call did is passed by.
    fn hop(&mut self, hop: &Hop);
}

/// Only counts: what is found can be found again.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub labels: u64,
}

impl Tell for Count {
    #[inline]
    fn record(&mut self, _: u32, _: FrameId) {}

    #[inline]
    fn label(&mut self, _: u32, _: u8) {
        self.labels += 1;
    }

    #[inline]
    fn frame(&mut self, _: Frame) {}

    #[inline]
    fn hop(&mut self, hop: &Hop) {
        self.labels += u64::from(hop.labels);
    }
}
