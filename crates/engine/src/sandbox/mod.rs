//! What would have happened: a replay that left its log.
//!
//! A replay follows the log to one instant. There something is changed, and from
//! there on a small virtual kernel answers instead of the log: files as the
//! recording saw them under a copy-on-write overlay in memory, standard input as
//! recorded, captured output, virtual time, emulated pipes, futexes and threads.
//! What it cannot answer ends the run with a name; nothing is ever passed on to the
//! host.

mod alter;
mod births;
mod calls;
mod children;
mod compare;
mod constants;
mod descriptors;
mod facts;
mod files;
mod follow;
mod follow_new;
mod follow_paths;
mod futex;
mod interrupt;
mod looking;
mod memory;
mod moving;
mod names;
mod nodes;
mod own_code;
mod paths;
mod rehearsal;
mod rejoin;
mod schedule;
mod signals;
mod simple;
mod sockets;
mod stat;
mod streams;
mod threads;
mod time;
mod walker;
mod wall;
mod world;

pub use alter::NotHere;
pub use interrupt::{INTERRUPTED_STATUS, catch_interrupts, end_at_interrupt, is_interrupted};
pub(crate) use interrupt::{ends_at_interrupt, has_helpers, note_only};
pub use rehearsal::{Original, Written};
pub use walker::{Child, Root, Trial, Walker, helper};
pub(crate) use world::World;

use crate::cpu::emulate::{self, Outcome as Emulated, Unknown};
use crate::guest::machine::{Fault, Stop};
use crate::guest::plain::Rate;
use crate::guest::task::Thread;
use crate::kernel::process::NoWorld;
use crate::replay::Replayer;
use crate::signal::deliver::{Delivered, deliver_fault};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far a run may go after it left the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Instructions.
    pub steps: u64,
    /// Bytes of writable memory.
    pub memory: u64,
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// It ended by itself.
    Exited(i32),
    /// It died.
    Killed {
        /// Of which signal.
        signal: i32,
        /// The instruction it stood at.
        pc: u64,
        /// The address that could not be reached, for a fault.
        address: Option<u64>,
    },
    /// It asked for something that the recording cannot answer.
    Unserved(String),
    /// It wanted another process.
    NeedsChild,
    /// It went on for too long.
    StepLimit,
    /// It took too much memory.
    MemoryLimit,
    /// All its threads wait for ever.
    Deadlock,
    /// The watcher has seen enough.
    Enough,
    /// It is about to execute an instruction at which it was to stop.
    At(u64),
    /// It came back to a state of the recorded run.
    Rejoined,
}

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Who looks at a run while it goes on.
pub trait Watcher {
    /// The run wrote something: all of the stream so far. False ends it.
    fn output(&mut self, _stream: Stream, _so_far: &[u8]) -> bool {
        true
    }
}

/// Nobody looks.
impl Watcher for () {}

/// A replay that left its log.
pub struct Sandbox {
    pub(crate) replayer: Replayer,
    world: Box<World>,
    waiting: BTreeMap<Thread, schedule::Waiting>,
    signals: signals::Pending,
    limits: Limits,
    /// What is left of the limit: instructions, or safepoints where the code does
    /// not count those.
    left: u64,
    all: u64,
    rate: Option<Rate>,
    loaded: i64,
    next_tid: i32,
    /// Highest thread number given.
    highest: u32,
    /// The running thread lets others go first.
    yielded: bool,
    /// The call that is asked again has used up its time.
    expired: bool,
    at_stop: bool,
    wrote: [usize; 2],
    /// Safepoints that are left of the running thread's turn; none if it begins.
    turn: i64,
    past: moving::Past,
    /// How often a state was looked at that might have been the recorded run's; none
    /// if that is of no interest.
    rejoins: Option<u64>,
    /// Is this what a child does until it executes a program?
    is_child: bool,
    /// The program.
    executed: Option<births::Execution>,
}

/// What a system call came to.
enum Served {
    /// It returns this.
    Value(i64),
    /// It waits, at the longest until this time.
    Waits(Option<u64>),
    /// It returns nothing: another thread goes on, or registers are set.
    Nothing,
    /// The run ends.
    End(Stopped),
}

/// Safepoints that a thread runs before the next one's turn.
const SLICE: i64 = 20_000;
const NO_LIMIT: i64 = crate::context::NO_LIMIT;

impl Sandbox {
    /// Leaves the log where a replay stands. The replay must have kept its world in
    /// step from the beginning.
    pub(crate) fn leave(mut replayer: Replayer, limits: Limits) -> Sandbox {
        let world = replayer.world.take().expect("the replay kept its world");
        let waiting = std::mem::take(&mut replayer.in_call);
        let highest = replayer.tasks.values().map(|t| t.tid).max().unwrap_or(1);
        let wrote = [world.outputs[0].len(), world.outputs[1].len()];
        let rate = replayer.process.machine.rate();
        let all = rate.map_or(limits.steps, |rate| rate.safepoints_in(limits.steps));
        let mut sandbox = Sandbox {
            replayer,
            world,
            waiting: BTreeMap::new(),
            signals: signals::Pending::default(),
            limits,
            left: all,
            all,
            rate,
            loaded: 0,
            next_tid: highest + 1,
            highest: 0,
            yielded: false,
            expired: false,
            at_stop: false,
            wrote,
            turn: 0,
            past: moving::Past::default(),
            rejoins: None,
            is_child: false,
            executed: None,
        };
        for (thread, (asked, _)) in waiting {
            sandbox.waiting.insert(thread, schedule::Waiting::again(asked));
        }
        sandbox
    }

