//! `why manual`: the manual pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::command_line::CommandLine;

/// Write manual pages, one for `why` and one for each verb.
#[derive(Args)]
#[command(after_help = "Examples:
  why manual ~/.local/share/man/man1    then: man why-explain")]
pub struct Manual {
    /// The folder that they go to; it is made if need be
    folder: PathBuf,

    /// Write the pages about errors and limits too
    #[arg(long, hide = true)]
    reference: bool,
}

impl Manual {
    /// Writes them.
    pub fn run(&self) -> anyhow::Result<u8> {
        let place = self.folder.display();
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {place}"))?;
        clap_mangen::generate_to(CommandLine::command(), &self.folder)
            .with_context(|| format!("cannot write to {place}"))?;
        if self.reference {
            crate::reference::write(&self.folder)
                .with_context(|| format!("cannot write to {place}"))?;
        }
        Ok(0)
    }
}
