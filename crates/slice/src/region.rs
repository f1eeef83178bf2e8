//! Which part of a slice is told?

use crate::Part;
use crate::follow::{Telling, Visitor};
use crate::options::FIRST;
use crate::wanted::Distance;
use trace::{Instance, InstructionId, PathId, Time, Trace};

/// What of a slice is told: the walk goes on through the rest, which may lead back into it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Nothing before this.
    pub from: Instance,
    /// Nothing behind this.
    pub to: Instance,
    /// Only what this thread did.
    pub thread: Option<u32>,
}

/// Behind all that a run can have.
const LAST: Instance = Instance { time: Time(u32::MAX), index: u16::MAX };

impl Default for Region {
    fn default() -> Self {
        Region { from: FIRST, to: LAST, thread: None }
    }
}

impl Region {
    fn has(&self, trace: &Trace, at: Instance) -> bool {
        let of_thread = self.thread.is_none_or(|thread| thread == trace.thread(at.time));
        (self.from..=self.to).contains(&at) && of_thread
    }
}

/// Passes on what lies in a region.
pub(crate) struct Within<'a, V> {
    pub inner: V,
    pub region: Region,
    pub trace: &'a Trace,
}

impl<V: Visitor> Visitor for Within<'_, V> {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        if self.region.has(self.trace, at) {
            self.inner.instance(at, instruction, distance);
        }
    }

    const TALLIES: bool = V::TALLIES;
    const LATEST: u32 = V::LATEST;

    #[inline]
    fn telling(&self, path: PathId) -> Telling {
        self.inner.telling(path)
    }

    fn record(&mut self, time: Time, instances: u64, nearest: Distance) {
        self.inner.record(time, instances, nearest);
    }

    fn tally(&mut self, instruction: InstructionId, part: Part) {
        self.inner.tally(instruction, part);
    }

    fn copy(&self) -> Option<Self> {
        Some(Within { inner: self.inner.copy()?, ..*self })
    }

    fn potential(&mut self, at: Instance, instruction: InstructionId) {
        if self.region.has(self.trace, at) {
            self.inner.potential(at, instruction);
        }
    }

    fn cut_short(&mut self) {
        self.inner.cut_short();
    }
}
