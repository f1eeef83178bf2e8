//! Replay: the same run again, from the recording alone.
//!
//! There is one kernel thread, nothing waits, and nothing outside is touched but
//! standard output and standard error, which get the bytes they got then.

mod calls;
mod live;
mod log;
mod observe;
mod replayer;

use crate::Error;
use crate::code::Profile;
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

/// Replays a whole recording. Its outcome is that of the recorded run; a
/// recording that breaks off gives [`Ending::Unknown`].
pub fn replay(recording: &Recording, options: &ReplayOptions) -> Result<Outcome, Error> {
    let mut replayer = Replayer::new(recording, Profile::PLAIN, options)?;
    let ending = match replayer.run(Until::End)? {
        Finish::Ended(ending) => ending,
        Finish::LogEnds | Finish::Reached => Ending::Unknown,
    };
    let mut outcome = recording.outcome().cloned().unwrap_or_default();
    if ending != Ending::Unknown {
        outcome.ending = ending;
    }
    Ok(outcome)
}

/// How many instructions the recorded run executed, over all threads.
pub fn count_instructions(recording: &Recording) -> Result<u64, Error> {
    let options = ReplayOptions { verify: false, silent: true };
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &options)?;
    replayer.run(Until::End)?;
    Ok(replayer.instructions())
}
