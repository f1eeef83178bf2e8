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

use super::quiet::Quiet;
use super::slicing_rows::{self, Row};
use super::slicing_table::Tables;
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
    /// Break a slice off after so many seconds: it counts as longer than that
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    limit: f64,
    /// Put each row into docs/slicing.md as soon as it is measured; others stay there
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
    /// From nothing to the first slice.
    pub first_answer: f64,
    /// `None` for those that were broken off.
    pub slices: Vec<Option<f64>>,
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
    /// How many labels there are, and how many are always equally far back.
    #[serde(default)]
    pub labels: Option<(u64, u64)>,
    /// The same slices with and without skipping.
    #[serde(default)]
    pub skipping: Vec<(Option<f64>, Option<f64>)>,
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
    /// Seconds that `why slice` takes, from the recording to the last line of what it prints.
    pub command: f64,
    /// Seconds after which a slice was broken off.
    pub limit: f64,
    /// The day, and whether the machine had something else to do.
    pub when: String,
}

/// Measures.
pub fn run(options: &Slicing) -> Result<bool> {
    let table = guests::table::read(Some(&regex::Regex::new("^four_threads$")?))?;
    let programs = guests::build(&table, 2)?;
    let why = Why::given_or_built(options.why.as_deref())?;
    let example = build_example()?;
    let scratch = workspace::scratch("bench-slicing")?;
    let rows = match options.growth {
        true => slicing_rows::growth(scratch.path())?,
        false => slicing_rows::make(scratch.path(), &programs)?,
    };
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    for name in &options.row {
        ensure!(names.contains(name), "no row is called {name}; there are {}", names.join(", "));
    }
    let wanted = |row: &&Row| match options.quick {
        true => row.name == "gzip",
        false => options.row.is_empty() || options.row.contains(&row.name),
    };
    let bench = Bench { options, why: &why, example: &example, scratch: scratch.path() };
    let mut tables = Tables::default();
    let mut all_load = true;
    for row in rows.iter().filter(wanted) {
        eprintln!("measuring {} …", row.name);
        let begin = Instant::now();
        let measured = bench.row(row).with_context(|| format!("cannot measure {}", row.name))?;
        eprintln!("{} took {:.0} s", row.name, begin.elapsed().as_secs_f64());
        all_load &= measured.facts.loads;
        tables.put(&measured, &names);
        if options.write {
            write(&measured, &names, options.growth)?;
        }
    }
    print!("{}", tables.markdown(!options.growth));
    Ok(all_load)
}

/// Puts a row into the page, beside those that were measured before.
fn write(row: &Measured, order: &[String], growth: bool) -> Result<()> {
    let name = if growth { "growth" } else { "rows" };
    let mut tables = Tables::read(&page::get("slicing.md", name)?);
    tables.put(row, order);
    page::put("slicing.md", name, &tables.markdown(!growth))
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

/// A program of some hundredths of a second is run so often, and for so long, that the
/// one in the middle is not an accident.
const NATIVE_RUNS: usize = 9;
const NATIVE_SECONDS: f64 = 1.0;

/// What rows are measured with.
struct Bench<'a> {
    options: &'a Slicing,
    why: &'a Why,
    example: &'a Path,
    scratch: &'a Path,
}

impl Bench<'_> {
    fn row(&self, row: &Row) -> Result<Measured> {
        let options = self.options;
        let quiet = Quiet::begin();
        let native = self.native(row)?;
        let memcheck = match !options.quick && !options.no_memcheck && !options.growth {
            true => {
                let tool = ["valgrind", "--tool=memcheck", "-q", "--leak-check=no"];
                let argv = tool.iter().map(OsString::from).chain(row.argv.iter().cloned());
                Some(self.seconds_of(argv.collect())?)
            }
            false => None,
        };
        let recording = self.scratch.join(format!("recording-{}", row.name));
        self.seconds_of(self.why.record(&recording, &row.argv))?;
        // Before there is a trace that is kept with the recording.
        let command = self.command(&recording)?;
        let facts = self.facts(&recording)?;
        std::fs::remove_dir_all(&recording)?;
        std::fs::remove_dir_all(recording.with_extension("code"))?;
        let when = match quiet.others() {
            Some(share) => format!("{}, busy ({:.0} % by others)", today()?, 100.0 * share),
            None => today()?,
        };
        let (name, limit) = (row.name.clone(), options.limit);
        Ok(Measured { name, native, memcheck, facts, command, limit, when })
    }

    fn native(&self, row: &Row) -> Result<f64> {
        let (mut runs, mut sum) = (Vec::new(), 0.0);
        while runs.len() < NATIVE_RUNS || sum < NATIVE_SECONDS {
            let seconds = self.seconds_of(row.argv.clone())?;
            runs.push(seconds);
            sum += seconds;
        }
        Ok(median(runs))
    }

    /// What a person waits for who asks about a run for the first time. No code is kept yet.
    fn command(&self, recording: &Path) -> Result<f64> {
        let home = recording.with_extension("home");
        std::fs::create_dir(&home)?;
        let mut argv: Vec<OsString> = vec!["env".into()];
        argv.push(format!("WHY_DIR={}", home.display()).into());
        argv.extend([self.why.binary.clone().into(), "slice".into(), "-q".into(), "-r".into()]);
        argv.push(recording.into());
        let seconds = self.seconds_of(argv)?;
        std::fs::remove_dir_all(home)?;
        Ok(seconds)
    }

    fn facts(&self, recording: &Path) -> Result<Facts> {
        let mut command = Command::new(self.example);
        let code = recording.with_extension("code");
        command.arg(recording).arg(self.options.limit.to_string()).arg(&code);
        if self.options.ablation {
            command.arg("ablation");
        }
        let output = command.output().context("cannot run the example `bench`")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).context("the example said something else")
    }

    /// Runs it; seconds by the clock.
    fn seconds_of(&self, argv: Vec<OsString>) -> Result<f64> {
        let mut program = Program::new(argv, self.scratch.to_path_buf());
        program.limit = Duration::from_secs(900);
        program.captured = false;
        let outcome = program.run()?;
        ensure!(outcome.status == Status::Exited(0), "it ended with {}", outcome.status);
        Ok(outcome.elapsed.as_secs_f64())
    }
}

/// The day, in UTC.
fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().context("cannot run date")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
