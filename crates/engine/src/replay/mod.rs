//! Replay.
use crate::Error;
use recording::{Outcome, Recording};
/// How to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Check state hashes.
    pub verify: bool,
    /// Show no output.
    pub quiet: bool,
}
/// Replays.
pub fn replay(_: &Recording, _: &ReplayOptions) -> Result<Outcome, Error> { unimplemented!() }
/// Counts.
pub fn count_instructions(_: &Recording) -> Result<u64, Error> { unimplemented!() }
