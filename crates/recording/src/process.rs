//! The processes of a run, each with a log of its own.
//!
//! Log 1 is that of the program that was started, in the recording's own folder; the
//! others are in `processes/`, numbered as they began. A process that executes another
//! program goes on in a new log (the first process excepted, which keeps its own), so a
//! log after `execve` stands alone. One that begins with a fork goes on from where its
//! parent was: its story begins with its parent's.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::PROCESSES;

/// Which process a log is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Number of the log.
    pub log: u64,
    /// The process's number, as the kernel had it.
    pub pid: i32,
    /// How the log began.
    pub born: Born,
}

impl Default for Process {
    fn default() -> Process {
        Process { log: Process::FIRST, pid: 0, born: Born::Started }
    }
}

impl Process {
    /// Number of the first process's log.
    pub const FIRST: u64 = 1;

    /// The log that this one goes on from, or that started it.
    pub fn origin(&self) -> Option<u64> {
        match self.born {
            Born::Started => None,
            Born::Forked { from, .. } | Born::Executed { from } => Some(from),
        }
    }
}

/// How a log began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Born {
    /// It is the first.
    #[default]
    Started,
    /// The process was made by another, and goes on from there.
    Forked {
        /// Log of the parent.
        from: u64,
        /// Events of that log before the fork.
        events: u64,
    },
    /// The process executed another program.
    Executed {
        /// Its log until then.
        from: u64,
    },
}

/// The recording's own folder, given that of one of its logs.
pub(crate) fn root_of(dir: &Path, process: &Process) -> PathBuf {
    match process.log {
        Process::FIRST => dir.to_owned(),
        _ => dir.join("../.."),
    }
}

/// Where a log of a recording is.
pub(crate) fn folder_of(root: &Path, log: u64) -> PathBuf {
    match log {
        Process::FIRST => root.to_owned(),
        _ => root.join(PROCESSES).join(log.to_string()),
    }
}
