//! `why remove`: remove recordings.

use std::ffi::OsString;

use clap::Args;
use recording::Home;

use crate::notice;
use crate::status::FAILED;

/// Remove recordings.
///
/// The captured files that no other recording has go with them.
#[derive(Args)]
#[command(after_help = "Examples:
  why remove 7 8
  why remove ./failing-run")]
pub struct Remove {
    /// Recordings: names in `why list`, or folders
    #[arg(required = true, value_name = "NAME")]
    names: Vec<OsString>,

    /// Do not say what was removed
    #[arg(short)]
    quiet: bool,
}

impl Remove {
    /// Removes each one that can be removed.
    pub fn run(&self) -> anyhow::Result<u8> {
        let home = Home::from_env()?;
        let mut status = 0;
        for name in &self.names {
            match home.remove(name) {
                Ok(()) if self.quiet => {}
                Ok(()) => notice(&format!("removed {}", name.display())),
                Err(error) => {
                    notice(&error.to_string());
                    status = FAILED;
                }
            }
        }
        Ok(status)
    }
}
