//! Translated code against the CPU itself: each program is recorded, and the recording is checked
//! in lock-step with a traced process that runs the original instructions.
//!
//! Every recording is checked twice: block by block, and with the linked code that recordings
//! run, a few safepoints at a time.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use regex::Regex;

use crate::process::{Program, Status, Stdin};
use crate::tally::Tally;
use crate::trial::{Trial, broken};
use crate::why::Why;
use crate::{csmith, guests, parallel, workspace};

/// Options of `cargo xtask lockstep`. Without `--csmith` and `--guests`, both are checked.
#[derive(Args)]
pub struct Options {
    /// Check so many random programs
    #[arg(long, value_name = "N")]
    csmith: Option<usize>,
    /// Check our guests
    #[arg(long)]
    guests: bool,
    /// Only guests whose name matches this regular expression
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,
    /// Guests in their first variant only
    #[arg(long)]
    quick: bool,
    /// The first seed of random programs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Check the first so many instructions of each program
    #[arg(long, value_name = "N", default_value_t = 3_000_000)]
    max_instructions: u64,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` that records, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// Random programs, unless told otherwise.
const RANDOM_PROGRAMS: usize = 20;
/// Longest check of one recording.
const CHECK_LIMIT: Duration = Duration::from_secs(600);

/// The ways a recording is checked, with what one comparison stands for.
const GRAINS: [(&[&str], &str); 2] = [(&[], "blocks"), (&["--safepoints"], "linked stretches")];

/// What the checks need.
struct Checker<'a> {
    why: Why,
    binary: PathBuf,
    max_instructions: u64,
    scratch: &'a Path,
}

/// Checks random programs, guests, or both.
pub fn run(options: &Options) -> Result<bool> {
    let scratch = workspace::scratch("lockstep")?;
    let checker = Checker {
        why: Why::given_or_built(options.why.as_deref())?,
        binary: build()?,
        max_instructions: options.max_instructions,
        scratch: scratch.path(),
    };
    let both = options.csmith.is_none() && !options.guests;
    let mut trials = Vec::new();
    if options.guests || both {
        let guests = guests::table::read(options.filter.as_ref())?;
        let programs = guests::build(&guests, options.jobs)?;
        trials.extend(guests::trials(&guests, &programs, options.quick));
    }
    if options.csmith.is_some() || both {
        let count = options.csmith.unwrap_or(RANDOM_PROGRAMS);
        trials.extend(random_programs(options.seed, count, scratch.path())?);
    }
    let mut tally = Tally::default();
    parallel::in_order(
        options.jobs,
        &trials,
        |trial| checker.check(trial),
        |trial, verdict| {
            tally.count(verdict.is_ok());
            match verdict {
                Ok(said) => println!("{:<56} pass  {said}", trial.name),
                Err(reason) => println!("{:<56} FAIL  {reason}", trial.name),
            }
        },
    );
    println!("{tally}");
    Ok(tally.all_passed())
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "engine", "--example", "lockstep"])
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo build --release --package engine --example lockstep failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace::target, PathBuf::from);
    Ok(target.join("x86_64-unknown-linux-gnu/release/examples/lockstep"))
}

/// The next programs from a seed on that end in time.
fn random_programs(mut seed: u64, count: usize, scratch: &Path) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    while trials.len() < count {
        let folder = scratch.join(format!("seed-{seed}"));
        let program = csmith::make(seed, &folder)?;
        if csmith::ends_in_time(&program, &folder)? {
            trials.push(Trial::new(format!("csmith seed {seed}"), vec![program.into()]));
        }
        seed += 1;
    }
    Ok(trials)
}

impl Checker<'_> {
    /// Records and checks one program; the answer is how much was compared.
    fn check(&self, trial: &Trial) -> Result<String, String> {
        self.try_check(trial).unwrap_or_else(|error| Err(format!("{error:#}")))
    }

    fn try_check(&self, trial: &Trial) -> Result<Result<String, String>> {
        let folder = tempfile::tempdir_in(self.scratch)?;
        let work = folder.path().join("work");
        fs::create_dir(&work)?;
        let recording = folder.path().join("recording");
        let mut program = Program::new(self.why.record(&recording, &trial.argv), work.clone());
        program.limit = trial.limit;
        program.set("HOME", folder.path());
        program.set("WHY_DIR", folder.path());
        for (name, value) in &trial.environment {
            program.set(name, value);
        }
        program.stdin = stdin(trial, folder.path())?;
        let outcome = program.run()?;
        if let Some(reason) = broken(&outcome) {
            return Ok(Err(format!("record: {reason}")));
        }
        let mut said = Vec::new();
        for (options, unit) in GRAINS {
            let mut argv: Vec<OsString> = vec![self.binary.clone().into()];
            argv.extend(options.iter().map(OsString::from));
            argv.push("--max-instructions".into());
            argv.push(self.max_instructions.to_string().into());
            argv.push(recording.clone().into());
            let mut program = Program::new(argv, work.clone());
            program.limit = CHECK_LIMIT;
            let outcome = program.run()?;
            let text = String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned();
            let error = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
            if outcome.status != Status::Exited(0) {
                return Ok(Err(format!("{unit}: {} {error}\n{text}", outcome.status)));
            }
            said.push(format!("{unit}: {text}"));
        }
        Ok(Ok(said.join("; ")))
    }
}

/// Standard input as a trial has it.
pub fn stdin(trial: &Trial, folder: &Path) -> Result<Stdin> {
    let Some(bytes) = &trial.stdin else { return Ok(Stdin::Empty) };
    if trial.stdin_in_pieces {
        return Ok(Stdin::Pieces(bytes.clone()));
    }
    let path = folder.join("stdin");
    fs::write(&path, bytes)?;
    Ok(Stdin::File(path))
}
