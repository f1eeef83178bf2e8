//! What the log says happened, done again.

use super::replayer::{CUT, Finish, Halt, Replayer};
use crate::cpu::emulate::{self, Outcome as Emulated};
use crate::guest::machine::Fault;
use crate::guest::task::Thread;
use crate::hash;
use crate::kernel::process::{Asked, NoWorld};
use crate::record::session::enter_call;
use crate::signal::deliver::{Delivered, deliver, deliver_fault, restart_undelivered, signal_of};
use crate::signal::frame::Info;
use crate::trace::Event as TraceEvent;
use crate::{Error, Refusal};
use recording::Ending;
use recording::event::{Effect, Event, When};

impl Replayer {
    pub(super) fn check_memory(&mut self, hash: u64) -> Result<(), Halt> {
        if self.options.verify && hash::memory(&self.process.machine.memory) != hash {
            return Err(self.diverged("memory differs").into());
        }
        Ok(self.log.advance()?)
    }

    pub(super) fn check_registers(&self, state: u32) -> Result<(), Error> {
        let regs = &self.context().regs;
        if hash::registers(regs) != state {
            return Err(self.diverged(format!("registers differ at {:#x}", regs.rip)));
        }
        Ok(())
    }

    /// The run stands at a safepoint at which something happened then.
    pub(super) fn at_safepoint(&mut self) -> Result<(), Halt> {
        match self.log.peek()? {
            Some(Event::Signal { .. }) => self.signals(),
            Some(Event::Switch { .. }) => self.switch(),
            Some(Event::Shared { .. }) => self.shared(),
            Some(Event::Cut { .. }) => Err(CUT),
            _ => Err(self.diverged("the safepoint count ran out too early").into()),
        }
    }

    /// Other processes have changed what they share with this one.
    pub(super) fn shared(&mut self) -> Result<(), Halt> {
        let bytes = self.log.take();
        let applied = match Event::decode(&bytes) {
            Ok(Event::Shared { effects, .. }) => effects.iter().all(|effect| match effect {
                Ok(Effect::Write { address, data }) => self.process.write_shared(address, data),
                _ => false,
            }),
            _ => false,
        };
        self.log.done(bytes)?;
        if !applied {
            return Err(self.diverged("memory that others changed is not there").into());
        }
        Ok(())
    }

    /// Delivers the signals that came here.
    pub(super) fn signals(&mut self) -> Result<(), Halt> {
        let mut first = true;
        while let Some(Event::Signal { when, info, state }) = self.log.peek()? {
            if !first && when != When::Here {
                break;
            }
            first = false;
            let mut full: Info = [0; 128];
            let n = info.len().min(128);
            full[..n].copy_from_slice(&info[..n]);
            let number = signal_of(&full);
            if !(1..=64).contains(&number) {
                return Err(self.diverged(format!("no signal has the number {number}")).into());
            }
            self.check_registers(state)?;
            let context = self.context();
            let task = self.tasks.get_mut(&self.current).expect("the running thread");
            let delivered = deliver(&mut self.process, task, context, &full, &mut NoWorld);
            self.trace_signal(number);
            self.log.advance()?;
            if delivered == Delivered::Deadly {
                return self.end(number);
            }
        }
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        let context = self.context();
        let task = self.tasks.get_mut(&self.current).expect("the running thread");
        restart_undelivered(context, task, &mut NoWorld);
    }

    /// Another thread went on here.
    pub(super) fn switch(&mut self) -> Result<(), Halt> {
        let Some(Event::Switch { to, state, .. }) = self.log.peek()? else {
            return Err(self.diverged("no switch is in the log").into());
        };
        // A thread that has ended left its registers behind for the hash.
        self.check_registers(state)?;
        let context = self.context();
        context.regs.gs = crate::kernel::calls::gs();
        if let Some(task) = self.tasks.get_mut(&self.current) {
            task.regs.clone_from(&Box::new(context.regs.clone()));
        }
        let to = Thread(to);
        let Some(next) = self.tasks.get(&to) else {
            return Err(self.diverged(format!("{to} does not exist")).into());
        };
        context.regs.clone_from(&next.regs);
        crate::kernel::calls::set_gs(next.regs.gs);
        self.current = to;
        self.event(TraceEvent::Thread(to.0));
        self.trace_bases();
        Ok(self.log.advance()?)
    }

