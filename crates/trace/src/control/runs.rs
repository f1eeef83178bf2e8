//! The activation that each record belongs to, kept where it changes.

use super::FrameId;
use crate::records::Time;
use std::ops::Range;

/// From a record on, they belong to this activation.
#[derive(Clone, Copy)]
struct Run {
    from: u32,
    frame: FrameId,
}

/// All of them, in order.
#[derive(Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    records: u32,
}

impl Runs {
    /// The next record, and its activation.
    #[inline]
    pub fn push(&mut self, now: u32, frame: FrameId) {
        self.records = now + 1;
        if self.all.last().is_none_or(|run| run.frame != frame) {
            self.all.push(Run { from: now, frame });
        }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes in memory.
    pub fn size(&self) -> usize {
        size_of_val(&self.all[..])
    }

    /// The activation of a record, which is in one of these runs.
    pub fn at(&self, at: Time, among: Range<usize>) -> FrameId {
        let among = &self.all[among];
        let n = among.partition_point(|run| run.from <= at.0);
        among[n - 1].frame
    }

    /// The activations of records from one on.
    pub fn from(&self, at: Time) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        let first = self.all.partition_point(|run| run.from <= at.0).saturating_sub(1);
        let ends = self.all.iter().skip(first + 1).map(|run| run.from).chain([self.records]);
        let runs = self.all.iter().skip(first).zip(ends);
        runs.flat_map(move |(run, end)| {
            (run.from.max(at.0)..end).map(|time| (Time(time), run.frame))
        })
    }

    /// The activations of all records, the last one first.
    pub fn back(&self) -> impl Iterator<Item = (Time, FrameId)> + '_ {
        let mut end = self.records;
        self.all.iter().rev().flat_map(move |run| {
            let times = run.from..std::mem::replace(&mut end, run.from);
            times.rev().map(|time| (Time(time), run.frame))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_the_activation_that_was_pushed_with_it() {
        let frames = [3, 3, 3, 5, 5, 3, 7, 7, 7, 7].map(FrameId);
        let mut runs = Runs::default();
        (0..).zip(frames).for_each(|(now, frame)| runs.push(now, frame));
        assert_eq!(runs.len(), 4);
        for at in 0..frames.len() {
            assert_eq!(runs.at(Time(at as u32), 0..4), frames[at]);
            let from: Vec<_> = runs.from(Time(at as u32)).collect();
            let expected: Vec<_> =
                (at..frames.len()).map(|n| (Time(n as u32), frames[n])).collect();
            assert_eq!(from, expected);
        }
        let mut back: Vec<_> = runs.back().collect();
        back.reverse();
        assert_eq!(back, runs.from(Time(0)).collect::<Vec<_>>());
    }
}
