//! How a recorded process ends: its log first, then really, for whoever waits for it.

use super::session::Session;
use crate::hash;
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::signal::host::{self, Host};
use recording::{Ending, Process as Whose, SpareTail};

impl Session {
    /// The process ends: `status` as `wait` has it.
    pub(super) fn end(&mut self, status: i32) -> ! {
        self.close_log(status);
        if self.number == Whose::FIRST {
            // Who waits is `why`, which reads the outcome.
            // SAFETY: ends the process with all its threads.
            unsafe { libc::_exit(0) }
        }
        end_as(status)
    }

    /// The process ends by a call that kills others too.
    pub(super) fn end_by(&mut self, asked: &Asked) -> ! {
        self.close_log(libc::SIGKILL);
        // SAFETY: the guest's call, which reads no memory and does not return.
        unsafe { crate::sys::raw(asked.number, asked.args) };
        end_as(libc::SIGKILL)
    }

    fn close_log(&mut self, status: i32) {
        self.give_back_memory();
        if self.writer.is_some() {
            let hash = hash::memory(&self.process.machine.memory);
            self.encoder.end(status, hash);
            self.log();
        }
        let ending = match status & 0x7f {
            0 => Ending::Exited(status >> 8 & 0xff),
            signal => Ending::Killed { signal },
        };
        self.finish_log(ending);
        self.leave_commons();
        self.process.machine.restock();
    }

    /// Closes the log.
    pub(super) fn finish_log(&mut self, ending: Ending) {
        if let Some(writer) = self.writer.take() {
            let outcome = self.outcome(ending);
            if let Err(error) = crate::clerk::run(|| writer.finish(&outcome)) {
                self.report.fail(&error.into());
            }
        }
    }

    /// Closes the log of a process that goes on with another one, which gets its tail.
    pub(super) fn finish_log_for_next(&mut self) -> Option<SpareTail> {
        let writer = self.writer.take()?;
        let outcome = self.outcome(Ending::Executed);
        match crate::clerk::run(|| writer.finish_for_next(&outcome)) {
            Ok(spare) => Some(spare),
            Err(error) => self.report.fail(&error.into()),
        }
    }

    /// A child was seen to have been killed: it could not close its log itself.
    pub(super) fn note_waited(&mut self, asked: &Asked, result: i64) {
        if asked.number as u32 != table::wait4 || result <= 0 || asked.args[1] == 0 {
            return;
        }
        let status = self.process.machine.memory.read(asked.args[1], 4);
        let Some(status) = status.and_then(|bytes| bytes.try_into().ok()) else { return };
        if i32::from_le_bytes(status) & 0x7f == libc::SIGKILL {
            let ending = Ending::Killed { signal: libc::SIGKILL };
            crate::clerk::run(|| close_for(&self.dir, result as i32, ending));
        }
    }
}

/// Closes the logs of a process that is gone.
pub(super) fn close_for(dir: &std::path::Path, pid: i32, ending: Ending) {
    // What cannot be closed is still read as far as it goes.
    let Ok(logs) = recording::Recording::open(dir).and_then(|first| first.unfinished()) else {
        return;
    };
    for log in logs.iter().filter(|log| log.process().pid == pid) {
        let _ = recording::finalise(log.dir(), &recording::Outcome::new(ending));
    }
}

/// Ends this process so that whoever waits for it sees the same status.
fn end_as(status: i32) -> ! {
    let signal = status & 0x7f;
    // SAFETY: ends the process. The recording is the better core file.
    unsafe {
        if signal != 0 {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            host::install(signal, Host::Default, 0);
            host::set_mask(0);
            libc::kill(libc::getpid(), signal);
            // Another thread may be the one that takes it.
            libc::usleep(1_000_000);
        }
        libc::_exit(status >> 8 & 0xff)
    }
}

/// What SIGKILL to ourselves reaches: it leaves no time to write anything afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kills {
    /// Not us.
    Others,
    /// This process alone.
    Self_,
    /// This process among others.
    Group,
}

/// Whom a call kills.
pub fn kills(asked: &Asked, pid: i32, tid: i32) -> Kills {
    let kill = libc::SIGKILL as u64;
    let a = &asked.args;
    let (to, alone) = match asked.number as u32 {
        table::kill if a[1] == kill => (a[0] as i32, a[0] as i32 == pid),
        table::tkill if a[1] == kill => (0, a[0] as i32 == tid),
        table::tgkill if a[2] == kill => (0, a[0] as i32 == pid),
        _ => return Kills::Others,
    };
    if alone {
        return Kills::Self_;
    }
    // SAFETY: asks only.
    let group = unsafe { libc::getpgrp() };
    let whole = asked.number as u32 == table::kill && (to == 0 || to == -group);
    if whole { Kills::Group } else { Kills::Others }
}
