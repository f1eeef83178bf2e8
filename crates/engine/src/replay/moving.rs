//! Moving under a debugger: to an exact instant, or until something is met.
//!
//! Between two instructions more may happen than nothing: a signal is delivered, a
//! thread is switched. Each such step is counted, so that every state of the run
//! has a name of its own, an [`Instant`].

use super::goal::{Goal, Instant, Report, Stopped, To, Trail};
use super::replayer::{Finish, Halt, Replayer, Until};
use super::touched::touched;
use crate::Error;
use crate::code::stops::{Stops, Watch};
use crate::context::reg;
use crate::guest::machine::{Fault, Stop};
use crate::guest::memory::Change;
use crate::guest::task::Thread;
use crate::signal::deliver::signal_of;
use iced_x86::{Decoder, DecoderOptions};
use recording::event::{Event, When};
use std::collections::{BTreeMap, BTreeSet};

/// What a moving replay remembers.
#[derive(Default)]
pub(crate) struct Moving {
    happened: u64,
    pub(super) holds_signals: bool,
    stops: Stops,
    /// Is watched memory only known here, and not to the code?
    only_counts: bool,
    trails: BTreeMap<Thread, Trail>,
    /// Paths of files that were opened, and their contents.
    pub(super) opened: BTreeMap<Vec<u8>, String>,
}

/// One move.
struct Move<'a> {
    goal: &'a Goal,
    pauses_at: u64,
    /// The instant at which nothing is stopped for.
    passed: Option<Instant>,
    before: Instant,
    thread: Thread,
}

/// Something that the log wants done before guest code may run.
pub(super) enum Due {
    Signal(i32),
    Other,
}

impl Replayer {
    /// Where the replay stands.
    pub fn now(&self) -> Instant {
        Instant { instructions: self.executed, happened: self.moving.happened }
    }

    /// Sets breakpoints and watched memory.
    pub fn set_stops(&mut self, stops: &Stops) -> Result<(), Error> {
        if self.moving.stops == *stops && !self.moving.only_counts {
            return Ok(());
        }
        self.moving.only_counts = false;
        self.moving.stops = stops.clone();
        if !stops.watches.is_empty() {
            // What the kernel changed until now is no news; what it changes next is.
            self.process.machine.memory.take_changes();
        }
        let set = self.process.machine.set_stops(stops.clone());
        set.map_err(Error::io("cannot map the table of watched memory"))
    }

    /// What the kernel does to this memory is met; what instructions do, only where they
    /// are looked at one by one.
    pub(super) fn only_counts(&mut self, watches: &BTreeSet<Watch>) {
        self.process.machine.memory.take_changes();
        self.moving.only_counts = true;
        self.moving.stops.watches.clone_from(watches);
    }

    /// What a thread executed last, in this run of the replay.
    pub fn trail(&self, thread: Thread) -> Option<Trail> {
        self.moving.trails.get(&thread).copied()
    }

    /// Moves forward (counting profiles only).
    pub fn advance(&mut self, goal: &Goal) -> Result<Report, Error> {
        self.moving.holds_signals = true;
        let now = self.now();
        let pauses_at = now.instructions.saturating_add(goal.most);
        let passed = (!goal.here).then_some(now);
        let mut m = Move { goal, pauses_at, passed, before: now, thread: self.current };
        let stopped = loop {
            match self.move_on(&mut m) {
                Ok(None) => {}
                Ok(Some(stopped)) => break stopped,
                Err(Halt::Finish(Finish::Ended(ending))) => break Stopped::Ended(ending),
                Err(Halt::Finish(_)) => break Stopped::LogEnds,
                Err(Halt::Error(error)) => return Err(error),
            }
        };
        self.moving.holds_signals = false;
        Ok(Report { stopped, before: m.before, thread: m.thread })
    }

    fn move_on(&mut self, m: &mut Move) -> Result<Option<Stopped>, Halt> {
        let now = self.now();
        (m.before, m.thread) = (now, self.current);
        let due = match m.goal.to {
            To::Instant(instant) if now.instructions > instant.instructions => {
                return Err(self.diverged("an instant that was to be reached was passed").into());
            }
            To::Instant(instant) if now >= instant => return Ok(Some(Stopped::There)),
            To::Number(n) if now.instructions >= n && self.due()?.is_none() => {
                return Ok(Some(Stopped::There));
            }
            _ => self.due()?,
        };
        if let Some(due) = due {
            return self.settle_due(m, &due);
        }
        if now.instructions >= m.pauses_at {
            return Ok(Some(Stopped::Paused));
        }
        self.run_code(m)
    }

