//! Memory that several recorded processes have mapped shared: the *commons*.
//!
//! Processes that have commons run one at a time: who runs guest code holds the *baton*.
//! It is handed on where the turn is, around calls that wait and at safepoints. Whoever
//! gets it compares the commons with what they were when it gave the baton away; what
//! others changed goes into its log. So each process replays alone.

use super::session::Session;
use crate::layout::PAGE;
use recording::event::{Effect, When};
use std::collections::BTreeMap;

/// The commons of a process.
#[derive(Default)]
pub struct Commons {
    /// What they held when the baton was given away, by address.
    then: BTreeMap<u64, Vec<u8>>,
}

impl Session {
    /// Are there commons, or could there be some soon: is anything mapped shared that
    /// another process may have too?
    fn maps_shared(&self) -> bool {
        self.common_ranges().next().is_some()
    }

    fn common_ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let regions = self.process.machine.memory.regions();
        regions
            .filter(|(_, region)| {
                let readable = region.prot != libc::PROT_NONE;
                let file = region.file.is_none_or(|file| self.live.contains(&file));
                region.shared && readable && file
            })
            .map(|(start, region)| (start, region.end))
    }

    /// A process is about to be made, which will have what is mapped shared now.
    pub(super) fn prepare_commons(&mut self) {
        if self.commons.is_none() && self.maps_shared() {
            self.have_commons();
        }
        self.look_at_commons();
    }

    /// Something will be mapped that other processes may have mapped, too.
    pub(super) fn join_commons(&mut self) {
        if self.commons.is_none() && self.tree.has_branched() {
            self.have_commons();
        }
    }

    fn have_commons(&mut self) {
        self.tree.take_baton();
        self.commons = Some(Commons::default());
    }

    /// This process has nothing in common with others any more.
    pub(super) fn leave_commons(&mut self) {
        if self.commons.take().is_some() {
            self.tree.give_baton();
        }
    }

    /// Does another process wait for its turn with the commons?
    pub(super) fn is_baton_wanted(&self) -> bool {
        self.commons.is_some() && self.tree.is_wanted()
    }

    /// Others may change the commons from now on.
    pub(super) fn open_commons(&mut self) {
        if self.commons.is_some() {
            self.look_at_commons();
            self.tree.give_baton();
        }
    }

    /// Notes what is in the commons.
    fn look_at_commons(&mut self) {
        if self.commons.is_none() {
            return;
        }
        let ranges: Vec<(u64, u64)> = self.common_ranges().collect();
        let memory = &self.process.machine.memory;
        let held =
            ranges.into_iter().flat_map(|(start, end)| pages(start, end)).filter_map(|page| {
                // A map may go on beyond its file.
                Some((page, memory.read(page, PAGE as usize)?))
            });
        let then = held.collect();
        if let Some(commons) = &mut self.commons {
            commons.then = then;
        }
    }

    /// Takes the commons back, and logs what others changed.
    pub(super) fn close_commons(&mut self, when: When) {
        if self.commons.is_none() || !self.tree.take_baton() {
            return;
        }
        let then = std::mem::take(&mut self.commons.as_mut().expect("just seen").then);
        let mut changes: Vec<(u64, Vec<u8>)> = Vec::new();
        let memory = &self.process.machine.memory;
        for (page, old) in then {
            let Some(now) = memory.read(page, PAGE as usize).filter(|now| *now != old) else {
                continue;
            };
            let runs = super::lending::runs(&old, &now);
            changes.extend(runs.map(|run| (page + run.start as u64, now[run].to_vec())));
        }
        if changes.is_empty() {
            return;
        }
        for (address, data) in &changes {
            self.process.machine.cache.invalidate(*address, address + data.len() as u64);
        }
        self.encoder.shared(when);
        for (address, data) in &changes {
            self.encoder.effect(&Effect::Write { address: *address, data });
        }
        self.log();
    }
}

fn pages(start: u64, end: u64) -> impl Iterator<Item = u64> {
    (start..end).step_by(PAGE as usize)
}
