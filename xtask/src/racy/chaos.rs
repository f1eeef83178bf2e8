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
use crate::{parallel, workspace};

/// A lost update, an atomicity violation, a deadlock and a lost wake-up.
const FAULTS: [&str; 4] = ["lost_update", "check_then_act", "deadlock", "lost_wakeup"];
/// Within so many runs each must be found.
const RUNS: u32 = 200;
/// Of a hundred seeds, so many may miss it.
const MISSES_PER_HUNDRED: usize = 1;

/// Searches for each fault with `seeds` seeds.
pub fn run(why: &Why, seeds: usize, jobs: usize) -> Result<bool> {
    let scratch = workspace::scratch("chaos")?;
    let mut tally = Tally::default();
    for fault in FAULTS {
        let program = build(fault, scratch.path())?;
        // Each search takes the seeds that follow its own.
        let first: Vec<u64> = (0..seeds as u64).map(|n| n * u64::from(RUNS) + 1).collect();
        let mut found = Vec::new();
        parallel::in_order(
            jobs,
            &first,
            |seed| search(why, &program, *seed, &scratch.path().join(seed.to_string())),
            |seed, runs| match runs {
                Ok(Some(runs)) => found.push(runs),
                Ok(None) => println!("{fault:<16} seed {seed}  not found in {RUNS} runs"),
                Err(error) => println!("{fault:<16} seed {seed}  {error:#}"),
            },
        );
        let missed = seeds - found.len();
        tally.count(missed * 100 <= seeds * MISSES_PER_HUNDRED);
        let mean = f64::from(found.iter().sum::<u32>()) / found.len().max(1) as f64;
        let most = found.iter().max().copied().unwrap_or(0);
        println!(
            "{fault:<16} found by {}/{seeds} seeds, after {mean:.1} runs, {most} at most",
            found.len()
        );
    }
    println!("{tally}");
    Ok(tally.all_passed())
}

fn build(fault: &str, folder: &Path) -> Result<PathBuf> {
    let source = workspace::root().join("crates/why/tests/chaos").join(fault);
    let program = folder.join(fault);
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O0", "-pthread", "-o"]).arg(&program).arg(source.with_extension("c"));
    ensure!(gcc.status().context("cannot run gcc")?.success(), "{fault} does not compile");
    Ok(program)
}

/// The number of the run that failed, from 1.
fn search(why: &Why, program: &Path, seed: u64, folder: &Path) -> Result<Option<u32>> {
    let mut argv: Vec<OsString> = vec![why.binary.clone().into(), "record".into()];
    argv.extend([format!("--chaos={seed}"), "--timeout=5".into()].map(OsString::from));
    argv.extend([format!("--until-failure={RUNS}").into(), program.into()]);
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
    let number = number.and_then(|n| n.parse().ok()).with_context(|| format!("why says {text}"))?;
    Ok(Some(number))
}
