//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! Each module answers one question: is the machine ready (`setup`), do our guests work natively
//! (`guests`), do real programs behave the same recorded and replayed (`compat`), do random ones
//! (`csmith`), does translated code do what the CPU does (`lockstep`), do races replay (`racy`),
//! do slices equal the reference slicer's (`slices`), has every promise of their precision a test
//! that fails without it (`precision`), are they sound by experiment (`soundness`), is a damaged
//! recording met with one sentence (`fuzz`), does one that was cut short replay as far as it goes
//! (`kills`), what does it cost (`bench`), does the corpus of faulty programs fail as promised
//! (`corpus`), how well are its faults found (`eval`), and do the generated pages say what the code
//! does (`docs`).

mod bench;
mod compat;
mod corpus;
mod csmith;
mod docs;
mod eval;
mod fuzz;
mod guests;
mod kills;
mod lockstep;
mod page;
mod parallel;
mod precision;
mod process;
mod racy;
mod setup;
mod slices;
mod soundness;
mod tally;
mod trial;
mod why;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "The project's own commands", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install with apt-get what the other tasks need and this machine lacks
    Setup(setup::Options),
    /// Build all guests and check them natively
    Guests(guests::Options),
    /// Run real commands and our guests natively, recorded and replayed, and compare
    Compat(compat::Options),
    /// The same for random programs made by csmith
    Csmith(csmith::Options),
    /// Check translated code in lock-step with the original instructions on the CPU itself
    Lockstep(lockstep::Options),
    /// Compare slices of random programs with the reference slicer's
    Slices(slices::Options),
    /// Switch every promise of precise slices off: the tests named for it must fail
    Precision(precision::Options),
    /// Alter values outside of slices of random programs: criteria must not notice
    Soundness(soundness::Options),
    /// Record racy guests many times and replay each recording several times
    Racy(racy::Options),
    /// Measure
    Bench(bench::Options),
    /// Build the faulty programs of the corpus and check that they fail as promised
    Corpus(corpus::Options),
    /// Ask every locator where the faults of the corpus are, and print how well they did
    Eval(eval::Options),
    /// Write the pages of docs/ that come from the code
    Docs(docs::Options),
    /// Kill recorders, fill disks, tear logs: what is left must replay as far as it goes
    Kills(kills::Options),
    /// Damage what users give us, and see what `why` makes of it
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    without_core_files();
    without_ignored_signals();
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one task; the answer is whether everything it checked was right.
fn run(task: Task) -> Result<bool> {
    match task {
        Task::Setup(options) => setup::run(&options),
        Task::Guests(options) => guests::run(&options),
        Task::Kills(options) => kills::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Compat(options) => compat::run(&options),
        Task::Csmith(options) => csmith::run(&options),
        Task::Lockstep(options) => lockstep::run(&options),
        Task::Slices(options) => slices::run(&options),
        Task::Precision(options) => precision::run(&options),
        Task::Soundness(options) => soundness::run(&options),
        Task::Racy(options) => racy::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Corpus(options) => corpus::run(&options),
        Task::Docs(options) => docs::run(&options),
        Task::Eval(options) => eval::run(&options),
    }
}

/// Many guests die on purpose; their core files would only fill the disk.
fn without_core_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Core).maximum;
    let none = Rlimit { current: Some(0), maximum };
    if let Err(error) = setrlimit(Resource::Core, none) {
        eprintln!("xtask: cannot switch core files off: {error}");
    }
}

/// Programs expect that signals do what they do by default. Whatever started us (nohup, a CI
/// runner) may have them ignored, which every program that we start would inherit.
fn without_ignored_signals() {
    const AGAIN: &str = "WHY_XTASK_SIGNALS";
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // Rust itself ignores SIGPIPE, and gives its children the default.
    if ignored & !SIGPIPE == 0 || std::env::var_os(AGAIN).is_some() {
        return;
    }
    let mut again = std::process::Command::new("env");
    again.arg("--default-signal").args(std::env::args_os()).env(AGAIN, "1");
    let error = std::os::unix::process::CommandExt::exec(&mut again);
    eprintln!("xtask: signals are ignored, and env cannot undo it: {error}");
}

/// SIGPIPE in a set of signals.
const SIGPIPE: u64 = 1 << (13 - 1);