    pub(super) fn due(&mut self) -> Result<Option<Due>, Halt> {
        if self.in_call.contains_key(&self.current) {
            return Ok(Some(Due::Other));
        }
        let safepoints = self.task().safepoints;
        Ok(match self.log.peek()? {
            None => return Err(Halt::Finish(Finish::LogEnds)),
            Some(Event::Signal { when, info, .. })
                if when == When::Here || when == When::Safepoint(safepoints) =>
            {
                let mut full = [0; 128];
                let n = info.len().min(128);
                full[..n].copy_from_slice(&info[..n]);
                Some(Due::Signal(signal_of(&full)))
            }
            Some(Event::Memory { .. }) => Some(Due::Other),
            Some(Event::Cut { when: When::Here }) => Some(Due::Other),
            Some(
                Event::Switch { when: When::Safepoint(n), .. }
                | Event::Shared { when: When::Safepoint(n), .. }
                | Event::Cut { when: When::Safepoint(n) },
            ) if n == safepoints => Some(Due::Other),
            Some(_) => None,
        })
    }

    fn settle_due(&mut self, m: &mut Move, due: &Due) -> Result<Option<Stopped>, Halt> {
        if let Due::Signal(signal) = due
            && m.goal.signals
            && Some(self.now()) != m.passed
        {
            return Ok(Some(Stopped::Signal(*signal)));
        }
        let call = self.in_call.get(&self.current).map(|(asked, _)| asked.number);
        match due {
            Due::Signal(_) => self.signals()?,
            Due::Other => {
                self.settle_events()?;
            }
        }
        self.moving.happened += 1;
        if matches!(due, Due::Signal(_)) && self.is_step_to_handler(m) {
            return Ok(Some(Stopped::Stepped));
        }
        if let Some(watch) = self.kernel_touched() {
            return Ok(Some(Stopped::Watched(watch)));
        }
        let back = call.filter(|n| m.goal.calls.has(*n) && !self.in_call.contains_key(&m.thread));
        Ok(back.map(Stopped::Returned))
    }

    /// A signal was delivered: for its thread, that is a step.
    fn is_step_to_handler(&mut self, m: &Move) -> bool {
        self.moving.trails.insert(m.thread, Trail { first: m.before, last: m.before });
        m.goal.step.as_ref().is_some_and(|(thread, _)| *thread == m.thread)
    }

    fn run_code(&mut self, m: &mut Move) -> Result<Option<Stopped>, Halt> {
        let now = self.now();
        let pc = self.registers().rip;
        let steps = m.goal.step.as_ref().is_some_and(|(thread, _)| *thread == self.current);
        let at_break = self.moving.stops.breaks_at(pc);
        let at_limit = match m.goal.to {
            // Only what raises an exception can be left to do here.
            To::Instant(instant) => instant.instructions <= now.instructions,
            _ => false,
        };
        if at_break && Some(now) != m.passed {
            return Ok(Some(Stopped::Break));
        }
        if steps || at_break || at_limit {
            let met = self.run_one(m)?;
            return Ok(met.or_else(|| self.step_ends(m, steps, now)));
        }
        let limit = match m.goal.to {
            To::End => u64::MAX,
            To::Instant(Instant { instructions, .. }) | To::Number(instructions) => instructions,
        };
        let stop = self.run_guest(Until::Instruction(limit.min(m.pauses_at)), i64::MAX / 2)?;
        match stop {
            None => Ok(None),
            Some(stop) => self.after_code(m, now, &stop),
        }
    }

    /// Has the thread made its step?
    fn step_ends(&self, m: &Move, steps: bool, then: Instant) -> Option<Stopped> {
        let (thread, range) = m.goal.step.as_ref().filter(|_| steps)?;
        let pc = self.registers().rip;
        let on =
            self.current == *thread && range.contains(&pc) && self.executed > then.instructions;
        let made = self.executed > then.instructions || self.now() != then;
        (made && (!on || self.moving.stops.breaks_at(pc))).then_some(Stopped::Stepped)
    }

    /// Executes one instruction, whatever there is to stop for.
    fn run_one(&mut self, m: &mut Move) -> Result<Option<Stopped>, Halt> {
        let now = self.now();
        let watch = self.instruction_touches();
        let count = self.safepoints_left()?;
        let context = self.context();
        context.count = count;
        context.budget = 0;
        self.budget_loaded = 1;
        let stop = self.process.machine.run_prefix(self.registers().rip, 1);
        if matches!(stop, Stop::Fault(_) | Stop::Safepoint | Stop::Emulate) {
            self.process.machine.settle_flags();
        }
        self.account(count);
        let stop = if matches!(stop, Stop::Block) { Stop::Budget } else { stop };
        let met = self.after_code(m, now, &stop)?;
        let watch = watch.filter(|_| self.executed > now.instructions);
        Ok(watch.map(Stopped::Watched).or(met))
    }

