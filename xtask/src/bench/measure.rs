//! Running a row in every mode, interleaved, so that a slow spell of the machine hits all alike.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::rows::{Kind, Row};
use crate::compat::compare::first_line;
use crate::process::{Program, Status};
use crate::why::Why;

/// One column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Native,
    ValgrindNone,
    Memcheck,
    /// Recording with no code kept from earlier runs.
    First,
    Record,
    Replay,
}

/// What came out for one row.
#[derive(Debug)]
pub struct Measured {
    pub name: &'static str,
    pub kind: Kind,
    /// Median seconds, one for each mode in the order of `modes`.
    pub seconds: Vec<f64>,
    pub bits_per_instruction: Option<f64>,
    pub recording_bytes: u64,
    /// The most memory that a process of the run had, in KiB: natively, and recorded.
    pub peaks: Option<[u64; 2]>,
    /// Why the row is not to be believed, if so.
    pub failure: Option<String>,
}

/// The modes to measure; recording comes before replaying.
pub fn modes(valgrind: bool, memcheck: bool) -> Vec<Mode> {
    let mut modes = vec![Mode::Native];
    modes.extend(valgrind.then_some(Mode::ValgrindNone));
    modes.extend(memcheck.then_some(Mode::Memcheck));
    modes.extend([Mode::First, Mode::Record, Mode::Replay]);
    modes
}

impl Mode {
    /// The heading of its column.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::ValgrindNone => "valgrind none",
            Mode::Memcheck => "memcheck",
            Mode::First => "first record",
            Mode::Record => "why record",
            Mode::Replay => "why replay",
        }
    }

    fn argv(self, row: &Row, why: &Why, recording: &Path) -> Vec<OsString> {
        let with = |prefix: &[&str]| {
            prefix.iter().map(OsString::from).chain(row.argv.iter().cloned()).collect()
        };
        match self {
            Mode::Native => row.native_prefix.iter().chain(&row.argv).cloned().collect(),
            Mode::ValgrindNone => with(&["valgrind", "--tool=none", "--trace-children=yes", "-q"]),
            Mode::Memcheck => with(&[
                "valgrind",
                "--tool=memcheck",
                "--trace-children=yes",
                "-q",
                "--leak-check=no",
            ]),
            Mode::First | Mode::Record => why.record(recording, &row.argv),
            Mode::Replay => why.replay(recording),
        }
    }
}

/// Measures one row in all modes.
pub fn row(row: &Row, modes: &[Mode], runs: usize, why: &Why, scratch: &Path) -> Result<Measured> {
    // Recordings are removed at the end: ext4 is slow to make files for seconds after many
    // were removed.
    let recordings = scratch.join("recordings");
    fs::create_dir_all(&recordings)?;
    let mut recording = recordings.join("none");
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); modes.len()];
    let mut failure = None;
    // Starting and ending is over in a millisecond: measure more of it.
    let runs = if row.kind == Kind::StartUp { runs * 4 } else { runs };
    for n in 0..runs {
        for (mode, times) in modes.iter().zip(&mut times) {
            if *mode == Mode::First && code(scratch).exists() {
                fs::remove_dir_all(code(scratch))?;
            }
            if matches!(mode, Mode::First | Mode::Record) {
                recording = recordings.join(format!("{n} {}", mode.name()));
            }
            match time(*mode, row, why, &recording, scratch)? {
                Ok(seconds) => times.push(seconds),
                Err(reason) => failure = Some(format!("{}: {reason}", mode.name())),
            }
        }
    }
    let bits_per_instruction = why.info(&recording).ok().and_then(|info| {
        let bytes = info.log_bytes.filter(|_| info.instructions > 0)?;
        Some(bytes as f64 * 8.0 / info.instructions as f64)
    });
    let recording_bytes = size(&recording);
    let peak = |mode| peak(mode, row, why, &recordings.join(format!("{mode:?}")), scratch);
    let peaks = peak(Mode::Native).zip(peak(Mode::Record)).map(<[u64; 2]>::from);
    fs::remove_dir_all(&recordings)?;
    let seconds = times.iter_mut().map(|times| median(times)).collect();
    Ok(Measured {
        name: row.name,
        kind: row.kind,
        seconds,
        bits_per_instruction,
        recording_bytes,
        peaks,
        failure,
    })
}

/// Where translated code is kept.
fn code(scratch: &Path) -> PathBuf {
    scratch.join("home/code")
}

/// The most memory, in KiB, that a process of a run has; `None` without GNU time.
fn peak(mode: Mode, row: &Row, why: &Why, recording: &Path, scratch: &Path) -> Option<u64> {
    let file = scratch.join("peak");
    let gnu_time = ["/usr/bin/time", "-f", "%M", "-o"].map(OsString::from);
    let argv = gnu_time.into_iter().chain([file.clone().into()]);
    let argv = argv.chain(mode.argv(row, why, recording)).collect();
    let mut program = Program::new(argv, scratch.to_path_buf());
    program.set("WHY_DIR", scratch.join("home"));
    program.captured = false;
    program.run().ok()?;
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn time(
    mode: Mode,
    row: &Row,
    why: &Why,
    recording: &Path,
    scratch: &Path,
) -> Result<Result<f64, String>> {
    let mut program = Program::new(mode.argv(row, why, recording), scratch.to_path_buf());
    program.set("WHY_DIR", scratch.join("home"));
    program.limit = Duration::from_secs(600);
    program.captured = false;
    let outcome = program.run()?;
    Ok(match outcome.status {
        Status::Exited(0) => Ok(outcome.elapsed.as_secs_f64()),
        other => Err(format!("{other} {}", first_line(&outcome.stderr))),
    })
}

/// The middle value; NaN of nothing.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// Bytes in all files below a folder; what cannot be read counts nothing.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path)
        .map(|entries| entries.flatten().map(|entry| size(&entry.path())).sum())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two() {
        assert_eq!(super::median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(super::median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(super::median(&mut []).is_nan());
    }
}
