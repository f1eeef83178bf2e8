//! What did this value depend on; what depended on it?
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! let trace = trace::Trace::build(&recording, &mut |_| ())?;
//! let slicer = slice::Slicer::new(&trace);
//! let last = trace.last_instance();
//! let slice = slicer.backward(&[slice::Start::Instance(last)], &slice::Options::default());
//! println!("{} instances of {} instructions", slice.instances, slice.instructions.len());
//! # Ok(())
//! # }
//! ```

mod aside;
mod begin;
mod bypass;
mod callees;
mod calls;
mod census;
mod chores;
mod clock;
mod demands;
mod depths;
mod digests;
mod exclusions;
mod flows;
mod follow;
mod forward;
mod forward_kernel;
mod hits;
mod kernel;
mod leap;
mod lines;
mod meet;
mod options;
mod parts;
mod potential;
mod processors;
mod reader;
mod region;
mod restores;
mod rote;
mod runs;
mod signals;
mod snapshots;
mod sources;
mod statics;
mod stores;
mod stretches;
mod sweep;
mod touched;
mod tree;
mod unrun;
mod walk;
mod wanted;
mod wanted_cells;

pub use calls::arguments;
pub use exclusions::{Exclusion, Execution, exclusions};
pub use follow::{Direct, Follow, Telling, Transitive, Used, Visitor};
pub use options::{Options, Origins, Pruned, Start};
pub use region::Region;
pub use runs::Runs;
pub use stretches::{Stretches, addresses};
pub use tree::{Group, Node, Tree};
pub use wanted::Distance;

use digests::{Digests, Source};
use parts::Parts;
use region::Within;
use statics::Statics;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use trace::{Instance, InstructionId, Trace};

/// Answers questions about one trace.
pub struct Slicer<'a> {
    trace: &'a Trace,
    statics: Statics,
    digests: Digests,
    /// Restores of saved registers that are none: found once, good for all slices.
    refuted: RefCell<HashSet<Instance>>,
    learned: RefCell<rote::Learned>,
}

/// What a walk goes over, and what is known of it beforehand.
#[derive(Clone, Copy)]
struct Ground<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    digests: &'a Digests,
}

impl<'a> Ground<'a> {
    /// What digests are made from.
    fn source(self) -> Source<'a> {
        let Ground { trace, statics, .. } = self;
        Source { records: &trace.records, spans: &trace.spans.spans, statics }
    }
}

/// How an instruction takes part in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// How many of its executions.
    pub instances: u64,
    /// The nearest one's distance from the criterion.
    pub distance: Distance,
    /// The latest one.
    pub latest: Instance,
    /// The earliest one.
    pub earliest: Instance,
}

impl Part {
    fn new(at: Instance, distance: Distance) -> Part {
        Part { instances: 0, distance, latest: at, earliest: at }
    }

    /// With other instances, of which there is one at least.
    fn join(&mut self, other: &Part) {
        if self.instances == 0 {
            *self = *other;
            return;
        }
        self.instances += other.instances;
        self.distance = self.distance.min(other.distance);
        self.earliest = self.earliest.min(other.earliest);
        self.latest = self.latest.max(other.latest);
    }

    fn add(&mut self, at: Instance, distance: Distance) {
        self.instances += 1;
        self.distance = self.distance.min(distance);
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
    }
}

/// A slice, by instruction.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Instances in all.
    pub instances: u64,
    /// By instruction.
    pub instructions: HashMap<InstructionId, Part>,
    /// What came from outside of the run.
    pub origins: Origins<Distance>,
}

impl Visitor for Slice {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        self.instances += 1;
        self.instructions.entry(instruction).or_insert(Part::new(at, distance)).add(at, distance);
    }
}

/// Every instance, for those who need them all.
#[derive(Default)]
pub struct Instances(pub Vec<(Instance, InstructionId, Distance)>);

impl Visitor for Instances {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        self.0.push((at, instruction, distance));
    }
}

impl<'a> Slicer<'a> {
    /// Looks at the code of a trace.
    pub fn new(trace: &'a Trace) -> Slicer<'a> {
        let (refuted, learned) = Default::default();
        let digests = Digests::new(trace.records.segments().len());
        Slicer { trace, statics: Statics::of(trace), digests, refuted, learned }
    }

    /// The callee-saved register that an instruction copies to the stack, by its
    /// number in encodings.
    pub fn saved(&self, id: InstructionId) -> Option<u8> {
        self.statics.instruction(id).saves
    }

    /// The one that it copies back at a function's end.
    pub fn restored(&self, id: InstructionId) -> Option<u8> {
        self.statics.instruction(id).restores
    }

    /// All that the criterion depended on.
    pub fn backward(&self, starts: &[Start], options: &Options) -> Slice {
        let count = self.trace.code.instructions().count();
        let (parts, origins) = self.visit(starts, options, &|| Parts::new(count));
        Slice { origins, ..Slice::from(parts) }
    }

    /// The same, instance by instance, latest first.
    pub fn instances(&self, starts: &[Start], options: &Options) -> Instances {
        self.visit(starts, options, &Instances::default).0
    }

    /// The same, told to a visitor. A walk may have to begin anew, with a new one.
    pub fn visit<V: Visitor>(
        &self,
        starts: &[Start],
        options: &Options,
        new: &dyn Fn() -> V,
    ) -> (V, Origins<Distance>) {
        let depth = options.depth;
        let visitor = || self.within(options, new());
        let (found, origins) =
            self.follow(starts, options, &|| Transitive { visitor: visitor(), depth });
        (found.visitor.inner, origins)
    }

    /// All that depended on the criterion, told to a visitor in order of time.
    pub fn forward<V: Visitor>(&self, starts: &[Start], options: &Options, visitor: V) -> V {
        let visitor = self.within(options, visitor);
        forward::forward(self.trace, &self.statics, starts, options, visitor).inner
    }

    fn within<V: Visitor>(&self, options: &Options, inner: V) -> Within<'_, V> {
        Within { inner, region: options.region, trace: self.trace }
    }

    /// All that the criterion depended on, with the nearest way to each instance.
    pub fn tree<'b>(
        &self,
        starts: &[Start],
        options: &Options,
        group: &'b dyn Fn(Instance, InstructionId) -> Option<Group>,
    ) -> Tree<'b> {
        self.follow(starts, options, &|| Tree::new(group)).0
    }

    /// One step only: what defined all that the criteria use. Definitions that
    /// `through` accepts are passed through: what they used counts instead.
    pub fn direct<'b>(
        &self,
        starts: &[Start],
        options: &Options,
        through: &'b dyn Fn(Instance, InstructionId) -> bool,
    ) -> (Direct<'b>, Origins<u32>) {
        self.follow(starts, options, &|| Direct::new(through))
    }

    fn follow<F: Follow>(
        &self,
        starts: &[Start],
        options: &Options,
        new: &dyn Fn() -> F,
    ) -> (F, Origins<F::Mark>) {
        let refuted = &mut self.refuted.borrow_mut();
        let learned = &mut self.learned.borrow_mut();
        let ground = Ground { trace: self.trace, statics: &self.statics, digests: &self.digests };
        let mut walk = || sweep::sweep(ground, starts, options, (refuted, learned), new);
        match options.skipping && !options.relevant {
            true => self.digests.beside(ground.source(), walk),
            // Every record is met.
            false => walk(),
        }
    }
}
