//! Why did this run at all? For every instance, the branch or call whose outcome
//! brought control there.
//!
//! One pass over the records, with a stack of open branches per activation of a
//! function (Xin and Zhang's online algorithm): a branch is open until control
//! reaches its join, and whatever runs meanwhile runs because of the branch opened
//! last. Where no branch of its own is open, a function runs because of its call.
//!
//! Activations are found by where return addresses lie on the stack, so that
//! `longjmp`, exceptions and tail calls end what they leave.

mod found;
mod hops;
mod in_turn;
mod live;
mod open;
mod pass;
mod runs;
mod shape;
mod state;
mod tell;

use crate::code::{Code, PathId};
use crate::records::{Records, SEGMENT, Time};
use engine::trace::Event;
use found::Found;
use hops::{Hop, Hops, Strides};
use in_turn::find_in_turn;
use pass::Pass;
use program::flow::Flow as Graph;
use shape::Gaits;
use state::{State, States};
use std::sync::{Arc, OnceLock};
use tell::Count;

/// A label that names no instance.
const NOBODY: u32 = u32::MAX;

/// An instruction's execution: the n-th of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// When.
    pub time: Time,
    /// Which instruction of the path.
    pub index: u16,
}

/// Number of an activation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// An activation of a function.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The one that called it.
    pub caller: FrameId,
    /// The call; `None` for a thread's or handler's first.
    pub call: Option<Instance>,
    /// Calls between it and its thread's beginning.
    pub depth: u32,
}

/// From an instruction on, parents are these.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: u16,
    /// A branch of the same record, or a label of it.
    parent: Parent,
}

/// Who decided that an instruction of a path ran, as far as the path tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// A branch of the same record, by index.
    Here(u16),
    /// A label of it, by number.
    Label(u16),
}

/// Who the parents of a path's instructions are.
#[derive(Clone, Default)]
struct Shape {
    groups: Vec<Group>,
    /// A path that ran has one at least.
    labels: u16,
}

/// The answer, for every record.
///
/// One pass over all records only keeps what is open between segments. What lies in a segment is
/// found when somebody asks for it, and kept: most slices ask a few segments only.
pub struct Control {
    records: Arc<Records>,
    events: Arc<[(Time, Event)]>,
    gaits: Gaits,
    states: States,
    segments: Vec<OnceLock<Found>>,
}

impl Control {
    /// Goes through all records once.
    pub fn find(
        code: &Code,
        records: &Arc<Records>,
        events: &Arc<[(Time, Event)]>,
        graph: &Graph,
    ) -> Control {
        let gaits = Gaits::of(code, graph, records.ran());
        let mut states = States::default();
        let count = records.segments().len();
        let (tell, state) = (Count::default(), State::default());
        let mut pass = Pass { tell, state, late: records.before() > 0 };
        let strides = Strides::of(&gaits, code.paths().len());
        let hops = Hops { strides: &strides, records, events };
        let pass_by = |n: usize, hops: Vec<Hop>| {
            states.keep(&mut pass.state, pass.tell.labels);
            pass.segment(&gaits, records, events, n, &hops);
        };
        find_in_turn("hops", count, |n| hops.of(n), pass_by);
        states.keep(&mut pass.state, pass.tell.labels);
        states.finish(pass.state);
        let segments = (0..count).map(|_| OnceLock::new()).collect();
        Control { records: records.clone(), events: events.clone(), gaits, states, segments }
    }

    /// What is known of a segment.
    #[inline]
    fn segment(&self, n: usize) -> &Found {
        self.segments[n].get_or_init(|| self.find_segment(n))
    }

    #[cold]
    fn find_segment(&self, n: usize) -> Found {
        let states = &self.states;
        let labels = states.labels_before(n + 1) - states.labels_before(n);
        let frames = states.frames_before(n + 1) - states.frames_before(n);
        let (tell, state) = (Found::with_room(labels as usize, frames as usize), states.before(n));
        let mut pass = Pass { tell, state, late: self.records.before() > 0 };
        pass.segment(&self.gaits, &self.records, &self.events, n, &[]);
        debug_assert!(pass.state.is_like(&states.before(n + 1)), "whoever hops comes out the same");
        pass.tell
    }

