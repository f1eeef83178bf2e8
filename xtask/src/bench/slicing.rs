//! What do a trace and its slices cost? Each row runs natively, under memcheck, and
//! recorded; then `slice`'s example `bench` takes the recording apart.
//!
//! All times are seconds of processors, children included: on a machine that others
//! use too, those still mean something.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

use super::slicing_rows::{self, Row};
use super::slicing_table;
use crate::process::{Program, Status};
use crate::why::Why;
use crate::{guests, workspace};

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

/// Seconds by the clock, and of processors.
pub type Seconds = [f64; 2];

/// What the example says of a recording.
#[derive(Debug, Deserialize)]
pub struct Facts {
    pub instructions: u64,
    pub traced: Seconds,
    pub built: Seconds,
    pub slices: Vec<Seconds>,
    pub peak_bytes: u64,
    pub record_bytes: u64,
    pub control_bytes: u64,
    pub stored: Seconds,
    pub stored_bytes: u64,
    pub loaded: Seconds,
    pub loads: bool,
    #[serde(default)]
    pub packed: Option<Packed>,
    /// The same slices with and without skipping.
    #[serde(default)]
    pub skipping: Vec<(Seconds, Seconds)>,
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
        slicing_table::write(if options.growth { "growth" } else { "rows" }, &text)?;
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

const NATIVE_RUNS: u32 = 5;

fn measure(
    row: &Row,
    why: &Why,
    example: &Path,
    scratch: &Path,
    memcheck: bool,
    ablation: bool,
) -> Result<Measured> {
    let before = processors();
    for _ in 0..NATIVE_RUNS {
        run_one(row.argv.clone(), scratch)?;
    }
    let native = (processors() - before) / f64::from(NATIVE_RUNS);
    let memcheck = match memcheck {
        true => {
            let before = processors();
            let tool = ["valgrind", "--tool=memcheck", "-q", "--leak-check=no"];
            let argv = tool.iter().map(OsString::from).chain(row.argv.iter().cloned());
            run_one(argv.collect(), scratch)?;
            Some(processors() - before)
        }
        false => None,
    };
    let recording = scratch.join(format!("recording-{}", row.name));
    run_one(why.record(&recording, &row.argv), scratch)?;
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

fn run_one(argv: Vec<OsString>, scratch: &Path) -> Result<()> {
    let mut program = Program::new(argv, scratch.to_path_buf());
    program.limit = Duration::from_secs(900);
    program.captured = false;
    let outcome = program.run()?;
    ensure!(outcome.status == Status::Exited(0), "it ended with {}", outcome.status);
    Ok(())
}

/// Seconds of processors that children have used.
fn processors() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
