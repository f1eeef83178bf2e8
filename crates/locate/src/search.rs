//! The search: predicates switched one after the other until one helps.

use crate::failure::{Error, Failure};
use crate::order::Ordered;
use crate::predicates::Predicate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;
use whatif::{Batch, Change, Experiment, Laboratory, Limits, Oracle, Outcome, Verdict};

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Go on after the first that helps?
    pub all: bool,
    /// At most so many trials.
    pub trials: usize,
    /// At a time.
    pub jobs: usize,
    /// How far each may go.
    pub limits: Limits,
    /// What is under way then is given up.
    pub until: Option<Instant>,
}

impl Options {
    /// Is the time over?
    pub(crate) fn is_late(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits { steps: 100_000_000, memory: 1 << 30 };
        Options { all: false, trials: usize::MAX, jobs: 1, limits, until: None }
    }
}

/// A predicate whose switch helps, or that only avoids the crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its place in the list of predicates.
    pub predicate: usize,
    /// Its place in the order, from 0.
    pub rank: usize,
    /// Was the branch taken in the failing run?
    pub taken: bool,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Trials done.
    pub done: usize,
    /// Trials there are at most.
    pub total: usize,
    /// Found so far.
    pub found: usize,
}

/// Somebody who judges; false if that failed.
pub type Decide<'a> = &'a dyn Fn(&mut Outcome) -> bool;

/// Who says whether a trial is right.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What can be compared.
    pub oracle: &'a Oracle,
    /// Who judges what that leaves undecided.
    pub decide: Option<Decide<'a>>,
}

impl Judge<'_> {
    /// Completes a verdict.
    pub(crate) fn judge(&self, outcome: &mut Outcome) {
        judge(self.decide, outcome);
    }
}

/// A search under way; it can be interrupted and gone on with.
pub struct Search<'a> {
    predicates: &'a [Predicate],
    ordered: &'a Ordered,
    failure: &'a Failure,
    oracle: Oracle,
    options: Options,
    /// By rank.
    results: BTreeMap<usize, (Verdict, bool)>,
    interrupted: bool,
    decide: Option<Decide<'a>>,
}

/// The first batches are small, because the answer is often near the front; later
/// ones amortise the walk.
const FIRST_BATCH: usize = 64;
const LARGEST_BATCH: usize = 16_384;

