//! `why unpack`: the recording in a file that `why pack` made.

use std::path::PathBuf;

use clap::Args;
use recording::Home;

use crate::notice;

/// Unpack a recording that `why pack` made a file of.
///
/// The checksum is verified first. What is in the file is data: nothing of it is run before you
/// ask for a replay, and a replay touches nothing outside.
#[derive(Args)]
#[command(after_help = "Examples:
  why unpack crash.why
  why unpack crash.why -o crash && why replay crash")]
pub struct Unpack {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Put the recording into DIR, a new or empty folder
    ///
    /// Else it gets the next number in `why list`.
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Do not name the recording on stderr
    #[arg(short)]
    quiet: bool,
}

impl Unpack {
    /// Unpacks.
    pub fn run(&self) -> anyhow::Result<u8> {
        engine::sandbox::catch_interrupts();
        let dir = match &self.output {
            Some(dir) => {
                recording::unpack_while(&self.file, dir, goes_on)?;
                dir.clone()
            }
            None => self.numbered()?,
        };
        if !self.quiet {
            notice(&format!("recording {}", dir.display()));
        }
        Ok(0)
    }

    fn numbered(&self) -> anyhow::Result<PathBuf> {
        let home = Home::from_env()?;
        let dir = home.create_numbered()?;
        if let Err(error) = recording::unpack_while(&self.file, &dir, goes_on) {
            home.discard(&dir)?;
            return Err(error.into());
        }
        Ok(dir)
    }
}

/// Until ^C.
fn goes_on() -> bool {
    !engine::sandbox::is_interrupted()
}
