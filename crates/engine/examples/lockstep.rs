//! Checks a recording in lock-step with the native program:
//! `lockstep [--safepoints] [--max-instructions N] RECORDING`.
//!
//! `cargo xtask lockstep` runs it. Ends with 0 if nothing differs, 1 at the first
//! difference, 2 if it could not be checked.

use engine::lockstep::{Grain, Options, Report, check};
use recording::Recording;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (options, folder) = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("lockstep: {why}");
            return ExitCode::from(2);
        }
    };
    let report = Recording::open(&folder)
        .map_err(engine::Error::from)
        .and_then(|recording| check(&recording, &options));
    match report {
        Ok(report) => show(&report),
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<(Options, PathBuf), String> {
    let mut options = Options::default();
    let mut folder = None;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--safepoints" {
            options.grain = Grain::Safepoints;
        } else if argument == "--max-instructions" {
            let number = arguments.next().and_then(|n| n.to_str()?.parse().ok());
            options.max_instructions = number.ok_or("--max-instructions needs a number")?;
        } else {
            folder = Some(PathBuf::from(argument));
        }
    }
    Ok((options, folder.ok_or("give a recording")?))
}

fn show(report: &Report) -> ExitCode {
    if let Some(difference) = &report.difference {
        print!("{difference}");
    }
    let end = match report.ending {
        Some(ending) => format!("to its end ({ending})"),
        None if report.difference.is_some() => "up to the difference".to_owned(),
        None => "limit reached".to_owned(),
    };
    println!("{} instructions, {} comparisons, {end}", report.instructions, report.comparisons);
    if report.difference.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
