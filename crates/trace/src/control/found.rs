//! What is known of the records of one segment.

use super::hops::Hop;
use super::runs::Runs;
use super::tell::Tell;
use super::{Frame, FrameId, Instance, NOBODY};
use crate::records::Time;

/// There is a mark for so many records.
const MARK: usize = 512;

/// Labels and activations of a segment's records.
#[derive(Default)]
pub(super) struct Found {
    times: Vec<u32>,
    indices: Vec<u8>,
    frame_of: Runs,
    /// Those that begin in the segment.
    frames: Vec<Frame>,
    marks: Vec<Mark>,
}

/// What goes before a record of the segment.
#[derive(Clone, Copy)]
struct Mark {
    /// So many labels.
    labels: u32,
    /// So many runs of [`Found::frame_of`].
    runs: u32,
}

impl Found {
    /// Nothing yet, with room for so many.
    pub fn with_room(labels: usize, frames: usize) -> Found {
        Found {
            times: Vec::with_capacity(labels),
            indices: Vec::with_capacity(labels),
            frames: Vec::with_capacity(frames),
            ..Found::default()
        }
    }

    /// Labels before the last mark before a record, the n-th of the segment; and which that is.
    pub fn mark_before(&self, n: usize) -> (usize, usize) {
        (self.marks[n / MARK].labels as usize, n / MARK * MARK)
    }

    /// The instance that the n-th label names.
    #[inline]
    pub fn label(&self, n: usize) -> Option<Instance> {
        let (time, index) = (self.times[n], self.indices[n].into());
        (time != NOBODY).then_some(Instance { time: Time(time), index })
    }

    /// The activation of a record, the n-th of the segment.
    #[inline]
    pub fn frame_of(&self, at: Time, n: usize) -> FrameId {
        let n = n / MARK;
        // The run that the mark lies in began before it.
        let first = (self.marks[n].runs as usize).saturating_sub(1);
        let end = self.marks.get(n + 1).map_or(self.frame_of.len(), |mark| mark.runs as usize);
        self.frame_of.at(at, first..end)
    }

    /// The activations of all records.
    pub fn frames_of(&self) -> &Runs {
        &self.frame_of
    }

    /// The n-th activation that began here.
    #[inline]
    pub fn frame(&self, n: usize) -> &Frame {
        &self.frames[n]
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        let frames = self.frames.len() * size_of::<Frame>();
        let marks = self.marks.len() * size_of::<Mark>();
        5 * self.times.len() + self.frame_of.size() + frames + marks
    }
}

impl Tell for Found {
    #[inline]
    fn record(&mut self, now: u32, frame: FrameId) {
        if now.is_multiple_of(MARK as u32) {
            let (labels, runs) = (self.times.len() as u32, self.frame_of.len() as u32);
            self.marks.push(Mark { labels, runs });
        }
        self.frame_of.push(now, frame);
    }

    #[inline]
    fn label(&mut self, time: u32, index: u8) {
        self.times.push(time);
        self.indices.push(index);
    }

    #[inline]
    fn frame(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    fn hop(&mut self, _: &Hop) {
        unreachable!("what is told of every record is found without hops")
    }
}
