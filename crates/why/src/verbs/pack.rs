//! `why pack`: a recording as one file.

use std::path::PathBuf;

use clap::Args;

use crate::which::Which;
use crate::{notice, show};

/// Pack a recording into one file, to attach to a bug report.
///
/// The file is compressed and checksummed, and `why unpack` makes a recording of it on any machine.
/// Like the recording, it holds the program's arguments and environment and the contents of every
/// file the program opened: look at what is in it before you give it away.
#[derive(Args)]
#[command(after_help = "Examples:
  why pack -o crash.why
  why pack 7 -o crash.why")]
pub struct Pack {
    #[command(flatten)]
    which: Which,

    /// Write to FILE, which must not exist
    #[arg(short, value_name = "FILE")]
    output: PathBuf,

    /// Do not say how large the file is
    #[arg(short)]
    quiet: bool,
}

impl Pack {
    /// Packs.
    pub fn run(&self) -> anyhow::Result<u8> {
        let recording = self.which.open()?;
        let file = self.output.display();
        anyhow::ensure!(
            self.output.symlink_metadata().is_err(),
            "{file} exists already, and is left as it is; name another file with -o, or remove it"
        );
        engine::sandbox::catch_interrupts();
        let goes_on = || !engine::sandbox::is_interrupted();
        let packed = recording::pack_while(recording.dir(), &self.output, goes_on)?;
        if !self.quiet {
            notice(&format!("{file}: {}", show::size(packed.file)));
        }
        Ok(0)
    }
}
