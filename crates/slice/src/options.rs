//! What is asked, and which dependences are followed.

use crate::Part;
use crate::follow::Visitor;
use crate::wanted::Distance;
use program::effects::Cells;
use trace::{Instance, InstructionId, Time, Trace};

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

/// What of a slice is told: the walk goes on through the rest, which may lead back into it.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Nothing before this.
    pub from: Instance,
    /// Nothing behind this.
    pub to: Instance,
    /// Only what this thread did.
    pub thread: Option<u32>,
}

impl Default for Region {
    fn default() -> Self {
        Region { from: FIRST, to: LAST, thread: None }
    }
}

impl Region {
    fn has(&self, trace: &Trace, at: Instance) -> bool {
        let of_thread = self.thread.is_none_or(|thread| thread == trace.thread(at.time));
        (self.from..=self.to).contains(&at) && of_thread
    }
}

/// Passes on what lies in a region.
pub(crate) struct Within<'a, V> {
    pub inner: V,
    pub region: Region,
    pub trace: &'a Trace,
}

impl<V: Visitor> Visitor for Within<'_, V> {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        if self.region.has(self.trace, at) {
            self.inner.instance(at, instruction, distance);
        }
    }

    const TALLIES: bool = V::TALLIES;

    fn tally(&mut self, instruction: InstructionId, part: Part) {
        self.inner.tally(instruction, part);
    }

    fn copy(&self) -> Option<Self> {
        Some(Within { inner: self.inner.copy()?, ..*self })
    }

    fn potential(&mut self, at: Instance, instruction: InstructionId) {
        if self.region.has(self.trace, at) {
            self.inner.potential(at, instruction);
        }
    }

    fn cut_short(&mut self) {
        self.inner.cut_short();
    }
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
/// Behind all that a run can have.
const LAST: Instance = Instance { time: Time(u32::MAX), index: u16::MAX };

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
