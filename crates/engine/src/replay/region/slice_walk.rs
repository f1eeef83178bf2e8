//! Going along a slice: from one of its instructions to the next.

use super::delta::Delta;
use super::entry::damaged;
use super::slice_cut::Gaps;
use crate::Error;
use crate::code::Profile;
use crate::code::stops::{Stops, Watch};
use crate::context::Registers;
use crate::guest::machine::Stop;
use crate::guest::memory::{Backing, Region, host_map, host_prot};
use crate::guest::task::{Task, Thread};
use crate::hash;
use crate::kernel::calls::{gs, set_gs};
use crate::replay::{Forked, Goal, Instant, Replayer, Report, SILENT, Stopped, To, Trail};
use recording::event::{Effect, Event};
use recording::{Ending, Recording};
use std::collections::BTreeMap;
use std::ops::Range;

/// A replay of a slice. Its instants are the numbers that instructions have in the run.
pub struct SliceWalk {
    replayer: Replayer,
    number: u64,
    /// Instructions of the present stretch that are still to be executed.
    left: u64,
    /// Those of them that are not in the slice, latest first.
    between: Vec<Range<u64>>,
    /// The same, as long as nobody asked.
    gaps: Vec<u8>,
    /// Hash of the registers behind it.
    state: u32,
    ended: bool,
    stops: Stops,
    /// Where each thread was last.
    trails: BTreeMap<Thread, u64>,
}

/// More than any stretch takes.
const NO_LIMIT: i64 = crate::context::NO_LIMIT;

impl SliceWalk {
    /// At the first instruction of a slice.
    pub fn new(recording: &Recording) -> Result<SliceWalk, Error> {
        let replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
        let mut walk = SliceWalk {
            replayer,
            number: 0,
            left: 0,
            between: Vec::new(),
            gaps: Vec::new(),
            state: 0,
            ended: false,
            stops: Stops::default(),
            trails: BTreeMap::new(),
        };
        walk.next_stretch()?;
        Ok(walk)
    }

    /// To the end of the slice.
    pub fn run(&mut self) -> Result<(), Error> {
        while !self.ended {
            self.execute(self.left)?;
            self.next_stretch()?;
        }
        Ok(())
    }

    /// Where it stands.
    pub fn now(&self) -> Instant {
        Instant { instructions: self.number, happened: 0 }
    }

    /// To look at it.
    pub fn replayer(&self) -> &Replayer {
        &self.replayer
    }

    /// Makes a copy of it in a child process.
    pub fn fork(&mut self) -> Result<Forked, Error> {
        self.replayer.fork()
    }

    /// Sets breakpoints and watched memory.
    pub fn set_stops(&mut self, stops: &Stops) {
        self.stops = stops.clone();
    }

    /// What a thread executed last.
    pub fn trail(&self, thread: Thread) -> Option<Trail> {
        let at = Instant { instructions: *self.trails.get(&thread)?, happened: 0 };
        Some(Trail { first: at, last: at })
    }

    /// Moves forward, from one instruction of the slice to the next.
    pub fn advance(&mut self, goal: &Goal) -> Result<Report, Error> {
        let pauses_at = self.number.saturating_add(goal.most);
        let mut looks = goal.here;
        loop {
            let (before, thread) = (self.now(), self.replayer.current);
            let report = |stopped| Ok(Report { stopped, before, thread });
            let there = match goal.to {
                To::End => false,
                To::Instant(instant) => before >= instant,
                To::Number(number) => self.number >= number,
            };
            if there {
                return report(Stopped::There);
            }
            if looks && self.stops.breaks_at(self.replayer.registers().rip) {
                return report(Stopped::Break);
            }
            if self.number >= pauses_at {
                return report(Stopped::Paused);
            }
            looks = true;
            let watched = self.watched();
            self.step()?;
            if self.ended {
                return report(Stopped::Ended(Ending::Cut));
            }
            let changed = watched.iter().zip(self.watched()).find(|(old, new)| *old != new);
            if let Some(((watch, _), _)) = changed {
                return report(Stopped::Watched(*watch));
            }
            let pc = self.replayer.registers().rip;
            let made = |(of, range): &(Thread, Range<u64>)| {
                *of == thread && (self.replayer.current != *of || !range.contains(&pc))
            };
            if goal.step.as_ref().is_some_and(made) {
                return report(Stopped::Stepped);
            }
        }
    }

    fn watched(&self) -> Vec<(Watch, Vec<u8>)> {
        let all = self.stops.watches.iter();
        all.map(|w| (*w, self.replayer.peek(w.address, w.len as usize))).collect()
    }

    /// To the next instruction of the slice.
    fn step(&mut self) -> Result<(), Error> {
        self.trails.insert(self.replayer.current, self.number);
        self.look_between()?;
        self.execute(self.left.min(1))?;
        if let Some(between) = self.between.pop_if(|range| range.start == self.number) {
            self.execute(between.end - between.start)?;
        }
        if self.left == 0 {
            return self.next_stretch();
        }
        Ok(())
    }

