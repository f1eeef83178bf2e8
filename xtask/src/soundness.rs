//! Are slices sound? On small random programs, values that were defined outside of the backward
//! slice of a criterion are set to others, in trials; the criterion must not notice. What it may
//! notice all the same is counted by kind; docs/slicing.md explains the kinds.

use std::collections::BTreeMap;
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

/// Options of `cargo xtask soundness`.
#[derive(Args)]
pub struct Options {
    /// Alter runs of so many random programs
    #[arg(long, value_name = "N", default_value_t = 5)]
    csmith: usize,
    /// Criteria per program
    #[arg(long, value_name = "N", default_value_t = 8)]
    criteria: usize,
    /// The first seed; programs take it and those that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs that execute more instructions are left out
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_instructions: u64,
    /// The `why` that records, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

const LIMIT: Duration = Duration::from_secs(900);
/// What the altering program says of a run that is too long.
const TOO_LONG: Status = Status::Exited(3);

/// How often what happened.
type Counts = BTreeMap<String, u64>;

enum Verdict {
    Sound(Counts),
    Wrong(String),
    Skipped,
}

/// Alters until as many programs as wanted have been.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let binary = build()?;
    let scratch = workspace::scratch("soundness")?;
    let (mut tally, mut skipped, mut seed) = (Tally::default(), 0, options.seed);
    let mut all = Counts::new();
    while tally.passed + tally.failed < options.csmith {
        if skipped > 10 * options.csmith + 50 {
            bail!("{skipped} programs ran too long; try a larger --max-instructions");
        }
        let folder = scratch.path().join(format!("seed-{seed}"));
        match alter(options, seed, &folder, &why, &binary)? {
            Verdict::Skipped => skipped += 1,
            Verdict::Sound(counts) => {
                tally.count(true);
                println!("csmith seed {seed}  pass  {}", text(&counts));
                for (kind, n) in counts {
                    *all.entry(kind).or_default() += n;
                }
            }
            Verdict::Wrong(said) => {
                tally.count(false);
                println!("csmith seed {seed}  FAIL  {said}");
            }
        }
        seed += 1;
    }
    println!("{tally}, {skipped} skipped; {}", text(&all));
    let noticed = all.contains_key("Noticed");
    if !noticed {
        println!("no alteration inside of a slice was noticed, so nothing was shown");
    }
    Ok(tally.all_passed() && noticed)
}

fn text(counts: &Counts) -> String {
    let all: Vec<String> = counts.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    all.join(", ")
}

fn alter(options: &Options, seed: u64, folder: &Path, why: &Why, binary: &Path) -> Result<Verdict> {
    let program = csmith::make_small(seed, folder)?;
    if !csmith::ends_in_time(&program, folder)? {
        return Ok(Verdict::Skipped);
    }
    let recording = folder.join("recording");
    let mut record = Program::new(why.record(&recording, &[program.into()]), folder.to_path_buf());
    record.set("WHY_DIR", folder);
    let outcome = record.run()?;
    if let Some(reason) = broken(&outcome) {
        return Ok(Verdict::Wrong(format!("record: {reason}")));
    }
    let argv: Vec<OsString> = vec![
        binary.into(),
        recording.into(),
        options.criteria.to_string().into(),
        seed.to_string().into(),
        options.max_instructions.to_string().into(),
    ];
    let mut check = Program::new(argv, folder.to_path_buf());
    check.limit = LIMIT;
    let outcome = check.run()?;
    let said = String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned();
    let error = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
    Ok(match outcome.status {
        Status::Exited(0) => {
            Verdict::Sound(serde_json::from_str(&said).context("it said something unexpected")?)
        }
        TOO_LONG => Verdict::Skipped,
        status => Verdict::Wrong(format!("{status} {said}\n{error}")),
    })
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "locate", "--example", "soundness"])
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo build --release --package locate --example soundness failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace::target, PathBuf::from);
    Ok(target.join("x86_64-unknown-linux-gnu/release/examples/soundness"))
}
