//! The replayer: walks a recording forward, instant by instant if wanted.

use super::ReplayOptions;
use super::live::Live;
use super::log::Log;
use crate::code::Profile;
use crate::context::{Context, Registers, context};
use crate::cpu::emulate::{self, Outcome as Emulated};
use crate::guest::machine::{Fault, Stop};
use crate::guest::task::{Task, Thread};
use crate::hash;
use crate::kernel::process::{Asked, NoWorld, Process};
use crate::record::session::{Beginning, enter_call, make_process};
use crate::signal::deliver::{Delivered, deliver, deliver_fault, restart_undelivered, signal_of};
use crate::signal::frame::Info;
use crate::signal::host;
use crate::trace::Event as TraceEvent;
use crate::{Error, Refusal};
use recording::event::{Effect, Event, When};
use recording::{Ending, Recording};
use std::collections::BTreeMap;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the end of the run.
    End,
    /// Until so many instructions have been executed over all threads (counting
    /// profiles only).
    Instruction(u64),
}

/// Where a replay stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The program ended as it did then.
    Ended(Ending),
    /// The recording breaks off here.
    LogEnds,
    /// The wanted instant is reached.
    Reached,
}

/// Which side of a [`Replayer::fork`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    /// The one that was there before.
    Parent {
        /// Process number of the copy.
        child: i32,
    },
    /// The copy.
    Child,
}

/// What stops the walk.
pub(crate) enum Halt {
    Finish(Finish),
    Error(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Error(error)
    }
}

impl Drop for Replayer {
    /// The guest's addresses are free again for the next replay.
    fn drop(&mut self) {
        self.process.machine.restock();
        self.process.machine.memory.clear();
    }
}

/// A replay in progress.
pub struct Replayer {
    pub(crate) process: Process,
    pub(crate) tasks: BTreeMap<Thread, Task>,
    pub(crate) current: Thread,
    pub(super) log: Log,
    pub(crate) live: Live,
    pub(crate) pid: i32,
    /// Paths of the program and its interpreter, and their contents.
    pub(super) images: Vec<(Vec<u8>, String)>,
    pub(super) options: ReplayOptions,
    /// Threads that are inside a system call, with its registers' hash.
    pub(crate) in_call: BTreeMap<Thread, (Asked, u32)>,
    /// What is outside, kept in step for runs that leave the log.
    pub(crate) world: Option<Box<crate::sandbox::World>>,
    /// When the run wrote what, if somebody wants to know.
    pub(crate) written: Option<Vec<crate::sandbox::Written>>,
    pub(super) executed: u64,
    /// Safepoints of all threads.
    pub(crate) passed: u64,
    pub(super) budget_loaded: i64,
    pub(super) moving: super::moving::Moving,
    /// Events from which on output is written: those before are an ancestor's.
    pub(super) shown_from: u64,
    /// Instructions executed before the fork that the process began with.
    pub(super) inherited: u64,
    /// The log that goes on where this one ends.
    pub(super) next_log: Option<u64>,
    /// Does the replay follow forks?
    pub(super) following: Option<Box<super::tree::Following>>,
}

/// The end of a region.
const CUT: Halt = Halt::Finish(Finish::Ended(Ending::Cut));

const NO_LIMIT: i64 = crate::context::NO_LIMIT;

impl Replayer {
    /// At the first instruction of a recording.
    pub fn new(
        recording: &Recording,
        profile: Profile,
        options: &ReplayOptions,
    ) -> Result<Replayer, Error> {
        crate::sys::reserve_few_descriptors().map_err(Error::io("cannot set limits"))?;
        let beginning: Beginning = serde_json::from_value(recording.manifest().start.clone())
            .map_err(|_| {
                Error::Recording(recording::Error::Damaged {
                    what: "the manifest does not say how the program began".to_owned(),
                    at: 0,
                })
            })?;
        crate::cpu::check_recorded(&recording.manifest().cpu_features, &beginning.cpu)?;
        recording.check_files()?;
        let (mut process, task) = make_process(&beginning, &recording.root(), profile)?;
        process.pipes.followed = true;
        host::set_up_thread().map_err(Error::io("cannot set up a signal stack"))?;
        host::install_synchronous();
        let mut replayer = Replayer {
            process,
            current: task.thread,
            tasks: BTreeMap::from([(task.thread, task)]),
            log: Log::new(recording)?,
            live: Live::default(),
            pid: beginning.pid,
            images: images(&beginning),
            options: options.clone(),
            in_call: BTreeMap::new(),
            world: None,
            written: None,
            executed: 0,
            passed: 0,
            budget_loaded: NO_LIMIT,
            moving: super::moving::Moving::default(),
            shown_from: recording.inherited_events(),
            inherited: 0,
            next_log: None,
            following: None,
        };
        if recording.manifest().region.is_some() {
            replayer.enter_region()?;
        }
        Ok(replayer)
    }

