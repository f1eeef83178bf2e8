//! What a run should have done: the options that say so, the same for every verb.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::Args;
use recording::{Ending, Recording};
use serde::{Deserialize, Serialize};
use whatif::{Oracle, Original, Unit};

use crate::hung;
use crate::status::Usage;

/// Where a recording remembers what it was judged by.
const REMEMBERED: &str = "oracle.json";

/// What is expected of a run.
#[derive(Args, Default)]
pub struct Expected {
    /// Standard output should be as in FILE
    #[arg(long, value_name = "FILE", help_heading = "Oracle")]
    expect: Option<PathBuf>,

    /// Standard output should be TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "expect", help_heading = "Oracle")]
    expect_text: Option<String>,

    /// Standard error should be as in FILE
    #[arg(long, value_name = "FILE", help_heading = "Oracle")]
    expect_stderr: Option<PathBuf>,

    /// The program should leave PATH as in FILE
    #[arg(long, value_name = "PATH=FILE", help_heading = "Oracle")]
    expect_file: Vec<String>,

    /// The exit status should be N
    #[arg(long, value_name = "N", help_heading = "Oracle")]
    expect_exit: Option<i32>,

    /// The program should not die of a signal
    #[arg(long, help_heading = "Oracle")]
    no_crash: bool,

    /// The shell command CMD decides: it finds standard output in $WHY_STDOUT,
    /// standard error in $WHY_STDERR, the status in $WHY_STATUS
    #[arg(long, value_name = "CMD", help_heading = "Oracle")]
    oracle: Option<OsString>,

    /// Compare outputs byte by byte, not line by line
    #[arg(long, help_heading = "Oracle")]
    bytes: bool,
}

/// An oracle, and the command that has the last word.
#[derive(Clone, Serialize, Deserialize)]
pub struct Judged {
    /// What can be compared.
    pub oracle: Oracle,
    /// Who decides.
    pub command: Option<Vec<u8>>,
    /// From where it is known.
    #[serde(skip)]
    pub source: Source,
    /// Does the command accept the recorded run?
    #[serde(skip)]
    pub accepts_original: bool,
}

/// From where it is known what is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Options say so.
    Options,
    /// The recording remembers options of an earlier time.
    #[default]
    Remembered,
    /// A run that crashed should not have.
    Crash,
    /// It is not known.
    Nowhere,
}

impl Expected {
    /// What is expected: as the options say, else as the recording remembers, else
    /// that it does not crash if it did.
    pub fn oracle(&self, recording: &Recording, original: &Original) -> anyhow::Result<Judged> {
        let mut said = self.said()?;
        if !said.oracle.is_empty() {
            // Who cannot judge this run is not worth remembering.
            said.ask_about(original)?;
            if let Ok(text) = serde_json::to_vec(&said) {
                // A recording that cannot be written to forgets.
                let _ = recording.keep_derived(REMEMBERED, &text);
            }
            return Ok(said);
        }
        let remembered = std::fs::read(recording.derived(REMEMBERED)).ok();
        let remembered = remembered.and_then(|text| serde_json::from_slice::<Judged>(&text).ok());
        if let Some(mut judged) = remembered {
            if self.bytes {
                judged.oracle.unit = Unit::Byte;
            }
            judged.ask_about(original)?;
            return Ok(judged);
        }
        let mut judged = said;
        judged.oracle.no_crash = original.status.is_some_and(|status| status & 0x7f != 0);
        judged.source = if judged.oracle.no_crash { Source::Crash } else { Source::Nowhere };
        Ok(judged)
    }

    /// Can what was said be read?
    pub fn check(&self) -> anyhow::Result<()> {
        self.said().map(drop)
    }

    /// Has a run that was just recorded in `dir` done what was expected? If nothing was
    /// said: has it ended with status 0?
    pub fn is_met(&self, dir: &Path, ending: Ending) -> anyhow::Result<bool> {
        let said = self.said()?;
        let Judged { oracle, .. } = &said;
        let status = i32::from(ending.status());
        if oracle.is_empty() {
            return Ok(ending == Ending::Exited(0));
        }
        self.remember(&Recording::open(dir)?)?;
        let crashed = matches!(ending, Ending::Killed { .. });
        if oracle.exit.is_some_and(|exit| exit != status) || oracle.no_crash && crashed {
            return Ok(false);
        }
        let as_expected = |(path, contents): &(Vec<u8>, Vec<u8>)| {
            std::fs::read(OsStr::from_bytes(path)).is_ok_and(|found| found == *contents)
        };
        if !oracle.files.iter().all(as_expected) {
            return Ok(false);
        }
        if oracle.stdout.is_none() && oracle.stderr.is_none() && !oracle.asks {
            return Ok(true);
        }
        let outputs = outputs_of(dir)?;
        let same = |expected: &Option<Vec<u8>>, n: usize| {
            expected.as_ref().is_none_or(|expected| *expected == outputs[n])
        };
        Ok(same(&oracle.stdout, 0) && same(&oracle.stderr, 1) && said.accepts(&outputs, status)?)
    }

    /// Lets the recording remember what was said, if anything was.
    pub fn remember(&self, recording: &Recording) -> anyhow::Result<()> {
        let said = self.said()?;
        if !said.oracle.is_empty() {
            recording.keep_derived(REMEMBERED, &serde_json::to_vec(&said)?)?;
        }
        Ok(())
    }

