//! Which recording is meant.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;
use recording::{Error, Home, Recording};

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

/// The folder of the recording with a name. A folder that is none is told from nothing at all.
pub fn found(home: &Home, name: Option<&OsStr>) -> recording::Result<PathBuf> {
    let folder = name.map(Path::new).filter(|name| name.is_dir());
    match (home.resolve(name), folder) {
        (Err(Error::NoSuchRecording { .. }), Some(path)) => {
            Err(Error::NotARecording { path: path.to_owned() })
        }
        (found, _) => found,
    }
}

impl Which {
    /// Finds and opens it.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let name = self.recording.as_ref().or(self.first.as_ref());
        let dir = found(&Home::from_env()?, name.map(OsString::as_os_str))?;
        Ok(Recording::open(&dir)?)
    }

    /// The log that a question is about: of the process that is named, else of the one
    /// that failed.
    pub fn open_log(&self, quiet: bool) -> anyhow::Result<Recording> {
        crate::processes::choose(self.open()?, self.process, quiet)
    }
}
