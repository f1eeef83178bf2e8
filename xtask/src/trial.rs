//! One trial: a program run natively, recorded, and replayed, and what differed.
//!
//! The program always runs in the same folder path, made anew each time, so that paths in its
//! output agree. The replay runs somewhere else, with that folder moved away.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::compat::compare;
use crate::compat::confinement::Confinement;
use crate::process::{Outcome, Program, Status, Stdin};
use crate::why::Why;

/// What the three runs must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Native, recorded and replayed agree in output, status and files.
    Native,
    /// The program differs from run to run: only recording and replay agree.
    Replay,
    /// As `Replay`, and a second recording agrees with the first.
    Layout,
}

/// One program and how to try it.
#[derive(Debug, Clone)]
pub struct Trial {
    pub name: String,
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Option<Vec<u8>>,
    pub stdin_in_pieces: bool,
    /// Files and folders the program finds in its working folder, copied from here.
    pub inputs: Vec<PathBuf>,
    pub agreement: Agreement,
    /// The status every run must have, if it is fixed.
    pub expected: Option<i32>,
    pub limit: Duration,
    /// Why it cannot be tried.
    pub obstacle: Option<String>,
}

/// Where and with what trials are made.
#[derive(Debug)]
pub struct Judge<'a> {
    pub why: &'a Why,
    pub confinement: &'a Confinement,
    pub scratch: &'a Path,
}

impl Trial {
    /// A trial with nothing special about it.
    pub fn new(name: impl Into<String>, argv: Vec<OsString>) -> Trial {
        Trial {
            name: name.into(),
            argv,
            environment: Vec::new(),
            stdin: None,
            stdin_in_pieces: false,
            inputs: Vec::new(),
            agreement: Agreement::Native,
            expected: None,
            limit: Duration::from_secs(120),
            obstacle: None,
        }
    }
}

impl Judge<'_> {
    /// Makes the trial. `Err` holds what differed first, or what could not be done; the trial's
    /// folder is then kept.
    pub fn judge(&self, trial: &Trial) -> Result<(), String> {
        if let Some(obstacle) = &trial.obstacle {
            return Err(format!("not tried: {obstacle}"));
        }
        let folder = self.scratch.join(folder_name(&trial.name));
        let verdict =
            self.judge_in(trial, &folder).unwrap_or_else(|error| Err(format!("{error:#}")));
        if verdict.is_ok() {
            let _ = fs::remove_dir_all(&folder); // only costs disk until the scratch folder goes
        }
        verdict
    }

    fn judge_in(&self, trial: &Trial, folder: &Path) -> Result<Result<(), String>> {
        let place = Place::make(folder, self.confinement)?;
        let native = match trial.agreement {
            Agreement::Native => {
                let native = self.run(trial, &place, trial.argv.clone(), "native")?;
                if let Some(reason) = unexpected(trial, &native) {
                    return Ok(Err(format!("native: {reason}")));
                }
                Some(native)
            }
            _ => None,
        };
        let recording = place.recording("recording");
        let recorded =
            self.run(trial, &place, self.why.record(&recording, &trial.argv), "recorded")?;
        if let Some(reason) = broken(&recorded) {
            return Ok(Err(format!("record: {reason}")));
        }
        if let Some(native) = &native {
            let files = compare::files(&place.kept("native"), &place.kept("recorded"))?;
            if let Some(reason) = compare::outcomes(native, &recorded).or(files) {
                return Ok(Err(format!("record differs from native: {reason}")));
            }
        }
        if let Some(reason) = unexpected(trial, &recorded) {
            return Ok(Err(format!("record: {reason}")));
        }
        if trial.agreement == Agreement::Layout {
            let again = self.run(
                trial,
                &place,
                self.why.record(&place.recording("second"), &trial.argv),
                "again",
            )?;
            if let Some(reason) = compare::outcomes(&recorded, &again) {
                return Ok(Err(format!("second recording differs from first: {reason}")));
            }
        }
        let replayed = self.replay(&place, &recording, trial.limit)?;
        Ok(match broken(&replayed).or_else(|| compare::outcomes(&recorded, &replayed)) {
            Some(reason) => Err(format!("replay: {reason}")),
            None => Ok(()),
        })
    }

    /// Runs `argv` in a fresh working folder, then moves that folder to `kept`.
    fn run(
        &self,
        trial: &Trial,
        place: &Place,
        argv: Vec<OsString>,
        kept: &str,
    ) -> Result<Outcome> {
        place.prepare(&trial.inputs, self.confinement)?;
        let mut program = Program::new(self.confinement.wrap(argv), place.work());
        program.limit = trial.limit;
        program.set("HOME", place.folder.join("home"));
        program.set("WHY_DIR", place.folder.join("home"));
        for (name, value) in &trial.environment {
            program.set(name, value);
        }
        program.stdin = place.stdin(trial)?;
        let outcome = program.run()?;
        fs::write(place.folder.join(format!("{kept}.stdout")), &outcome.stdout)?;
        fs::write(place.folder.join(format!("{kept}.stderr")), &outcome.stderr)?;
        fs::rename(place.work(), place.kept(kept))
            .context("cannot move the working folder away")?;
        Ok(outcome)
    }

    fn replay(&self, place: &Place, recording: &Path, limit: Duration) -> Result<Outcome> {
        let argv = self.confinement.wrap(self.why.replay_verified(recording));
        let mut program = Program::new(argv, place.folder.join("elsewhere"));
        program.limit = limit;
        program.set("HOME", place.folder.join("home"));
        let outcome = program.run()?;
        fs::write(place.folder.join("replayed.stdout"), &outcome.stdout)?;
        fs::write(place.folder.join("replayed.stderr"), &outcome.stderr)?;
        Ok(outcome)
    }
}

