//! A walk that took something for a saved register that was none must be done again from
//! where that register came back. So what it wants is kept now and then, and only the
//! last part of the way is gone again.

use crate::demands::Demands;
use crate::follow::Follow;
use crate::options::Start;
use crate::restores::Restores;
use crate::signals::Kernel;
use crate::sweep::{Sweep, Thread};
use crate::wanted::WantedMemory;
use crate::wanted_cells::WantedCells;
use std::collections::HashMap;

/// Everything that a walk carries, at an instant.
pub(crate) struct Snapshot<F: Follow> {
    /// Records before this are still to come.
    pub next: u32,
    pub kernel: Kernel,
    pub starts: Vec<Start>,
    follow: F,
    current: u32,
    thread: Thread<F::Mark>,
    others: HashMap<u32, Thread<F::Mark>>,
    memory: WantedMemory<F::Mark>,
    branches: Demands<F::Mark>,
    restores: Restores<F::Mark>,
    inherited: HashMap<u32, WantedCells<F::Mark>>,
    interrupted: HashMap<(u32, u64), WantedCells<F::Mark>>,
    ways: Option<HashMap<u32, u64>>,
}

/// So many records are met between two snapshots.
pub(crate) const OFTEN: u32 = 1 << 19;

/// So many are kept: the earliest and the latest.
const KEPT: usize = 4;

impl<F: Follow> Sweep<'_, F> {
    /// Tells what was met by rote.
    pub(crate) fn tell(&mut self) {
        if let Some(rote) = &mut self.rote {
            rote.1.tell(self.follow);
        }
    }

    /// What was met by rote since it was told is met again.
    pub(crate) fn forget(&mut self) {
        if let Some(rote) = &mut self.rote {
            rote.1.forget();
        }
    }

    /// Something found false can be mended from a snapshot.
    pub(crate) fn must_go_back(&self) -> bool {
        self.met == 0 && self.refuted_since.is_some() && !self.snapshots.is_empty()
    }

    /// Many records were met since a snapshot. Says whether the walk must go back to it.
    pub(crate) fn pause(&mut self, next: u32, kernel: &Kernel, starts: &[Start]) -> bool {
        self.met = 0;
        if self.refuted_since.is_none() {
            self.keep(next, kernel, starts);
        }
        self.refuted_since.is_some() && !self.snapshots.is_empty()
    }

    /// Keeps all that the walk carries, if what directs it can be copied.
    pub(crate) fn keep(&mut self, next: u32, kernel: &Kernel, starts: &[Start]) {
        self.tell();
        let Some(follow) = self.follow.copy() else { return };
        if self.snapshots.len() == KEPT {
            self.snapshots.remove(1);
        }
        self.snapshots.push(Snapshot {
            next,
            kernel: *kernel,
            starts: starts.to_vec(),
            follow,
            current: self.current,
            thread: self.thread.clone(),
            others: self.others.clone(),
            memory: self.memory.clone(),
            branches: self.branches.clone(),
            restores: self.restores.clone(),
            inherited: self.inherited.clone(),
            interrupted: self.interrupted.clone(),
            ways: self.potential.as_ref().map(|potential| potential.next.clone()),
        });
    }

    /// Goes back to where everything found false since then was still to come. Says whether
    /// there is such a place.
    pub(crate) fn go_back(&mut self) -> Option<Snapshot<F>> {
        let latest = self.refuted_since.take()?;
        while let Some(kept) = self.snapshots.pop() {
            if kept.next > latest.time.0 {
                return Some(kept);
            }
        }
        self.refuted_since = Some(latest);
        None
    }

    /// Carries what was kept.
    pub(crate) fn carry(&mut self, kept: Snapshot<F>) {
        self.forget();
        *self.follow = kept.follow;
        self.current = kept.current;
        self.thread = kept.thread;
        self.others = kept.others;
        self.memory = kept.memory;
        self.branches = kept.branches;
        self.restores = kept.restores;
        self.inherited = kept.inherited;
        self.interrupted = kept.interrupted;
        if let (Some(potential), Some(ways)) = (&mut self.potential, kept.ways) {
            potential.next = ways;
        }
    }
}
