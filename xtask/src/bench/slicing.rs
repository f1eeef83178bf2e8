//! What do a trace and its slices cost? Each row runs natively, under memcheck, and
//! recorded; then `slice`'s example `bench` takes the recording apart.
//!
//! All times are seconds by the clock: measure on a machine that does nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use super::slicing_rows::{self, Row};
use super::slicing_table;
use crate::process::{Program, Status};
use crate::why::Why;
use crate::{guests, page, workspace};

/// Options of `cargo xtask bench slicing`.
#[derive(Args)]
pub struct Slicing {
    /// Only this row (may be given several times)
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// From 10⁷ to 10⁹ instructions of gzip instead
    #[arg(long)]
    growth: bool,
    /// Also what each optimisation buys
    #[arg(long)]
    ablation: bool,
    /// gzip only, without memcheck: for every change
    #[arg(long)]
    quick: bool,
    /// Leave memcheck out
    #[arg(long)]
    no_memcheck: bool,
    /// Put the tables into docs/slicing.md
    #[arg(long)]
    write: bool,
    /// The `why` to record with, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// What the example says of a recording.
#[derive(Debug, Deserialize)]
pub struct Facts {
    pub instructions: u64,
    pub traced: f64,
    pub built: f64,
    pub slices: Vec<f64>,
    pub peak_bytes: u64,
    pub record_bytes: u64,
    pub control_bytes: u64,
    pub stored: f64,
    pub stored_bytes: u64,
    pub loaded: f64,
    pub loads: bool,
    /// Until the state at an instant was known, for instants all over the run.
    pub values: Vec<f64>,
    #[serde(default)]
    pub packed: Option<Packed>,
    /// The same slices with and without skipping.
    #[serde(default)]
    pub skipping: Vec<(f64, f64)>,
}

/// Bytes of all segments, by what captured registers are told by.
#[derive(Debug, Deserialize)]
pub struct Packed {
    pub values: u64,
    pub last: u64,
    pub stride: u64,
}

/// One row, measured.
pub struct Measured {
    pub name: String,
    pub native: f64,
    pub memcheck: Option<f64>,
    pub facts: Facts,
}

/// Measures.
pub fn run(options: &Slicing) -> Result<bool> {
    let table = guests::table::read(Some(&regex::Regex::new("^four_threads$")?))?;
    let programs = guests::build(&table, 2)?;
    let why = Why::given_or_built(options.why.as_deref())?;
    let example = build_example()?;
    let scratch = workspace::scratch("bench-slicing")?;
    let mut rows = match options.growth {
        true => slicing_rows::growth(scratch.path())?,
        false => slicing_rows::make(scratch.path(), &programs)?,
    };
    let wanted = |row: &Row| match options.quick {
        true => row.name == "gzip",
        false => options.row.is_empty() || options.row.contains(&row.name),
    };
    rows.retain(wanted);
    ensure!(!rows.is_empty(), "no such row");
    let memcheck = !options.quick && !options.no_memcheck && !options.growth;
    let mut measured = Vec::new();
    for row in &rows {
        eprintln!("measuring {} …", row.name);
        let one = measure(row, &why, &example, scratch.path(), memcheck, options.ablation);
        measured.push(one.with_context(|| format!("cannot measure {}", row.name))?);
    }
    let text = slicing_table::markdown(&measured);
    print!("{text}");
    if options.write {
        let name = if options.growth { "growth" } else { "rows" };
        page::put("slicing.md", name, &text)?;
    }
    Ok(measured.iter().all(|m| m.facts.loads))
}

fn build_example() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "slice", "--example", "bench"])
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the example `bench` of `slice` does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace::target, PathBuf::from);
    Ok(target.join("x86_64-unknown-linux-gnu/release/examples/bench"))
}

const NATIVE_RUNS: u32 = 9;

fn measure(
    row: &Row,
    why: &Why,
    example: &Path,
    scratch: &Path,
    memcheck: bool,
    ablation: bool,
) -> Result<Measured> {
    let natively: Result<Vec<f64>> =
        (0..NATIVE_RUNS).map(|_| seconds_of(row.argv.clone(), scratch)).collect();
    let native = median(natively?);
    let memcheck = match memcheck {
        true => {
            let tool = ["valgrind", "--tool=memcheck", "-q", "--leak-check=no"];
            let argv = tool.iter().map(OsString::from).chain(row.argv.iter().cloned());
            Some(seconds_of(argv.collect(), scratch)?)
        }
        false => None,
    };
    let recording = scratch.join(format!("recording-{}", row.name));
    seconds_of(why.record(&recording, &row.argv), scratch)?;
    let mut command = Command::new(example);
    command.arg(&recording);
    if ablation {
        command.arg("ablation");
    }
    let output = command.output().context("cannot run the example `bench`")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let facts =
        serde_json::from_slice(&output.stdout).context("the example said something else")?;
    std::fs::remove_dir_all(&recording)?;
    Ok(Measured { name: row.name.clone(), native, memcheck, facts })
}

/// Runs it; seconds by the clock.
fn seconds_of(argv: Vec<OsString>, scratch: &Path) -> Result<f64> {
    let mut program = Program::new(argv, scratch.to_path_buf());
    program.limit = Duration::from_secs(900);
    program.captured = false;
    let begin = Instant::now();
    let outcome = program.run()?;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(outcome.status == Status::Exited(0), "it ended with {}", outcome.status);
    Ok(seconds)
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