    /// The guest has come back; `then` it was entered.
    fn after_code(
        &mut self,
        m: &mut Move,
        then: Instant,
        stop: &Stop,
    ) -> Result<Option<Stopped>, Halt> {
        m.before = self.now();
        if matches!(stop, Stop::Syscall | Stop::Emulate) {
            // It is counted already, but still to be done.
            m.before.instructions -= 1;
        }
        if matches!(stop, Stop::Syscall) {
            let number = self.registers().gpr[reg::RAX];
            if m.goal.calls.has(number) && Some(m.before) != m.passed {
                self.context().regs.rip -= SYSCALL_BYTES;
                self.executed -= 1;
                self.leave_trail(m.thread, then);
                return Ok(Some(Stopped::Call(number)));
            }
        }
        self.leave_trail(m.thread, then);
        match stop {
            Stop::Budget => Ok(None),
            Stop::Block => Ok(Some(Stopped::Break)),
            Stop::Watch => self.maybe_watched(m),
            Stop::Safepoint if self.due()?.is_some() => Ok(None),
            Stop::Safepoint => self.after_stop(stop).map(|()| None),
            Stop::Syscall => self.make_call(m),
            Stop::Emulate => {
                let watch = self.instruction_touches();
                self.emulate()?;
                if self.executed == m.before.instructions {
                    // It raised a signal, which has been delivered.
                    self.moving.happened += 1;
                    return Ok(None);
                }
                Ok(watch.map(Stopped::Watched))
            }
            Stop::Fault(fault) => self.meet_fault(m, fault),
        }
    }

    fn make_call(&mut self, m: &mut Move) -> Result<Option<Stopped>, Halt> {
        let number = self.registers().gpr[reg::RAX];
        self.call()?;
        if let Some(watch) = self.kernel_touched() {
            return Ok(Some(Stopped::Watched(watch)));
        }
        let back = m.goal.calls.has(number) && !self.in_call.contains_key(&m.thread);
        Ok(back.then_some(Stopped::Returned(number)))
    }

    fn meet_fault(&mut self, m: &mut Move, fault: &Fault) -> Result<Option<Stopped>, Halt> {
        if m.goal.signals && Some(m.before) != m.passed {
            return Ok(Some(Stopped::Signal(fault.signal)));
        }
        self.fault(fault)?;
        self.moving.happened += 1;
        self.is_step_to_handler(m);
        Ok(self.kernel_touched().map(Stopped::Watched))
    }

    /// The instruction at RIP may touch watched memory: it is executed, and if it
    /// does, that is it.
    fn maybe_watched(&mut self, m: &mut Move) -> Result<Option<Stopped>, Halt> {
        let before = self.now();
        let met = self.run_one(m)?;
        if matches!(met, Some(Stopped::Watched(_))) {
            m.before = before;
        }
        Ok(met)
    }

    fn instruction_touches(&self) -> Option<Watch> {
        if self.moving.stops.watches.is_empty() {
            return None;
        }
        let regs = self.registers();
        let code = self.process.machine.memory.code(regs.rip);
        let i = Decoder::with_ip(64, code, regs.rip, DecoderOptions::NONE).decode();
        let accesses = touched(&i, regs);
        let meets = |w: &&Watch| {
            accesses.iter().any(|a| {
                w.meets(a.address, a.size.into())
                    && ((w.reads && a.reads) || (w.writes && a.writes))
            })
        };
        self.moving.stops.watches.iter().find(meets).copied()
    }

    /// Watched memory that was changed by no instruction.
    fn kernel_touched(&mut self) -> Option<Watch> {
        if self.moving.stops.watches.is_empty() {
            return None;
        }
        let changes = self.process.machine.memory.take_changes();
        let written = |w: &&Watch| {
            w.writes
                && changes.iter().any(|change| match change {
                    Change::Written(r) | Change::Mapped(r) => w.meets(r.start, r.end - r.start),
                    Change::Protected(_) => false,
                })
        };
        self.moving.stops.watches.iter().find(written).copied()
    }

    /// A thread executed what is between two instants.
    pub(crate) fn leave_trail_of(&mut self, thread: Thread, first: Instant, now: Instant) {
        if now.instructions > first.instructions {
            let last = Instant { instructions: now.instructions - 1, ..now };
            self.moving.trails.insert(thread, Trail { first, last });
        }
    }

    fn leave_trail(&mut self, thread: Thread, then: Instant) {
        let Some(last) = self.executed.checked_sub(1).filter(|n| *n >= then.instructions) else {
            return;
        };
        let happened = self.moving.happened;
        let last = Instant { instructions: last, happened };
        let trail = self.moving.trails.entry(thread).or_insert(Trail { first: then, last });
        let goes_on =
            trail.last.instructions + 1 == then.instructions && trail.last.happened == happened;
        if !goes_on {
            trail.first = then;
        }
        trail.last = last;
    }
}

/// Length of the instruction `syscall`.
pub(super) const SYSCALL_BYTES: u64 = 2;
