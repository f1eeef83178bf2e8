//! The recording session: one guest process, its log, and the loop that each of
//! its threads runs.

use super::RecordOptions;
use super::begin::begin;
use super::chaos::{self, Chaos};
use super::commons::Commons;
use super::engine_calls::After;
use super::launch::Launch;
use super::lending::Lender;
use super::outsiders::Outsiders;
use super::supervise::Report;
use super::tree::Tree;
use super::turn::Turn;
use crate::code::Profile;
use crate::context::{Context, context, reg};
use crate::cpu::emulate::{self, Outcome as Emulated, Unknown};
use crate::cpu::shown::{self, Shown};
use crate::guest::image::Headers;
use crate::guest::machine::{Fault, Machine, Stop};
use crate::guest::start::{ImageFile, Start, load};
use crate::guest::task::{Task, Thread};
use crate::kernel::files::{FileIdText, Files, HandedOn};
use crate::kernel::pipes::Pipes;
use crate::kernel::process::{Asked, Objects, Process};
use crate::kernel::table::Call;
use crate::kernel::timers::Timers;
use crate::signal::actions::Actions;
use crate::signal::{self, host};
use crate::{Error, Refusal, hash};
use recording::event::{Encoder, When};
use recording::{ByteString, Ending, FileId, Manifest, Outcome, Store, Writer};
use serde::{Deserialize, Serialize};
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

/// Safepoints a thread may pass before it looks for signals and other threads.
const QUANTUM: i64 = 100_000;

/// Safepoints that a system call counts for: a thread that asks for the time over and
/// over until another has done something must not keep that one from doing it.
const CALL_COST: i64 = 100;

/// Least time between two memory hashes.
const HASH_SPACING: Duration = Duration::from_secs(2);

/// How a guest process begins; kept in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// Arguments and the like.
    pub start: Start,
    /// Contents of the program.
    pub program: FileIdText,
    /// Its path.
    #[serde(with = "crate::as_text::one")]
    pub program_path: Vec<u8>,
    /// Contents and path of its interpreter.
    pub interpreter: Option<(FileIdText, Vec<u8>)>,
    /// Descriptors that were open.
    pub descriptors: Vec<i32>,
    /// Signals that were ignored, and blocked.
    pub ignored: u64,
    /// Blocked signals.
    pub mask: u64,
    /// Kernel's number of the first thread.
    pub pid: i32,
    /// Permissions that new files do not get.
    #[serde(default)]
    pub umask: u32,
    /// Working directory.
    #[serde(default, with = "crate::as_text::one")]
    pub cwd: Vec<u8>,
    /// Paths that runs often ask for when they fail, and what `stat` says of them: a
    /// run that is altered may ask where the recorded one did not.
    #[serde(default, with = "crate::as_text::pairs")]
    pub around: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Resource limits the engine answers for: resource, soft, hard.
    pub limits: Vec<(u32, u64, u64)>,
    /// The processor it sees.
    #[serde(default)]
    pub cpu: Shown,
    /// Does its code have safepoints at memory that threads may share?
    #[serde(default)]
    pub dense: bool,
    /// If another program executed it: what that handed on.
    #[serde(default)]
    pub handed_on: Option<Inheritance>,
}

/// What a program that was executed by another one inherits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inheritance {
    /// Descriptors.
    pub descriptors: Vec<HandedOn>,
    /// First descriptor of the recorder's own.
    pub first_hidden_descriptor: i32,
    /// Interval timers that may run.
    pub timers: Vec<i32>,
    /// The kernel's number of the thread.
    pub tid: i32,
}

impl Beginning {
    fn first_hidden_descriptor(&self) -> i32 {
        if let Some(inheritance) = &self.handed_on {
            return inheritance.first_hidden_descriptor;
        }
        let limit = self.limits.iter().find(|(resource, ..)| *resource == libc::RLIMIT_NOFILE);
        limit.map_or(0, |(_, soft, hard)| crate::sys::engine_range(*soft, *hard).start)
    }

    /// The descriptors it finds open.
    pub fn files(&self) -> Files {
        match &self.handed_on {
            Some(inheritance) => Files::from_handed_on(&inheritance.descriptors),
            None => Files::inherited(&self.descriptors),
        }
    }

