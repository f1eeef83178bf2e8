//! A faulty program, built, with a recording of a test that fails.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::score::Line;
use super::spectrum::covered;
use crate::corpus::build::{self, Version};
use crate::corpus::manifest::{Failure, Faulty, Level, Place, Test};
use crate::corpus::run::failure;
use crate::process::{Outcome, Program, Stdin};
use crate::why::Why;

/// What the locators are asked about.
pub struct Subject<'a> {
    pub program: &'a Faulty,
    pub level: Level,
    pub executable: PathBuf,
    pub folder: PathBuf,
    pub test: &'a Test,
    pub failure: Failure,
    pub recording: PathBuf,
    /// What the recorded run wrote.
    pub output: Vec<u8>,
    /// What each test covers and whether it fails, once asked for.
    pool: OnceCell<Pool>,
}

/// The lines that tests cover, and whether each test fails.
pub type Pool = Vec<(BTreeSet<Line>, bool)>;

impl<'a> Subject<'a> {
    /// Builds, and records the first test that fails; nothing if none is promised to.
    pub fn prepare(
        why: &Why,
        program: &'a Faulty,
        level: Level,
        scratch: &Path,
    ) -> Result<Option<Subject<'a>>> {
        let mut failing = program.manifest.tests.iter();
        let Some((test, failure)) = failing.find_map(|t| Some((t, t.failure(level)?))) else {
            return Ok(None);
        };
        let folder = build::unpack(program, Version::Faulty, scratch)?;
        let executable = build::build(program, level, &folder)?;
        let mut subject = Subject {
            program,
            level,
            executable,
            folder,
            test,
            failure,
            recording: PathBuf::new(),
            output: Vec::new(),
            pool: OnceCell::new(),
        };
        for _ in 0..program.manifest.tries.clamp(1, RECORDED) {
            let (recording, outcome) = subject.record(why, test)?;
            if subject.fails(test, &outcome)?.is_some() {
                subject.recording = recording;
                subject.output = outcome.stdout;
                return Ok(Some(subject));
            }
            fs::remove_dir_all(&recording)?;
        }
        anyhow::bail!("{} does not fail when it is recorded", test.name)
    }

    /// Records a test.
    pub fn record(&self, why: &Why, test: &Test) -> Result<(PathBuf, Outcome)> {
        let work = self.folder.join(format!("{}-{:?}", test.name, self.level));
        fs::create_dir_all(&work)?;
        for file in &test.files {
            let name = file.file_name().context("an input file without a name")?;
            fs::copy(self.program.folder.join(file), work.join(name))?;
        }
        let recording = work.join("recording");
        if recording.exists() {
            fs::remove_dir_all(&recording)?;
        }
        let mut argv: Vec<OsString> = vec![self.executable.clone().into()];
        argv.extend(test.args.iter().map(OsString::from));
        let mut options: Vec<OsString> = Vec::new();
        if self.program.manifest.tries > 1 {
            options.push("--chaos".into());
        }
        if test.failure(self.level) == Some(Failure::Hang) {
            options.extend(["--timeout".into(), test.timeout.to_string().into()]);
        }
        let mut run = Program::new(why.record_with(&options, &recording, &argv), work);
        // Recording costs time, and a run that hangs is ended by the recorder.
        run.limit = Duration::from_secs(3 * test.timeout + ENDED);
        if let Some(stdin) = &test.stdin {
            run.stdin = Stdin::File(self.program.folder.join(stdin));
        }
        let outcome = run.run()?;
        Ok((recording, outcome))
    }

    /// Records all tests, once, and looks what each covers.
    pub fn pool(&self, why: &Why) -> Result<&Pool> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let mut pool = Pool::new();
        for test in &self.program.manifest.tests {
            let (recording, outcome) = self.record(why, test)?;
            let fails = self.fails(test, &outcome)?.is_some();
            let words = ["coverage", "-q"].map(OsString::from);
            let mut argv: Vec<OsString> = vec![why.binary.clone().into()];
            argv.extend(words.into_iter().chain([recording.into()]));
            let coverage = Program::new(argv, self.folder.clone()).run()?;
            pool.push((covered(&String::from_utf8_lossy(&coverage.stdout)), fails));
        }
        Ok(self.pool.get_or_init(|| pool))
    }

    /// How a recorded run failed a test.
    pub fn fails(&self, test: &Test, outcome: &Outcome) -> Result<Option<Failure>> {
        let expected = fs::read(self.program.folder.join(test.expected()))
            .context("no expected output; `cargo xtask corpus --regenerate` makes it")?;
        // The recorder ends as a shell would: 128 and the signal.
        let mut outcome = outcome.clone();
        if let crate::process::Status::Exited(code @ 129..=192) = outcome.status {
            outcome.status = crate::process::Status::Killed(code - 128);
        }
        Ok(failure(test, &outcome, &expected))
    }

    /// What was expected of the run, as options of `why`.
    pub fn oracle(&self) -> Vec<OsString> {
        let expected = self.program.folder.join(self.test.expected());
        let mut words: Vec<OsString> = vec!["--expect".into(), expected.into()];
        match self.failure {
            Failure::Crash => words.push("--no-crash".into()),
            Failure::Panic | Failure::ExitStatus => {
                words.extend(["--expect-exit".into(), self.test.exit.to_string().into()]);
            }
            Failure::Hang => {
                words.extend(["--timeout".into(), self.test.timeout.to_string().into()]);
            }
            Failure::WrongOutput => {}
        }
        words
    }

    /// Where a slice of the failure begins.
    pub fn criterion(&self) -> Result<String> {
        if self.failure == Failure::Crash {
            return Ok("crash".to_owned());
        }
        let expected = fs::read(self.program.folder.join(self.test.expected()))?;
        let same = self.output.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        let wrong = same < self.output.len();
        Ok(if wrong { format!("output:{same}") } else { "exit".to_owned() })
    }

    /// The lines that count as the fault: F-000-06 with its rules for constants and omissions,
    /// which the manifest applies.
    pub fn faulty(&self) -> BTreeSet<Line> {
        let faults = self.program.manifest.faults.iter();
        faults.flat_map(|f| f.lines.iter().chain(&f.also)).map(line).collect()
    }
}

/// So often a race is recorded at most, until it fails.
const RECORDED: usize = 12;
/// So many seconds the recorder may take to end a run that hangs.
const ENDED: u64 = 10;

fn line(place: &Place) -> Line {
    let file = place.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (file, place.line)
}
