//! The recording session: one guest process, its log, and what its threads share.

use super::RecordOptions;
use super::begin::begin;
use super::chaos::Chaos;
use super::commons::Commons;
use super::launch::Launch;
use super::lending::Lender;
use super::outsiders::Outsiders;
use super::supervise::Report;
use super::tree::Tree;
use super::turn::Turn;
use crate::context::{Context, context, reg};
use crate::guest::start::Start;
use crate::guest::task::{Task, Thread};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table::Call;
use crate::{Error, hash};
use recording::event::{Encoder, When};
use recording::{ByteString, Ending, Manifest, Outcome, Store, Writer};
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

/// Safepoints a thread may pass before it looks for signals and other threads.
pub(super) const QUANTUM: i64 = 100_000;

/// Safepoints that a system call counts for: a thread that asks for the time over and
/// over until another has done something must not keep that one from doing it.
pub(super) const CALL_COST: i64 = 100;

/// Least time between two memory hashes.
const HASH_SPACING: Duration = Duration::from_secs(2);

/// What all threads of a recorded process share. Touched only with the turn.
pub struct Session {
    /// The process.
    pub process: Process,
    /// The log.
    pub writer: Option<Writer>,
    pub(super) encoder: Encoder,
    /// If the schedule varies: how.
    pub(super) chaos: Option<Chaos>,
    /// Folder of the recording.
    pub dir: PathBuf,
    /// What it shares with the other processes of the run.
    pub(super) tree: Tree,
    /// Number of the log.
    pub(super) number: u64,
    /// The log's manifest.
    pub(super) manifest: Manifest,
    /// Largest size of the recording in bytes.
    pub(super) max_bytes: Option<u64>,
    /// The parent waits for this process to give back its memory.
    pub(super) lender: Option<Lender>,
    /// It is killed when the recorder is; the guest has not said what is to happen then.
    pub(super) ends_with_recorder: bool,
    /// Memory it has in common with other processes.
    pub(super) commons: Option<Commons>,
    /// The process's number.
    pub pid: i32,
    /// Where contents are shared.
    pub store: Store,
    /// How the running image began.
    pub start: Start,
    pub(super) current: Thread,
    pub(super) stopped: (When, u32),
    /// Threads alive.
    pub threads: u32,
    /// The kernel's numbers of them.
    pub(super) tids: BTreeSet<i32>,
    /// Number of the next thread.
    pub next_thread: u32,
    /// Files captured.
    pub files_captured: u64,
    /// State of files when they were captured, by device and inode.
    pub stamps: HashMap<(u64, u64), super::capture::Stamp>,
    pub(super) counters: Counters,
    pub(super) partly_captured: BTreeSet<Vec<u8>>,
    pub(super) unsupported: BTreeMap<String, u64>,
    pub(super) switched_off: BTreeSet<String>,
    /// Files that are mapped shared and can be written to, by device and inode.
    pub(super) live: BTreeSet<(u64, u64)>,
    /// What processes that are not recorded had mapped, when it was looked at last.
    pub(super) outsiders: Option<Outsiders>,
    pub(super) last_hash: Instant,
    pub(super) hash_cost: Duration,
    pub(super) report: Report,
}

/// What happened so far.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) calls: u64,
    pub(super) signals: u64,
    pub(super) switches: u64,
}

/// The session and the turn that guards it.
pub struct Shared {
    /// The turn.
    pub turn: Turn,
    /// The kernel's number of the one thread that shall be left; 0 if all shall be.
    pub(super) only: AtomicI32,
    session: UnsafeCell<Session>,
}

// SAFETY: the session is only reached through `Runner::session`, by the thread
// that holds the turn.
unsafe impl Sync for Shared {}
// SAFETY: it is created by one thread and then shared.
unsafe impl Send for Shared {}

static SHARED: OnceLock<Shared> = OnceLock::new();

impl Shared {
    /// In a fork: the session for the one thread that is left, which has the turn.
    ///
    /// # Safety
    /// The caller is the only thread of its process and had the turn before; this value
    /// is not used any more.
    pub(super) unsafe fn alone(&self) -> &'static Shared {
        // SAFETY: the session moves, and the place it was in stays behind unused.
        let session = unsafe { std::ptr::read(self.session.get()) };
        Box::leak(Box::new(Shared {
            turn: Turn::held(),
            only: AtomicI32::new(0),
            session: UnsafeCell::new(session),
        }))
    }
}

/// One guest thread being recorded, on its own kernel thread.
pub struct Runner {
    pub(super) shared: &'static Shared,
    /// The thread.
    pub task: Task,
    /// Did it give up the turn inside a call?
    pub(super) in_call: bool,
}