    /// Timers that may run already.
    pub fn timers(&self) -> Timers {
        let running = self.handed_on.iter().flat_map(|inheritance| &inheritance.timers);
        let interval = running.map(|which| (*which, Default::default())).collect();
        Timers { interval, ..Timers::default() }
    }
}

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

/// The process at its first instruction, from the recording alone.
pub fn make_process(
    beginning: &Beginning,
    dir: &std::path::Path,
    profile: Profile,
) -> Result<(Process, Task), Error> {
    shown::choose(&beginning.cpu);
    crate::code::dense::choose(beginning.dense);
    crate::crossing::map_context(beginning.cpu.xcr0)
        .map_err(Error::io("cannot map the engine's page"))?;
    let machine = Machine::new(profile).map_err(Error::io("cannot map the code cache"))?;
    let mut actions = Actions::default();
    for signal in 1..=64 {
        if beginning.ignored & signal::only(signal) != 0 {
            actions
                .set(signal, crate::signal::actions::Action { handler: 1, ..Default::default() });
        }
    }
    let mut process = Process {
        machine,
        actions,
        files: beginning.files(),
        objects: Objects::new(dir),
        program: beginning.program_path.clone(),
        loaded: Default::default(),
        first_hidden_descriptor: beginning.first_hidden_descriptor(),
        pid: beginning.pid,
        cwd: Some(beginning.cwd.clone()),
        umask: beginning.umask,
        ids: Some(beginning.start.ids),
        pipes: Pipes::default(),
        timers: beginning.timers(),
        limits: beginning.limits.iter().map(|(r, s, h)| (*r, (*s, *h))).collect::<HashMap<_, _>>(),
        shares_memory: false,
    };
    let interpreter = beginning.interpreter.as_ref().map(|(id, path)| (id.0, path.as_slice()));
    let regs = load_images(
        &mut process,
        &beginning.start,
        (beginning.program.0, &beginning.program_path),
        interpreter,
    )?;
    let tid = beginning.handed_on.as_ref().map_or(beginning.pid, |inheritance| inheritance.tid);
    let mut task = Task::new(Thread(1), tid, regs.clone());
    task.mask = beginning.mask;
    // SAFETY: no guest thread runs yet.
    unsafe { context() }.regs = regs;
    Ok((process, task))
}

/// Maps program and interpreter from captured contents.
pub fn load_images(
    process: &mut Process,
    start: &Start,
    program: (FileId, &[u8]),
    interpreter: Option<(FileId, &[u8])>,
) -> Result<crate::context::Registers, Error> {
    let open = |process: &mut Process, id: FileId| -> Result<(File, Vec<u8>), Error> {
        let file = process.objects.open(id).map_err(Error::io("cannot open a captured file"))?;
        let bytes = process.objects.bytes(id).map_err(Error::io("cannot read a captured file"))?;
        // As a rule all headers are at the beginning.
        let short = &bytes[..bytes.len().min(Headers::USUAL)];
        let bytes = if Headers::parse(short).is_ok() { short } else { bytes };
        Ok((file, bytes.to_vec()))
    };
    let (file, bytes) = open(process, program.0)?;
    let main = ImageFile { fd: file.as_raw_fd(), path: program.1, bytes: &bytes };
    let interpreter_file = match interpreter {
        Some((id, path)) => Some((open(process, id)?, path)),
        None => None,
    };
    let interp = interpreter_file.as_ref().map(|((file, bytes), path)| ImageFile {
        fd: file.as_raw_fd(),
        path,
        bytes,
    });
    let (regs, loaded) =
        load(&mut process.machine.memory, start, &main, interp.as_ref()).map_err(|error| {
            Error::Image { path: PathBuf::from(std::ffi::OsStr::from_bytes(program.1)), error }
        })?;
    crate::code::dense::note_program(&loaded.code);
    process.loaded = loaded;
    Ok(regs)
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
    fn drawn_quantum(&mut self, called: bool) -> Option<i64> {
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

    /// Runs the guest thread to its end. The caller has acquired the turn.
    pub fn run(&mut self) {
        self.resume();
        let (mut left, mut called) = (QUANTUM, false);
        loop {
            let quantum = self.session().drawn_quantum(called).unwrap_or(left);
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
