//! Which recording is meant.

use std::ffi::OsString;

use clap::Args;
use recording::{Home, Recording};

/// The words that choose a recording, the same for every verb.
#[derive(Args)]
pub struct Which {
    /// A recording: its folder or its name in `why list` [default: the latest]
    #[arg(value_name = "REC")]
    first: Option<OsString>,

    /// The same, for scripts
    #[arg(short, value_name = "REC", conflicts_with = "first")]
    recording: Option<OsString>,

    /// One process of the run; `why info` lists them
    #[arg(short, long = "process", value_name = "PID")]
    pub process: Option<i32>,
}

impl Which {
    /// Finds and opens it.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let name = self.recording.as_ref().or(self.first.as_ref());
        let dir = Home::from_env()?.resolve(name.map(OsString::as_os_str))?;
        Ok(Recording::open(&dir)?)
    }

    /// The log that a question is about: of the process that is named, else of the one
    /// that failed.
    pub fn open_log(&self, quiet: bool) -> anyhow::Result<Recording> {
        crate::processes::choose(self.open()?, self.process, quiet)
    }
}