/// Becomes the recorded program. Never returns.
pub fn run(options: &RecordOptions, launch: Launch, tree: Tree, report: Report) -> ! {
    match begin(options, launch, tree, &report) {
        Ok((session, task)) => {
            let shared = SHARED.get_or_init(|| Shared {
                turn: Turn::default(),
                only: AtomicI32::new(0),
                session: UnsafeCell::new(session),
            });
            let mut runner = Runner { shared, task, in_call: false };
            shared.turn.acquire();
            runner.run();
            // Other threads go on; the process ends with the last of them.
            loop {
                // SAFETY: waits for ever; the process ends by `_exit`.
                unsafe { libc::pause() };
            }
        }
        Err(error) => report.fail(&error),
    }
}

impl Session {
    /// Appends the event in the encoder to the log.
    pub(super) fn log(&mut self) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.append(self.encoder.bytes())
        {
            let error = Error::from(error);
            self.give_up(&error);
        }
    }

    /// Stops the run: it could not be recorded faithfully.
    pub fn give_up(&mut self, error: &Error) -> ! {
        if let Some(writer) = self.writer.take() {
            let mut outcome = self.outcome(Ending::Unknown);
            outcome.stopped = Some(match error {
                Error::Refused(refusal) => refusal.to_string(),
                other => other.to_string(),
            });
            let _ = crate::clerk::run(|| writer.finish(&outcome));
        }
        self.report.fail(error)
    }

    /// Size of the stack that a program started now gets.
    pub(super) fn stack_size(&self) -> u64 {
        match self.process.limits.get(&libc::RLIMIT_STACK) {
            Some((soft, _)) if *soft != libc::RLIM_INFINITY => *soft,
            _ => 8 << 20,
        }
    }

    pub(super) fn note_partly_captured(&mut self, path: &[u8]) {
        self.partly_captured.insert(path.to_vec());
    }

    pub(super) fn note_unsupported(&mut self, call: &Call) {
        let name = match call.name {
            "unknown" => format!("call {}", call.number),
            name => name.to_owned(),
        };
        *self.unsupported.entry(name).or_default() += 1;
    }

    /// A program that would get the rights of others was not executed.
    pub(super) fn note_set_id(&mut self, path: &std::path::Path) {
        let name = format!("execve of the setuid {}", path.display());
        *self.unsupported.entry(name).or_default() += 1;
    }

    pub(super) fn note_switched_off(&mut self, what: &str) {
        self.switched_off.insert(what.to_owned());
        self.tree.note_switched_off();
    }

    pub(super) fn outcome(&self, ending: Ending) -> Outcome {
        let mut outcome = Outcome::new(ending);
        for (name, value) in [
            ("threads", self.next_thread as u64 - 1),
            ("syscalls", self.counters.calls),
            ("signals", self.counters.signals),
            ("switches", self.counters.switches),
        ] {
            outcome.counters.insert(name.to_owned(), value);
        }
        outcome.unsupported = self.unsupported.clone();
        outcome.switched_off = self.switched_off.clone();
        outcome.partly_captured =
            self.partly_captured.iter().map(|p| ByteString(p.clone())).collect();
        outcome
    }

    /// If the schedule varies and there is somebody to wait: for how long.
    pub(super) fn drawn_quantum(&mut self, called: bool) -> Option<i64> {
        let alone = self.threads == 1 && self.commons.is_none();
        let chaos = self.chaos.as_mut().filter(|_| !alone)?;
        Some(if called { chaos.quantum_after_call() } else { chaos.quantum() })
    }

    /// Hashes memory now and then.
    pub(super) fn hash_memory_sometimes(&mut self) {
        if !self.counters.calls.is_multiple_of(64) {
            return;
        }
        if self.last_hash.elapsed() < HASH_SPACING.max(self.hash_cost * 50) {
            return;
        }
        let begin = Instant::now();
        let hash = hash::memory(&self.process.machine.memory);
        self.encoder.memory(hash);
        self.log();
        self.last_hash = Instant::now();
        self.hash_cost = begin.elapsed();
    }
}

impl Runner {
    /// The session.
    #[allow(clippy::mut_from_ref)]
    pub(super) fn session(&self) -> &'static mut Session {
        // SAFETY: runners only call this while they hold the turn, and keep no
        // reference across a release of it.
        unsafe { &mut *self.shared.session.get() }
    }

    pub(super) fn context(&self) -> &'static mut Context {
        // SAFETY: as for `session`; the references are not held while guest code
        // runs.
        unsafe { context() }
    }
}

/// Sets a call's result; an interrupted call is remembered.
pub fn set_result(context: &mut Context, task: &mut Task, asked: &Asked, result: i64) {
    context.regs.gpr[reg::RAX] = result as u64;
    if result == -512 {
        task.interrupted = Some(asked.number);
    }
}

/// What a `syscall` instruction itself does to registers.
pub fn enter_call(context: &mut Context) {
    context.regs.gpr[reg::RCX] = context.regs.rip;
    context.regs.gpr[reg::R11] = context.regs.rflags;
}
