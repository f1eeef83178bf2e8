//! Fast slices against the reference slicer, on small random programs and on our guests: for
//! random criteria, with and without bookkeeping, both must have the same instances, and the same
//! reason for each.
//!
//! What the reference knows of instructions it asks the processor; that is kept in target/slices.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::lockstep::stdin;
use crate::process::{Program, Status};
use crate::tally::Tally;
use crate::trial::{Trial, broken};
use crate::why::Why;
use crate::{csmith, guests, workspace};

/// Options of `cargo xtask slices`.
#[derive(Args)]
pub struct Options {
    /// Compare slices of so many random programs
    #[arg(long, value_name = "N", default_value_t = 3)]
    csmith: usize,
    /// Compare slices of our guests too
    #[arg(long)]
    guests: bool,
    /// Only guests whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    filter: Option<regex::Regex>,
    /// Criteria per program
    #[arg(long, value_name = "N", default_value_t = 20)]
    criteria: usize,
    /// The first seed; programs take it and those that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs that execute more instructions are left out
    #[arg(long, value_name = "N", default_value_t = 300_000)]
    max_instructions: u64,
    /// The `why` that records, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// Longest comparison of one program: new instructions are asked about one by one.
const LIMIT: Duration = Duration::from_secs(1800);
/// What the comparing program says of a run that is too long, or has gathers.
const LEFT_OUT: Status = Status::Exited(3);

enum Verdict {
    Equal(String),
    Different(String),
    /// Ran too long, natively or in instructions, or has gathers.
    Skipped,
}

struct Comparison<'a> {
    options: &'a Options,
    why: Why,
    binary: PathBuf,
    knowledge: PathBuf,
    tally: Tally,
    skipped: Vec<String>,
}

/// Compares until as many programs as wanted were compared.
pub fn run(options: &Options) -> Result<bool> {
    let knowledge = workspace::target().join("slices");
    std::fs::create_dir_all(&knowledge)?;
    let mut comparison = Comparison {
        options,
        why: Why::given_or_built(options.why.as_deref())?,
        binary: build()?,
        knowledge: knowledge.join("knowledge"),
        tally: Tally::default(),
        skipped: Vec::new(),
    };
    let scratch = workspace::scratch("slices")?;
    if options.guests {
        let table = guests::table::read(options.filter.as_ref())?;
        let programs = guests::build(&table, 2)?;
        for trial in guests::trials(&table, &programs, true) {
            let folder = scratch.path().join(trial.name.replace('/', "-"));
            std::fs::create_dir_all(&folder)?;
            comparison.count(&trial, &folder)?;
        }
    }
    comparison.random_programs(scratch.path())?;
    let Comparison { tally, skipped, .. } = comparison;
    let most = options.max_instructions;
    let left = skipped.len();
    println!("{tally}, {left} left out (over {most} instructions, or gathers): {skipped:?}");
    Ok(tally.all_passed())
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "slice", "--example", "reference"])
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo build --release --package slice --example reference failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace::target, PathBuf::from);
    Ok(target.join("x86_64-unknown-linux-gnu/release/examples/reference"))
}

impl Comparison<'_> {
    fn random_programs(&mut self, scratch: &Path) -> Result<()> {
        let before = self.tally.passed + self.tally.failed;
        let mut seed = self.options.seed;
        while self.tally.passed + self.tally.failed - before < self.options.csmith {
            if self.skipped.len() > 10 * self.options.csmith + 50 {
                bail!("too many programs ran too long; try a larger --max-instructions");
            }
            let folder = scratch.join(format!("seed-{seed}"));
            let program = csmith::make_small(seed, &folder)?;
            let name = format!("csmith seed {seed}");
            match csmith::ends_in_time(&program, &folder)? {
                true => self.count(&Trial::new(name, vec![program.into()]), &folder)?,
                false => self.skipped.push(name),
            }
            std::fs::remove_dir_all(&folder)?;
            seed += 1;
        }
        Ok(())
    }

    fn count(&mut self, trial: &Trial, folder: &Path) -> Result<()> {
        match self.compare(trial, folder)? {
            Verdict::Skipped => self.skipped.push(trial.name.clone()),
            Verdict::Equal(said) => {
                self.tally.count(true);
                println!("{:<40} pass  {said}", trial.name);
            }
            Verdict::Different(said) => {
                self.tally.count(false);
                println!("{:<40} FAIL  {said}", trial.name);
            }
        }
        Ok(())
    }

    fn compare(&self, trial: &Trial, folder: &Path) -> Result<Verdict> {
        let (recording, work) = (folder.join("recording"), folder.join("work"));
        std::fs::create_dir(&work)?;
        let mut record = Program::new(self.why.record(&recording, &trial.argv), work.clone());
        record.limit = trial.limit;
        record.set("WHY_DIR", folder);
        record.set("HOME", folder);
        for (name, value) in &trial.environment {
            record.set(name, value);
        }
        record.stdin = stdin(trial, folder)?;
        let outcome = record.run()?;
        if let Some(reason) = broken(&outcome) {
            return Ok(Verdict::Different(format!("record: {reason}")));
        }
        let argv: Vec<OsString> = vec![
            self.binary.clone().into(),
            recording.into(),
            self.knowledge.clone().into(),
            self.options.criteria.to_string().into(),
            self.options.seed.to_string().into(),
            self.options.max_instructions.to_string().into(),
        ];
        let mut check = Program::new(argv, work);
        check.limit = LIMIT;
        let outcome = check.run()?;
        let text = String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned();
        let error = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
        Ok(match outcome.status {
            Status::Exited(0) => Verdict::Equal(text),
            LEFT_OUT => Verdict::Skipped,
            status => Verdict::Different(format!("{status} {error}\n{text}")),
        })
    }
}
