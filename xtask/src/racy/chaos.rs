//! How many runs of `why record --chaos` does it take to meet a fault that the usual schedule
//! never shows?

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process::Program;
use crate::tally::Tally;
use crate::why::Why;
use crate::{page, parallel, workspace};

/// A seeded fault, and whether the schedule was tuned with it in sight.
struct Fault {
    name: &'static str,
    kind: &'static str,
    tuned: bool,
}

const fn fault(name: &'static str, kind: &'static str, tuned: bool) -> Fault {
    Fault { name, kind, tuned }
}

/// The programs are in `crates/why/tests/chaos`.
const FAULTS: [Fault; 7] = [
    fault("lost_update", "lost update", true),
    fault("check_then_act", "atomicity violation", true),
    fault("deadlock", "deadlock", true),
    fault("lost_wakeup", "lost wake-up", true),
    fault("transfer", "money on its way", false),
    fault("used_before_set", "used before it is set", true),
    fault("aba", "a stack without locks (ABA)", true),
];

/// Within so many runs each must be found.
const RUNS: u32 = 200;
/// So many runs with the usual schedule must not show it.
const PLAIN: u32 = 20;

/// What the searches for one fault came to.
struct Found {
    /// The number of the run that failed, from 1, for each seed that found it; in order.
    runs: Vec<u32>,
    seeds: usize,
    /// Did none of the runs with the usual schedule fail?
    hidden: bool,
}

/// Searches for each fault with `seeds` seeds; writes the table into the page, if asked.
pub fn run(why: &Why, seeds: usize, jobs: usize, write: bool) -> Result<bool> {
    let scratch = workspace::scratch("chaos")?;
    let mut tally = Tally::default();
    let mut table = String::from(
        "| fault | found by | median run | worst run | per run | missed by 200 |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for fault in &FAULTS {
        let program = build(fault.name, scratch.path())?;
        let found = search_all(why, fault, &program, scratch.path(), seeds, jobs)?;
        tally.count(found.hidden && found.runs.len() == seeds);
        let row = found.row(fault);
        println!("{row}");
        table.push_str(&row);
        table.push('\n');
    }
    println!("{tally}");
    if write {
        page::put("chaos.md", "searches", &table)?;
    }
    Ok(tally.all_passed())
}

fn search_all(
    why: &Why,
    fault: &Fault,
    program: &Path,
    scratch: &Path,
    seeds: usize,
    jobs: usize,
) -> Result<Found> {
    let name = fault.name;
    let usual = Search { seed: None, most: PLAIN };
    let hidden = usual.run(why, program, &scratch.join("usual"))?.is_none();
    if !hidden {
        println!("{name:<16} the usual schedule shows it");
    }
    // Each search takes the seeds that follow its own.
    let first: Vec<u64> = (0..seeds as u64).map(|n| n * u64::from(RUNS) + 1).collect();
    let mut runs = Vec::new();
    parallel::in_order(
        jobs,
        &first,
        |seed| {
            let search = Search { seed: Some(*seed), most: RUNS };
            search.run(why, program, &scratch.join(seed.to_string()))
        },
        |seed, found| match found {
            Ok(Some(number)) => runs.push(number),
            Ok(None) => println!("{name:<16} seed {seed}  not found in {RUNS} runs"),
            Err(error) => println!("{name:<16} seed {seed}  {error:#}"),
        },
    );
    runs.sort_unstable();
    Ok(Found { runs, seeds, hidden })
}

impl Found {
    /// A line of the table.
    fn row(&self, fault: &Fault) -> String {
        let found = self.runs.len();
        let median = self.runs.get(found / 2).map_or("–".to_owned(), u32::to_string);
        let worst = self.runs.last().map_or("–".to_owned(), u32::to_string);
        let chance = self.chance();
        let missed = (1.0 - chance).powi(RUNS as i32);
        let note = if fault.tuned { "" } else { " \\*" };
        format!(
            "| {}{note} | {found}/{} | {median} | {worst} | {:.1} % | {} |",
            fault.kind,
            self.seeds,
            chance * 100.0,
            rarely(missed)
        )
    }

    /// The likeliest chance that one run fails, from all that were made.
    fn chance(&self) -> f64 {
        let missed = (self.seeds - self.runs.len()) as u32 * RUNS;
        let made = self.runs.iter().sum::<u32>() + missed;
        self.runs.len() as f64 / f64::from(made.max(1))
    }
}

/// A small chance, as text.
fn rarely(chance: f64) -> String {
    match chance {
        ..0.000_001 => "< 10⁻⁶".to_owned(),
        _ => format!("{:.4} %", chance * 100.0),
    }
}

fn build(fault: &str, folder: &Path) -> Result<PathBuf> {
    let source = workspace::root().join("crates/why/tests/chaos").join(fault);
    let program = folder.join(fault);
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O0", "-pthread", "-o"]).arg(&program).arg(source.with_extension("c"));
    ensure!(gcc.status().context("cannot run gcc")?.success(), "{fault} does not compile");
    Ok(program)
}

/// One use of `--until-failure`.
struct Search {
    /// With the usual schedule, if there is none.
    seed: Option<u64>,
    most: u32,
}

impl Search {
    /// The number of the run that failed, from 1.
    fn run(&self, why: &Why, program: &Path, folder: &Path) -> Result<Option<u32>> {
        let mut argv: Vec<OsString> = vec![why.binary.clone().into(), "record".into()];
        argv.extend(self.seed.map(|seed| format!("--chaos={seed}").into()));
        argv.extend(["--timeout=5".into(), format!("--until-failure={}", self.most).into()]);
        argv.push(program.into());
        let mut search = Program::new(argv, "/".into());
        search.set("WHY_DIR", folder);
        search.limit = Duration::from_secs(1800);
        let outcome = search.run()?;
        let _ = std::fs::remove_dir_all(folder); // only costs disk until the scratch folder goes
        let text = String::from_utf8_lossy(&outcome.stderr);
        if text.contains("none of") {
            return Ok(None);
        }
        let number = text.split_once("why: run ").and_then(|(_, rest)| rest.split(' ').next());
        let number = number.and_then(|n| n.parse().ok());
        number.map(Some).with_context(|| format!("why says {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_the_middle_the_worst_and_what_is_missed() {
        let found = Found { runs: vec![2, 10, 28], seeds: 3, hidden: true };
        let row = found.row(&FAULTS[0]);
        assert_eq!(row, "| lost update | 3/3 | 10 | 28 | 7.5 % | < 10⁻⁶ |");
        let missed = Found { runs: vec![100], seeds: 2, hidden: true };
        assert!(missed.row(&FAULTS[4]).starts_with("| money on its way \\* | 1/2 | 100 | 100 |"));
    }
}