    /// Uses code that earlier runs of the program translated, and keeps what this one
    /// does. For replays that go to the end without looking: whoever traces, stops or
    /// alters has code of its own.
    pub(super) fn use_stock(&mut self) {
        if let Some(program) = self.images.first().and_then(|(_, id)| id.parse().ok()) {
            self.process.machine.stock_for(program);
        }
    }

    /// The running thread.
    pub fn thread(&self) -> Thread {
        self.current
    }

    /// Instructions executed so far, over all threads (counting profiles).
    pub fn instructions(&self) -> u64 {
        self.executed
    }

    /// The same without those before the fork that the process began with.
    pub fn own_instructions(&self) -> u64 {
        self.executed - self.inherited
    }

    /// Safepoints the running thread has passed.
    pub(crate) fn safepoints(&self) -> u64 {
        self.tasks.get(&self.current).map_or(0, |task| task.safepoints)
    }

    /// Registers of the running thread.
    pub fn registers(&self) -> &Registers {
        &self.context().regs
    }

    /// What is mapped at an address.
    pub fn place(&self, address: u64) -> super::Place {
        use crate::guest::memory::Backing;
        let file = self.process.machine.memory.region(address).and_then(|(start, region)| {
            match &region.backing {
                Backing::File { path, offset } => Some((path.clone(), offset + address - start)),
                _ => None,
            }
        });
        super::Place { address, file }
    }

