//! The loop that each thread of a recorded process runs.

use super::chaos::{self, Chaos};
use super::engine_calls::After;
use super::session::{CALL_COST, QUANTUM, Runner};
use crate::cpu::emulate::{self, Outcome as Emulated, Unknown};
use crate::guest::machine::{Fault, Stop};
use crate::kernel::process::Asked;
use crate::signal::host;
use crate::{Error, Refusal, hash};
use recording::event::When;

impl Runner {
    /// Runs the guest thread to its end. The caller has acquired the turn.
    pub fn run(&mut self) {
        self.resume();
        let (mut left, mut called) = (QUANTUM, false);
        loop {
            let drawn = self.session().drawn_quantum(called);
            let quantum = drawn.unwrap_or(left);
            self.context().slack = if drawn.is_none() { quantum / 8 } else { 0 };
            let switches = self.session().counters.switches;
            self.context().count = quantum;
            self.task.count_loaded = quantum;
            let stop = self.session().process.machine.run();
            self.account();
            called =
                matches!(stop, Stop::Syscall) && chaos::is_felt(Asked::of(self.context()).number);
            match &stop {
                Stop::Syscall => {
                    if self.call() == After::ThreadEnded {
                        return;
                    }
                }
                Stop::Safepoint => self.safepoint(),
                Stop::Emulate => self.emulate(),
                Stop::Fault(fault) => self.fault(*fault),
                Stop::Budget | Stop::Block | Stop::Watch => {
                    unreachable!("the plain profile never stops")
                }
            }
            left = match stop {
                Stop::Safepoint => QUANTUM,
                _ if self.session().counters.switches != switches => QUANTUM,
                Stop::Syscall => (self.task.count_loaded - CALL_COST).max(1),
                _ => self.task.count_loaded.max(1),
            };
        }
    }

    fn account(&mut self) {
        let left = self.context().count;
        self.task.safepoints += (self.task.count_loaded - left) as u64;
        self.task.count_loaded = left;
    }

    /// Takes up the context page after the turn was acquired.
    pub(super) fn resume(&mut self) {
        self.end_if_unwanted();
        let session = self.session();
        let me = self.task.thread;
        if session.current != me {
            let (when, state) = session.stopped;
            session.encoder.switch(when, me.0, state);
            session.log();
            session.counters.switches += 1;
            session.current = me;
        }
        session.close_commons(match self.in_call {
            true => When::Here,
            false => When::Safepoint(self.task.safepoints),
        });
        self.context().regs.clone_from(&self.task.regs);
        crate::kernel::calls::set_gs(self.task.regs.gs);
    }

    /// Leaves the context page and hands the turn on.
    pub(super) fn pause(&mut self, when: When) {
        let context = self.context();
        context.regs.gs = crate::kernel::calls::gs();
        self.task.regs.clone_from(&Box::new(context.regs.clone()));
        let session = self.session();
        self.in_call = when == When::Here;
        session.stopped = (when, hash::registers(&context.regs));
        session.open_commons();
        match &mut session.chaos {
            None => self.shared.turn.release(),
            Some(chaos) => {
                if self.in_call {
                    chaos.wait();
                }
                self.shared.turn.release_to(|waiting| chaos.pick(waiting));
            }
        }
    }

    fn safepoint(&mut self) {
        let when = When::Safepoint(self.task.safepoints);
        if host::is_pending() {
            self.signals(when);
        }
        if let Some(chaos) = &self.session().chaos {
            self.shared.turn.pass(chaos.last());
        }
        if self.shared.turn.is_wanted() || self.session().is_baton_wanted() {
            let held_back = self.session().chaos.as_mut().map_or(0, Chaos::hold_back);
            self.pause(When::Safepoint(self.task.safepoints));
            self.shared.turn.acquire_after(held_back);
            self.resume();
        }
    }

    fn emulate(&mut self) {
        let session = self.session();
        let context = self.context();
        let state = hash::registers(&context.regs);
        let mut failed = None;
        let mut unknown = |kind| {
            let value = match kind {
                // SAFETY: reading the counter.
                Unknown::Tsc => unsafe { std::arch::x86_64::_rdtsc() },
                Unknown::Random => {
                    u64::from_le_bytes(crate::sys::random()[..8].try_into().expect("eight bytes"))
                }
            };
            session.encoder.value(value, state);
            if let Some(writer) = &mut session.writer {
                failed = writer.append(session.encoder.bytes()).err();
            }
            value
        };
        let memory = &session.process.machine.memory;
        let outcome = emulate::emulate(&mut context.regs, memory, &mut unknown);
        if let Some(error) = failed {
            self.session().give_up(&error.into());
        }
        match outcome {
            Emulated::Done => {}
            Emulated::Raises(signal, code, address) => {
                self.fault(Fault { signal, code, address, trap: 13, error: 0 });
            }
            Emulated::Unsupported(text) => {
                let refusal = Refusal::Instruction { text, at: context.regs.rip };
                self.session().give_up(&Error::Refused(refusal));
            }
        }
        // No signal is delivered here: most of these instructions leave no event
        // behind that could tell a replay where it came.
    }
}
