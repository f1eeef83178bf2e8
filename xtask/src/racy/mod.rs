//! Races: each recording of a racy guest may differ, each replay of it may not.

mod chaos;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::compat::compare;
use crate::guests::table::Group;
use crate::process::{Outcome, Program};
use crate::tally::Tally;
use crate::trial::{Trial, broken};
use crate::why::Why;
use crate::{guests, parallel, workspace};

/// Options of `cargo xtask racy`.
#[derive(Args)]
pub struct Options {
    /// How many recordings in all, shared evenly by the racy guests
    #[arg(long, default_value_t = 100)]
    recordings: usize,
    /// How often each recording is replayed
    #[arg(long, default_value_t = 3)]
    replays: usize,
    /// How often one recording of each long-run guest is replayed (F-000-28, F-001-32)
    #[arg(long, default_value_t = 100)]
    long_run: usize,
    /// Instead, search for seeded faults with `--chaos` from so many seeds (F-001-42)
    #[arg(long, value_name = "SEEDS", num_args = 0..=1, default_missing_value = "20")]
    chaos: Option<usize>,
    /// Put the table of `--chaos` into its page
    #[arg(long, requires = "chaos")]
    write: bool,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` to test, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// One recording to make and how often to replay it.
struct Round<'a> {
    trial: &'a Trial,
    number: usize,
    replays: usize,
}

/// F-000-28 (a racy program) and F-001-32 (the same crash) are shown with these.
const LONG_RUNS: [&str; 2] = ["racy_counter", "racy_crash"];

/// Records all racy guests and replays each recording.
pub fn run(options: &Options) -> Result<bool> {
    if let Some(seeds) = options.chaos {
        let why = Why::given_or_built(options.why.as_deref())?;
        return chaos::run(&why, seeds, options.jobs, options.write);
    }
    let mut table = guests::table::read(None)?;
    table.retain(|guest| guest.group == Group::Racy);
    ensure!(!table.is_empty(), "there are no racy guests");
    let programs = guests::build(&table, options.jobs)?;
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("racy")?;
    let trials = guests::trials(&table, &programs, true);
    let mut tally = judge_rounds(options, &why, scratch.path(), &trials);
    for trial in
        trials.iter().filter(|trial| LONG_RUNS.iter().any(|name| trial.name.starts_with(name)))
    {
        let round = Round { trial, number: usize::MAX, replays: options.long_run };
        let verdict = judge(&round, &why, scratch.path());
        tally.count(verdict.is_ok());
        let word = verdict.map_or_else(|reason| format!("FAIL  {reason}"), |_| "pass".to_string());
        println!("{:<28} one recording, {} replays  {word}", trial.name, options.long_run);
    }
    println!("{tally}");
    Ok(tally.all_passed())
}

fn judge_rounds(options: &Options, why: &Why, scratch: &Path, trials: &[Trial]) -> Tally {
    let rounds: Vec<Round> = (0..options.recordings)
        .map(|number| Round {
            trial: &trials[number % trials.len()],
            number,
            replays: options.replays,
        })
        .collect();
    let (mut tally, mut seen) = (Tally::default(), BTreeSet::new());
    parallel::in_order(
        options.jobs,
        &rounds,
        |round| judge(round, why, scratch),
        |round, verdict| {
            tally.count(verdict.is_ok());
            match verdict {
                Ok(outcome) => {
                    _ = seen.insert((
                        round.trial.name.as_str(),
                        outcome.stdout,
                        outcome.status.as_shell(),
                    ))
                }
                Err(reason) => {
                    println!("{:<28} recording {}  FAIL  {reason}", round.trial.name, round.number)
                }
            }
        },
    );
    for trial in trials {
        let made = rounds.iter().filter(|round| round.trial.name == trial.name).count();
        let distinct = seen.iter().filter(|(name, ..)| *name == trial.name).count();
        println!(
            "{:<28} {made} recordings, {distinct} distinct outcomes, {} replays each",
            trial.name, options.replays
        );
    }
    tally
}

/// Records once, replays as often as asked; the answer is what the recording showed.
fn judge(round: &Round<'_>, why: &Why, scratch: &Path) -> Result<Outcome, String> {
    let folder = scratch.join(format!("{}-{}", round.trial.name, round.number));
    let verdict = judge_in(round, why, &folder).unwrap_or_else(|error| Err(format!("{error:#}")));
    let _ = fs::remove_dir_all(&folder); // only costs disk until the scratch folder goes
    verdict
}

fn judge_in(round: &Round<'_>, why: &Why, folder: &Path) -> Result<Result<Outcome, String>> {
    fs::create_dir_all(folder)?;
    let recording = folder.join("recording");
    let run = |argv| {
        let mut program = Program::new(argv, folder.to_path_buf());
        program.limit = Duration::from_secs(120);
        program.set("WHY_DIR", folder.join("home"));
        program.run()
    };
    let recorded = run(why.record(&recording, &round.trial.argv))?;
    if let Some(reason) = broken(&recorded) {
        return Ok(Err(format!("record: {reason}")));
    }
    for number in 1..=round.replays {
        let replayed = run(why.replay_verified(&recording))?;
        if let Some(reason) = broken(&replayed).or_else(|| compare::outcomes(&recorded, &replayed))
        {
            return Ok(Err(format!("replay {number}: {reason}")));
        }
    }
    Ok(Ok(recorded))
}
