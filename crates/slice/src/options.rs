//! What is asked, and which dependences are followed.

use crate::region::Region;
use crate::wanted::Distance;
use program::effects::Cells;
use trace::{Instance, Time};

/// Which dependences are followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Control dependences.
    pub control: bool,
    /// From a memory operand to the registers its address was made of.
    pub addresses: bool,
    /// Also bookkeeping: the stack pointer, saved registers, binding of symbols.
    pub bookkeeping: bool,
    /// Also potential dependences, in a backward walk: branches that, had they gone
    /// the other way, might have defined what was wanted.
    pub relevant: bool,
    /// Nothing farther than this is looked for.
    pub depth: Distance,
    /// Nothing before this is looked for.
    pub from: Instance,
    /// What of the slice is told.
    pub region: Region,
    /// What is never looked for.
    pub pruned: Pruned,
    /// Records that define nothing wanted are passed over as a whole. The answer is
    /// the same without; only the time is not.
    pub skipping: bool,
    /// A backward walk that is not done then breaks off, and says so.
    pub until: Option<std::time::Instant>,
}

/// Registers and memory whose dependences are left out.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Registers.
    pub cells: Cells,
    /// Memory: first address and length.
    pub memory: Vec<(u64, u64)>,
}

/// The first instance that a run can have.
pub(crate) const FIRST: Instance = Instance { time: Time::START, index: 0 };

impl Default for Options {
    fn default() -> Self {
        Options {
            control: true,
            addresses: true,
            bookkeeping: false,
            relevant: false,
            depth: Distance::MAX,
            from: FIRST,
            region: Region::default(),
            pruned: Pruned::default(),
            skipping: true,
            until: None,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Start {
    /// All that an instance uses, and the instance itself.
    Instance(Instance),
    /// Registers and memory as they are before an instance, in its thread.
    Before(Instance, Cells, Vec<(u64, u64)>),
}

impl Start {
    /// Its instance.
    pub fn at(&self) -> Instance {
        match self {
            Start::Instance(at) | Start::Before(at, ..) => *at,
        }
    }
}

/// What was wanted and has no definition in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origins<M> {
    /// Memory that was there from the start: the program's data, its arguments.
    pub memory: Vec<(u64, M)>,
    /// Bytes of files, standard input and the like that were read.
    pub objects: Vec<(trace::ObjectId, u64, M)>,
}

impl<M> Default for Origins<M> {
    fn default() -> Self {
        Origins { memory: Vec::new(), objects: Vec::new() }
    }
}
