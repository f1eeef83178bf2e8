//! What is changed, and when.

use serde::{Deserialize, Serialize};

/// One change of the state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The branch that is next goes the other way.
    Switch,
    /// A value is another one.
    Set {
        /// Where it is kept.
        target: Target,
        /// Its new bytes, lowest first.
        bytes: Vec<u8>,
    },
    /// What comes next is left out.
    Skip {
        /// The instruction to go on at.
        to: u64,
        /// What a call that is left out returns.
        value: Option<u64>,
    },
}

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A general register by its number in encodings.
    Register(u8),
    /// A vector register.
    Vector(u8),
    /// Memory.
    Memory(u64),
}

/// A change at executions of an instruction after the log was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The instruction.
    pub pc: u64,
    /// At its n-th execution from there, from 1; every one if it is 0.
    pub nth: u64,
    /// What is changed.
    pub change: Change,
}

/// One run that might have been.
///
/// Schedules are not altered yet; a change of the running thread would be another
/// kind of [`Change`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// The log is left after so many instructions.
    pub at: u64,
    /// What is changed there.
    pub changes: Vec<Change>,
    /// What is changed later.
    pub triggers: Vec<Trigger>,
    /// How often the crash point had been reached before, by the same way.
    pub crashes_before: u64,
}

impl Experiment {
    /// One change.
    pub fn one(at: u64, change: Change) -> Experiment {
        Experiment { at, changes: vec![change], triggers: Vec::new(), crashes_before: 0 }
    }
}

/// Where the run crashed, to be found again in another run: by place, by the calls
/// that led there, and by how often it had been reached that way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashPoint {
    /// The instruction.
    pub pc: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// Where return addresses of the calls that led there are kept, and what they
    /// are.
    pub calls: Vec<(u64, u64)>,
    /// Which of the executions by that way crashed, from 1.
    pub occurrence: u64,
}