/// Why a run did not end as the table says, if it did not.
fn unexpected(trial: &Trial, outcome: &Outcome) -> Option<String> {
    match (trial.expected, outcome.status.as_shell()) {
        (_, None) => Some(outcome.status.to_string()),
        (Some(expected), Some(found)) if expected != found => Some(format!(
            "status {found}, expected {expected}: {}",
            compare::last_line(&outcome.stdout)
        )),
        _ => None,
    }
}

/// Why a run of `why` itself cannot be right, whatever the program did.
pub fn broken(outcome: &Outcome) -> Option<String> {
    match outcome.status {
        Status::Exited(125) => {
            Some(format!("why failed: {}", compare::first_line(&outcome.stderr)))
        }
        Status::Exited(_) => None,
        other => Some(format!("{other} {}", compare::first_line(&outcome.stderr))),
    }
}

fn folder_name(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .take(100)
        .collect()
}

/// The folders of one trial.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn make(folder: &Path, confinement: &Confinement) -> Result<Place> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        for part in [folder.to_path_buf(), folder.join("home"), folder.join("elsewhere")] {
            fs::create_dir_all(&part)?;
            confinement.give(&part)?;
        }
        Ok(Place { folder: folder.to_path_buf() })
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    fn kept(&self, name: &str) -> PathBuf {
        self.folder.join(format!("work-{name}"))
    }

    fn recording(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn prepare(&self, inputs: &[PathBuf], confinement: &Confinement) -> Result<()> {
        fs::create_dir(self.work())?;
        for input in inputs {
            let name = input.file_name().context("an input needs a name")?;
            compare::copy_tree(input, &self.work().join(name))?;
        }
        compare::fix_times(&self.work())?;
        confinement.give_tree(&self.work())
    }

    fn stdin(&self, trial: &Trial) -> Result<Stdin> {
        let Some(bytes) = &trial.stdin else {
            return Ok(Stdin::Empty);
        };
        if trial.stdin_in_pieces {
            return Ok(Stdin::Pieces(bytes.clone()));
        }
        let path = self.folder.join("stdin");
        fs::write(&path, bytes)?;
        Ok(Stdin::File(path))
    }
}