    fn said(&self) -> anyhow::Result<Judged> {
        let read = |path: &Path| {
            let cannot = |error| {
                let path = path.display();
                Usage(format!("cannot read {path}, which has what is expected: {error}"))
            };
            std::fs::read(path).map_err(cannot)
        };
        let mut files = Vec::new();
        for pair in &self.expect_file {
            let (path, file) = pair.split_once('=').ok_or_else(|| {
                Usage("--expect-file needs PATH=FILE, with an equals sign".to_owned())
            })?;
            files.push((path.as_bytes().to_vec(), read(Path::new(file))?));
        }
        let stdout = match (&self.expect, &self.expect_text) {
            (Some(path), _) => Some(read(path)?),
            (None, Some(text)) => Some(unescaped(text)),
            (None, None) => None,
        };
        let oracle = Oracle {
            stdout,
            stderr: self.expect_stderr.as_deref().map(read).transpose()?,
            files,
            exit: self.expect_exit,
            no_crash: self.no_crash,
            asks: self.oracle.is_some(),
            unit: if self.bytes { Unit::Byte } else { Unit::Line },
            given_up: None,
        };
        let command = self.oracle.as_ref().map(|text| text.as_bytes().to_vec());
        Ok(Judged { oracle, command, source: Source::Options, accepts_original: false })
    }
}

impl Judged {
    /// Where nobody said what is right, success is: no signal, and status 0.
    pub fn or_success(&mut self, original: &Original) {
        let status = original.status.unwrap_or(0);
        if self.oracle.is_empty() && status != 0 {
            self.oracle.exit = (status & 0x7f == 0).then_some(0);
            self.oracle.no_crash = status & 0x7f != 0;
        }
    }

    /// Lets the command judge the recorded run.
    fn ask_about(&mut self, original: &Original) -> anyhow::Result<()> {
        if self.command.is_some() {
            let status = original.status.map_or(-1, |status| match status & 0x7f {
                0 => status >> 8 & 0xff,
                signal => 128 + signal,
            });
            self.accepts_original = self.accepts(&original.outputs, status)?;
        }
        Ok(())
    }

    /// Is there nothing wrong with the recorded run, if only the command is asked?
    pub fn is_content(&self) -> bool {
        let others = Oracle { asks: false, ..self.oracle.clone() };
        self.accepts_original && others.is_empty()
    }

    /// Asks the command about outputs. True if nobody need be asked.
    pub fn accepts(&self, outputs: &[Vec<u8>; 2], status: i32) -> anyhow::Result<bool> {
        let Some(command) = &self.command else { return Ok(true) };
        let folder = tempfile::Builder::new().prefix("why-oracle-").tempdir();
        let folder = folder.context("cannot make a folder for what the oracle is to see")?;
        let (out, err) = (folder.path().join("stdout"), folder.path().join("stderr"));
        std::fs::write(&out, &outputs[0])?;
        std::fs::write(&err, &outputs[1])?;
        let status = Command::new("sh")
            .arg("-c")
            .arg(std::ffi::OsStr::from_bytes(command))
            .env("WHY_STDOUT", &out)
            .env("WHY_STDERR", &err)
            .env("WHY_STATUS", status.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot run the oracle's command")?;
        match status.code() {
            // As a shell says that there is no such command, that it cannot run, or that a
            // signal killed it.
            Some(code @ 126..=192) => Err(cannot_judge(command, &format!("status {code}"))),
            None => Err(cannot_judge(command, &status.to_string())),
            Some(code) => Ok(code == 0),
        }
    }
}

fn cannot_judge(command: &[u8], how: &str) -> anyhow::Error {
    let command = String::from_utf8_lossy(command);
    let text = format!("the oracle `{command}` cannot judge: it ended with {how}");
    Usage(format!("{text}; let it end with 0 for right and with 1 for wrong")).into()
}

/// What a recorded run wrote to its standard outputs, from a replay.
fn outputs_of(dir: &Path) -> anyhow::Result<[Vec<u8>; 2]> {
    let why = std::env::current_exe().context("cannot find this program")?;
    let mut replay = Command::new(why);
    replay.args(["replay", "-q", "-r"]).arg(dir).stdin(Stdio::null());
    let output = replay.output().context("cannot replay the run")?;
    Ok([output.stdout, output.stderr])
}

/// `\n`, `\t` and `\\` as a person would write them.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => match rest.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, false) => out.push(c),
        }
    }
    out.into_bytes()
}

/// The exit status as a shell shows it.
pub fn shell_status(stopped: &whatif::Stopped) -> i32 {
    match stopped {
        whatif::Stopped::Exited(status) => *status,
        whatif::Stopped::Killed { signal, .. } => 128 + signal,
        _ => -1,
    }
}

/// How many instructions a trial of a recorded run may take. One that hung did not mean to take
/// as many as it did.
pub fn steps(given: Option<&str>, recording: &Recording, original: u64) -> anyhow::Result<u64> {
    let usual = if hung::remembered(recording).is_some() { "1x" } else { "10x" };
    limit(given.unwrap_or(usual), original)
}

/// A limit of instructions: a number, or a multiple of the recorded run such as 10x.
fn limit(text: &str, original: u64) -> anyhow::Result<u64> {
    let wrong =
        || Usage(format!("`{text}` is no limit; write instructions, or a multiple such as 10x"));
    if let Some(times) = text.strip_suffix(['x', 'X']) {
        let times = times.parse().ok().filter(|times: &f64| *times > 0.0).ok_or_else(wrong)?;
        // Short runs end with libraries' work, which takes more than they do.
        return Ok(((original as f64 * times) as u64).max(1_000_000));
    }
    let number = text.replace('_', "").parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_multiples() {
        assert_eq!(limit("5000000", 7).unwrap(), 5_000_000);
        assert_eq!(limit("10x", 1_000_000).unwrap(), 10_000_000);
        assert_eq!(limit("10x", 10).unwrap(), 1_000_000);
        for text in ["ten", "0", "0x", "-1x"] {
            assert!(limit(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn text_may_have_line_ends() {
        assert_eq!(unescaped(r"a\nb\\n"), b"a\nb\\n");
    }
}
