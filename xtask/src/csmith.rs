//! Random programs: csmith makes them, gcc compiles them, and native, recorded and replayed runs
//! must agree. A program that fails is kept under its seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::compat::confinement::Confinement;
use crate::process::{Program, Status};
use crate::tally::Tally;
use crate::trial::{Judge, Trial};
use crate::why::Why;
use crate::{parallel, workspace};

/// Options of `cargo xtask csmith`.
#[derive(Args)]
pub struct Options {
    /// How many programs to judge
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// The first seed; programs take it and those that follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Every program at all four levels, not one each in turn
    #[arg(long)]
    all_levels: bool,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` to test, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Longer native runs are not worth their time; csmith makes many endless programs.
const NATIVE_LIMIT: Duration = Duration::from_secs(5);

/// One random program at one level.
struct Sample {
    seed: u64,
    level: &'static str,
}

enum Verdict {
    Passed,
    Failed(String),
    /// Ran too long natively.
    Skipped,
}

/// Judges programs until as many as wanted have been, or too many had to be skipped.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("csmith")?;
    let confinement = Confinement::default();
    let judge = Judge { why: &why, confinement: &confinement, scratch: scratch.path() };
    let (mut tally, mut skipped, mut seed) = (Tally::default(), 0, options.seed);
    let wanted = if options.all_levels { options.count * LEVELS.len() } else { options.count };
    while tally.passed + tally.failed < wanted {
        if skipped > 3 * wanted + 50 {
            bail!(
                "{skipped} programs ran over {} s natively; something is wrong with csmith or this machine",
                NATIVE_LIMIT.as_secs()
            );
        }
        let samples = samples(&mut seed, wanted - tally.passed - tally.failed, options.all_levels);
        parallel::in_order(
            options.jobs,
            &samples,
            |sample| judge_sample(sample, &judge),
            |sample, verdict| match verdict {
                Verdict::Passed => tally.count(true),
                Verdict::Skipped => skipped += 1,
                Verdict::Failed(reason) => {
                    tally.count(false);
                    println!("seed {} {}  FAIL  {reason}", sample.seed, sample.level);
                }
            },
        );
        println!(
            "seeds to {}: {tally}, {skipped} skipped (over {} s natively)",
            seed - 1,
            NATIVE_LIMIT.as_secs()
        );
    }
    println!("{tally}");
    Ok(tally.all_passed())
}

/// The next few samples; levels take turns by seed, so a seed alone names its program.
fn samples(seed: &mut u64, wanted: usize, all_levels: bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    while samples.len() < wanted.min(40) {
        if all_levels {
            samples.extend(LEVELS.map(|level| Sample { seed: *seed, level }));
        } else {
            samples.push(Sample { seed: *seed, level: LEVELS[(*seed % 4) as usize] });
        }
        *seed += 1;
    }
    samples
}

fn judge_sample(sample: &Sample, judge: &Judge<'_>) -> Verdict {
    let folder = judge.scratch.join(format!("seed-{}{}", sample.seed, sample.level));
    let verdict = try_sample(sample, &folder, judge)
        .unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")));
    if let Verdict::Failed(reason) = &verdict
        && let Err(error) = keep(sample, &folder, reason)
    {
        return Verdict::Failed(format!("{reason} (and could not be kept: {error:#})"));
    }
    let _ = fs::remove_dir_all(&folder); // only costs disk until the scratch folder goes
    verdict
}

/// Makes the program of a seed in a folder, compiled at the level that seed has in turn.
pub fn make(seed: u64, folder: &Path) -> Result<PathBuf> {
    let level = LEVELS[(seed % 4) as usize];
    make_sample(&Sample { seed, level }, folder, None)
}

/// The same, but a program of few functions and little depth. Seven of eight have no
/// dynamic linker, whose work would be most of theirs.
pub fn make_small(seed: u64, folder: &Path) -> Result<PathBuf> {
    let level = LEVELS[(seed % 4) as usize];
    let program = Small { dynamic: seed.is_multiple_of(8) };
    make_sample(&Sample { seed, level }, folder, Some(&program))
}

/// A program that a slow check can follow.
struct Small {
    dynamic: bool,
}

const SMALL: [&str; 12] = [
    "--max-funcs",
    "3",
    "--max-block-depth",
    "2",
    "--max-block-size",
    "3",
    "--max-expr-complexity",
    "4",
    "--max-array-dim",
    "2",
    "--max-array-len-per-dim",
    "6",
];

fn make_sample(sample: &Sample, folder: &Path, small: Option<&Small>) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    checked(
        Command::new("csmith")
            .arg("--seed")
            .arg(sample.seed.to_string())
            .args(small.map_or(&[][..], |_| &SMALL))
            .arg("--output")
            .arg(&source)
            .current_dir(folder),
    )?;
    checked(
        Command::new("gcc")
            .args(["-w", sample.level, "-I/usr/include/csmith"])
            .args(small.filter(|small| !small.dynamic).map(|_| "-static"))
            .arg("-o")
            .arg(&program)
            .arg(&source),
    )?;
    Ok(program)
}

/// Does it end natively within the time that random programs get?
pub fn ends_in_time(program: &Path, folder: &Path) -> Result<bool> {
    let mut native = Program::new(vec![program.into()], folder.to_path_buf());
    native.limit = NATIVE_LIMIT;
    Ok(native.run()?.status != Status::TimedOut)
}

fn try_sample(sample: &Sample, folder: &Path, judge: &Judge<'_>) -> Result<Verdict> {
    let program = make_sample(sample, folder, None)?;
    if !ends_in_time(&program, folder)? {
        return Ok(Verdict::Skipped);
    }
    let trial = Trial::new(format!("csmith-{}{}", sample.seed, sample.level), vec![program.into()]);
    Ok(match judge.judge(&trial) {
        Ok(()) => Verdict::Passed,
        Err(reason) => Verdict::Failed(reason),
    })
}

fn checked(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().with_context(|| format!("cannot run {name}; try `cargo xtask setup`"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Keeps source, program and reason in target/csmith/fail-SEED.
fn keep(sample: &Sample, folder: &Path, reason: &str) -> Result<()> {
    let kept = workspace::target().join("csmith").join(format!("fail-{}", sample.seed));
    fs::create_dir_all(&kept)?;
    for name in ["program.c", "program"] {
        if folder.join(name).exists() {
            fs::copy(
                folder.join(name),
                kept.join(format!("{name}{}", if name == "program" { sample.level } else { "" })),
            )?;
        }
    }
    fs::write(kept.join(format!("reason{}", sample.level)), format!("{reason}\n"))?;
    Ok(())
}
