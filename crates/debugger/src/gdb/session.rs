//! Registers, memory, threads and moves, as gdb asks for them.

use super::arch::{self, Flat, X86_64};
use super::files::Files;
use crate::desk::Desk;
use crate::{Error, Met, Stop};
use engine::{Thread, Watch};
use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps,
    MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{
    ReplayLogPosition, ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps,
};
use gdbstub::target::ext::breakpoints::{BreakpointsOps, WatchKind};
use gdbstub::target::ext::catch_syscalls::{CatchSyscallPosition, CatchSyscallsOps};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult, ext};
use std::ops::Range;

/// How to go on.
#[derive(Clone, Debug)]
enum Resume {
    On,
    Step(Thread, Range<u64>),
    Back,
    StepBack(Thread),
}

/// One gdb's view of a run.
pub struct Session {
    pub(super) desk: Desk,
    pub(super) files: Files,
    resume: Resume,
    /// Threads as gdb numbers them, the running one first.
    threads: Vec<(Tid, Thread)>,
}

/// A result that gdb is told about.
type Told<T> = TargetResult<T, Session>;

pub(super) fn told(_: Error) -> TargetError<Error> {
    TargetError::NonFatal
}

impl Session {
    /// Where the desk stands.
    pub fn new(mut desk: Desk) -> crate::Result<Session> {
        let files = Files::new(&mut desk)?;
        let mut session = Session { desk, files, resume: Resume::On, threads: Vec::new() };
        session.look_around()?;
        Ok(session)
    }

    /// Sees which threads there are now.
    fn look_around(&mut self) -> crate::Result<()> {
        let threads = self.desk.timeline.state()?.threads;
        let numbered = threads.iter().filter_map(|d| Some((Tid::new(d.tid as usize)?, d.thread)));
        self.threads = numbered.collect();
        Ok(())
    }

    fn thread(&self, tid: Tid) -> Option<Thread> {
        self.threads.iter().find(|(t, _)| *t == tid).map(|(_, thread)| *thread)
    }

    fn tid(&self, thread: Thread) -> Tid {
        let found = self.threads.iter().find(|(_, t)| *t == thread).or(self.threads.first());
        found.map_or(Tid::MIN, |(tid, _)| *tid)
    }

    /// Moves as gdb has asked.
    pub fn run(&mut self) -> MultiThreadStopReason<u64> {
        let back = matches!(self.resume, Resume::Back | Resume::StepBack(_));
        let stop = match self.resume.clone() {
            Resume::On => self.desk.forward(),
            Resume::Step(thread, range) => self.desk.step(thread, range),
            Resume::Back => self.desk.backward(),
            Resume::StepBack(thread) => self.desk.step_back(thread),
        };
        match stop.and_then(|stop| self.look_around().map(|()| stop)) {
            Ok(stop) => self.reason(&stop, back),
            Err(Error::Interrupted) => {
                let tid = self.threads.first().map_or(Tid::MIN, |t| t.0);
                MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT }
            }
            // gdb has no word for it; the desk tells when asked.
            Err(error) => {
                self.desk.notice = Some(error.to_string());
                let tid = self.threads.first().map_or(Tid::MIN, |t| t.0);
                MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGABRT }
            }
        }
    }

    /// gdb learns that it failed, and the person why.
    fn told_of(&mut self, result: crate::Result<()>) -> Told<()> {
        result.map_err(|error| {
            self.desk.notice = Some(error.to_string());
            TargetError::NonFatal
        })
    }

    fn reason(&self, stop: &Stop, back: bool) -> MultiThreadStopReason<u64> {
        let tid = self.tid(stop.thread);
        let position = |entry: bool| {
            if entry { CatchSyscallPosition::Entry } else { CatchSyscallPosition::Return }
        };
        match stop.met.clone() {
            Met::There | Met::Mark => {
                MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGTRAP }
            }
            Met::Break => MultiThreadStopReason::SwBreak(tid),
            Met::Watched(watch) => {
                MultiThreadStopReason::Watch { tid, kind: kind(&watch), addr: watch.address }
            }
            Met::Call(number) | Met::Returned(number) => MultiThreadStopReason::CatchSyscall {
                tid: Some(tid),
                number,
                position: position(back || matches!(stop.met, Met::Call(_))),
            },
            Met::Signal(signal) => MultiThreadStopReason::SignalWithThread {
                tid,
                signal: Signal(arch::signal(signal)),
            },
            Met::Begin => {
                MultiThreadStopReason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::Begin }
            }
            Met::End(_) => {
                MultiThreadStopReason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::End }
            }
            Met::Stuck(_) => {
                MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGABRT }
            }
            Met::Interrupted => {
                MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT }
            }
        }
    }

    /// RBP, RSP and RIP of the thread that a stop is about.
    pub fn registers_at_stop(&mut self, reason: &MultiThreadStopReason<u64>) -> Vec<[u8; 8]> {
        let tid = match reason {
            MultiThreadStopReason::SignalWithThread { tid, .. }
            | MultiThreadStopReason::SwBreak(tid)
            | MultiThreadStopReason::Watch { tid, .. }
            | MultiThreadStopReason::CatchSyscall { tid: Some(tid), .. }
            | MultiThreadStopReason::ReplayLog { tid: Some(tid), .. } => *tid,
            _ => return Vec::new(),
        };
        let thread = self.thread(tid);
        let registers = thread.and_then(|t| self.desk.timeline.registers(t).ok().flatten());
        let Some(r) = registers else { return Vec::new() };
        [r.gpr[5], r.gpr[4], r.rip].map(u64::to_le_bytes).to_vec()
    }
}

