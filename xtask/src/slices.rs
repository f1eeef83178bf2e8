//! Fast slices against the reference slicer, on small random programs: for random criteria, with
//! and without bookkeeping, both must have the same instances, and the same reason for each.
//!
//! What the reference knows of instructions it asks the processor; that is kept in target/slices.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::process::{Program, Status};
use crate::tally::Tally;
use crate::trial::broken;
use crate::why::Why;
use crate::{csmith, workspace};

/// Options of `cargo xtask slices`.
#[derive(Args)]
pub struct Options {
    /// Compare slices of so many random programs
    #[arg(long, value_name = "N", default_value_t = 3)]
    csmith: usize,
    /// Criteria per program
    #[arg(long, value_name = "N", default_value_t = 5)]
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
/// What the comparing program says of a run that is too long.
const TOO_LONG: Status = Status::Exited(3);

enum Verdict {
    Equal(String),
    Different(String),
    /// Ran too long, natively or in instructions.
    Skipped,
}

/// Compares until as many programs as wanted were compared.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let binary = build()?;
    let scratch = workspace::scratch("slices")?;
    let (mut tally, mut skipped, mut seed) = (Tally::default(), 0, options.seed);
    while tally.passed + tally.failed < options.csmith {
        if skipped > 10 * options.csmith + 50 {
            bail!("{skipped} programs ran too long; try a larger --max-instructions");
        }
        let folder = scratch.path().join(format!("seed-{seed}"));
        match compare(options, seed, &folder, &why, &binary)? {
            Verdict::Skipped => skipped += 1,
            Verdict::Equal(said) => {
                tally.count(true);
                println!("csmith seed {seed}  pass  {said}");
            }
            Verdict::Different(said) => {
                tally.count(false);
                println!("csmith seed {seed}  FAIL  {said}");
            }
        }
        seed += 1;
    }
    println!("{tally}, {skipped} skipped (over {} instructions)", options.max_instructions);
    Ok(tally.all_passed())
}

fn compare(
    options: &Options,
    seed: u64,
    folder: &Path,
    why: &Why,
    binary: &Path,
) -> Result<Verdict> {
    let program = csmith::make_small(seed, folder)?;
    if !csmith::ends_in_time(&program, folder)? {
        return Ok(Verdict::Skipped);
    }
    let recording = folder.join("recording");
    let mut record = Program::new(why.record(&recording, &[program.into()]), folder.to_path_buf());
    record.set("WHY_DIR", folder);
    let outcome = record.run()?;
    if let Some(reason) = broken(&outcome) {
        return Ok(Verdict::Different(format!("record: {reason}")));
    }
    let knowledge = workspace::target().join("slices");
    std::fs::create_dir_all(&knowledge)?;
    let argv: Vec<OsString> = vec![
        binary.into(),
        recording.into(),
        knowledge.join("knowledge").into(),
        options.criteria.to_string().into(),
        seed.to_string().into(),
        options.max_instructions.to_string().into(),
    ];
    let mut check = Program::new(argv, folder.to_path_buf());
    check.limit = LIMIT;
    let outcome = check.run()?;
    let text = String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned();
    let error = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
    Ok(match outcome.status {
        Status::Exited(0) => Verdict::Equal(text),
        TOO_LONG => Verdict::Skipped,
        status => Verdict::Different(format!("{status} {error}\n{text}")),
    })
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
