//! Replay: the same run again, from the recording alone.
//!
//! There is one kernel thread, nothing waits, and nothing outside is touched but
//! standard output and standard error, which get the bytes they got then.

mod apart;
mod calls;
mod events;
mod goal;
mod kernel;
mod live;
mod log;
mod look;
mod moving;
mod observe;
mod region;
mod replayer;
mod tally;
mod touched;
mod tracing;
mod tree;

use crate::Error;
use crate::code::Profile;
pub use apart::apart;
pub use goal::{Calls, Goal, Instant, Report, Stopped, To, Trail};
pub use look::{Described, Region};
pub use observe::{Access, Grain, Observer};
use recording::{Ending, Outcome, Process as Whose, Recording};
pub use region::{
    Cut, Pieces, Progress, SliceSource, SliceWalk, Stretch, cut, cut_slice, slice_addresses,
};
pub(crate) use replayer::Halt;
pub use replayer::{Finish, Forked, Replayer, Until};
pub use tally::{Readiness, Survey, Tally};
pub use tree::{LogEnd, LogReplayed, replay_all};

/// How to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Compare registers and memory with the hashes taken while recording.
    pub verify: bool,
    /// Do not write the program's output.
    pub silent: bool,
}

/// What a whole replay came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// How the recorded run ended.
    pub outcome: Outcome,
    /// Did the replay reach that end? If not, the recorder was killed, and all
    /// that it had written was replayed.
    pub complete: bool,
    /// Other processes, by their numbers, whose logs break off before they ended.
    pub unfinished: Vec<i32>,
}

/// Replays a whole recording: all processes, if it is the log of the first one, else
/// that process alone, from this log on.
pub fn replay(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Error> {
    if recording.process().log == Whose::FIRST && recording.has_processes() {
        return replay_processes(recording, options);
    }
    replay_process(recording, options)
}

/// Replays all processes; the end is the first one's.
fn replay_processes(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Error> {
    let logs = replay_all(recording, Profile::PLAIN, options)?;
    for replayed in &logs {
        if let Err(what) = &replayed.end {
            let pid = recording.log(replayed.log).map_or(0, |log| log.process().pid);
            return Err(Error::Process { pid, what: what.clone() });
        }
    }
    let mut outcome = recording.outcome().cloned().unwrap_or_default();
    let (first, others): (Vec<_>, Vec<_>) =
        logs.iter().partition(|replayed| replayed.log == Whose::FIRST);
    let cut = others.iter().filter(|replayed| replayed.end == Ok(LogEnd::BreaksOff));
    let unfinished =
        cut.filter_map(|replayed| Some(recording.log(replayed.log).ok()?.process().pid)).collect();
    match first.first().map(|replayed| &replayed.end) {
        Some(Ok(LogEnd::Ended(ending))) => {
            outcome.ending = *ending;
            Ok(Replayed { outcome, complete: true, unfinished })
        }
        Some(_) => Ok(Replayed { outcome, complete: false, unfinished }),
        None => Err(Error::Process {
            pid: recording.process().pid,
            what: "the replaying process died".to_owned(),
        }),
    }
}

/// Replays one process: this log, and what it executed.
pub fn replay_process(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Error> {
    let mut recording = recording.clone();
    loop {
        let (replayed, next) = replay_log(&recording, options)?;
        match next.filter(|_| replayed.outcome.ending == Ending::Executed) {
            Some(next) => recording = recording.log(next)?,
            None => return Ok(replayed),
        }
    }
}

/// Replays one log. The second result is the log that goes on from it.
fn replay_log(
    recording: &Recording,
    options: &ReplayOptions,
) -> Result<(Replayed, Option<u64>), Error> {
    if recording.manifest().region.is_some_and(|region| region.slice) {
        SliceWalk::new(recording)?.run()?;
        let outcome = recording.outcome().cloned().unwrap_or_default();
        return Ok((Replayed { outcome, complete: true, unfinished: Vec::new() }, None));
    }
    let mut replayer = Replayer::new(recording, Profile::PLAIN, options)?;
    replayer.use_stock();
    let mut outcome = recording.outcome().cloned().unwrap_or_default();
    let complete = match replayer.run(Until::End)? {
        Finish::Ended(ending) => {
            outcome.ending = ending;
            true
        }
        Finish::LogEnds | Finish::Reached => false,
    };
    Ok((Replayed { outcome, complete, unfinished: Vec::new() }, replayer.next_log))
}

const SILENT: ReplayOptions = ReplayOptions { verify: false, silent: true };

/// How many instructions the recorded process executed, over all threads; without those
/// of its parent before the fork.
pub fn count_instructions(recording: &Recording) -> Result<u64, Error> {
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.run(Until::End)?;
    Ok(replayer.own_instructions())
}

/// Where a run died: the instruction it could not execute, and the last one it
/// did. After a jump into nowhere only the latter names a place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The running thread.
    pub thread: crate::Thread,
    /// Address of the instruction that could not be executed.
    pub at: Place,
    /// Address of the last instruction that was.
    pub last: Place,
}

/// An address, and what is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: u64,
    /// Path of the file mapped there, and the offset in it.
    pub file: Option<(Vec<u8>, u64)>,
}

/// Where a recorded run died; `None` if it did not.
pub fn crash(recording: &Recording) -> Result<Option<Crash>, Error> {
    let (total, thread, at) = {
        let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
        match replayer.run(Until::End)? {
            Finish::Ended(Ending::Killed { .. }) => {}
            _ => return Ok(None),
        }
        let at = replayer.place(replayer.registers().rip);
        (replayer.instructions(), replayer.thread(), at)
    };
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.run(Until::Instruction(total.saturating_sub(1)))?;
    let last = replayer.place(replayer.registers().rip);
    Ok(Some(Crash { thread, at, last }))
}
