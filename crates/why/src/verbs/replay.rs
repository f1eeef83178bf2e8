//! `why replay`: run a recording again.

use clap::Args;

use crate::engine_calls::{self, ReplayOptions};
use crate::which::Which;
use crate::{notice, processes};

/// Run a recording again, exactly, from the recording alone.
///
/// The same bytes go to stdout and stderr, and `why replay` ends as the recorded program did. None
/// of the files that the program used are needed, and nothing outside is touched. Of a run with
/// several processes, all are replayed, and their output comes in the order it had.
#[derive(Args)]
#[command(after_help = "Examples:
  why replay
  why replay 7 --verify
  why replay -p 4711
  why replay ./failing-run | less")]
pub struct Replay {
    #[command(flatten)]
    which: Which,

    /// Check the state against the hashes taken while recording
    #[arg(long)]
    verify: bool,

    /// No notices of our own on stderr
    #[arg(short)]
    quiet: bool,
}

impl Replay {
    /// Replays, and returns the recorded program's own status.
    pub fn run(&self) -> anyhow::Result<u8> {
        let recording = self.which.open()?;
        let options = ReplayOptions { verify: self.verify, silent: false };
        let replayed = match self.which.process {
            Some(pid) => {
                let process = processes::numbered(&recording, pid)?;
                engine_calls::replay_process(&process.logs[0], &options)
            }
            None => engine_calls::replay(&recording, &options),
        };
        match replayed {
            Ok(replayed) => {
                if !replayed.complete && !self.quiet {
                    notice("the recording breaks off here: its recorder was killed");
                }
                Ok(replayed.outcome.ending.status())
            }
            Err(failure) => {
                notice(&format!("{:#}", failure.error));
                Ok(failure.status)
            }
        }
    }
}