    /// A copy of guest memory, if all of it is readable.
    pub fn read_memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.process.machine.memory.read(address, len)
    }

    #[allow(clippy::mut_from_ref)]
    pub(crate) fn context(&self) -> &'static mut Context {
        // SAFETY: a replay has one kernel thread, and no reference is kept while
        // guest code runs.
        unsafe { context() }
    }

    pub(crate) fn task(&mut self) -> &mut Task {
        self.tasks.get_mut(&self.current).expect("the running thread exists")
    }

    /// Goes on until the wanted instant.
    pub fn run(&mut self, until: Until) -> Result<Finish, Error> {
        loop {
            match self.step(until) {
                Ok(()) => {}
                Err(Halt::Finish(finish)) => return Ok(finish),
                Err(Halt::Error(error)) => return Err(error),
            }
        }
    }

    /// From one event to the next.
    fn step(&mut self, until: Until) -> Result<(), Halt> {
        match self.run_guest(until, NO_LIMIT)? {
            Some(stop) => self.after_stop(&stop),
            None => Ok(()),
        }
    }

    /// Does the next thing the log wants done before guest code may run. False if
    /// there is none.
    pub(super) fn settle_events(&mut self) -> Result<bool, Halt> {
        if self.in_call.contains_key(&self.current) {
            return self.finish_waiting_call().map(|()| true);
        }
        let safepoints = self.task().safepoints;
        match self.log.peek()? {
            None => Err(Halt::Finish(Finish::LogEnds)),
            Some(Event::Memory { hash }) => self.check_memory(hash).map(|()| true),
            Some(
                Event::Signal { when: When::Safepoint(n), .. }
                | Event::Shared { when: When::Safepoint(n), .. }
                | Event::Switch { when: When::Safepoint(n), .. }
                | Event::Cut { when: When::Safepoint(n) },
            ) if n == safepoints => self.at_safepoint().map(|()| true),
            Some(Event::Cut { when: When::Here }) => Err(CUT),
            Some(Event::Stretch { .. }) => Err(Error::Slice.into()),
            Some(_) => Ok(false),
        }
    }

    /// Makes a copy of this replay that goes on by itself, in a child process.
    ///
    /// It costs what the process's private pages cost; both sides stand at the
    /// same instant.
    pub fn fork(&mut self) -> Result<Forked, Error> {
        let live = self.live.copies().map_err(Error::io("cannot copy a mapped file"))?;
        let copy = self.process.machine.cache.copy();
        let copy = copy.map_err(Error::io("cannot copy the code cache"))?;
        // SAFETY: a replay has one thread, so the child may do anything.
        match unsafe { libc::fork() } {
            -1 => Err(Error::Io { what: "cannot fork", error: std::io::Error::last_os_error() }),
            0 => {
                let cache = &mut self.process.machine.cache;
                cache.adopt(copy).map_err(Error::io("cannot map the code cache"))?;
                self.adopt_live(live)?;
                Ok(Forked::Child)
            }
            child => {
                crate::code::cache::spare::is_of(child);
                live.close();
                Ok(Forked::Parent { child })
            }
        }
    }

    /// Runs guest code until it stops by itself, at the latest after `most`
    /// safepoints. `None` if something was to be done before any code may run, and
    /// has been done now.
    pub(crate) fn run_guest(&mut self, until: Until, most: i64) -> Result<Option<Stop>, Halt> {
        let budget = match until {
            Until::End => NO_LIMIT,
            Until::Instruction(n) => match n.checked_sub(self.executed) {
                None | Some(0) => return Err(Halt::Finish(Finish::Reached)),
                Some(left) => left.min(NO_LIMIT as u64) as i64,
            },
        };
        if self.settle_events()? {
            return Ok(None);
        }
        let count = self.safepoints_left()?.min(most);
        let context = self.context();
        context.count = count;
        context.budget = budget;
        self.budget_loaded = budget;
        let stop = self.process.machine.run();
        self.account(count);
        Ok(Some(stop))
    }

    /// Safepoints the running thread passes before the log wants something done.
    pub(super) fn safepoints_left(&mut self) -> Result<i64, Halt> {
        let safepoints = self.task().safepoints;
        match self.log.peek()? {
            Some(
                Event::Signal { when: When::Safepoint(n), .. }
                | Event::Shared { when: When::Safepoint(n), .. }
                | Event::Switch { when: When::Safepoint(n), .. }
                | Event::Cut { when: When::Safepoint(n) },
            ) => match n.checked_sub(safepoints) {
                None => Err(self.diverged("a safepoint of the log was passed").into()),
                Some(left) => Ok(left as i64),
            },
            _ => Ok(NO_LIMIT),
        }
    }

    /// Does what the guest stopped for.
    pub(crate) fn after_stop(&mut self, stop: &Stop) -> Result<(), Halt> {
        match stop {
            Stop::Syscall => self.call(),
            Stop::Safepoint => self.at_safepoint(),
            Stop::Emulate => self.emulate(),
            Stop::Fault(fault) => self.fault(fault),
            Stop::Block if self.is_traced() => self.gather(),
            Stop::Budget | Stop::Block | Stop::Watch => Ok(()),
        }
    }

    pub(super) fn account(&mut self, count: i64) {
        let context = self.context();
        self.executed += (self.budget_loaded - context.budget) as u64;
        let passed = (count - context.count) as u64;
        self.task().safepoints += passed;
        self.passed += passed;
    }

    pub(super) fn diverged(&self, what: impl Into<String>) -> Error {
        Error::Diverged { event: self.log.number(), thread: self.current, what: what.into() }
    }

    fn check_memory(&mut self, hash: u64) -> Result<(), Halt> {
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
    fn at_safepoint(&mut self) -> Result<(), Halt> {
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
                self.undo_one();
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

    fn finish_waiting_call(&mut self) -> Result<(), Halt> {
        if let Some(Event::Switch { .. }) = self.log.peek()? {
            return self.switch();
        }
        let (asked, state) = self.in_call.remove(&self.current).expect("just seen");
        self.perform_after_sharing(&asked, state)
    }
}

fn images(beginning: &Beginning) -> Vec<(Vec<u8>, String)> {
    let program = (beginning.program, beginning.program_path.clone());
    std::iter::once(program)
        .chain(beginning.interpreter.clone())
        .map(|(file, path)| (path, file.0.to_string()))
        .collect()
}
