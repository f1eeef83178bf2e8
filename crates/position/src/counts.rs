//! How often was each target executed, and which of its executions is an instance part of?
//!
//! A line may be executed hundreds of millions of times. So paths are counted, not lines: a path
//! enters each of its lines equally often whenever it runs, but for the one that it begins in,
//! where control may have been before.

use crate::beginnings::Beginnings;
use crate::executions::{Arrivals, Targets};
use std::collections::{HashMap, HashSet};
use trace::{FrameId, Instance, PathId, Time, Trace};

/// How often a path ran, and how often it went on with what had begun before.
#[derive(Clone, Copy, Default)]
struct Count {
    runs: u64,
    went_on: u64,
}

/// A path, and how often it enters a target each time that it runs.
struct Share {
    path: PathId,
    times: u64,
    /// It begins in that target.
    first: bool,
}

/// Executions of targets, told by how often paths ran.
pub(crate) struct Counts<'a> {
    trace: &'a Trace,
    arrivals: Arrivals,
    paths: Vec<Count>,
    /// By target.
    shares: HashMap<u32, Vec<Share>>,
    /// One bit for each record: does it go on with what had begun before?
    went_on: Vec<u64>,
    /// Which path went on with what which other ended in.
    links: HashSet<(PathId, PathId)>,
}

impl<'a> Counts<'a> {
    /// Goes through the run once.
    pub fn of(trace: &'a Trace, targets: &Targets) -> Counts<'a> {
        let mut counts = Counts {
            trace,
            arrivals: Arrivals::new(trace, targets),
            paths: vec![Count::default(); trace.code.paths().count()],
            shares: HashMap::new(),
            went_on: vec![0; trace.records.len() as usize / 64 + 1],
            links: HashSet::new(),
        };
        // Mostly a path goes on from the one that it went on from the last time.
        let mut latest = vec![None; counts.paths.len()];
        for (time, frame) in trace.control.frames_from(Time::START) {
            let path = trace.records.path(time);
            let from = counts.arrivals.goes_on(path, frame);
            if let Some(from) = from.filter(|_| latest[path.0 as usize] != from) {
                latest[path.0 as usize] = Some(from);
                counts.links.insert((from, path));
            }
            let goes_on = from.is_some();
            let count = &mut counts.paths[path.0 as usize];
            count.runs += 1;
            count.went_on += u64::from(goes_on);
            counts.went_on[time.0 as usize / 64] |= u64::from(goes_on) << (time.0 % 64);
        }
        counts.share();
        counts
    }

    fn share(&mut self) {
        for (n, shape) in (0..).zip(&self.arrivals.shapes) {
            for &(index, target) in &shape.begins {
                let shares = self.shares.entry(target).or_default();
                match shares.last_mut().filter(|share| share.path.0 == n) {
                    Some(share) => share.times += 1,
                    None => shares.push(Share { path: PathId(n), times: 1, first: index == 0 }),
                }
            }
        }
    }

    /// How often each target was executed, by number; none that is not looked for.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.shares.keys().map(|n| *n as usize + 1).max().unwrap_or(0)];
        for target in self.shares.keys() {
            totals[*target as usize] = self.executions(*target);
        }
        totals
    }

    /// Where executions began that instructions are part of.
    pub fn beginnings(&self) -> Beginnings {
        let began = |path: PathId| {
            let count = self.paths[path.0 as usize];
            count.runs > count.went_on
        };
        Beginnings::of(self.trace, &self.arrivals.shapes, began, &self.links)
    }

    /// How often a target was executed so far.
    fn executions(&self, target: u32) -> u64 {
        let executed = |share: &Share| {
            let count = self.paths[share.path.0 as usize];
            share.times * count.runs - if share.first { count.went_on } else { 0 }
        };
        self.shares.get(&target).map_or(0, |shares| shares.iter().map(executed).sum())
    }

    /// The executions that instances of targets, in ascending order, belong to: where each
    /// began, and how many there were until then. Of what began before the first record,
    /// nothing is told.
    ///
    /// It is looked for from the end on, and only as far as there is something to be found: what
    /// people ask for is mostly what happened last.
    pub fn entries(
        mut self,
        wanted: impl DoubleEndedIterator<Item = (Instance, u32, FrameId)>,
    ) -> Vec<(Instance, Instance, u64)> {
        let mut wanted = wanted.rev().peekable();
        let mut open: HashMap<FrameId, Vec<(Instance, u32)>> = HashMap::new();
        let mut found = Vec::new();
        for (time, frame) in self.trace.control.frames_back() {
            while let Some((at, target, of)) = wanted.next_if(|(at, ..)| at.time == time) {
                open.entry(of).or_default().push((at, target));
            }
            if let Some(here) = open.get_mut(&frame) {
                self.entered(time, here, &mut found);
                if here.is_empty() {
                    open.remove(&frame);
                }
            }
            if open.is_empty() && wanted.peek().is_none() {
                break;
            }
            let goes_on = self.goes_on(time);
            let count = &mut self.paths[self.trace.records.path(time).0 as usize];
            count.runs -= 1;
            count.went_on -= u64::from(goes_on);
        }
        found
    }

    fn goes_on(&self, time: Time) -> bool {
        self.went_on[time.0 as usize / 64] >> (time.0 % 64) & 1 != 0
    }

    /// Which of the open ones began in a record?
    fn entered(
        &self,
        time: Time,
        open: &mut Vec<(Instance, u32)>,
        found: &mut Vec<(Instance, Instance, u64)>,
    ) {
        let begins = &self.arrivals.shapes[self.trace.records.path(time).0 as usize].begins;
        let begins = &begins[usize::from(self.goes_on(time))..];
        open.retain(|&(at, target)| {
            let own = begins.iter().rev().filter(|(_, began)| *began == target);
            let entries = own.map(|&(index, _)| Instance { time, index });
            let began = (0..).zip(entries).find(|(_, entry)| *entry <= at);
            if let Some((later, entry)) = began {
                found.push((at, entry, self.executions(target) - later));
            }
            began.is_none()
        });
    }
}
