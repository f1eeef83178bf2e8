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
    /// The function that begins here returns at once, with this value if there is one.
    Leave(Option<u64>),
    /// Nothing is changed: a value is told, in [`crate::Outcome::told`].
    Tell {
        /// Where it is kept.
        target: Target,
        /// Its bytes.
        len: u64,
    },
    /// The run ends: what follows is of no interest.
    End,
    /// The program says something else from here on.
    Code {
        /// Address of the first byte.
        address: u64,
        /// What is there instead.
        bytes: Vec<u8>,
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
    /// Memory, counted from where the stack pointer is then.
    Stack(i64),
}

/// A change at executions of an instruction after the log was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The instruction.
    pub pc: u64,
    /// At its n-th execution from there, from 1; every one if it is 0.
    pub nth: u64,
    /// Executions count only once this other one, by its place in the list, has been made.
    pub follows: Option<usize>,
    /// What is changed.
    pub change: Change,
}

impl Trigger {
    /// At the n-th execution, from 1; at every one if that is 0.
    pub fn at(pc: u64, nth: u64, change: Change) -> Trigger {
        Trigger { pc, nth, follows: None, change }
    }

    /// At the first execution after another change, or after the first of all.
    pub fn next(pc: u64, change: Change, follows: Option<usize>) -> Trigger {
        Trigger { pc, nth: 1, follows, change }
    }
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
    /// How far the run is on the way to the crash point, if there is one.
    pub way: Way,
}

impl Experiment {
    /// One change.
    pub fn one(at: u64, change: Change) -> Experiment {
        Experiment { at, changes: vec![change], triggers: Vec::new(), way: Way::default() }
    }
}

/// Where the run crashed, to be found again in another run: by place, by the calls
/// that led there, and by how often each step of the way had been taken within the
/// one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashPoint {
    /// The instruction.
    pub pc: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// The calls that led there, outermost first.
    pub calls: Vec<Step>,
    /// Which execution of the instruction crashed, from 1, within its activation of
    /// the function.
    pub nth: u64,
    /// The run died inside of what the instruction calls, which returns to here.
    pub inside: Option<u64>,
}

/// A call on the way to a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The instruction that calls.
    pub pc: u64,
    /// The stack pointer there.
    pub sp: u64,
    /// What it leaves on the stack.
    pub returns_to: u64,
    /// Is that still there at the crash? An overflow may have written over it.
    pub intact: bool,
    /// Which of its executions, from 1, within its activation of the function.
    pub nth: u64,
}

/// How far a run is on the way to a crash point: for each call how often it was made
/// in the current activation of its function, and how often the instruction was
/// executed in the innermost one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// By call.
    pub calls: Vec<u64>,
    /// Of the instruction.
    pub here: u64,
}