    /// Number of labels that a path has.
    #[inline]
    pub fn labels(&self, path: PathId) -> usize {
        self.gaits.shape(path).labels.into()
    }

    /// Labels before a record.
    pub fn first_label(&self, at: Time) -> usize {
        let (segment, n) = (at.0 as usize / SEGMENT, at.0 as usize % SEGMENT);
        if n == 0 {
            return self.states.labels_before(segment) as usize;
        }
        let (marked, mark) = self.segment(segment).mark_before(n);
        let paths = &self.records.paths_of(segment)[mark..n];
        let between: usize = paths.iter().map(|path| self.labels(*path)).sum();
        self.states.labels_before(segment) as usize + marked + between
    }

    /// Number of labels in all.
    pub fn label_count(&self) -> usize {
        self.states.labels_before(self.segments.len()) as usize
    }

    /// The instances that a record's labels name.
    #[inline]
    pub fn label_instances(
        &self,
        path: PathId,
        time: Time,
        first_label: usize,
    ) -> impl Iterator<Item = Option<Instance>> + '_ {
        let (found, first) = self.labels_from(time, first_label);
        (first..first + self.labels(path)).map(|n| found.label(n))
    }

    /// Where a record's labels are, given how many go before.
    #[inline]
    fn labels_from(&self, time: Time, first_label: usize) -> (&Found, usize) {
        let n = time.0 as usize / SEGMENT;
        (self.segment(n), first_label - self.states.labels_before(n) as usize)
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        let found = self.segments.iter().filter_map(OnceLock::get);
        (found.map(Found::size).sum::<usize>() + self.states.size()) as u64
    }

    /// Number of activations.
    pub fn frame_count(&self) -> usize {
        self.states.frames_before(self.segments.len()) as usize
    }

    /// The parent of an instruction of a record, given the record's first label.
    #[inline]
    pub fn parent(&self, path: PathId, at: Instance, first_label: usize) -> Option<Instance> {
        self.instance(self.parent_in(path, at.index)?, at.time, first_label)
    }

    /// Who the parent of an instruction of a path is.
    #[inline]
    pub fn parent_in(&self, path: PathId, index: u16) -> Option<Parent> {
        let groups = &self.gaits.shape(path).groups;
        groups.iter().rev().find(|g| g.first <= index).map(|group| group.parent)
    }

    /// The instance that is a parent in a record, given the record's first label.
    #[inline]
    pub fn instance(&self, parent: Parent, time: Time, first_label: usize) -> Option<Instance> {
        match parent {
            Parent::Here(index) => Some(Instance { time, index }),
            Parent::Label(n) => {
                let (found, first) = self.labels_from(time, first_label);
                found.label(first + usize::from(n))
            }
        }
    }

    /// The activation that a record belongs to.
    #[inline]
    pub fn frame_of(&self, at: Time) -> FrameId {
        let (segment, n) = (at.0 as usize / SEGMENT, at.0 as usize % SEGMENT);
        self.segment(segment).frame_of(at, n)
    }

    /// The activations that records belong to, from a time on, one after the other.
    pub fn frames_from(&self, at: Time) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        let segments = at.0 as usize / SEGMENT..self.segments.len();
        segments.flat_map(move |n| self.segment(n).frames_of().from(at))
    }

    /// The activations that records belong to, the last record first.
    pub fn frames_back(&self) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        (0..self.segments.len()).rev().flat_map(|n| self.segment(n).frames_of().back())
    }

    /// An activation.
    #[inline]
    pub fn frame(&self, id: FrameId) -> &Frame {
        let n = self.states.segment_of(id.0);
        self.segment(n).frame((id.0 - self.states.frames_before(n)) as usize)
    }
}
