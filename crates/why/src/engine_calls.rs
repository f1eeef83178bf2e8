//! The few places where the command line meets the engine.

use std::collections::BTreeMap;

pub use engine::{RecordOptions, ReplayOptions, Replayed};
use recording::{Home, Outcome, Recording};

/// The engine could not do it.
#[derive(Debug)]
pub struct Failure {
    /// 127 if there is no such program, 126 if it cannot be executed, else 125.
    pub status: u8,
    /// What is wrong, in a sentence.
    pub error: anyhow::Error,
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Failure {
        Failure { status: error.status(), error: error.into() }
    }
}

/// Code that was translated in one run is there for the next.
pub fn keep_translations() {
    if let Ok(home) = Home::from_env() {
        engine::keep_translations_in(home.code());
    }
}

/// Runs a program and records the run.
pub fn record(options: &RecordOptions) -> Result<Outcome, Failure> {
    Ok(engine::record(options)?)
}

/// Runs a recording again.
pub fn replay(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Failure> {
    Ok(engine::replay(recording, options)?)
}

/// Runs one process of a recording again, from this log on.
pub fn replay_process(recording: &Recording, options: &ReplayOptions) -> Result<Replayed, Failure> {
    Ok(engine::replay_process(recording, options)?)
}

/// How many instructions each log of a recording has; those that cannot be replayed are
/// left out.
pub fn count_all(recording: &Recording) -> Result<BTreeMap<u64, u64>, Failure> {
    let silent = ReplayOptions { verify: false, silent: true };
    let logs = engine::replay_all(recording, engine::Profile::COUNTING, &silent)?;
    let counted = logs.into_iter().filter(|log| log.end.is_ok());
    Ok(counted.map(|log| (log.log, log.instructions)).collect())
}

/// Where the recorded program died, if it did.
pub fn crash(recording: &Recording) -> Result<Option<engine::Crash>, Failure> {
    Ok(engine::crash(recording)?)
}

/// How many instructions the recorded program executed.
pub fn count_instructions(recording: &Recording) -> Result<u64, Failure> {
    Ok(engine::count_instructions(recording)?)
}

/// Makes a region of a recording a recording of its own.
pub fn cut(
    recording: &Recording,
    from: u64,
    to: u64,
    dir: &std::path::Path,
    progress: engine::Progress,
) -> Result<engine::Cut, Failure> {
    Ok(engine::cut(recording, from, to, dir, progress)?)
}

/// Makes a recording of nothing but a slice's instructions.
pub fn cut_slice(
    recording: &Recording,
    slice: engine::SliceSource,
    dir: &std::path::Path,
) -> Result<(), Failure> {
    Ok(engine::cut_slice(recording, slice, dir)?)
}
