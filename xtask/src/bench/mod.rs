//! What does it cost? `rows` says what is run, `measure` runs it, `report` shows it.

mod debug;
mod debug_parts;
mod measure;
mod quiet;
mod report;
mod rows;
mod slicing;
mod slicing_goals;
mod slicing_rows;
mod slicing_table;
mod trials;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

use crate::why::Why;
use crate::{guests, workspace};
use measure::Measured;

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Native, valgrind --tool=none, memcheck, `why record` and `why replay` side by side
    Overhead(Overhead),
    /// A trial next to a native run of the same program
    Trials(trials::Options),
    /// Going back: why debug against gdb's `record full` and a fresh replay
    Debug(debug::Options),
    /// Tracing, storing and slicing, side by side with native and memcheck
    Slicing(slicing::Slicing),
}

/// Options of `cargo xtask bench overhead`.
#[derive(Args)]
struct Overhead {
    /// Runs of each, of which the median counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only this row (may be given several times)
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// Leave memcheck out: it takes most of the time
    #[arg(long)]
    no_memcheck: bool,
    /// Leave both valgrind columns out
    #[arg(long)]
    no_valgrind: bool,
    /// Write the table to this file as well
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The `why` to measure, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// Measures.
pub fn run(options: &Options) -> Result<bool> {
    match &options.what {
        What::Overhead(overhead) => run_overhead(overhead),
        What::Trials(options) => trials::run(options),
        What::Debug(debug) => debug::run(debug),
        What::Slicing(slicing) => slicing::run(slicing),
    }
}

fn run_overhead(options: &Overhead) -> Result<bool> {
    let table = guests::table::read(Some(&regex::Regex::new("^(clock_heavy|four_threads)$")?))?;
    let programs = guests::build(&table, 2)?;
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("bench")?;
    let rows = rows::make(scratch.path(), &programs)?;
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|row| options.row.is_empty() || options.row.iter().any(|name| name == row.name))
        .collect();
    ensure!(!rows.is_empty(), "no such row");
    let modes = measure::modes(!options.no_valgrind, !options.no_valgrind && !options.no_memcheck);
    let mut measured: Vec<Measured> = Vec::new();
    for row in &rows {
        eprintln!("measuring {} …", row.name);
        measured.push(measure::row(row, &modes, options.runs.max(1), &why, scratch.path())?);
    }
    let text = report::markdown(&measured, &modes, options.runs.max(1));
    print!("{text}");
    if let Some(path) = &options.output {
        std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(measured.iter().all(|row| row.failure.is_none()))
}
