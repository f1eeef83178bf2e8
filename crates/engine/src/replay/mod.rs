//! Replay: the same run again, from the recording alone.
//!
//! There is one kernel thread, nothing waits, and nothing outside is touched but
//! standard output and standard error, which get the bytes they got then.

mod apart;
mod calls;
mod kernel;
mod live;
mod log;
mod look;
mod moving;
mod observe;
mod replayer;
mod touched;
mod tracing;

use crate::Error;
use crate::code::Profile;
pub use apart::apart;
pub use look::{Described, Region};
pub use moving::{Calls, Goal, Instant, Report, Stopped, To, Trail};
pub use observe::{Access, Grain, Observer};
use recording::{Ending, Outcome, Recording};
pub(crate) use replayer::Halt;
pub use replayer::{Finish, Forked, Replayer, Until};

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
}

/// Replays a whole recording.
pub fn replay(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Error> {
    let mut replayer = Replayer::new(recording, Profile::PLAIN, options)?;
    let mut outcome = recording.outcome().cloned().unwrap_or_default();
    let complete = match replayer.run(Until::End)? {
        Finish::Ended(ending) => {
            outcome.ending = ending;
            true
        }
        Finish::LogEnds | Finish::Reached => false,
    };
    Ok(Replayed { outcome, complete })
}

const SILENT: ReplayOptions = ReplayOptions { verify: false, silent: true };

/// How many instructions the recorded run executed, over all threads.
pub fn count_instructions(recording: &Recording) -> Result<u64, Error> {
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.run(Until::End)?;
    Ok(replayer.instructions())
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