    /// Instructions executed since it left the log; about as many, if it does not
    /// count them.
    pub fn steps(&self) -> u64 {
        let used = self.all - self.left;
        self.rate.map_or(used, |rate| rate.instructions_in(used))
    }

    /// What was written to standard output, from the beginning of the run.
    pub fn output(&self, stream: Stream) -> &[u8] {
        &self.world.outputs[stream as usize]
    }

    /// Contents of a file as the run left it, by the end of its path.
    pub fn file(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let path = self.world.absolute(None, path);
        let name = self.world.names.get(&path).cloned().or_else(|| self.world.original(&path))?;
        match name {
            world::Name::File(node) => {
                let process = &mut self.replayer.process;
                let size = self.world.size(process, node);
                Some(self.world.read_node(process, node, 0, size as usize))
            }
            _ => None,
        }
    }

    /// Stops before these instructions from now on.
    pub fn stop_at(&mut self, addresses: &[u64]) {
        self.replayer.process.machine.stop_at(addresses);
    }

    /// Goes on until something ends it.
    pub fn run(&mut self, watcher: &mut dyn Watcher) -> Stopped {
        loop {
            if let Some(stopped) = self.stretch(watcher) {
                return stopped;
            }
        }
    }

    /// Runs guest code once and does what it stopped for.
    fn stretch(&mut self, watcher: &mut dyn Watcher) -> Option<Stopped> {
        if let Some(stopped) = self.settle() {
            return Some(stopped);
        }
        if self.left == 0 {
            return Some(Stopped::StepLimit);
        }
        let alone = self.replayer.tasks.len() == 1 && !self.signals.is_timed();
        // A turn does not begin anew because somebody looked.
        let count = match (alone, self.turn) {
            (true, _) => NO_LIMIT,
            (false, 0) => SLICE,
            (false, left) => left,
        };
        let most = self.left.min(NO_LIMIT as u64) as i64;
        let count = if self.rate.is_some() { count.min(most) } else { count };
        let context = self.replayer.context();
        context.count = count;
        context.budget = most;
        self.loaded = context.budget;
        let past = std::mem::take(&mut self.at_stop);
        let stop = self.replayer.process.machine.run_past(past);
        let used = match self.rate {
            Some(_) => count - context.count,
            None => self.loaded - context.budget,
        };
        self.left -= (used.max(0) as u64).min(self.left);
        self.turn = if alone { 0 } else { context.count.max(0) };
        match stop {
            Stop::Syscall => self.call(watcher),
            Stop::Safepoint => self.next_turn(),
            Stop::Emulate => self.emulate(),
            Stop::Fault(fault) => self.fault(&fault),
            Stop::Budget => Some(Stopped::StepLimit),
            Stop::Block => {
                self.at_stop = true;
                Some(Stopped::At(self.replayer.registers().rip))
            }
            Stop::Watch => unreachable!("only debuggers watch memory"),
        }
    }

    fn emulate(&mut self) -> Option<Stopped> {
        let context = self.replayer.context();
        let world = &mut self.world;
        let mut unknown = |what| match what {
            Unknown::Tsc => {
                world.tick(100);
                world.uptime.wrapping_mul(2)
            }
            Unknown::Random => world.next_random(),
        };
        let memory = &self.replayer.process.machine.memory;
        match emulate::emulate(&mut context.regs, memory, &mut unknown) {
            Emulated::Done => None,
            Emulated::Raises(signal, code, address) => {
                self.fault(&Fault { signal, code, address, trap: 13, error: 0 })
            }
            Emulated::Unsupported(text) => Some(Stopped::Unserved(format!("instruction {text}"))),
        }
    }

    fn fault(&mut self, fault: &Fault) -> Option<Stopped> {
        let context = self.replayer.context();
        let pc = context.regs.rip;
        let current = self.replayer.current;
        let task = self.replayer.tasks.get_mut(&current).expect("the running thread");
        let process = &mut self.replayer.process;
        match deliver_fault(process, task, context, fault, &mut NoWorld) {
            Delivered::Fine => None,
            Delivered::Deadly => {
                Some(Stopped::Killed { signal: fault.signal, pc, address: Some(fault.address) })
            }
        }
    }

    /// The registers of the running thread.
    pub fn registers(&self) -> &crate::Registers {
        self.replayer.registers()
    }

    /// A copy of guest memory.
    pub fn read_memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.replayer.read_memory(address, len)
    }

    /// The running thread.
    pub fn thread(&self) -> Thread {
        self.replayer.current
    }
}
