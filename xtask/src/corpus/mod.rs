//! The corpus of faulty programs: do they fail as their manifests say, and do their fixes help?
//!
//! `manifest` reads what a program promises, `patch` reads and applies its fix, `build` compiles
//! both versions, `run` runs one test, `check` compares promise and behaviour, `expected` writes
//! the expected outputs anew, `trials` counts what trials on them come to, `critical` how many it
//! takes to find a critical predicate.

pub mod build;
mod check;
mod critical;
mod expected;
mod lines;
pub mod manifest;
pub mod patch;
pub mod run;
mod trials;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::tally::Tally;
use crate::why::Why;
use crate::{parallel, workspace};
use manifest::Faulty;

/// Options of `cargo xtask corpus`.
#[derive(Args)]
pub struct Options {
    /// Build every program and its fixed version, run all tests, compare with the manifests
    #[arg(long, required_unless_present_any = ["regenerate", "list", "trials", "critical"])]
    check: bool,
    /// Write the expected outputs anew, with the fixed programs
    #[arg(long, conflicts_with = "check")]
    regenerate: bool,
    /// Only list the programs and their faults
    #[arg(long, conflicts_with_all = ["check", "regenerate"])]
    list: bool,
    /// Switch so many branches of a failing run of each program, and count verdicts
    #[arg(long, value_name = "N", conflicts_with_all = ["check", "regenerate", "list"])]
    trials: Option<usize>,
    /// Count trials until a critical predicate is found, by LEFS and by PRIOR
    #[arg(long, conflicts_with_all = ["check", "regenerate", "list", "trials"])]
    critical: bool,
    /// Put what --critical or --trials found into docs/what-if.md
    #[arg(long, conflicts_with_all = ["check", "regenerate", "list"])]
    write: bool,
    /// The `why` that makes trials, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
    /// Only this program, by folder (`bank`, `worked/loop`); may be repeated
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// How many programs at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Lists, checks or regenerates the chosen programs.
pub fn run(options: &Options) -> Result<bool> {
    let programs = chosen(&options.program)?;
    if options.list {
        for program in &programs {
            println!("{}", check::describe(program)?.trim_end());
            let from = program.manifest.from.as_ref().map(|from| format!(" ({from})"));
            println!("    {}{}", program.manifest.title, from.unwrap_or_default());
            for fault in &program.manifest.faults {
                println!("    {}, {}: {}", fault.lines[0], fault.kind, fault.note);
            }
        }
        return Ok(true);
    }
    let scratch = workspace::scratch("corpus")?;
    if let Some(trials) = options.trials {
        let why = Why::given_or_built(options.why.as_deref())?;
        return trials::run(&programs, &why, scratch.path(), trials, options.write);
    }
    if options.critical {
        let why = Why::given_or_built(options.why.as_deref())?;
        return critical::run(&folder(), &why, scratch.path(), options.write);
    }
    let mut tally = Tally::default();
    let work = |program: &Faulty| {
        if options.regenerate {
            expected::regenerate(program, scratch.path())
        } else {
            check::check(program, scratch.path())
        }
    };
    println!("{}", check::HEADING);
    parallel::in_order(options.jobs, &programs, work, |program, report| {
        report.print(program);
        tally.count(report.complaints.is_empty());
    });
    println!("{tally}");
    Ok(tally.all_passed())
}

/// The programs named, or all; a name that no folder has is an error.
pub fn chosen(names: &[String]) -> Result<Vec<Faulty>> {
    let mut programs = manifest::read_all(&folder())?;
    if let Some(unknown) = names.iter().find(|name| !programs.iter().any(|p| p.name == **name)) {
        bail!("no program {unknown} in the corpus; `cargo xtask corpus --list` shows all");
    }
    if !names.is_empty() {
        programs.retain(|program| names.contains(&program.name));
    }
    Ok(programs)
}

fn folder() -> PathBuf {
    workspace::root().join("corpus")
}
