//! The replayer: walks a recording forward, instant by instant if wanted.

use super::ReplayOptions;
use super::live::Live;
use super::log::Log;
use crate::Error;
use crate::code::Profile;
use crate::context::{Context, Registers, context};
use crate::guest::machine::Stop;
use crate::guest::task::{Task, Thread};
use crate::kernel::process::{Asked, Process};
use crate::record::beginning::{Beginning, make_process};
use crate::signal::host;
use recording::event::{Event, When};
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
pub(super) const CUT: Halt = Halt::Finish(Finish::Ended(Ending::Cut));

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
    /// does. For replays that go on from instant to instant as the run went: whoever stops at
    /// code or alters has code of its own.
    pub fn use_stock(&mut self) {
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
}

fn images(beginning: &Beginning) -> Vec<(Vec<u8>, String)> {
    let program = (beginning.program, beginning.program_path.clone());
    std::iter::once(program)
        .chain(beginning.interpreter.clone())
        .map(|(file, path)| (path, file.0.to_string()))
        .collect()
}
