//! Do programs behave the same natively, recorded and replayed?
//!
//! `table`, `trees` and `everyday` list real commands, `inputs` and `programs` make what they read,
//! `compare` says what differs,
//! `confinement` runs it all as less than root. One trial is made by `crate::trial`.

pub mod compare;
pub mod confinement;
mod everyday;
mod inputs;
mod programs;
mod table;
mod trees;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use regex::Regex;

use crate::tally::Tally;
use crate::trial::{Judge, Trial};
use crate::why::Why;
use crate::{guests, parallel, workspace};
use confinement::Confinement;

use inputs::Inputs;
pub use inputs::{Random, dependency_source, find_cc1, make_project, real_source, text};

/// Options of `cargo xtask compat`.
#[derive(Args)]
pub struct Options {
    /// Only rows whose name matches this regular expression
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,
    /// A quick subset: no slow rows, each guest in its first variant
    #[arg(long)]
    quick: bool,
    /// Only one of the two tables
    #[arg(long)]
    only: Option<Part>,
    /// Run everything as an ordinary user
    #[arg(long)]
    as_user: bool,
    /// Run everything under a container-like seccomp filter
    #[arg(long)]
    seccomp: bool,
    /// How many rows at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` to test, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
    /// Keep the folders of failing rows
    #[arg(long)]
    keep: bool,
}

/// The two tables.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Programs that are not ours
    Real,
    /// Our guests
    Guests,
}

/// Runs both tables; real commands are counted last and apart.
pub fn run(options: &Options) -> Result<bool> {
    let scratch = workspace::scratch("compat")?;
    let mut confinement = Confinement::new(options.as_user, options.seccomp)?;
    let why = confinement.stage(Why::given_or_built(options.why.as_deref())?, scratch.path())?;
    let judge = Judge { why: &why, confinement: &confinement, scratch: scratch.path() };
    let mut guest_tally = Tally::default();
    let mut real_tally = Tally::default();
    if options.only != Some(Part::Real) {
        guest_tally =
            judge_all(&judge, &guest_trials(options, &confinement, scratch.path())?, options.jobs);
    }
    if options.only != Some(Part::Guests) {
        let inputs = Inputs::make(&scratch.path().join("inputs"))?;
        real_tally = judge_all(&judge, &real_trials(options, &inputs), options.jobs);
    }
    let all_passed = guest_tally.all_passed() && real_tally.all_passed();
    if options.keep && !all_passed {
        println!("failing rows are kept in {}", scratch.keep().display());
    }
    println!("guests: {guest_tally}");
    if options.only != Some(Part::Guests) {
        println!("{real_tally}");
    }
    Ok(all_passed)
}

fn guest_trials(
    options: &Options,
    confinement: &Confinement,
    scratch: &Path,
) -> Result<Vec<Trial>> {
    let guests = guests::table::read(None)?;
    let programs = confinement.stage_guests(&guests::build(&guests, options.jobs)?, scratch)?;
    Ok(matching(guests::trials(&guests, &programs, options.quick), options.filter.as_ref()))
}

fn real_trials(options: &Options, inputs: &Inputs) -> Vec<Trial> {
    let all = table::rows().into_iter().chain(trees::rows()).chain(everyday::rows());
    let wanted = all.filter(|row| {
        !(options.quick && row.is_slow())
            && options.filter.as_ref().is_none_or(|filter| filter.is_match(row.name()))
    });
    wanted.map(|row| row.trial(inputs)).collect()
}

fn matching(trials: Vec<Trial>, filter: Option<&Regex>) -> Vec<Trial> {
    trials
        .into_iter()
        .filter(|trial| filter.is_none_or(|filter| filter.is_match(&trial.name)))
        .collect()
}

/// Makes all trials, one printed row each.
fn judge_all(judge: &Judge<'_>, trials: &[Trial], jobs: usize) -> Tally {
    let width = trials.iter().map(|trial| trial.name.chars().count()).max().unwrap_or(0).min(60);
    let mut tally = Tally::default();
    let work = |trial: &Trial| {
        let start = std::time::Instant::now();
        (judge.judge(trial), start.elapsed())
    };
    parallel::in_order(jobs, trials, work, |trial, (verdict, elapsed)| {
        tally.count(verdict.is_ok());
        let (word, reason) = match &verdict {
            Ok(()) => ("pass", String::new()),
            Err(reason) => ("FAIL", format!("  {reason}")),
        };
        println!("{:<width$}  {word} {:>6.2} s{reason}", trial.name, elapsed.as_secs_f64());
    });
    tally
}
