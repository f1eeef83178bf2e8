//! Our own guests: do they build, and do they say natively what they should?

mod build;
pub mod table;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use regex::Regex;

use crate::process::{Outcome, Program, Stdin};
use crate::tally::Tally;
use crate::trial::{Agreement, Trial};
use crate::{parallel, workspace};
use table::{Group, Guest};

pub use build::build;

/// Options of `cargo xtask guests`.
#[derive(Args)]
pub struct Options {
    /// Only guests whose name matches this regular expression
    #[arg(long, value_name = "RE")]
    filter: Option<Regex>,
    /// How often each is run; its output must never differ
    #[arg(long, default_value_t = 2)]
    runs: usize,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Show every guest, not only failing ones
    #[arg(short, long)]
    verbose: bool,
}

/// Builds all guests and checks each natively.
pub fn run(options: &Options) -> Result<bool> {
    let mut guests = table::read(options.filter.as_ref())?;
    guests.retain(|guest| guest.group != Group::Engine);
    let programs = build(&guests, options.jobs)?;
    let scratch = workspace::scratch("guests")?;
    let trials = trials(&guests, &programs, false);
    let mut tally = Tally::default();
    let check = |trial: &Trial| check_natively(trial, options.runs, scratch.path());
    parallel::in_order(options.jobs, &trials, check, |trial, verdict| {
        tally.count(verdict.is_ok());
        match verdict {
            Err(reason) => println!("{:<60} FAIL  {reason}", trial.name),
            Ok(()) if options.verbose => println!("{:<60} pass", trial.name),
            Ok(()) => {}
        }
    });
    println!("{tally}");
    Ok(tally.all_passed())
}

/// Every run of every guest in every variant, or (`quick`) in its first variant only.
pub fn trials(guests: &[Guest], programs: &Path, quick: bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    for guest in guests.iter().filter(|guest| guest.group != Group::Support) {
        let variants = if quick { &guest.variants[..1] } else { &guest.variants[..] };
        for variant in variants {
            for run in &guest.runs {
                let mut trial =
                    Trial::new(run.title(guest, *variant), run.argv(guest, *variant, programs));
                trial.environment = run.environment();
                trial.stdin = run.stdin.clone().map(String::into_bytes);
                trial.stdin_in_pieces = run.pieces;
                trial.agreement = match guest.group {
                    Group::Native => Agreement::Native,
                    Group::Layout => Agreement::Layout,
                    Group::Replay | Group::Racy | Group::Engine | Group::Support => {
                        Agreement::Replay
                    }
                };
                trial.expected = (guest.group != Group::Racy).then_some(run.exit);
                trials.push(trial);
            }
        }
    }
    trials
}

/// Runs a guest several times; it must end as expected and, if it promises to, print the same.
fn check_natively(trial: &Trial, runs: usize, scratch: &Path) -> Result<(), String> {
    let mut first: Option<Outcome> = None;
    for _ in 0..runs.max(1) {
        let outcome = run_natively(trial, scratch).map_err(|error| format!("{error:#}"))?;
        let Some(status) = outcome.status.as_shell() else {
            return Err(outcome.status.to_string());
        };
        if trial.expected.is_some_and(|expected| expected != status) {
            let said = crate::compat::compare::last_line(&outcome.stdout);
            return Err(format!("{} instead of {:?}: {said}", outcome.status, trial.expected));
        }
        if trial.agreement == Agreement::Native
            && outcome.stdout.windows(6).any(|window| window == b"FAILED")
        {
            return Err(crate::compat::compare::first_line(&outcome.stdout));
        }
        match &first {
            Some(first) if trial.agreement == Agreement::Native => {
                if let Some(reason) = crate::compat::compare::outcomes(first, &outcome) {
                    return Err(format!("differs from run to run: {reason}"));
                }
            }
            _ => first = Some(outcome),
        }
    }
    Ok(())
}

fn run_natively(trial: &Trial, scratch: &Path) -> Result<Outcome> {
    let folder = tempfile::tempdir_in(scratch).context("cannot make a working folder")?;
    let work = folder.path().join("work");
    std::fs::create_dir(&work)?;
    let mut program = Program::new(trial.argv.clone(), work);
    program.limit = Duration::from_secs(60);
    for (name, value) in &trial.environment {
        program.set(name, value);
    }
    program.stdin = match &trial.stdin {
        None => Stdin::Empty,
        Some(bytes) if trial.stdin_in_pieces => Stdin::Pieces(bytes.clone()),
        Some(bytes) => {
            let path = folder.path().join("stdin");
            std::fs::write(&path, bytes)?;
            Stdin::File(path)
        }
    };
    program.run()
}
