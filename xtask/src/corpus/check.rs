//! Comparing what a program does with what its manifest promises.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::build::{self, Version};
use super::lines;
use super::manifest::{Failure, Faulty, Language, Level, Test};
use super::run;

/// The heading of the table that [`Report::print`] fills.
pub const HEADING: &str = "program                     language lines tests failing  fails by                        verdict";

/// What was found about one program.
#[derive(Default)]
pub struct Report {
    pub complaints: Vec<String>,
}

impl Report {
    /// Prints the program's row, and below it what is wrong.
    pub fn print(&self, program: &Faulty) {
        let row = describe(program).unwrap_or_else(|error| format!("{}: {error:#}", program.name));
        println!("{row:<86} {}", if self.complaints.is_empty() { "pass" } else { "FAIL" });
        for complaint in &self.complaints {
            println!("    {complaint}");
        }
    }

    fn or_failed(result: Result<Vec<String>>) -> Report {
        let complaints = result.unwrap_or_else(|error| vec![format!("{error:#}")]);
        Report { complaints }
    }
}

impl From<Result<Vec<String>>> for Report {
    fn from(result: Result<Vec<String>>) -> Report {
        Report::or_failed(result)
    }
}

/// A program's row in the table: language, size, tests.
pub fn describe(program: &Faulty) -> Result<String> {
    let manifest = &program.manifest;
    let mut size = 0;
    for file in manifest.sources.iter().chain(&manifest.headers) {
        size += fs::read_to_string(program.folder.join(file))?.lines().count();
    }
    let language = match manifest.language {
        Language::C => "C",
        Language::Cpp => "C++",
        Language::Rust => "Rust",
    };
    let mut ways: Vec<String> = Vec::new();
    for test in &manifest.tests {
        for level in Level::ALL {
            let way = test.failure(level).map(|failure| failure.to_string());
            ways.extend(way.filter(|way| !ways.contains(way)));
        }
    }
    let (tests, ways) = (manifest.tests.len(), ways.join(", "));
    let failing = manifest.tests.iter().filter(|test| test.fails.is_some()).count();
    Ok(format!("{:<27} {language:<8} {size:>5} {tests:>5} {failing:>7}  {ways:<31}", program.name))
}

/// Builds both versions at both levels and runs every test on each.
pub fn check(program: &Faulty, scratch: &Path) -> Report {
    complaints(program, scratch).into()
}

fn complaints(program: &Faulty, scratch: &Path) -> Result<Vec<String>> {
    let mut complaints = lines::complaints(program)?;
    for version in Version::ALL {
        let folder = build::unpack(program, version, scratch)?;
        for level in Level::ALL {
            let executable = build::build(program, level, &folder)
                .with_context(|| format!("{} {level:?}", version.name()))?;
            for test in &program.manifest.tests {
                let promised = match version {
                    Version::Faulty => test.failure(level),
                    Version::Fixed => None,
                };
                if let Some(seen) = broken_promise(program, test, promised, &executable)? {
                    let version = version.name();
                    complaints.push(format!("{} ({version}, {level:?}): {seen}", test.name));
                }
            }
        }
    }
    Ok(complaints)
}

/// Runs a test until it does what was promised, as often as the manifest allows; a run that should
/// pass has one try only for every kind of program. The answer says what happened instead.
fn broken_promise(
    program: &Faulty,
    test: &Test,
    promised: Option<Failure>,
    executable: &Path,
) -> Result<Option<String>> {
    let expected = fs::read(program.folder.join(test.expected()))
        .context("no expected output; `cargo xtask corpus --regenerate` makes it")?;
    let tries = if promised.is_some() { program.manifest.tries.max(1) } else { 1 };
    let mut seen = None;
    for _ in 0..tries {
        let outcome = run::run(program, test, executable)?;
        seen = run::failure(test, &outcome, &expected);
        if seen == promised {
            return Ok(None);
        }
    }
    let say = |failure: Option<Failure>| {
        failure.map_or_else(|| "a pass".to_owned(), |failure| failure.to_string())
    };
    let within = if tries > 1 { format!(" within {tries} tries") } else { String::new() };
    Ok(Some(format!("{} instead of {}{within}", say(seen), say(promised))))
}
