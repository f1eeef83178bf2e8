//! Who runs trials: a small process at the beginning of the run, walkers that follow
//! the log, and trials that leave it. Each is a fork of the one before.

use super::rehearsal::{Original, rehearse};
use super::{Limits, Sandbox, own_code, wall};
use crate::code::Profile;
use crate::record::beginning::Beginning;
use crate::replay::{Finish, Replayer, Until};
use crate::{Error, ReplayOptions};
use recording::Recording;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The process at the beginning of the run.
pub struct Root {
    replayer: Replayer,
    original: Original,
}

/// A walker looks at the clock after so many instructions: about a tenth of a second.
const STRETCH: u64 = 20_000_000;

/// A process that follows the log.
pub struct Walker {
    replayer: Option<Replayer>,
}

/// A forked process. Dropping it waits for its end.
pub struct Child {
    pid: i32,
}

impl Child {
    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Ends it now.
    pub fn kill(&self) {
        // SAFETY: our own child, which has not been waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }
}

impl Child {
    /// Waits for its end. Did it come there by itself?
    pub fn ends_well(self) -> bool {
        let status = self.wait();
        std::mem::forget(self);
        status == 0
    }

    fn wait(&self) -> i32 {
        let mut status = -1;
        // SAFETY: our own child.
        unsafe { libc::waitpid(self.pid, &mut status, 0) };
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.wait();
    }
}

/// A trial that is under way.
pub struct Trial {
    child: Child,
    pipe: OwnedFd,
}

impl Trial {
    /// Ends it, whatever it was about to say.
    pub fn give_up(self) {
        self.child.kill();
    }
}

/// Begins a small process of its own, with a socket to it. The calling process must
/// not have other threads, and should be small.
pub fn helper(run: impl FnOnce(UnixStream)) -> Result<(UnixStream, Child), Error> {
    let (ours, theirs) = UnixStream::pair().map_err(Error::io("cannot make a socket"))?;
    let mut theirs = Some(theirs);
    let child = fork(|| {
        // SAFETY: the other end belongs to the parent. ^C is for whoever asks; we, and
        // all that are forked from here, end when they do.
        unsafe {
            libc::close(ours.as_raw_fd());
            libc::signal(libc::SIGINT, libc::SIG_IGN);
        }
        run(theirs.take().expect("once"));
    })?;
    Ok((ours, child))
}

/// Runs something in a fork, which then ends.
pub(super) fn fork(run: impl FnOnce()) -> Result<Child, Error> {
    // Not the C library's own: that one touches pages for handlers and locks, which each
    // child pays for, and neither is of use where there is one thread.
    // SAFETY: the caller has one thread, so the child may do anything.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(Error::Io { what: "cannot fork", error: io::Error::last_os_error() }),
        0 => {
            // Whoever started us may be killed; then nobody wants our answers.
            // SAFETY: plain attribute of this process.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            run();
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(Child { pid: pid as i32 }),
    }
}

impl Root {
    /// Rehearses a run and stands at its first instruction.
    pub fn new(recording: &Recording) -> Result<Root, Error> {
        let silent = ReplayOptions { verify: false, silent: true };
        let mut replayer = Replayer::new(recording, Profile::COUNTING, &silent)?;
        let beginning: Beginning = serde_json::from_value(recording.manifest().start.clone())
            .map_err(|_| Error::CannotGoOn("the manifest does not say how it began".to_owned()))?;
        replayer.keep_world(recording)?;
        let original = rehearse(&mut replayer, &beginning)?;
        if let Some(world) = &mut replayer.world {
            world.facts.executions = super::births::executions(recording);
        }
        replayer.process.machine.keep_prefixes();
        own_code::use_huge_pages();
        wall::prepare();
        Ok(Root { replayer, original })
    }

    /// What the run came to without any change.
    pub fn original(&self) -> &Original {
        &self.original
    }

    /// Forks a walker.
    pub fn walk(&mut self, run: impl FnOnce(Walker)) -> Result<Child, Error> {
        let replayer = &raw mut self.replayer;
        fork(|| {
            // SAFETY: in the child nobody else uses it, and the child ends without
            // dropping the original.
            let mut replayer = unsafe { std::ptr::read(replayer) };
            replayer.process.machine.share_with_forks(false);
            run(Walker { replayer: Some(replayer) });
        })
    }
}

impl Walker {
    pub(super) fn replayer(&mut self) -> &mut Replayer {
        self.replayer.as_mut().expect("only a trial takes it")
    }

