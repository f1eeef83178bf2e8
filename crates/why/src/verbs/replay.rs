//! `why replay`: run a recording again.

use clap::Args;

use crate::engine_calls::{self, ReplayOptions, Replayed};
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
        engine::sandbox::end_at_interrupt();
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
                if let Some(cut) = cut_short(&replayed).filter(|_| !self.quiet) {
                    notice(&cut);
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

/// What is not there to be replayed, in one sentence.
fn cut_short(replayed: &Replayed) -> Option<String> {
    let numbers = || {
        let shown = replayed.unfinished.iter().take(5).map(i32::to_string);
        let more = if replayed.unfinished.len() > 5 { ", …" } else { "" };
        format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
    };
    match replayed.unfinished.len() {
        _ if !replayed.complete => {
            let why = replayed.outcome.stopped.as_deref().unwrap_or("its recorder was killed");
            Some(format!("the recording breaks off here: {why}"))
        }
        0 => None,
        1 => Some(format!("process {} was not recorded to its end", numbers())),
        n => Some(format!("{n} processes were not recorded to their ends: {}", numbers())),
    }
}
