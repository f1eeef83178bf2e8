//! Runs that had not ended in time: the recording remembers, since a signal alone does not say
//! why it was sent.

use std::time::Duration;

use recording::{Ending, Recording};

/// Where a recording remembers after how many seconds its run was ended.
const REMEMBERED: &str = "timeout";

/// Signals with which a run is ended that takes too long: SIGKILL and SIGTERM by a limit, SIGINT
/// by who has waited long enough.
pub const ENDED_BY: [i32; 3] = [2, 9, 15];

/// Notes that a run was ended because it took longer than this.
pub fn remember(recording: &Recording, ending: Ending, time: Duration) {
    if matches!(ending, Ending::Killed { signal } if ENDED_BY.contains(&signal)) {
        // A recording that cannot be written to forgets.
        let tenths = (time.as_secs_f64() * 10.0).round() / 10.0;
        let _ = recording.keep_derived(REMEMBERED, tenths.to_string().as_bytes());
    }
}

/// After what time the run was ended, if it took too long.
pub fn remembered(recording: &Recording) -> Option<Duration> {
    let seconds = std::fs::read_to_string(recording.derived(REMEMBERED)).ok()?;
    Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()
}
