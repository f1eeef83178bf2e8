//! The recording session: one guest process, its log, and the loop that each of
//! its threads runs.

use super::engine_calls::After;
use super::host_calls::{Scratch, View, Written, room, written};
use super::inheriting;
use super::launch::Launch;
use super::turn::Turn;
use super::{RecordOptions, supervise::Report};
use crate::code::Profile;
use crate::context::{Context, context, reg};
use crate::cpu::emulate::{self, Outcome as Emulated, Unknown};
use crate::cpu::shown::{self, Shown};
use crate::guest::machine::{Fault, Machine, Stop};
use crate::guest::start::{ImageFile, Start, load};
use crate::guest::task::{Task, Thread};
use crate::kernel::files::{FileIdText, Files, What};
use crate::kernel::pipes::Pipes;
use crate::kernel::process::{Asked, Objects, Process, World};
use crate::kernel::table::{self, Call, How};
use crate::kernel::timers::Timers;
use crate::signal::actions::Actions;
use crate::signal::deliver::{Delivered, deliver, deliver_fault, restart_undelivered, signal_of};
use crate::signal::{self, host};
use crate::{Error, hash};
use recording::event::{Effect, Encoder, When};
use recording::{ByteString, Ending, FileId, Manifest, Outcome, Store, Writer};
use serde::{Deserialize, Serialize};
use std::cell::UnsafeCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Safepoints a thread may pass before it looks for signals and other threads.
const QUANTUM: i64 = 100_000;

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
    #[serde(default)]
    pub cwd: Vec<u8>,
    /// Resource limits the engine answers for: resource, soft, hard.
    pub limits: Vec<(u32, u64, u64)>,
    /// The processor it sees.
    #[serde(default)]
    pub cpu: Shown,
}

/// What all threads of a recorded process share. Touched only with the turn.
pub struct Session {
    /// The process.
    pub process: Process,
    /// The log.
    pub writer: Option<Writer>,
    pub(super) encoder: Encoder,
    /// Folder of the recording.
    pub dir: PathBuf,
    /// The process's number.
    pub pid: i32,
    /// Where contents are shared.
    pub store: Store,
    /// How the running image began.
    pub start: Start,
    current: Thread,
    stopped: (When, u32),
    /// Threads alive.
    pub threads: u32,
    /// Number of the next thread.
    pub next_thread: u32,
    /// Files captured.
    pub files_captured: u64,
    /// State of files when they were captured, by device and inode.
    pub stamps: HashMap<(u64, u64), super::capture::Stamp>,
    counters: Counters,
    partly_captured: BTreeSet<Vec<u8>>,
    unsupported: BTreeMap<String, u64>,
    /// Files that are mapped shared and can be written to, by device and inode.
    pub(super) live: BTreeSet<(u64, u64)>,
    last_hash: Instant,
    hash_cost: Duration,
    report: Report,
}

#[derive(Default)]
struct Counters {
    calls: u64,
    signals: u64,
    switches: u64,
}

/// The session and the turn that guards it.
pub struct Shared {
    /// The turn.
    pub turn: Turn,
    session: UnsafeCell<Session>,
}

// SAFETY: the session is only reached through `Runner::session`, by the thread
// that holds the turn.
unsafe impl Sync for Shared {}
// SAFETY: it is created by one thread and then shared.
unsafe impl Send for Shared {}

static SHARED: OnceLock<Shared> = OnceLock::new();

/// One guest thread being recorded, on its own kernel thread.
pub struct Runner {
    pub(super) shared: &'static Shared,
    /// The thread.
    pub task: Task,
}

/// What the host must know while recording.
pub(super) struct HostWorld;

impl World for HostWorld {
    fn mask_changed(&mut self, task: &Task) {
        host::set_mask(task.mask);
    }

    fn action_changed(&mut self, signal: i32, actions: &Actions) {
        install(signal, actions);
    }
}