fn kind(watch: &Watch) -> WatchKind {
    match (watch.reads, watch.writes) {
        (true, false) => WatchKind::Read,
        (true, true) => WatchKind::ReadWrite,
        _ => WatchKind::Write,
    }
}

impl Target for Session {
    type Arch = X86_64;
    type Error = Error;

    fn base_ops(&mut self) -> BaseOps<'_, X86_64, Error> {
        BaseOps::MultiThread(self)
    }

    fn use_fork_stop_reason(&self) -> bool {
        false
    }

    fn use_vfork_stop_reason(&self) -> bool {
        false
    }

    fn use_vforkdone_stop_reason(&self) -> bool {
        false
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_catch_syscalls(&mut self) -> Option<CatchSyscallsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }

    fn support_host_io(&mut self) -> Option<ext::host_io::HostIoOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ext::exec_file::ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<ext::auxv::AuxvOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Session {
    fn read_registers(&mut self, flat: &mut Flat, tid: Tid) -> Told<()> {
        let thread = self.thread(tid).ok_or(TargetError::NonFatal)?;
        let registers = self.desk.timeline.registers(thread).map_err(told)?;
        *flat = Flat::from(&registers.ok_or(TargetError::NonFatal)?);
        Ok(())
    }

    fn write_registers(&mut self, flat: &Flat, tid: Tid) -> Told<()> {
        let thread = self.thread(tid).ok_or(TargetError::NonFatal)?;
        let now = self.desk.timeline.registers(thread).map_err(told)?;
        let now = Flat::from(&now.ok_or(TargetError::NonFatal)?);
        if self.threads.first().is_none_or(|(_, running)| *running != thread) {
            let text = "only registers of the running thread can be changed";
            self.desk.notice = Some(text.to_owned());
            return Err(TargetError::NonFatal);
        }
        for (register, value) in now.changed_general(flat) {
            let written = self.desk.write_register(register, value);
            self.told_of(written)?;
        }
        Ok(())
    }

    fn read_addrs(&mut self, address: u64, bytes: &mut [u8], _: Tid) -> Told<usize> {
        let read = self.desk.timeline.memory(address, bytes.len()).map_err(told)?;
        if read.is_empty() && !bytes.is_empty() {
            return Err(TargetError::NonFatal);
        }
        bytes[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    fn write_addrs(&mut self, address: u64, bytes: &[u8], _: Tid) -> Told<()> {
        if bytes.is_empty() {
            // gdb asks whether we know the packet.
            return Ok(());
        }
        let written = self.desk.write_memory(address, bytes);
        self.told_of(written)
    }

    fn list_active_threads(&mut self, active: &mut dyn FnMut(Tid)) -> Result<(), Error> {
        // Moves behind gdb's back change what is there.
        self.look_around()?;
        self.threads.iter().for_each(|(tid, _)| active(*tid));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Session {
    fn thread_extra_info(&self, tid: Tid, bytes: &mut [u8]) -> Result<usize, Error> {
        let running = self.threads.first().is_some_and(|(t, _)| *t == tid);
        let Some(thread) = self.thread(tid) else { return Ok(0) };
        let text = if running { format!("{thread}, running") } else { thread.to_string() };
        let n = text.len().min(bytes.len());
        bytes[..n].copy_from_slice(&text.as_bytes()[..n]);
        Ok(n)
    }
}

impl MultiThreadResume for Session {
    fn resume(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Error> {
        self.resume = Resume::On;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Error> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Session {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Error> {
        if let Some(thread) = self.thread(tid) {
            self.resume = Resume::Step(thread, 0..0);
        }
        Ok(())
    }
}

impl MultiThreadRangeStepping for Session {
    fn set_resume_action_range_step(&mut self, tid: Tid, from: u64, to: u64) -> Result<(), Error> {
        if let Some(thread) = self.thread(tid) {
            self.resume = Resume::Step(thread, from..to);
        }
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Session {
    /// The schedule is the recorded one, whatever gdb would like.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl ReverseCont<Tid> for Session {
    fn reverse_cont(&mut self) -> Result<(), Error> {
        self.resume = Resume::Back;
        Ok(())
    }
}

impl ReverseStep<Tid> for Session {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Error> {
        let thread = self.thread(tid).or(self.threads.first().map(|t| t.1));
        if let Some(thread) = thread {
            self.resume = Resume::StepBack(thread);
        }
        Ok(())
    }
}

impl MonitorCmd for Session {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), Error> {
        let text = String::from_utf8_lossy(command);
        out.write_raw(self.desk.command(&text).as_bytes());
        Ok(())
    }
}

impl TargetDescriptionXmlOverride for Session {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        bytes: &mut [u8],
    ) -> Told<usize> {
        if annex != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        Ok(super::files::piece(arch::description().as_bytes(), offset, length, bytes))
    }
}
