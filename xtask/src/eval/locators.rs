//! Asking each technique where the fault is.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use super::score::{Line, Suspicion};
use super::spectrum::{Formula, Spectrum, adequate};
use super::subject::Subject;
use super::{Setting, Suite};
use crate::process::{Program, Status};

/// A way to find faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Technique {
    /// `why explain`
    Explain,
    /// `why explain --no-edits`: what the trace tells, and critical predicates
    Switched,
    /// Critical predicates, nearest by dependences first
    Prior,
    /// Critical predicates, last executed first
    Lefs,
    /// The backward slice of the failure, by distance
    Slice,
    /// What lies between the first byte of input and the failure
    Chop,
    /// The baselines, by coverage
    Tarantula,
    Ochiai,
    Dstar,
}

impl Technique {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Technique::Explain => "explain",
            Technique::Switched => "explain --no-edits",
            Technique::Prior => "PRIOR",
            Technique::Lefs => "LEFS",
            Technique::Slice => "slice",
            Technique::Chop => "chop",
            Technique::Tarantula => "Tarantula",
            Technique::Ochiai => "Ochiai",
            Technique::Dstar => "DStar",
        }
    }
}

/// What a technique says.
#[derive(Debug, Default)]
pub struct Answer {
    pub suspicion: Suspicion,
    /// Lines that are told besides.
    pub story: BTreeSet<Line>,
    /// Lines executed.
    pub executed: usize,
    /// Lines in the slice, if there is one.
    pub size: Option<usize>,
    pub trials: u64,
    pub seconds: f64,
    /// Why there is no answer.
    pub why_not: Option<String>,
}

impl Answer {
    /// There is none.
    pub fn none(why_not: String) -> Answer {
        Answer { why_not: Some(why_not), ..Answer::default() }
    }
}

/// Trials of one search for critical predicates.
const TRIALS: u64 = 3000;

/// Asks.
pub fn ask(setting: &Setting, subject: &Subject<'_>, technique: Technique) -> Result<Answer> {
    let begun = Instant::now();
    let mut answer = match technique {
        Technique::Explain => explain(setting, subject, &[])?,
        Technique::Switched => explain(setting, subject, &["--no-edits"])?,
        Technique::Prior => critical(setting, subject, "prior")?,
        Technique::Lefs => critical(setting, subject, "lefs")?,
        Technique::Slice => sliced(setting, subject, &["slice".into()])?,
        Technique::Chop => sliced(setting, subject, &["chop".into(), "input:0".into()])?,
        Technique::Tarantula => spectrum(setting, subject, Formula::Tarantula)?,
        Technique::Ochiai => spectrum(setting, subject, Formula::Ochiai)?,
        Technique::Dstar => spectrum(setting, subject, Formula::DStar)?,
    };
    answer.seconds = begun.elapsed().as_secs_f64();
    Ok(answer)
}

/// Runs `why` and reads the JSON that it prints.
fn why(setting: &Setting, subject: &Subject<'_>, words: Vec<OsString>) -> Result<Value> {
    let verb = words[0].to_string_lossy().into_owned();
    let mut argv: Vec<OsString> = vec![setting.why.binary.clone().into()];
    argv.extend(words);
    argv.extend(["-q".into(), "--json".into()]);
    let mut run = Program::new(argv, subject.folder.clone());
    run.limit = 4 * setting.time + Duration::from_secs(60);
    let outcome = run.run()?;
    if outcome.status == Status::TimedOut {
        bail!("`why {verb}` took longer than {} s", run.limit.as_secs());
    }
    serde_json::from_slice(&outcome.stdout).with_context(|| {
        let said = [outcome.stderr, outcome.stdout].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        said.lines().next().unwrap_or("it said nothing").to_owned()
    })
}

