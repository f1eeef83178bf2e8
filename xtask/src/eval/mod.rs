//! How well do the locators find the faults of the corpus? The tables of the literature.
//!
//! `subject` builds a program and records its failing test, `locators` asks each technique, `score`
//! judges the answer, `spectrum` has the baselines, `table` prints.

mod locators;
mod score;
mod spectrum;
mod subject;
mod table;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::corpus::manifest::Level;
use crate::why::Why;
use crate::{corpus, workspace};
use locators::{Answer, Technique};
use subject::Subject;
use table::Row;

/// Options of `cargo xtask eval`.
#[derive(Args)]
pub struct Options {
    /// Only this technique; may be repeated
    #[arg(long, value_enum)]
    technique: Vec<Technique>,
    /// Only this program, by folder; may be repeated
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// Only this level
    #[arg(long, value_enum)]
    level: Option<Levels>,
    /// Which tests the baselines see
    #[arg(long, value_enum, default_value = "all")]
    suite: Suite,
    /// Seconds for the experiments of one explanation
    #[arg(long, default_value_t = 30)]
    time: u64,
    /// Fail unless the fault is in the story or among the first five places so often
    #[arg(long, value_name = "N")]
    at_least: Option<usize>,
    /// Keep the tables as a dated file in docs/
    #[arg(long)]
    write: bool,
    /// The `why` to judge, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// A level as an option.
#[derive(Clone, Copy, ValueEnum)]
enum Levels {
    #[value(name = "O0")]
    O0,
    #[value(name = "O2")]
    O2,
}

/// Which tests the baselines see.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// All tests of the manifest
    All,
    /// A part of them that covers what all cover
    Adequate,
}

/// What every part needs.
pub struct Setting {
    pub why: Why,
    pub suite: Suite,
    pub time: Duration,
}

/// Asks every technique about every program, and prints what came of it.
pub fn run(options: &Options) -> Result<bool> {
    let programs = corpus::chosen(&options.program)?;
    let techniques = match options.technique.as_slice() {
        [] => Technique::value_variants().to_vec(),
        some => some.to_vec(),
    };
    let levels = match options.level {
        None => Level::ALL.to_vec(),
        Some(Levels::O0) => vec![Level::O0],
        Some(Levels::O2) => vec![Level::O2],
    };
    let setting = Setting {
        why: Why::given_or_built(options.why.as_deref())?,
        suite: options.suite,
        time: Duration::from_secs(options.time),
    };
    let scratch = workspace::scratch("eval")?;
    let mut rows = Vec::new();
    for program in programs.iter().filter(|p| !p.manifest.faults.is_empty()) {
        for level in &levels {
            let subject = Subject::prepare(&setting.why, program, *level, scratch.path());
            for technique in &techniques {
                let row = match &subject {
                    Ok(Some(subject)) => row(&setting, subject, *technique),
                    Ok(None) => continue,
                    Err(error) => Row::unknown(program, *level, *technique, format!("{error:#}")),
                };
                println!("{}", row.line());
                rows.push(row);
            }
        }
    }
    let text = table::tables(&rows, &techniques, &levels);
    println!("\n{text}");
    if options.write {
        write(&text, &options.technique, options.level)?;
    }
    let found = rows.iter().filter(|r| r.technique == Technique::Explain && r.is_found()).count();
    Ok(options.at_least.is_none_or(|least| found >= least))
}

fn row(setting: &Setting, subject: &Subject<'_>, technique: Technique) -> Row {
    let asked = locators::ask(setting, subject, technique);
    let answer = asked.unwrap_or_else(|error| Answer::none(format!("{error:#}")));
    Row::of(subject, technique, answer)
}

/// A page of some techniques or of one level does not take the place of one of all.
fn write(text: &str, some: &[Technique], level: Option<Levels>) -> Result<()> {
    let output = std::process::Command::new("date").arg("+%F").output().context("no date")?;
    let day = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let names = some.iter().filter_map(|technique| technique.to_possible_value());
    let names: Vec<String> = names.map(|value| value.get_name().to_owned()).collect();
    let level = level.and_then(|level| level.to_possible_value());
    let level = level.iter().map(|value| value.get_name());
    let which = names.iter().map(String::as_str).chain(level.clone());
    let which: String = which.map(|name| format!("-{name}")).collect();
    let asked = names.iter().map(|name| format!(" --technique {name}"));
    let asked: String = asked.chain(level.map(|level| format!(" --level {level}"))).collect();
    let path = workspace::root().join(format!("docs/evaluation-{day}{which}.md"));
    let page = format!(
        "<!-- Written by `cargo xtask eval --write{asked}`. -->\n\n# How well faults are \
         found\n\n{text}"
    );
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