/// Makes the host treat a signal as the guest wants it, with us in between where
/// the guest or its death must be told.
fn install(signal: i32, actions: &Actions) {
    if signal::SYNCHRONOUS & signal::only(signal) != 0 {
        return;
    }
    let action = actions.get(signal);
    let how = if actions.must_catch(signal) {
        host::Host::Catch
    } else if action.handler == 1 {
        host::Host::Ignore
    } else {
        host::Host::Default
    };
    let keep = libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT;
    host::install(signal, how, action.flags as i32 & keep);
}

/// The engine's own C library takes two signals for itself when its first thread
/// starts, but they are the guest's.
pub(super) fn take_back_signals(actions: &Actions) {
    for signal in [32, 33] {
        install(signal, actions);
    }
}

/// Becomes the recorded program. Never returns.
pub fn run(options: &RecordOptions, launch: Launch, report: Report) -> ! {
    match begin(options, launch, &report) {
        Ok((session, task)) => {
            let shared = SHARED.get_or_init(|| Shared {
                turn: Turn::default(),
                session: UnsafeCell::new(session),
            });
            let mut runner = Runner { shared, task };
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

fn begin(
    options: &RecordOptions,
    launch: Launch,
    report: &Report,
) -> Result<(Session, Task), Error> {
    let nofile = crate::sys::reserve_descriptors().map_err(Error::io("cannot set limits"))?;
    let lifted = [libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_FSIZE].map(|resource| {
        let (soft, hard) = crate::sys::lift_limit(resource);
        (resource, soft, hard)
    });
    let captured = |file: &File| -> Result<FileId, Error> {
        Ok(options.store.capture(file, &options.dir)?.id)
    };
    let stack = crate::sys::limit(libc::RLIMIT_STACK);
    let (ignored, mask) = crate::sys::inherited_signals();
    let start = Start {
        path: launch.exec_path.clone(),
        argv: launch.argv.clone(),
        env: std::env::vars_os()
            .map(|(k, v)| [k.as_bytes(), b"=", v.as_bytes()].concat())
            .collect(),
        random: crate::sys::random(),
        ids: crate::sys::ids(),
        stack: if stack.0 == libc::RLIM_INFINITY { 8 << 20 } else { stack.0 },
    };
    recording::prepare(&options.dir)?;
    let mut manifest = Manifest::new(
        std::iter::once(&options.program).chain(&options.args).map(ByteString::from).collect(),
    );
    manifest.program = ByteString(launch.path.as_os_str().as_bytes().to_vec());
    manifest.directory =
        ByteString(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes().to_vec());
    manifest.environment = start.env.iter().map(|e| ByteString(e.clone())).collect();
    let cpu = match options.cpu {
        recording::Cpu::V3 => Shown::baseline(),
        recording::Cpu::Host => Shown::host(),
    };
    manifest.cpu = options.cpu;
    manifest.cpu_features = cpu.features();
    let program = captured(&launch.file)?;
    let interpreter = match &launch.interpreter {
        Some((path, file)) => Some((captured(file)?, path.as_os_str().as_bytes().to_vec())),
        None => None,
    };
    // SAFETY: no memory is touched.
    let pid = unsafe { libc::getpid() };
    let beginning = Beginning {
        start: start.clone(),
        program: FileIdText(program),
        program_path: launch.path.as_os_str().as_bytes().to_vec(),
        interpreter: interpreter.map(|(id, path)| (FileIdText(id), path)),
        descriptors: launch.descriptors.clone(),
        ignored,
        mask,
        pid,
        umask: crate::sys::umask(),
        cwd: manifest.directory.0.clone(),
        limits: [(libc::RLIMIT_NOFILE, nofile.0, nofile.1), (libc::RLIMIT_STACK, stack.0, stack.1)]
            .into_iter()
            .chain(lifted)
            .collect(),
        cpu,
    };
    manifest.start = serde_json::to_value(&beginning).expect("plain data");
    let writer = Writer::create(
        &options.dir,
        &manifest,
        &recording::Options {
            max_bytes: options.max_bytes,
            lowest_fd: crate::sys::first_engine_fd(),
            ..Default::default()
        },
    )?;
    let (process, task) = make_process(&beginning, &options.dir, Profile::PLAIN)?;
    host::set_up_thread().map_err(Error::io("cannot set up a signal stack"))?;
    host::install_synchronous();
    for signal in 1..=64 {
        if signal::UNBLOCKABLE & signal::only(signal) == 0 {
            install(signal, &process.actions);
        }
    }
    host::set_mask(mask);
    hash::keep_pagemap();
    crate::sys::set_name(launch.path.file_name().unwrap_or_default().as_bytes());
    let session = Session {
        process,
        writer: Some(writer),
        encoder: Encoder::default(),
        dir: options.dir.clone(),
        store: options.store.clone(),
        pid,
        start,
        current: task.thread,
        stopped: (When::Here, 0),
        threads: 1,
        next_thread: 2,
        files_captured: 0,
        stamps: HashMap::new(),
        counters: Counters::default(),
        partly_captured: BTreeSet::new(),
        unsupported: BTreeMap::new(),
        live: BTreeSet::new(),
        last_hash: Instant::now(),
        hash_cost: Duration::ZERO,
        report: report.clone(),
    };
    Ok((session, task))
}

/// The process at its first instruction, from the recording alone.
pub fn make_process(
    beginning: &Beginning,
    dir: &std::path::Path,
    profile: Profile,
) -> Result<(Process, Task), Error> {
    shown::choose(&beginning.cpu);
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
        files: Files::inherited(&beginning.descriptors),
        objects: Objects::new(dir),
        program: beginning.program_path.clone(),
        loaded: Default::default(),
        pid: beginning.pid,
        cwd: Some(beginning.cwd.clone()),
        umask: beginning.umask,
        ids: Some(beginning.start.ids),
        pipes: Pipes::default(),
        timers: Timers::default(),
        limits: beginning.limits.iter().map(|(r, s, h)| (*r, (*s, *h))).collect::<HashMap<_, _>>(),
    };
    let interpreter = beginning.interpreter.as_ref().map(|(id, path)| (id.0, path.as_slice()));
    let regs = load_images(
        &mut process,
        &beginning.start,
        (beginning.program.0, &beginning.program_path),
        interpreter,
    )?;
    let mut task = Task::new(Thread(1), beginning.pid, regs.clone());
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
        Ok((file, bytes[..bytes.len().min(1 << 16)].to_vec()))
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
            let outcome = self.outcome(Ending::Unknown);
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

    fn outcome(&self, ending: Ending) -> Outcome {
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
        outcome.partly_captured =
            self.partly_captured.iter().map(|p| ByteString(p.clone())).collect();
        outcome
    }

    /// The process ends: `status` as `wait` has it.
    pub(super) fn end(&mut self, status: i32) -> ! {
        if self.writer.is_some() {
            let hash = hash::memory(&self.process.machine.memory);
            self.encoder.end(status, hash);
            self.log();
        }
        let ending = match status & 0x7f {
            0 => Ending::Exited(status >> 8 & 0xff),
            signal => Ending::Killed { signal },
        };
        if let Some(writer) = self.writer.take() {
            let outcome = self.outcome(ending);
            if let Err(error) = crate::clerk::run(|| writer.finish(&outcome)) {
                self.report.fail(&error.into());
            }
        }
        // SAFETY: ends the process with all its threads.
        unsafe { libc::_exit(0) }
    }

    /// Hashes memory now and then.
    fn hash_memory_sometimes(&mut self) {
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
        loop {
            let count = &mut self.context().count;
            *count = QUANTUM;
            self.task.count_loaded = QUANTUM;
            let stop = self.session().process.machine.run();
            self.account();
            match stop {
                Stop::Syscall => {
                    if self.call() == After::ThreadEnded {
                        return;
                    }
                }
                Stop::Safepoint => self.safepoint(),
                Stop::Emulate => self.emulate(),
                Stop::Fault(fault) => self.fault(fault),
                Stop::Budget | Stop::Block | Stop::Watch => {
                    unreachable!("the plain profile never stops")
                }
            }
        }
    }

    fn account(&mut self) {
        let left = self.context().count;
        self.task.safepoints += (self.task.count_loaded - left) as u64;
        self.task.count_loaded = left;
    }

    /// Takes up the context page after the turn was acquired.
    pub(super) fn resume(&mut self) {
        let session = self.session();
        let me = self.task.thread;
        if session.current != me {
            let (when, state) = session.stopped;
            session.encoder.switch(when, me.0, state);
            session.log();
            session.counters.switches += 1;
            session.current = me;
        }
        self.context().regs.clone_from(&self.task.regs);
        crate::kernel::calls::set_gs(self.task.regs.gs);
    }

    /// Leaves the context page and hands the turn on.
    pub(super) fn pause(&mut self, when: When) {
        let context = self.context();
        context.regs.gs = crate::kernel::calls::gs();
        self.task.regs.clone_from(&Box::new(context.regs.clone()));
        self.session().stopped = (when, hash::registers(&context.regs));
        self.shared.turn.release();
    }

    fn safepoint(&mut self) {
        let when = When::Safepoint(self.task.safepoints);
        if host::is_pending() {
            self.signals(when);
        }
        if self.shared.turn.is_wanted() {
            self.pause(When::Safepoint(self.task.safepoints));
            self.shared.turn.acquire();
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
                let error = Error::Refused(format!(
                    "the instruction `{text}` at {:#x} cannot be translated",
                    context.regs.rip
                ));
                self.session().give_up(&error);
            }
        }
        // No signal is delivered here: most of these instructions leave no event
        // behind that could tell a replay where it came.
    }

    /// A hardware exception becomes a signal.
    pub(super) fn fault(&mut self, fault: Fault) {
        let session = self.session();
        let context = self.context();
        if deliver_fault(&mut session.process, &mut self.task, context, &fault, &mut HostWorld)
            == Delivered::Deadly
        {
            session.end(fault.signal);
        }
    }

    /// Delivers the signals that wait for this thread.
    pub(super) fn signals(&mut self, mut when: When) {
        while let Some(info) = host::take_pending(self.task.mask) {
            let session = self.session();
            let context = self.context();
            session.counters.signals += 1;
            session.encoder.signal(when, &info, hash::registers(&context.regs));
            session.log();
            let delivered =
                deliver(&mut session.process, &mut self.task, context, &info, &mut HostWorld);
            if delivered == Delivered::Deadly {
                session.end(signal_of(&info));
            }
            when = When::Here;
        }
        self.settle_interrupted_call();
    }

    /// A call was interrupted but nothing was delivered for it: make it again.
    fn settle_interrupted_call(&mut self) {
        restart_undelivered(self.context(), &mut self.task, &mut HostWorld);
    }

    /// A `syscall` instruction.
    fn call(&mut self) -> After {
        let session = self.session();
        let context = self.context();
        let asked = Asked::of(context);
        let call = table::call(asked.number);
        let state = hash::registers(&context.regs);
        session.counters.calls += 1;
        enter_call(context);
        if kills_self(&asked, session.pid, self.task.tid) {
            self.finish_call(&asked, 0, state, &[]);
            self.session().end(libc::SIGKILL);
        }
        if table::changes_credentials(call.number) && !crate::clerk::is_hired() {
            host::set_mask(!0);
            crate::clerk::hire();
            take_back_signals(&session.process.actions);
            host::set_mask(self.task.mask);
        }
        if let Some(error) = self.guard(&asked) {
            self.finish_call(&asked, error, state, &[]);
            return After::Goes;
        }
        let (asked, _path) = self.redirected(asked);
        let after = match call.how {
            How::Waits if call.number == table::futex && inheriting::concerns(&asked) => {
                self.inheriting_futex(&asked, state);
                After::Goes
            }
            How::Host if self.clock_call(&asked, state) => After::Goes,
            How::Host => {
                self.host_call(&call, &asked, state, false);
                After::Goes
            }
            How::Waits => {
                let waits = self.may_wait(&asked);
                self.host_call(&call, &asked, state, waits);
                After::Goes
            }
            How::Engine => self.engine_call(&call, &asked, state),
            How::Missing => {
                session.note_unsupported(&call);
                self.finish_call(&asked, -(libc::ENOSYS as i64), state, &[]);
                After::Goes
            }
            How::Refused => {
                let error = Error::Refused(format!(
                    "the program uses {}, which cannot be replayed",
                    call.name
                ));
                session.give_up(&error);
            }
        };
        if after == After::Goes {
            if host::is_pending() {
                self.signals(When::Here);
            } else {
                self.settle_interrupted_call();
            }
            self.session().hash_memory_sometimes();
        }
        after
    }

    /// Clocks the kernel lets programs read without entering it: as a program
    /// outside would, but into the log. False if it is not such a call.
    fn clock_call(&mut self, asked: &Asked, state: u32) -> bool {
        let number = asked.number as u32;
        let clock = match number {
            table::clock_gettime => asked.args[0] as i32,
            table::gettimeofday if asked.args[1] == 0 => libc::CLOCK_REALTIME,
            _ => return false,
        };
        let fast = matches!(
            clock,
            libc::CLOCK_REALTIME
                | libc::CLOCK_MONOTONIC
                | libc::CLOCK_REALTIME_COARSE
                | libc::CLOCK_MONOTONIC_COARSE
                | libc::CLOCK_BOOTTIME
        );
        let at = if number == table::clock_gettime { asked.args[1] } else { asked.args[0] };
        let session = self.session();
        let machine = &mut session.process.machine;
        if !fast || at == 0 || !machine.memory.is_writable(at, 16) {
            return false;
        }
        machine.prepare_write(at, 16);
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: reads a clock into our own struct.
        unsafe { libc::clock_gettime(clock, &mut time) };
        let fraction =
            if number == table::clock_gettime { time.tv_nsec } else { time.tv_nsec / 1000 };
        let mut data = [0u8; 16];
        data[..8].copy_from_slice(&time.tv_sec.to_le_bytes());
        data[8..].copy_from_slice(&fraction.to_le_bytes());
        let _ = machine.memory.write(at, &data);
        set_result(self.context(), &mut self.task, asked, 0);
        session.encoder.call(number, 0, state).effect(&Effect::Write { address: at, data: &data });
        session.log();
        true
    }

    /// Sets the result and logs the call.
    pub(super) fn finish_call(
        &mut self,
        asked: &Asked,
        result: i64,
        state: u32,
        effects: &[Effect],
    ) {
        let session = self.session();
        set_result(self.context(), &mut self.task, asked, result);
        session.encoder.call(asked.number as u32, result, state);
        for effect in effects {
            session.encoder.effect(effect);
        }
        session.encode_changes(asked, result);
        session.log();
        session.process.observe(asked, result);
    }

    /// Lets the host perform a call and logs what it wrote.
    fn host_call(&mut self, call: &Call, asked: &Asked, state: u32, waits: bool) {
        let session = self.session();
        let mut scratch = Scratch::default();
        let mut args = asked.args;
        let mut written_bytes: Option<Vec<u8>> = None;
        if call.outs.is_empty() || !session.process.machine.watches_code() {
            // Nothing to prepare.
        } else {
            self.prepare_outs(call, asked);
        }
        session.process.temporary_mask(&mut self.task, asked);
        if self.task.saved_mask.is_some() {
            host::note_mask(self.task.mask);
        }
        let room = room(call, asked, &session.process.machine.memory);
        let hidden = self
            .guard_duplicate(asked)
            .or_else(|| self.guard_output(asked))
            .or_else(|| self.guard_pair(asked));
        let limited = self.limit_file_size(asked);
        let result = if let Some(error) = hidden {
            error
        } else if waits {
            args = scratch.divert(call, asked, &session.process.machine.memory);
            if call.number == table::write {
                // Other threads may change it before the kernel has taken it.
                written_bytes = session.process.machine.memory.read(args[1], args[2] as usize);
                args[1] = written_bytes.as_ref().map_or(args[1], |b| b.as_ptr() as u64);
            }
            self.pause(When::Here);
            // SAFETY: the guest's call with the guest's arguments; memory it
            // writes is in `scratch`.
            let result = unsafe { host::interruptible(asked.number, args) };
            self.shared.turn.acquire();
            self.resume();
            result
        } else if call.how == How::Waits {
            // SAFETY: the guest's call; no other thread runs meanwhile, or the
            // call does not wait.
            unsafe { host::interruptible(asked.number, args) }
        } else {
            // SAFETY: as above.
            unsafe { crate::sys::raw(asked.number, args) }
        };
        let _ = args;
        drop(limited);
        let result = self.within_limit(asked, interrupted(call, asked, result));
        let session = self.session();
        let memory = &session.process.machine.memory;
        let ranges = written(call, asked, result, &View::new(memory, &scratch, room));
        scratch.give_back(memory, &ranges);
        let sent = written_bytes.filter(|_| self.is_output(asked.fd(0)) && result > 0);
        if let Some(bytes) = sent {
            let data = &bytes[..result as usize];
            return self.finish_call(asked, result, state, &[Effect::Output { data }]);
        }
        self.log_host_call(asked, result, state, &ranges);
    }

    fn log_host_call(&mut self, asked: &Asked, result: i64, state: u32, ranges: &[Written]) {
        let session = self.session();
        set_result(self.context(), &mut self.task, asked, result);
        let from_file = session.process.read_source(asked, result);
        session.encoder.call(asked.number as u32, result, state);
        let mut offset = from_file.map(|(_, offset)| offset).unwrap_or(0);
        let memory = &session.process.machine.memory;
        let there: Vec<Written> =
            ranges.iter().copied().filter(|(a, len)| memory.is_readable(*a, *len)).collect();
        for (address, len) in &there {
            // SAFETY: mapped and readable; no guest code runs.
            let data = unsafe { std::slice::from_raw_parts(*address as *const u8, *len as usize) };
            let same = from_file.filter(|_| *len >= 32).filter(|(file, _)| {
                session.process.objects.bytes(*file).is_ok_and(|bytes| {
                    bytes.get(offset as usize..(offset + len) as usize) == Some(data)
                })
            });
            let effect = match same {
                Some((file, _)) => Effect::Copy { address: *address, file, offset, len: *len },
                None => Effect::Write { address: *address, data },
            };
            session.encoder.effect(&effect);
            offset += len;
        }
        session.encode_changes(asked, result);
        session.log();
        session.process.observe(asked, result);
    }

    /// Pages watched for code must be open before the kernel writes them.
    fn prepare_outs(&mut self, call: &Call, asked: &Asked) {
        let machine = &mut self.session().process.machine;
        let guess = i64::from(i32::MAX);
        let scratch = Scratch::default();
        let ranges = {
            let view = View::new(&machine.memory, &scratch, u64::MAX);
            let most = if matches!(call.outs.first(), Some(table::Out::Returned(_))) {
                asked.args[2] as i64
            } else {
                guess
            };
            written(call, asked, most, &view)
        };
        for (address, len) in ranges {
            machine.prepare_write(address, len.min(1 << 30));
        }
    }

    /// `F_DUPFD` from beyond the guest's limit on.
    fn guard_duplicate(&self, asked: &Asked) -> Option<i64> {
        let duplicates = asked.number as u32 == table::fcntl
            && matches!(asked.args[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
        (duplicates && asked.args[2] as u32 as u64 >= self.descriptor_limit())
            .then_some(-(libc::EINVAL as i64))
    }

    /// Two descriptors at once: the guest's limit is asked first, because the
    /// kernel would already have written their numbers.
    fn guard_pair(&self, asked: &Asked) -> Option<i64> {
        if !matches!(asked.number as u32, table::pipe | table::pipe2 | table::socketpair) {
            return None;
        }
        let files = &self.session().process.files;
        let second = files.lowest_free(files.lowest_free(0) + 1);
        (second as u64 >= self.descriptor_limit()).then_some(-(libc::EMFILE as i64))
    }

    /// The guest's limit on the size of files holds for its own writes only.
    fn limit_file_size(&self, asked: &Asked) -> Option<FileSizeLimit> {
        let writes = matches!(
            asked.number as u32,
            table::write
                | table::writev
                | table::pwrite64
                | table::pwritev
                | table::pwritev2
                | table::truncate
                | table::ftruncate
                | table::fallocate
                | table::copy_file_range
                | table::splice
        );
        let (soft, _) = *self.session().process.limits.get(&libc::RLIMIT_FSIZE)?;
        (writes && soft != libc::RLIM_INFINITY).then(|| FileSizeLimit::new(soft))
    }

    /// Bytes for standard output must pass through the guest, or a replay could
    /// not show them: programs then fall back to `read` and `write`.
    fn guard_output(&self, asked: &Asked) -> Option<i64> {
        let out = match asked.number as u32 {
            table::splice | table::copy_file_range => asked.fd(2),
            table::tee => asked.fd(1),
            _ => return None,
        };
        self.is_output(out).then_some(-(libc::EINVAL as i64))
    }

    /// Is the descriptor the standard output or error we were started with?
    fn is_output(&self, fd: i32) -> bool {
        let what = self.session().process.files.get(fd).map(|d| &d.what);
        matches!(what, Some(What::Stdout | What::Stderr))
    }

    /// Can the call keep us waiting while another thread could run?
    fn may_wait(&self, asked: &Asked) -> bool {
        let session = self.session();
        if session.threads == 1 {
            return false;
        }
        let a = &asked.args;
        match asked.number as u32 {
            table::futex => self.futex_waits(a),
            table::read
            | table::write
            | table::readv
            | table::writev
            | table::pread64
            | table::pwrite64
            | table::preadv
            | table::pwritev => {
                let what = session.process.files.get(asked.fd(0)).map(|d| &d.what);
                !matches!(what, Some(What::Regular { .. } | What::Memory))
            }
            table::ioctl => false,
            // F_SETLKW and F_OFD_SETLKW.
            table::fcntl => matches!(a[1], 7 | 38),
            _ => true,
        }
    }

    fn futex_waits(&self, a: &[u64; 6]) -> bool {
        const WAIT: i32 = 0;
        const LOCK_PI: i32 = 6;
        const WAIT_BITSET: i32 = 9;
        match a[1] as i32 & 0x7f {
            WAIT | WAIT_BITSET => {
                let memory = &self.session().process.machine.memory;
                let word = memory.read(a[0], 4);
                word.is_none_or(|w| w == (a[2] as u32).to_le_bytes())
            }
            LOCK_PI | 11 | 13 => true,
            _ => false,
        }
    }
}

/// The real limit on the size of files is the guest's while this lives.
struct FileSizeLimit {
    ours: (u64, u64),
}

impl FileSizeLimit {
    fn new(soft: u64) -> FileSizeLimit {
        let ours = crate::sys::limit(libc::RLIMIT_FSIZE);
        let _ = crate::sys::set_limit(libc::RLIMIT_FSIZE, (soft.min(ours.1), ours.1));
        FileSizeLimit { ours }
    }
}

impl Drop for FileSizeLimit {
    fn drop(&mut self) {
        let _ = crate::sys::set_limit(libc::RLIMIT_FSIZE, self.ours);
    }
}

/// SIGKILL to ourselves leaves no time to write anything afterwards.
pub fn kills_self(asked: &Asked, pid: i32, tid: i32) -> bool {
    let (pid, tid) = (pid as u64, tid as u64);
    let a = &asked.args;
    match asked.number as u32 {
        table::kill => a[1] == libc::SIGKILL as u64 && (a[0] == pid || a[0] == 0),
        table::tkill => a[1] == libc::SIGKILL as u64 && a[0] == tid,
        table::tgkill => a[2] == libc::SIGKILL as u64 && a[0] == pid,
        _ => false,
    }
}

/// An interrupted call: -512 where a handler with SA_RESTART restarts it.
fn interrupted(call: &Call, asked: &Asked, result: i64) -> i64 {
    let eintr = -(libc::EINTR as i64);
    if result == -512 && !call.restarts {
        return eintr;
    }
    if result == eintr && call.restarts && host::is_pending() {
        let timed_futex = call.number == table::futex && asked.args[3] != 0;
        return if timed_futex { eintr } else { -512 };
    }
    result
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
