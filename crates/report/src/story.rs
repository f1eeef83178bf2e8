//! The story of a failure: what failed, how it came about, what would have helped,
//! and where to look.

use crate::values::Value;
use serde::{Deserialize, Serialize};

/// A place in the run, as people name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// A position that every verb understands.
    pub position: String,
    /// Its thread, if there are several.
    pub thread: Option<u32>,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// The line's text, or the instruction's.
    pub code: Option<String>,
    /// What was seen there.
    pub values: Vec<Value>,
}

impl Spot {
    /// As people see it: an instant that has a number only is somewhere, too.
    pub fn name(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) if self.position.starts_with('@') => {
                let file = file.rsplit('/').next().unwrap_or(file);
                format!("{file}:{line} ({})", self.position)
            }
            _ => self.position.clone(),
        }
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// An instruction could not be executed.
    Crash,
    /// An assertion failed.
    Assertion,
    /// The program gave up by itself.
    Abort,
    /// A Rust or Go program panicked.
    Panic,
    /// A sanitizer complained.
    Sanitizer,
    /// The output is not what was expected.
    WrongOutput,
    /// Output is missing.
    MissingOutput,
    /// A file that the program left is not what was expected.
    WrongFile,
    /// The oracle's command rejects the run.
    Rejected,
    /// The exit status is wrong.
    WrongExit,
    /// It did not end.
    Hang,
}

/// What failed, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What failed, in a sentence.
    pub sentence: String,
    /// Where, if it is somewhere.
    pub spot: Option<Spot>,
    /// The calls that led there, innermost first.
    pub calls: Vec<Spot>,
}

/// How one step came about by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// It used a value that the next one made.
    Value,
    /// It ran because of the next one.
    Control,
    /// The next one called it.
    Call,
}

/// A step back from the failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Where.
    pub spot: Spot,
    /// How the step before it depends on it.
    pub link: Link,
    /// So many executions of the same line in a row are one step.
    pub folded: u64,
}

/// How memory of the heap was used that should not have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseKind {
    /// It had been given back.
    Freed,
    /// It was given back twice.
    FreedAgain,
    /// It is behind the end of a block.
    Behind,
    /// What was given back begins within a block.
    NoBlock,
    /// Nothing had been put there.
    Unset,
}

impl MisuseKind {
    /// What happened, and what the other call did.
    pub fn words(self) -> [&'static str; 2] {
        match self {
            MisuseKind::Freed => ["memory was used after it was freed", "freed"],
            MisuseKind::FreedAgain => ["memory was freed twice", "freed before"],
            MisuseKind::Behind => ["memory behind the end of a block was used", "allocated"],
            MisuseKind::NoBlock => ["a pointer into the middle of a block was freed", "allocated"],
            MisuseKind::Unset => ["memory was used before it was set", "allocated"],
        }
    }
}

/// Such a use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Misused {
    /// What is wrong with it.
    pub kind: MisuseKind,
    /// Where.
    pub spot: Spot,
    /// Where the block came from, or was freed.
    pub call: Spot,
    /// Why it was freed, or how the memory that was used was found.
    pub path: Vec<Step>,
}

/// A branch whose other outcome helps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Critical {
    /// Where.
    pub spot: Spot,
    /// Was the branch taken in the failing run? None if it is switched throughout.
    pub taken: Option<bool>,
    /// How the predicate goes in all its executions, in words that follow "if"; none if it is
    /// switched in this execution only.
    pub throughout: Option<String>,
    /// So many other executions of branches in the same line help too.
    pub others: u64,
    /// What happened when it went the other way.
    pub effect: String,
}

/// A line that lets the run succeed once it says something else.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Edited {
    /// Where.
    pub spot: Spot,
    /// What it says then, in words that follow "if".
    pub change: String,
    /// So many other changes of the same line help too.
    pub others: u64,
    /// What happened then.
    pub effect: String,
}

/// What was tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tried {
    /// Branches that could be switched.
    pub candidates: u64,
    /// Trials that were made.
    pub trials: u64,
    /// What became of them: a word, and how often.
    pub outcomes: Vec<(String, u64)>,
    /// Were all candidates tried?
    pub complete: bool,
    /// Small changes of the program that were tried.
    pub edits: u64,
    /// How many there could have been.
    pub possible_edits: u64,
    /// Predicates that were switched in all their executions at once, where no other changes
    /// are wanted.
    pub throughout: u64,
}

/// A place to look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suspect {
    /// Where: the execution nearest to the failure.
    pub spot: Spot,
    /// Why it is here.
    pub reasons: Vec<String>,
    /// The higher, the more suspect.
    pub score: f64,
}

/// The answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Story {
    /// Of this form.
    pub version: u32,
    /// The command that was recorded.
    pub command: String,
    /// The recording.
    pub recording: String,
    /// What failed.
    pub failure: Failed,
    /// From the failure back to its cause.
    pub path: Vec<Step>,
    /// What was done to the heap that is wrong by itself.
    pub memory: Vec<Misused>,
    /// Branches whose other outcome helps.
    pub critical: Vec<Critical>,
    /// Lines that let the run succeed once they say something else, the most suspect
    /// first.
    pub edits: Vec<Edited>,
    /// What was tried to find both.
    pub tried: Tried,
    /// Where to look, the most suspect first.
    pub suspects: Vec<Suspect>,
    /// What is not certain, in sentences.
    pub doubts: Vec<String>,
    /// Instructions that the run executed.
    pub instructions: u64,
    /// Lines of the program that it executed.
    pub executed_lines: u64,
    /// Lines of these that the failure depends on.
    pub slice_lines: u64,
    /// Seconds that the explanation took.
    pub seconds: f64,
}