    /// Follows the log until so many instructions have been executed. False if the
    /// run ends before.
    pub fn to(&mut self, instruction: u64) -> Result<bool, Error> {
        let replayer = self.replayer();
        if replayer.instructions() >= instruction {
            return Ok(replayer.instructions() == instruction);
        }
        Ok(replayer.run(Until::Instruction(instruction))? == Finish::Reached)
    }

    /// The same, unless the time is over before: `None` then.
    pub fn to_within(
        &mut self,
        instruction: u64,
        until: Option<Instant>,
    ) -> Result<Option<bool>, Error> {
        let Some(until) = until else { return self.to(instruction).map(Some) };
        loop {
            let here = self.replayer().instructions();
            let next = instruction.min(here.saturating_add(STRETCH));
            let reached = self.to(next)?;
            if next == instruction || !reached {
                return Ok(Some(reached));
            }
            if until <= Instant::now() {
                return Ok(None);
            }
        }
    }

    /// The address of the next instruction.
    pub fn pc(&mut self) -> u64 {
        self.replayer().registers().rip
    }

    /// Trials will count their instructions, which makes them several times as slow.
    pub fn count_trials(&mut self) {
        let machine = &mut self.replayer().process.machine;
        machine.forget_plain();
        machine.share_with_forks(true);
    }

    /// Trials will stop at these instructions: finds their translations once for all
    /// of them.
    pub fn expect_stops(&mut self, addresses: &[u64]) {
        self.replayer().process.machine.expect_stops(addresses);
    }

    /// Forks a trial that leaves the log here.
    pub fn trial(
        &mut self,
        limits: Limits,
        run: impl FnOnce(&mut Sandbox) -> Vec<u8>,
    ) -> Result<Trial, Error> {
        let (read, write) = pipe().map_err(Error::io("cannot make a pipe"))?;
        let read_fd = read.as_raw_fd();
        let mut write = Some(write);
        let replayer = self.replayer();
        if replayer.process.machine.memory.regions().any(|(_, r)| {
            r.shared
                && r.prot & libc::PROT_WRITE != 0
                && matches!(r.backing, crate::guest::memory::Backing::File { .. })
        }) {
            let what = "a run that maps files shared for writing cannot be altered yet";
            return Err(Error::CannotGoOn(what.to_owned()));
        }
        let replayer = &raw mut *replayer;
        let child = fork(|| {
            // SAFETY: the parent's end.
            unsafe { libc::close(read_fd) };
            let write = File::from(write.take().expect("once"));
            // SAFETY: as in `Root::walk`.
            let replayer = unsafe { std::ptr::read(replayer) };
            run_trial(replayer, limits, write, run);
        })?;
        drop(write);
        Ok(Trial { child, pipe: read })
    }

    /// Waits for one of some trials; its number and what it said, if anything. `None` if
    /// the time is over before one of them is.
    pub fn wait(
        &mut self,
        trials: &mut Vec<Trial>,
        until: Option<Instant>,
    ) -> Option<(usize, Option<Vec<u8>>)> {
        let mut polled: Vec<libc::pollfd> = trials
            .iter()
            .map(|t| libc::pollfd { fd: t.pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        let n = loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            // A part of a millisecond is waited for as a whole.
            let millis = left.map_or(-1, |left| left.as_millis().min(1 << 30) as i32 + 1);
            // SAFETY: our own array.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, millis) };
            if let Some(n) = polled.iter().position(|p| p.revents != 0) {
                break n;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return None;
            }
        };
        let Trial { child, pipe } = trials.remove(n);
        let mut bytes = Vec::new();
        let read = File::from(pipe).read_to_end(&mut bytes);
        drop(child);
        let said: Option<(Vec<u8>, Vec<u64>)> = match read {
            Ok(_) => postcard::from_bytes(&bytes).ok(),
            Err(_) => None,
        };
        let Some((said, learnt)) = said else { return Some((n, None)) };
        self.replayer().process.machine.learn(&learnt);
        Some((n, Some(said)))
    }
}

fn run_trial(
    mut replayer: Replayer,
    limits: Limits,
    mut write: File,
    run: impl FnOnce(&mut Sandbox) -> Vec<u8>,
) {
    if wall::raise().is_err() || replayer.process.machine.begin_trial().is_err() {
        return;
    }
    let mut sandbox = Sandbox::leave(replayer, limits);
    let said = run(&mut sandbox);
    let learnt = sandbox.replayer.process.machine.learnt();
    if let Ok(bytes) = postcard::to_allocvec(&(said, learnt)) {
        let _ = write.write_all(&bytes);
    }
    // SAFETY: leaves without unmapping the guest.
    unsafe { libc::_exit(0) }
}

pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors into our own array, owned from here on. They are moved
    // out of the range that guests use.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
