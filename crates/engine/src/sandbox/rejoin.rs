//! Does a run that left its log come back to it?
//!
//! The rehearsal notes, at system calls, a hash of everything that the rest of the run
//! can depend on: registers, memory, and what is outside. A trial that comes to one of
//! these states goes on as the recorded run did, and need not be followed any further.
//! What lies below the stack pointer, and clocks, are no part of a state: nothing that
//! runs on by the log looks at what was there.

use super::world::World;
use super::{Sandbox, Stopped};
use crate::hash;
use crate::replay::Replayer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hasher;

/// States of the recorded run that a trial may come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meetings {
    /// By what is cheap to compare: hashes of states, and instructions executed.
    states: BTreeMap<u32, Vec<(u64, u64)>>,
    /// Only keys that this divides are kept.
    stride: u32,
    kept: usize,
    /// Are more of them wanted?
    collecting: bool,
}

/// No more than these are kept.
const MOST: usize = 512;
/// A hash costs as much as so many instructions.
const WORTH: u64 = 1_000_000;
/// Bytes below the stack pointer that functions may use.
const RED_ZONE: u64 = 128;

impl Meetings {
    /// Some are wanted.
    pub fn collecting() -> Meetings {
        Meetings { stride: 1, collecting: true, ..Meetings::default() }
    }

    /// The run is over.
    pub fn finish(&mut self, total: u64) {
        self.collecting = false;
        for states in self.states.values_mut() {
            states.retain(|(_, number)| number + WORTH < total);
        }
        self.states.retain(|_, states| !states.is_empty());
    }

    fn wants(&self, key: u32) -> bool {
        self.collecting && key.is_multiple_of(self.stride)
    }

    fn add(&mut self, key: u32, state: u64, number: u64) {
        self.states.entry(key).or_default().push((state, number));
        self.kept += 1;
        if self.kept > MOST {
            // Which ones stay does not depend on where a run came from.
            self.stride = self.stride.saturating_mul(2);
            let stride = self.stride;
            self.states.retain(|key, _| key.is_multiple_of(stride));
            self.kept = self.states.values().map(Vec::len).sum();
        }
    }
}

impl Replayer {
    /// The recorded run asks the kernel for something.
    pub(crate) fn note_state(&mut self) {
        let Some(mut world) = self.world.take() else { return };
        let key = self.key(&world);
        if world.facts.meetings.wants(key)
            && let Some(state) = self.state(&world)
        {
            let number = self.instructions();
            world.facts.meetings.add(key, state, number);
        }
        self.world = Some(world);
    }

    fn key(&self, world: &World) -> u32 {
        let written = world.outputs.iter().map(Vec::len).sum::<usize>() as u32;
        hash::registers(&self.context().regs) ^ written.wrapping_mul(0x9e37_79b9)
    }

    /// A hash of all that the rest of the run can depend on; `None` if that cannot be
    /// told.
    fn state(&self, world: &World) -> Option<u64> {
        let process = &self.process;
        let timed = !process.timers.interval.is_empty() || !process.timers.created.is_empty();
        if self.tasks.len() != 1 || timed {
            return None;
        }
        let regs = &self.context().regs;
        let mut hasher = Text(std::hash::DefaultHasher::new());
        for word in regs.gpr.iter().chain([&regs.rip, &regs.fs, &regs.gs]) {
            hasher.0.write_u64(*word);
        }
        hasher.0.write_u64(regs.rflags & !process.machine.dead_flags());
        hasher.0.write(&regs.vectors.0);
        let task = self.tasks.values().next()?;
        let (clear, robust) = (task.clear_tid, task.robust_list);
        let kept = (task.mask, task.saved_mask, task.altstack, clear, robust, task.interrupted);
        let actions = (1..=64).map(|n| process.actions.get(n)).collect::<Vec<_>>();
        let mut limits: Vec<_> = process.limits.iter().collect();
        limits.sort_unstable();
        write!(hasher, "{kept:?}{actions:?}{limits:?}{:?}", process.ids).ok()?;
        let memory = &process.machine.memory;
        hasher.0.write_u64(memory.brk);
        for (start, region) in memory.regions() {
            if region.shared && region.prot & libc::PROT_WRITE != 0 {
                return None;
            }
            write!(hasher, "{start} {region:?}").ok()?;
        }
        hasher.0.write_u64(hash::live_memory(memory, regs.gpr[4].wrapping_sub(RED_ZONE))?);
        world.write_state(&mut hasher)?;
        Some(hasher.0.finish())
    }
}

/// Text that is hashed.
struct Text(std::hash::DefaultHasher);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Sandbox {
    /// Ends the run if it comes back to the recorded one.
    pub fn end_where_it_rejoins(&mut self) {
        self.rejoins = Some(0);
    }

    /// Has the run, which asks the kernel for something, come back?
    pub(super) fn has_rejoined(&mut self) -> Option<Stopped> {
        let looked = self.rejoins?;
        let key = self.replayer.key(&self.world);
        let known = self.world.facts.meetings.states.get(&key)?;
        // A state that differs will do so for a while.
        self.rejoins = Some(looked + 1);
        if !(looked + 1).is_power_of_two() || !self.signals.is_quiet() {
            return None;
        }
        let state = self.replayer.state(&self.world)?;
        known.iter().any(|(then, _)| *then == state).then_some(Stopped::Rejoined)
    }
}