    /// Executes so many instructions of the present stretch.
    fn execute(&mut self, count: u64) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let r = &mut self.replayer;
        let context = r.context();
        context.count = NO_LIMIT;
        let stop = if count == 1 {
            context.budget = 0;
            r.process.machine.run_prefix(context.regs.rip, 1)
        } else {
            context.budget = count as i64;
            r.process.machine.run()
        };
        self.left -= count;
        self.number += count;
        let done = matches!(stop, Stop::Budget | Stop::Block);
        if !done || self.left == 0 && hash::registers(r.registers()) != self.state {
            return Err(r.diverged(format!("registers differ at {:#x}", r.registers().rip)));
        }
        Ok(())
    }

    /// To the first instruction of the next stretch: what was left out is put in.
    fn next_stretch(&mut self) -> Result<(), Error> {
        let bytes = self.replayer.log.take();
        let applied = match Event::decode(&bytes) {
            Ok(Event::Stretch { thread, number, count, state, registers, effects }) => {
                (self.number, self.left, self.state) = (number, count, state);
                self.between.clear();
                self.gaps.clear();
                self.replayer.put_in(Thread(thread), registers)
                    && effects.iter().all(|effect| effect.is_ok_and(|e| self.apply(&e)))
            }
            Ok(Event::Cut { .. }) => {
                self.ended = true;
                true
            }
            _ => false,
        };
        if !applied {
            return Err(damaged());
        }
        match self.ended {
            true => Ok(()),
            false => self.replayer.log.done(bytes),
        }
    }

    /// Something that was left out, or is executed besides. False if it does not fit.
    fn apply(&mut self, effect: &Effect) -> bool {
        match *effect {
            Effect::Write { address, data } => self.replayer.put(address, data),
            Effect::Mapped { address, len, protection, fresh } => {
                self.replayer.put_map(address, len, protection, fresh)
            }
            Effect::Between { gaps } => {
                self.gaps.extend_from_slice(gaps);
                true
            }
            _ => false,
        }
    }

    /// At the beginning of a stretch: finds out which instructions are not to be seen.
    fn look_between(&mut self) -> Result<(), Error> {
        if self.gaps.is_empty() {
            return Ok(());
        }
        let gaps: Gaps = postcard::from_bytes(&self.gaps).map_err(|_| damaged())?;
        self.gaps.clear();
        // No sum is beyond this one.
        self.number.checked_add(self.left).ok_or_else(damaged)?;
        let (mut left, mut behind) = (self.left, self.number);
        for (after, count) in gaps {
            let passed = after.checked_add(count).filter(|_| after > 0 && count > 0);
            let rest = passed.and_then(|passed| left.checked_sub(passed));
            left = rest.ok_or_else(damaged)?;
            self.between.push(behind + after..behind + after + count);
            behind += after + count;
        }
        self.between.reverse();
        Ok(())
    }
}

impl Replayer {
    /// Lets a thread go on with registers that differ from those it had.
    fn put_in(&mut self, thread: Thread, delta: &[u8]) -> bool {
        let Ok(delta) = postcard::from_bytes::<Delta>(delta) else { return false };
        let context = self.context();
        if thread != self.current {
            context.regs.gs = gs();
            if let Some(task) = self.tasks.get_mut(&self.current) {
                (*task.regs).clone_from(&context.regs);
            }
            let pid = self.pid;
            let new = || Task::new(thread, pid, Registers::default());
            context.regs.clone_from(&self.tasks.entry(thread).or_insert_with(new).regs);
            set_gs(context.regs.gs);
            self.current = thread;
        }
        let gs_before = context.regs.gs;
        let applied = delta.apply(&mut context.regs);
        if context.regs.gs != gs_before {
            set_gs(context.regs.gs);
        }
        applied
    }

    /// Puts bytes into memory, whatever the guest may do there.
    fn put(&mut self, address: u64, data: &[u8]) -> bool {
        let memory = &self.process.machine.memory;
        if memory.write(address, data) {
            return true;
        }
        let Some((start, region)) = memory.region(address) else { return false };
        if address.checked_add(data.len() as u64).is_none_or(|end| end > region.end) {
            return false;
        }
        let (len, prot) = ((region.end - start) as usize, host_prot(region.prot));
        let open = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a region of the guest's, which holds all of the bytes; no guest code
        // runs meanwhile.
        let copied = unsafe {
            libc::mprotect(start as *mut _, len, open);
            let copied =
                crate::signal::careful::copy(address as *mut u8, data.as_ptr(), data.len());
            libc::mprotect(start as *mut _, len, prot);
            copied
        };
        self.process.machine.cache.invalidate(address, address + data.len() as u64);
        copied
    }

    /// Maps memory as it was then.
    fn put_map(&mut self, address: u64, len: u64, protection: Option<u32>, fresh: bool) -> bool {
        use crate::guest::memory::Memory;
        if len == 0 || !Memory::is_allowed(address, len) {
            return false;
        }
        let machine = &mut self.process.machine;
        machine.cache.invalidate(address, address + len);
        let end = address + len;
        let Some(prot) = protection.map(|prot| prot as i32) else {
            machine.memory.unmap(address, end);
            return true;
        };
        if !fresh {
            // SAFETY: maps of the guest's.
            unsafe { libc::mprotect(address as *mut _, len as usize, host_prot(prot)) };
            return machine.memory.protect(address, end, prot);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if host_map(address, len, host_prot(prot), flags, -1, 0).is_err() {
            return false;
        }
        let backing = Backing::Anonymous;
        machine.memory.insert(address, Region { end, prot, shared: false, file: None, backing });
        true
    }
}