fn explain(setting: &Setting, subject: &Subject<'_>, how: &[&str]) -> Result<Answer> {
    let mut words: Vec<OsString> = vec!["explain".into(), "-r".into()];
    words.push(subject.recording.clone().into());
    words.extend(["--places".into(), "100000".into(), "--time".into()]);
    words.push(format!("{}s", setting.time.as_secs()).into());
    words.extend(how.iter().map(OsString::from));
    words.extend(subject.oracle());
    let story = why(setting, subject, words)?;
    let spots = |entries: &Value, key: &str| {
        let all = entries.as_array().into_iter().flatten();
        all.filter_map(|entry| spot(&entry[key])).collect::<Vec<Line>>()
    };
    let suspects = story["suspects"].as_array().into_iter().flatten();
    let suspicion =
        suspects.filter_map(|s| Some((spot(&s["spot"])?, s["score"].as_f64()?))).collect();
    let memory = &story["memory"];
    let misuses = ["spot", "call"].iter().flat_map(|key| spots(memory, key));
    let ways = memory.as_array().into_iter().flatten().map(|misuse| &misuse["path"]);
    let ways = ways.flat_map(|way| spots(way, "spot"));
    let told = ["path", "critical", "edits"].iter().flat_map(|key| spots(&story[key], "spot"));
    let told = told.chain(misuses).chain(ways);
    Ok(Answer {
        suspicion,
        story: told.chain(spot(&story["failure"]["spot"])).collect(),
        executed: number(&story["executed_lines"]) as usize,
        size: Some(number(&story["slice_lines"]) as usize),
        trials: number(&story["tried"]["trials"]) + number(&story["tried"]["edits"]),
        ..Answer::default()
    })
}

fn critical(setting: &Setting, subject: &Subject<'_>, order: &str) -> Result<Answer> {
    let mut words: Vec<OsString> = vec!["critical".into(), "-r".into()];
    words.push(subject.recording.clone().into());
    words.extend(["--order".into(), order.into(), "--trials".into(), TRIALS.to_string().into()]);
    words.extend(subject.oracle());
    let found = why(setting, subject, words)?;
    let statements = found["slices"]["statements"].as_array().into_iter().flatten();
    let suspicion: Suspicion = statements
        .filter_map(|s| {
            let (file, line) = s["position"].as_str()?.rsplit_once(':')?;
            let file = Path::new(file).file_name()?.to_string_lossy().into_owned();
            Some(((file, line.parse().ok()?), -(number(&s["distance"]) as f64)))
        })
        .collect();
    let none = suspicion.is_empty().then(|| "no single branch helps".to_owned());
    Ok(Answer {
        executed: number(&found["slices"]["executed"]) as usize,
        size: (!suspicion.is_empty()).then_some(suspicion.len()),
        suspicion,
        trials: number(&found["trials"]),
        why_not: none,
        ..Answer::default()
    })
}

/// A slice or a chop, the nearest lines first.
fn sliced(setting: &Setting, subject: &Subject<'_>, verb: &[OsString]) -> Result<Answer> {
    let mut words = vec![verb[0].clone(), "-r".into(), subject.recording.clone().into()];
    words.extend_from_slice(&verb[1..]);
    words.push(subject.criterion()?.into());
    let slice = why(setting, subject, words)?;
    let lines = slice["lines"].as_array().into_iter().flatten();
    let suspicion: Suspicion =
        lines.filter_map(|l| Some((spot(l)?, -(number(&l["distance"]) as f64)))).collect();
    Ok(Answer {
        executed: number(&slice["executed_lines"]) as usize,
        size: Some(suspicion.len()),
        suspicion,
        ..Answer::default()
    })
}

/// Compares what failing and passing tests cover.
fn spectrum(setting: &Setting, subject: &Subject<'_>, formula: Formula) -> Result<Answer> {
    let pool = subject.pool(&setting.why)?;
    let chosen: Vec<usize> = match setting.suite {
        Suite::All => (0..pool.len()).collect(),
        Suite::Adequate => adequate(pool),
    };
    let mut spectrum = Spectrum::default();
    for n in chosen {
        spectrum.add(&pool[n].0, pool[n].1);
    }
    let suspicion = spectrum.suspicion(formula);
    Ok(Answer { executed: spectrum.executed(), suspicion, ..Answer::default() })
}

/// The line of a spot.
fn spot(value: &Value) -> Option<Line> {
    let file = Path::new(value["file"].as_str()?).file_name()?.to_string_lossy().into_owned();
    Some((file, value["line"].as_u64()? as usize))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
