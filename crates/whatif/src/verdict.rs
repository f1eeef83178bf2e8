//! What became of an altered run.

use crate::oracle::Unit;
use engine::sandbox::{Stopped, Stream};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The judgement of an oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// All that was expected came true.
    Passed,
    /// An output differs, first in this unit, from 1.
    WrongOutput {
        /// Which output.
        stream: Stream,
        /// The unit.
        unit: u64,
    },
    /// A file differs, first in this unit; it is missing if there is none.
    WrongFile {
        /// Its path.
        path: Vec<u8>,
        /// The unit.
        unit: Option<u64>,
    },
    /// It ended with another status.
    WrongExit(i32),
    /// It crashed at the same point again.
    CrashedAgain,
    /// It crashed somewhere else.
    CrashedElsewhere {
        /// Of which signal.
        signal: i32,
        /// At which instruction.
        pc: u64,
        /// Had it passed the crash point unharmed before?
        passed_point: bool,
        /// Is it the instruction that crashed in the recorded run, in another execution?
        same_place: bool,
    },
    /// It ended without a crash, but never came to the point where the recorded run
    /// crashed: the error may only have been avoided.
    Avoided,
    /// It came back to a state of the recorded run, and so fails as that did.
    Rejoined,
    /// It asked for something that the recording cannot answer.
    Unserved(String),
    /// It wanted another process.
    NeedsChild,
    /// It went on for too long.
    StepLimit,
    /// It took too much memory.
    MemoryLimit,
    /// All its threads wait for ever.
    Deadlock,
    /// What was to be changed did not happen.
    NotReached,
    /// The oracle has still to be asked.
    Unjudged,
    /// The oracle said no.
    Rejected,
    /// The process of the trial died: nothing is known.
    Lost,
}

impl Verdict {
    /// One word, for counting.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::WrongOutput { .. } => "wrong-output",
            Verdict::WrongFile { .. } => "wrong-file",
            Verdict::WrongExit(_) => "wrong-exit",
            Verdict::CrashedAgain => "crashed-again",
            Verdict::CrashedElsewhere { .. } => "crashed-elsewhere",
            Verdict::Avoided => "avoided",
            Verdict::Rejoined => "rejoined",
            Verdict::Unserved(_) => "unserved",
            Verdict::NeedsChild => "needs-child",
            Verdict::StepLimit => "step-limit",
            Verdict::MemoryLimit => "memory-limit",
            Verdict::Deadlock => "deadlock",
            Verdict::NotReached => "not-reached",
            Verdict::Unjudged => "unjudged",
            Verdict::Rejected => "rejected",
            Verdict::Lost => "lost",
        }
    }
}

impl Verdict {
    /// One sentence, where outputs were compared in such units.
    pub fn sentence(&self, compared_in: Unit) -> String {
        // Bytes are counted from 0, as in positions.
        let counted = |unit: u64| match compared_in {
            Unit::Line => unit,
            Unit::Byte => unit.saturating_sub(1),
        };
        match self {
            Verdict::WrongOutput { stream, unit } => {
                let name = match stream {
                    Stream::Out => "output",
                    Stream::Err => "standard error",
                };
                format!("{name} is wrong from {compared_in} {} on", counted(*unit))
            }
            Verdict::WrongFile { path, unit: Some(unit) } => {
                let path = String::from_utf8_lossy(path);
                format!("{path} is wrong from {compared_in} {} on", counted(*unit))
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::WrongOutput { .. } | Verdict::WrongFile { unit: Some(_), .. } => {
                f.write_str(&self.sentence(Unit::Line))
            }
            Verdict::WrongFile { path, unit: None } => {
                write!(f, "{} is not there", String::from_utf8_lossy(path))
            }
            Verdict::WrongExit(status) => write!(f, "it exits with status {status}"),
            Verdict::CrashedAgain => f.write_str("it crashes at the same point again"),
            Verdict::CrashedElsewhere { signal, pc, passed_point, same_place } => {
                let place = match same_place {
                    true => "at the same instruction, in another execution",
                    false => "elsewhere",
                };
                let after = if *passed_point { " after the crash point" } else { "" };
                write!(f, "it crashes {place}{after}: signal {signal} at {pc:#x}")
            }
            Verdict::Avoided => f.write_str("it never comes to the crash point (avoided)"),
            Verdict::Rejoined => f.write_str("it comes back to the recorded run (rejoined)"),
            Verdict::Unserved(what) => write!(f, "unserved: {what}"),
            Verdict::NeedsChild => f.write_str("it needs another process (needs-child)"),
            Verdict::StepLimit => f.write_str("it goes on for too long (step-limit)"),
            Verdict::MemoryLimit => f.write_str("it takes too much memory (memory-limit)"),
            Verdict::Deadlock => f.write_str("all its threads wait for ever (deadlock)"),
            Verdict::NotReached => f.write_str("what was to be changed did not happen"),
            Verdict::Unjudged => f.write_str("nobody has judged it"),
            Verdict::Rejected => f.write_str("the oracle rejects it"),
            Verdict::Lost => f.write_str("the trial's process died"),
            Verdict::Passed => f.write_str("passed"),
        }
    }
}

/// What came out of one experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The judgement.
    pub verdict: Verdict,
    /// Why the run stopped.
    pub stopped: Option<Stopped>,
    /// Instructions executed after the log was left.
    pub steps: u64,
    /// All that was written to standard output and standard error, if it was asked
    /// for.
    pub outputs: Option<[Vec<u8>; 2]>,
    /// Where the log was left and what the branch there would have done.
    pub pc: u64,
    /// Had the switched branch been taken?
    pub taken: Option<bool>,
    /// Values that were to be told, in the order of the run.
    pub told: Vec<Vec<u8>>,
}

impl Outcome {
    /// A trial of which nothing is known.
    pub fn of(verdict: Verdict) -> Outcome {
        Outcome {
            verdict,
            stopped: None,
            steps: 0,
            outputs: None,
            pc: 0,
            taken: None,
            told: Vec::new(),
        }
    }
}
