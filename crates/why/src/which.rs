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
}

impl Which {
    /// Finds and opens it.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let name = self.recording.as_ref().or(self.first.as_ref());
        let dir = Home::from_env()?.resolve(name.map(OsString::as_os_str))?;
        Ok(Recording::open(&dir)?)
    }
}
