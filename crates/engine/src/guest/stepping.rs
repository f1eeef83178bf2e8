//! Running exactly so many instructions, from a one-off translation.

use super::faults::{pop_return, returns};
use super::machine::{Machine, Next, Stop};
use crate::code::Stops;
use crate::code::cache::{ExitId, forget_returns, is_wrong_return};
use crate::code::tracing::Tells;
use crate::code::translate::{Request, translate};
use crate::context::{Context, context};
use crate::crossing::Reason;
use crate::signal::host;
use std::collections::BTreeSet;

impl Machine {
    /// The budget does not reach to the end of the unit at RIP: run what it
    /// reaches for.
    pub(super) fn budget(&mut self, c: &mut Context) -> Next {
        c.budget += c.arg as i64;
        if c.budget == 0 {
            return Next::Stop(Stop::Budget);
        }
        let instructions = c.budget as usize;
        c.budget = 0;
        match self.run_some(c.regs.rip, instructions, true) {
            Stop::Block => Next::Stop(Stop::Budget),
            stop => Next::Stop(stop),
        }
    }

    /// Runs exactly so many instructions of one unit, from a one-off translation.
    pub fn run_prefix(&mut self, pc: u64, instructions: usize) -> Stop {
        self.run_some(pc, instructions, false)
    }

    /// The same, where wanted with a look at watched memory.
    fn run_some(&mut self, pc: u64, instructions: usize, watched: bool) -> Stop {
        if let Some(kept) = self.kept_prefix(pc, instructions) {
            return self.run_kept(&kept);
        }
        static NONE: Stops = Stops { breaks: BTreeSet::new(), watches: BTreeSet::new() };
        if self.cache.is_full() {
            self.cache.reset();
        }
        let host = self.cache.next_host();
        let first_exit = self.cache.next_exit();
        let memory = &self.memory;
        let fetch = |pc| memory.code(pc);
        let request = Request {
            pc,
            host,
            cold: self.cache.next_cold(),
            landing: false,
            first_exit,
            profile: self.profile,
            watched: if watched { &self.watched } else { &NONE },
            trace: self.tracer.as_ref().map(|_| Tells::Nothing),
            stop_after: Some(instructions),
            stops: &[],
            past: false,
            limit: self.profile.unit_limit(),
            known: &|_| false,
            fetch: &fetch,
        };
        let Some(t) = translate(&request) else { return Stop::Fault(self.bad_jump(pc)) };
        if self.may_keep(&t) {
            let kept = self.keep_prefix(pc, instructions, host, t);
            return self.run_kept(&kept);
        }
        self.cache.put(&t);
        // SAFETY: we hold the turn.
        let context: *mut Context = unsafe { context() };
        self.cache.seal();
        // SAFETY: a one-off translation of the code at RIP.
        let reason = unsafe { self.enter(context, host) };
        // A call in it expects its return in code that is gone now.
        if t.calls {
            forget_returns();
        }
        // SAFETY: guest code has left.
        let c = unsafe { &mut *context };
        // Its own exits are not installed; those of what it called are.
        let mut target = |exit: u32| {
            let own = exit.checked_sub(first_exit).and_then(|own| t.exits.get(own as usize));
            own.map_or_else(|| self.cache.exit_target(ExitId(exit)), |exit| exit.target)
        };
        match reason {
            Reason::Stop => Stop::Block,
            Reason::Unlinked => {
                // A branch at the end of the prefix, or behind the call that it returned to.
                c.regs.rip = target(c.arg);
                Stop::Block
            }
            Reason::Safepoint => {
                c.regs.rip = target(c.arg);
                if c.is_counted_down() { Stop::Safepoint } else { Stop::Block }
            }
            Reason::Fault => {
                let fault = host::take_fault();
                let pops = returns(&fault, host, &t);
                if pops {
                    pop_return(c);
                }
                if pops || is_wrong_return(fault.at()) {
                    return as_stop(self.arrived_from(c, pc, host, &t));
                }
                if !(host..host + t.bytes.len() as u64).contains(&fault.at()) {
                    // What it called is in a unit.
                    return as_stop(self.fault_at(c, fault));
                }
                let seen = self.locate(c, &fault, pc, host, &t);
                if self.is_code_store(&fault) {
                    // A store may touch two pages that are watched.
                    self.open_code_page(seen.address);
                    let done = t.places.iter().take_while(|p| p.pc != c.regs.rip).count();
                    return self.run_prefix(c.regs.rip, instructions - done.min(instructions - 1));
                }
                Stop::Fault(seen)
            }
            Reason::Indirect | Reason::SafepointIndirect => {
                as_stop(self.arrived_from(c, pc, host, &t))
            }
            other => as_stop(self.after(c, other)),
        }
    }

    /// Tracing: the record of the instruction at RIP, which is about to run outside
    /// of traced code.
    pub fn trace_one(&mut self, c: &Context) {
        if let Some(tracer) = &mut self.tracer {
            tracer.one(&c.regs, &|pc| self.memory.code(pc));
        }
    }
}

/// Where so many instructions were wanted, what would go on has ended.
pub(super) fn as_stop(next: Next) -> Stop {
    match next {
        Next::Stop(stop) => stop,
        Next::Unit(_) | Next::At(_) | Next::Host(_) => Stop::Block,
    }
}
