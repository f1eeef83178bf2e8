//! How many branches are switched until one helps? The programs of `corpus/predicates`, in the
//! order of the papers (PRIOR) and latest first (LEFS).

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::page;
use crate::why::Why;

#[path = "../../../corpus/predicates/cases.rs"]
mod cases;

use cases::Case;

/// What a search said.
#[derive(Deserialize)]
struct Report {
    predicates: u64,
    trials: u64,
    critical: Vec<Found>,
}

/// A critical predicate.
#[derive(Deserialize)]
struct Found {
    position: String,
}

/// One row of the table: a program at one level.
struct Row<'a> {
    case: &'a Case,
    level: &'a str,
    folder: PathBuf,
}

/// Searches them all; whether the critical predicate of each is found.
pub fn run(corpus: &Path, why: &Why, scratch: &Path, writes: bool) -> Result<bool> {
    let sources = corpus.join("predicates");
    let mut table = String::from(
        "| program | | branches up to the failure | critical | first found by LEFS | by PRIOR |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n",
    );
    let mut good = true;
    for case in &Case::all() {
        for level in ["-O0", "-O2"] {
            let folder = scratch.join(format!("{}{level}", case.name));
            fs::create_dir(&folder)?;
            let row = Row { case, level, folder };
            row.record(&sources, why).with_context(|| case.name.clone())?;
            let all = row.search(why, &["--all"])?;
            let lefs = row.search(why, &["--order", "lefs"])?;
            let prior = row.search(why, &["--order", "prior"])?;
            let source = fs::read_to_string(sources.join(format!("{}.c", case.name)))?;
            let line = format!("{}.c:{}", case.name, case.line_in(&source));
            good &= all.critical.iter().any(|found| found.is_at(&line));
            good &= [&lefs, &prior].iter().all(|found| !found.critical.is_empty());
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {} | {level} | {} | {} | {} | {} |",
                case.name,
                all.predicates,
                all.critical.len(),
                lefs.trials,
                prior.trials
            );
        }
    }
    print!("{table}");
    if writes && good {
        page::put("what-if.md", "critical", &table)?;
    }
    Ok(good)
}

impl Found {
    fn is_at(&self, line: &str) -> bool {
        let behind = self.position.strip_prefix(line);
        behind.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl Row<'_> {
    /// Compiles it, has the fixed program say what is right, and records the failing run.
    fn record(&self, sources: &Path, why: &Why) -> Result<()> {
        let source = sources.join(format!("{}.c", self.case.name));
        for (program, fixed) in [("prog", None), ("fixed", Some("-DFIXED"))] {
            let mut gcc = Command::new("gcc");
            gcc.args(["-g", "-w", self.level, "-o", program]).args(fixed).arg(&source);
            ensure!(gcc.current_dir(&self.folder).status()?.success(), "gcc failed");
        }
        fs::write(self.folder.join("stdin"), &self.case.input)?;
        let right = self.run(Command::new(self.folder.join("fixed")).args(&self.case.args))?;
        fs::write(self.folder.join("right"), right)?;
        let mut argv = vec![self.folder.join("prog").into()];
        argv.extend(self.case.args.iter().map(Into::into));
        let argv = why.record(&self.folder.join("recording"), &argv);
        self.run(Command::new(&argv[0]).args(&argv[1..])).map(|_| ())
    }

    fn search(&self, why: &Why, words: &[&str]) -> Result<Report> {
        let mut command = Command::new(&why.binary);
        command.args(["critical", "recording", "--json"]).args(words).args(self.case.oracle());
        let said = self.run(&mut command)?;
        serde_json::from_slice(&said).context("cannot read what `why critical` said")
    }

    /// What a command prints.
    fn run(&self, command: &mut Command) -> Result<Vec<u8>> {
        let input = fs::File::open(self.folder.join("stdin"))?;
        command.current_dir(&self.folder).env("WHY_DIR", &self.folder).stdin(input);
        Ok(command.stderr(Stdio::null()).output()?.stdout)
    }
}