impl<'a> Search<'a> {
    /// Nothing tried yet.
    pub fn new(
        predicates: &'a [Predicate],
        ordered: &'a Ordered,
        failure: &'a Failure,
        oracle: Oracle,
        options: Options,
    ) -> Search<'a> {
        let oracle = failure.known_by(oracle);
        let results = BTreeMap::new();
        let (interrupted, decide) = (false, None);
        Search { predicates, ordered, failure, oracle, options, results, interrupted, decide }
    }

    /// Somebody who judges what the oracle leaves undecided; false if that failed.
    pub fn decide(&mut self, decide: Decide<'a>) {
        self.decide = Some(decide);
    }

    /// Goes on from what an earlier search found out.
    pub fn resume(&mut self, results: BTreeMap<usize, (Verdict, bool)>) {
        self.results = results;
    }

    /// What has been found out: verdict, and whether the branch was taken, by rank.
    pub fn results(&self) -> &BTreeMap<usize, (Verdict, bool)> {
        &self.results
    }

    /// The predicate of a rank.
    pub(crate) fn predicate(&self, rank: usize) -> usize {
        self.ordered.order[rank]
    }

    fn experiment(&self, rank: usize) -> Experiment {
        self.single(self.predicates[self.predicate(rank)].number)
    }

    /// One switch at an instant.
    pub(crate) fn single(&self, at: u64) -> Experiment {
        let mut experiment = Experiment::one(at, Change::Switch);
        let crash = self.failure.crash_in_trials(&self.oracle);
        experiment.way = crash.map(|c| c.way(at)).unwrap_or_default();
        experiment
    }

    /// Experiments of this search, for others.
    pub fn batch(&self, experiments: Vec<Experiment>) -> Batch {
        let mut batch = Batch::new(experiments, self.oracle.clone());
        let crash = self.failure.crash_in_trials(&self.oracle);
        batch.crash = crash.map(|crash| crash.point.clone());
        batch.limits = self.options.limits;
        batch.jobs = self.options.jobs;
        batch.until = self.options.until;
        batch.first_only = !self.options.all;
        batch.keep_outputs = self.oracle.asks;
        // Whoever is asked wants to see all that was written.
        batch.rejoins = !self.oracle.asks;
        batch
    }

    /// Lets whoever decides judge what the oracle left undecided.
    pub(crate) fn judge(&self, outcome: &mut Outcome) {
        judge(self.decide, outcome);
    }

    /// Searches. `progress` says whether to go on.
    pub fn run(
        &mut self,
        laboratory: &mut Laboratory,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), Error> {
        let total = self.ordered.order.len().min(self.options.trials);
        let (mut from, mut size) = (0, FIRST_BATCH);
        while from < total && !self.is_over(from) {
            let to = (from + size).min(total);
            let ranks: Vec<usize> = (from..to).filter(|r| !self.results.contains_key(r)).collect();
            let experiments = ranks.iter().map(|rank| self.experiment(*rank)).collect();
            let batch = self.batch(experiments);
            let results = &mut self.results;
            let interrupted = &mut self.interrupted;
            let mut found = results.values().filter(|(v, _)| *v == Verdict::Passed).count();
            let decide = self.decide;
            laboratory.perform(&batch, &mut |n, mut outcome: Outcome| {
                judge(decide, &mut outcome);
                let now = Progress { done: results.len(), total, found };
                if outcome.verdict == Verdict::Lost && !progress(now) {
                    // Who was interrupted has not judged.
                    *interrupted = true;
                    return false;
                }
                found += usize::from(outcome.verdict == Verdict::Passed);
                results.insert(ranks[n], (outcome.verdict, outcome.taken.unwrap_or(false)));
                *interrupted |= !progress(Progress { done: results.len(), total, found });
                !*interrupted
            })?;
            self.interrupted |= self.options.is_late();
            if self.interrupted {
                break;
            }
            (from, size) = (to, (size * 4).min(LARGEST_BATCH));
        }
        Ok(())
    }

    fn is_over(&self, from: usize) -> bool {
        !self.options.all && self.results.range(..from).any(|(_, (v, _))| *v == Verdict::Passed)
    }

    /// Was it interrupted?
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Predicates whose switch helps, in order; the first one only, unless all were
    /// asked for. What lies behind the first may have been tried or not.
    pub fn found(&self) -> Vec<Found> {
        let all = self.with(&Verdict::Passed);
        if self.options.all { all } else { all.into_iter().take(1).collect() }
    }

    /// Predicates whose switch keeps the run away from the crash point, up to the
    /// first that helps.
    pub fn avoided(&self) -> Vec<Found> {
        let end = self.tried();
        self.with(&Verdict::Avoided).into_iter().filter(|f| f.rank < end).collect()
    }

    /// Predicates whose switch makes the run go right for longer: output is right
    /// up to a later unit than `unit`, or the crash point is passed. The one that
    /// gets farthest comes first.
    pub fn improved(&self, unit: Option<u64>) -> Vec<(Found, u64)> {
        let gain = |verdict: &Verdict| match (verdict, unit) {
            (Verdict::WrongOutput { unit: now, .. }, Some(before)) => {
                now.checked_sub(before).filter(|gain| *gain > 0)
            }
            // One that crashes may have written less than before.
            (Verdict::WrongExit(_), Some(_)) => Some(1),
            (Verdict::CrashedElsewhere { passed_point: true, .. }, None) => Some(1),
            (Verdict::WrongOutput { .. } | Verdict::WrongExit(_), None) => Some(1),
            _ => None,
        };
        let mut all: Vec<(Found, u64)> = self
            .results
            .iter()
            .filter_map(|(&rank, (verdict, taken))| {
                let predicate = self.ordered.order[rank];
                Some((Found { predicate, rank, taken: *taken }, gain(verdict)?))
            })
            .collect();
        all.sort_by_key(|(found, gain)| (std::cmp::Reverse(*gain), found.rank));
        all
    }

    fn with(&self, verdict: &Verdict) -> Vec<Found> {
        let matching = self.results.iter().filter(|(_, (v, _))| v == verdict);
        matching
            .map(|(&rank, &(_, taken))| Found { predicate: self.ordered.order[rank], rank, taken })
            .collect()
    }

    /// Trials that the answer needed: up to the first that helps, or all.
    pub fn tried(&self) -> usize {
        let first = self.results.iter().find(|(_, (v, _))| *v == Verdict::Passed);
        match first {
            Some((rank, _)) if !self.options.all => rank + 1,
            _ => self.results.len(),
        }
    }

    /// How often each verdict was given among those.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        let end = if self.options.all { usize::MAX } else { self.tried() };
        for (_, (verdict, _)) in self.results.range(..end) {
            *counts.entry(verdict.word()).or_default() += 1;
        }
        counts
    }

    /// What could not be served, and how often.
    pub fn unserved(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (verdict, _) in self.results.values() {
            if let Verdict::Unserved(what) = verdict {
                *counts.entry(what.clone()).or_default() += 1;
            }
        }
        counts
    }
}

fn judge(decide: Option<Decide>, outcome: &mut Outcome) {
    if !decide.is_none_or(|decide| decide(outcome)) {
        outcome.verdict = Verdict::Lost;
    }
}