    pub(super) fn emulate(&mut self) -> Result<(), Halt> {
        self.trace_one();
        let context = self.context();
        let state = hash::registers(&context.regs);
        let mut problem = None;
        let log = &mut self.log;
        let mut unknown = |_| match log.peek() {
            Ok(Some(Event::Value { value, state: then })) => {
                if then != state {
                    problem = Some("registers differ at an emulated instruction".to_owned());
                }
                if let Err(e) = log.advance() {
                    problem = Some(e.to_string());
                }
                value
            }
            _ => {
                problem = Some("the log has no value for an instruction".to_owned());
                0
            }
        };
        let memory = &self.process.machine.memory;
        let outcome = emulate::emulate(&mut context.regs, memory, &mut unknown);
        if let Some(what) = problem {
            if self.log.peek()?.is_none() {
                return Err(Halt::Finish(Finish::LogEnds));
            }
            return Err(self.diverged(what).into());
        }
        match outcome {
            Emulated::Done => {}
            Emulated::Raises(signal, code, address) => {
                // A faulting instruction does not count.
                self.executed = self.executed.saturating_sub(1);
                self.alone_faults();
                return self.fault(&Fault { signal, code, address, trap: 13, error: 0 });
            }
            Emulated::Unsupported(text) => {
                let at = self.context().regs.rip;
                return Err(Error::Refused(Refusal::Instruction { text, at }).into());
            }
        }
        Ok(())
    }

    /// Signals that came right after what just happened.
    pub(super) fn signals_here(&mut self) -> Result<(), Halt> {
        match self.log.peek()? {
            // A debugger looks at the state before.
            Some(Event::Signal { when: When::Here, .. }) if self.moving.holds_signals => Ok(()),
            Some(Event::Signal { when: When::Here, .. }) => self.signals(),
            _ => {
                self.settle();
                Ok(())
            }
        }
    }

    pub(super) fn fault(&mut self, fault: &Fault) -> Result<(), Halt> {
        self.trace_fault(fault);
        let context = self.context();
        let task = self.tasks.get_mut(&self.current).expect("the running thread");
        let delivered = deliver_fault(&mut self.process, task, context, fault, &mut NoWorld);
        self.trace_signal(fault.signal);
        if delivered == Delivered::Deadly {
            return self.end(fault.signal);
        }
        Ok(())
    }

    /// The process ends.
    pub(super) fn end(&mut self, status: i32) -> Result<(), Halt> {
        match self.log.peek()? {
            None => return Err(Halt::Finish(Finish::LogEnds)),
            Some(Event::End { status: then, memory }) => {
                if then != status {
                    let what = format!("the program ends with status {status}, then it was {then}");
                    return Err(self.diverged(what).into());
                }
                if self.options.verify && hash::memory(&self.process.machine.memory) != memory {
                    return Err(self.diverged("memory differs at the end").into());
                }
            }
            Some(_) => return Err(self.diverged("the program ends too early").into()),
        }
        let ending = match status & 0x7f {
            0 => Ending::Exited(status >> 8 & 0xff),
            signal => Ending::Killed { signal },
        };
        Err(Halt::Finish(Finish::Ended(ending)))
    }

    /// A `syscall` instruction.
    pub(super) fn call(&mut self) -> Result<(), Halt> {
        self.note_state();
        let context = self.context();
        let asked = Asked::of(context);
        let state = hash::registers(&context.regs);
        enter_call(context);
        if let Some(Event::Switch { when: When::Here, .. }) = self.log.peek()? {
            let task = self.tasks.get_mut(&self.current).expect("the running thread");
            self.process.temporary_mask(task, &asked);
            task.sending = self.process.outgoing(&asked);
            self.in_call.insert(self.current, (asked, state));
            self.event(TraceEvent::CallWaits);
            return self.switch();
        }
        let task = self.tasks.get_mut(&self.current).expect("the running thread");
        self.process.temporary_mask(task, &asked);
        self.perform_after_sharing(&asked, state)
    }

    /// While the call waited, other processes may have changed what they share.
    fn perform_after_sharing(&mut self, asked: &Asked, state: u32) -> Result<(), Halt> {
        if let Some(Event::Shared { when: When::Here, .. }) = self.log.peek()? {
            self.shared()?;
        }
        self.perform(asked, state)
    }

    pub(super) fn finish_waiting_call(&mut self) -> Result<(), Halt> {
        if let Some(Event::Switch { .. }) = self.log.peek()? {
            return self.switch();
        }
        let (asked, state) = self.in_call.remove(&self.current).expect("just seen");
        self.perform_after_sharing(&asked, state)
    }
}
