//! Writing the expected outputs anew, always with the fixed program.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::build::{self, Version};
use super::check::Report;
use super::manifest::{Faulty, Level};
use super::run;
use crate::process::Status;

/// Runs every test on the fixed program and keeps its output; the levels must agree.
pub fn regenerate(program: &Faulty, scratch: &Path) -> Report {
    write(program, scratch).map(|()| Vec::new()).into()
}

fn write(program: &Faulty, scratch: &Path) -> Result<()> {
    let folder = build::unpack(program, Version::Fixed, scratch)?;
    let plain = build::build(program, Level::O0, &folder)?;
    let optimised = build::build(program, Level::O2, &folder)?;
    let kept = program.folder.join("expected");
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::create_dir_all(&kept)?;
    for test in &program.manifest.tests {
        let outcome = run::run(program, test, &plain)?;
        let other = run::run(program, test, &optimised)?;
        let name = &test.name;
        let (status, exit) = (outcome.status, test.exit);
        ensure!(status == Status::Exited(exit), "{name}: {status}, not {exit} as promised");
        ensure!(outcome.stdout == other.stdout, "{name}: the output at -O0 and -O2 differs");
        fs::write(program.folder.join(test.expected()), outcome.stdout)?;
    }
    Ok(())
}
