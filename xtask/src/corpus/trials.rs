//! What comes of trials on the corpus: how many end with each verdict, and what could not be
//! served.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::build::{self, Version};
use super::manifest::{Failure, Faulty, Level, Test};
use crate::page;
use crate::process::{Program, Stdin};
use crate::why::Why;

/// Verdicts and unserved calls, with how often.
#[derive(Default, Deserialize)]
pub struct Counts {
    pub verdicts: BTreeMap<String, u64>,
    pub unserved: BTreeMap<String, u64>,
}

/// Trials of which at most one in so many may be unserved.
const SERVED: u64 = 50;

impl Counts {
    fn trials(&self) -> u64 {
        self.verdicts.values().sum()
    }

    fn add(&mut self, other: &Counts) {
        for (of, from) in
            [(&mut self.verdicts, &other.verdicts), (&mut self.unserved, &other.unserved)]
        {
            for (word, n) in from {
                *of.entry(word.clone()).or_default() += n;
            }
        }
    }

    fn text(&self) -> String {
        let not = self.unserved.iter().map(|(what, n)| format!("({n} × {what})"));
        std::iter::once(self.verdicts()).chain(not).collect::<Vec<_>>().join(", ")
    }

    fn verdicts(&self) -> String {
        let all = self.verdicts.iter().map(|(word, n)| format!("{n} {word}"));
        all.collect::<Vec<_>>().join(", ")
    }

    fn unserved(&self) -> u64 {
        self.unserved.values().sum()
    }

    fn percent(&self) -> f64 {
        100.0 * self.unserved() as f64 / self.trials().max(1) as f64
    }
}

/// Switches so many branches of one failing run of each program.
pub fn run(
    programs: &[Faulty],
    why: &Why,
    scratch: &Path,
    trials: usize,
    writes: bool,
) -> Result<bool> {
    let mut all = Counts::default();
    let (mut searched, mut without, mut lost) = (0, 0, Vec::new());
    for program in programs {
        match of(program, why, scratch, trials) {
            Ok(Some(counts)) => {
                println!("{:24} {}", program.name, counts.text());
                all.add(&counts);
                searched += 1;
            }
            // Races do not fail each time, and some programs only hang.
            Ok(None) => {
                println!("{:24} no failing run", program.name);
                without += 1;
            }
            Err(error) => {
                println!("{:24} {error:#}", program.name);
                lost.push(program.name.as_str());
            }
        }
    }
    println!("{}", all.text());
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(", {} not searched to the end", lost.join(", ")),
    };
    let summary = format!(
        "{} trials on {searched} programs ({without} had no failing run to search{lost}): {}. \
         Unserved: {:.2} %.",
        all.trials(),
        all.verdicts(),
        all.percent()
    );
    println!("{summary}");
    if writes {
        page::put("what-if.md", "corpus", &format!("{summary}\n"))?;
    }
    Ok(all.trials() > 0 && all.unserved() * SERVED <= all.trials())
}

fn of(program: &Faulty, why: &Why, scratch: &Path, trials: usize) -> Result<Option<Counts>> {
    let fails =
        |test: &&Test| test.failure(Level::O0).is_some_and(|failure| failure != Failure::Hang);
    let Some(test) = program.manifest.tests.iter().find(fails) else { return Ok(None) };
    let folder = build::unpack(program, Version::Faulty, scratch)?;
    let executable = build::build(program, Level::O0, &folder)?;
    let work = scratch.join(&program.name).join("work");
    fs::create_dir_all(&work)?;
    for file in &test.files {
        let name = file.file_name().context("an input file without a name")?;
        fs::copy(program.folder.join(file), work.join(name))?;
    }
    let recording = scratch.join(&program.name).join("recording");
    let mut argv = vec![executable.into()];
    argv.extend(test.args.iter().map(Into::into));
    let mut record = Program::new(why.record(&recording, &argv), work.clone());
    record.set("WHY_DIR", scratch);
    if let Some(stdin) = &test.stdin {
        record.stdin = Stdin::File(program.folder.join(stdin));
    }
    record.run()?;
    let mut argv = vec![why.binary.clone().into(), "critical".into(), recording.into()];
    argv.extend(["--all", "--json", "--trials"].map(Into::into));
    argv.push(trials.to_string().into());
    argv.push("--expect".into());
    argv.push(program.folder.join(test.expected()).into());
    argv.extend(["--expect-exit".into(), test.exit.to_string().into()]);
    if test.failure(Level::O0) == Some(Failure::Crash) {
        argv.push("--no-crash".into());
    }
    let mut search = Program::new(argv, work);
    search.set("WHY_DIR", scratch);
    search.limit = Duration::from_secs(600);
    let outcome = search.run()?;
    let error = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
    if error.contains("nothing to search for") {
        return Ok(None);
    }
    if outcome.stdout.is_empty() {
        bail!("why critical: {} {error}", outcome.status);
    }
    serde_json::from_slice(&outcome.stdout).context("cannot read what `why critical` said")
}
