//! Where to move, and how a move ended.

use crate::code::stops::Watch;
use crate::guest::task::Thread;
use recording::Ending;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// A state of the run: so many instructions were executed, and so much else has
/// happened. Later instants are greater.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant {
    /// Instructions executed, over all threads.
    pub instructions: u64,
    /// Signals delivered, threads switched, calls that came back.
    pub happened: u64,
}

/// How far to go at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum To {
    /// To the end of the run.
    End,
    /// To this very instant.
    Instant(Instant),
    /// Until so many instructions were executed and the next one is about to run.
    Number(u64),
}

/// System calls to stop at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Calls {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those of these numbers.
    These(BTreeSet<u64>),
}

impl Calls {
    pub(super) fn has(&self, number: u64) -> bool {
        match self {
            Calls::None => false,
            Calls::All => true,
            Calls::These(numbers) => numbers.contains(&number),
        }
    }
}

/// What to move for, besides the breakpoints and watched memory that are set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Not beyond.
    pub to: To,
    /// Come back after about so many instructions.
    pub most: u64,
    /// Stop also for what is at the very instant where the move begins?
    pub here: bool,
    /// Stop after one instruction of this thread, or once it leaves the range.
    pub step: Option<(Thread, Range<u64>)>,
    /// Stop before and after these calls.
    pub calls: Calls,
    /// Stop before a signal is delivered?
    pub signals: bool,
}

impl Goal {
    /// Just to there.
    pub fn to(to: To) -> Goal {
        Goal { to, most: u64::MAX, here: false, step: None, calls: Calls::None, signals: false }
    }
}

/// Why a move ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stopped {
    /// It is where it was to go.
    There,
    /// It has gone as far as it may at once.
    Paused,
    /// The thread has made its step.
    Stepped,
    /// A breakpoint.
    Break,
    /// Watched memory was touched: by the last instruction, or by the kernel.
    Watched(Watch),
    /// A call is about to be made.
    Call(u64),
    /// A call has come back.
    Returned(u64),
    /// A signal is about to be delivered.
    Signal(i32),
    /// The run has ended.
    Ended(Ending),
    /// The recording breaks off.
    LogEnds,
    /// A run that left its log cannot go on, and why.
    Stuck(String),
}

/// How a move ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Why.
    pub stopped: Stopped,
    /// The instant just before it came to that: who goes backward stops there.
    pub before: Instant,
    /// The thread it happened to.
    pub thread: Thread,
}

/// Instructions that a thread executed without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trail {
    /// The instant before the first of them.
    pub first: Instant,
    /// The instant before the last of them.
    pub last: Instant,
}
