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

mod open;
mod pass;
mod runs;
mod shape;

use crate::code::{Code, PathId};
use crate::records::{Records, Time};
use engine::trace::Event;
use pass::Pass;
use program::flow::Flow as Graph;
use runs::Runs;
use shape::Gaits;

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
struct Shape {
    groups: Vec<Group>,
    labels: u16,
}

/// The answer, for every record.
pub struct Control {
    shapes: Vec<Shape>,
    times: Vec<u32>,
    indices: Vec<u8>,
    frame_of: Runs,
    frames: Vec<Frame>,
    /// What goes before every so many records.
    index: Vec<Mark>,
}

/// What goes before a record.
#[derive(Clone, Copy)]
struct Mark {
    /// So many labels.
    labels: u64,
    /// So many runs of [`Control::frame_of`].
    runs: u32,
}

const INDEX: usize = 512;

impl Control {
    /// Goes through all records once.
    pub fn find(
        code: &Code,
        records: &Records,
        events: &[(Time, Event)],
        graph: &Graph,
    ) -> Control {
        let mut gaits = Gaits::new(graph);
        let shapes = code.paths().map(|(_, path)| gaits.add(code, path, graph)).collect();
        let mut pass = Pass::new(shapes, records.before() > 0);
        pass.run(&gaits, records, events);
        pass.control
    }

    /// A record comes that has a mark.
    fn mark(&mut self) {
        let (labels, runs) = (self.times.len() as u64, self.frame_of.len() as u32);
        self.index.push(Mark { labels, runs });
    }

    /// Number of labels that a path has.
    #[inline]
    pub fn labels(&self, path: PathId) -> usize {
        self.shapes[path.0 as usize].labels.into()
    }

    /// Labels before a record.
    pub fn first_label(&self, records: &Records, at: Time) -> usize {
        let at = at.0 as usize;
        let mut n = self.index[at / INDEX].labels as usize;
        for t in at / INDEX * INDEX..at {
            n += self.labels(records.path(Time(t as u32)));
        }
        n
    }

    /// Number of labels in all.
    pub fn label_count(&self) -> usize {
        self.times.len()
    }

    /// The instances that a record's labels name.
    #[inline]
    pub fn label_instances(
        &self,
        path: PathId,
        first_label: usize,
    ) -> impl Iterator<Item = Option<Instance>> + '_ {
        (first_label..first_label + self.labels(path)).map(|n| {
            let (time, index) = (self.times[n], u16::from(self.indices[n]));
            (time != NOBODY).then_some(Instance { time: Time(time), index })
        })
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        let frames = self.frames.len() * size_of::<Frame>();
        let index = self.index.len() * size_of::<Mark>();
        (5 * self.times.len() + self.frame_of.size() + frames + index) as u64
    }

    /// Number of activations.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The parent of an instruction of a record, given the record's first label.
    #[inline]
    pub fn parent(&self, path: PathId, at: Instance, first_label: usize) -> Option<Instance> {
        self.instance(self.parent_in(path, at.index)?, at.time, first_label)
    }

    /// Who the parent of an instruction of a path is.
    #[inline]
    pub fn parent_in(&self, path: PathId, index: u16) -> Option<Parent> {
        let shape = &self.shapes[path.0 as usize];
        shape.groups.iter().rev().find(|g| g.first <= index).map(|group| group.parent)
    }

    /// The instance that is a parent in a record, given the record's first label.
    #[inline]
    pub fn instance(&self, parent: Parent, time: Time, first_label: usize) -> Option<Instance> {
        match parent {
            Parent::Here(index) => Some(Instance { time, index }),
            Parent::Label(n) => {
                let n = first_label + usize::from(n);
                let time = self.times[n];
                let index = self.indices[n].into();
                (time != NOBODY).then_some(Instance { time: Time(time), index })
            }
        }
    }

    /// The activation that a record belongs to.
    #[inline]
    pub fn frame_of(&self, at: Time) -> FrameId {
        let n = at.0 as usize / INDEX;
        // The run that the mark lies in began before it.
        let first = (self.index[n].runs as usize).saturating_sub(1);
        let end = self.index.get(n + 1).map_or(self.frame_of.len(), |mark| mark.runs as usize);
        self.frame_of.at(at, first..end)
    }

    /// The activations that records belong to, from a time on, one after the other.
    pub fn frames_from(&self, at: Time) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        self.frame_of.from(at)
    }

    /// The activations that records belong to, the last record first.
    pub fn frames_back(&self) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        self.frame_of.back()
    }

    /// An activation.
    #[inline]
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }
}
