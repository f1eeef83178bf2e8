//! Running one test of a program and saying what came of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::manifest::{Failure, Faulty, Test};
use crate::process::{Outcome, Program, Status, Stdin};

/// Runs a test in a fresh working folder that holds its input files.
pub fn run(program: &Faulty, test: &Test, executable: &Path) -> Result<Outcome> {
    let work = tempfile::tempdir().context("cannot make a working folder")?;
    for file in &test.files {
        let name = file.file_name().context("an input file without a name")?;
        fs::copy(program.folder.join(file), work.path().join(name))
            .with_context(|| format!("cannot copy {}", file.display()))?;
    }
    let mut argv = vec![executable.into()];
    argv.extend(test.args.iter().map(Into::into));
    let mut run = Program::new(argv, work.path().into());
    run.limit = Duration::from_secs(test.timeout);
    if let Some(stdin) = &test.stdin {
        run.stdin = Stdin::File(program.folder.join(stdin));
    }
    run.run()
}

/// How an outcome fails a test whose right output is `expected`, if it does.
pub fn failure(test: &Test, outcome: &Outcome, expected: &[u8]) -> Option<Failure> {
    match outcome.status {
        Status::TimedOut => Some(Failure::Hang),
        Status::Killed(_) => Some(Failure::Crash),
        Status::Exited(101) if test.exit != 101 => Some(Failure::Panic),
        Status::Exited(code) if code != test.exit => Some(Failure::ExitStatus),
        Status::Exited(_) if outcome.stdout != expected => Some(Failure::WrongOutput),
        Status::Exited(_) => None,
    }
}
