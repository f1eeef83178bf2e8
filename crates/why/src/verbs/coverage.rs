//! `why coverage`: which lines ran, for other tools.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use recording::{Home, Recording};
use report::Coverage as Covered;

use crate::subject::Subject;

/// Show which lines ran, as an lcov tracefile.
///
/// Counts of several recordings are added up. `genhtml` and most editors read the
/// format.
#[derive(Args)]
#[command(after_help = "Examples:
  why coverage                    of the latest recording
  why coverage 3 4 5 -o all.info  of three together")]
pub struct Coverage {
    /// Recordings [default: the latest]
    #[arg(value_name = "REC")]
    recordings: Vec<String>,

    /// No progress or notices on stderr
    #[arg(short, long)]
    quiet: bool,

    /// Write to FILE
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Coverage {
    /// Adds up, and writes.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let home = Home::from_env()?;
        let named = self.recordings.iter().map(|name| Some(OsStr::new(name)));
        let mut names: Vec<Option<&OsStr>> = named.collect();
        if names.is_empty() {
            names.push(None);
        }
        let subject = Subject::quietly(self.quiet);
        let mut covered = Covered::default();
        for name in names {
            let recording = Recording::open(&home.resolve(name)?)?;
            covered.add(&subject.run(recording, false)?);
        }
        match &self.output {
            None => covered.write_lcov(out)?,
            Some(path) => {
                let mut file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                covered.write_lcov(&mut file)?;
            }
        }
        Ok(0)
    }
}
