//! Two switches together, when no single one helps.

use crate::failure::Error;
use crate::predicates::Predicate;
use crate::search::{Progress, Search};
use std::collections::HashMap;
use whatif::{Change, Experiment, Laboratory, Trigger, Verdict};

/// Two predicates whose switches help together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Places of both in the list of predicates, the earlier one first.
    pub predicates: [usize; 2],
    /// Trials needed.
    pub tried: usize,
}

/// So many of the most promising predicates are combined with each other.
const PROMISING: usize = 48;

impl Search<'_> {
    /// Tries pairs, the most promising first: those whose single switches brought the
    /// run furthest, and those first in the order.
    pub fn pairs(
        &self,
        predicates: &[Predicate],
        most: usize,
        laboratory: &mut Laboratory,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Pair>, Error> {
        let mut pairs = self.promising(predicates);
        pairs.truncate(most);
        let counts = occurrences(predicates);
        let experiments: Vec<Experiment> = pairs
            .iter()
            .map(|&[a, b]| {
                let (first, second) = (&predicates[a], &predicates[b]);
                let nth = counts[b] - counts_up_to(predicates, &counts, a, second.pc);
                let mut experiment = self.single(first.number);
                experiment.triggers.push(Trigger::at(second.pc, nth, Change::Switch));
                experiment
            })
            .collect();
        let total = experiments.len();
        let batch = self.batch(experiments);
        let mut best: Option<usize> = None;
        let mut done = 0;
        laboratory.perform(&batch, &mut |n, mut outcome| {
            done += 1;
            self.judge(&mut outcome);
            if outcome.verdict == Verdict::Passed {
                best = Some(best.map_or(n, |b| b.min(n)));
            }
            progress(Progress { done, total, found: usize::from(best.is_some()) })
        })?;
        Ok(best.map(|n| Pair { predicates: pairs[n], tried: n + 1 }))
    }

    /// How far a single switch brought the run.
    fn promising(&self, predicates: &[Predicate]) -> Vec<[usize; 2]> {
        let score = |verdict: &Verdict| match verdict {
            Verdict::WrongOutput { unit, .. } => *unit,
            Verdict::WrongExit(_) | Verdict::WrongFile { .. } | Verdict::Avoided => 1 << 40,
            Verdict::CrashedElsewhere { passed_point: true, .. } => 1 << 40,
            _ => 0,
        };
        let mut ranked: Vec<(u64, usize)> =
            self.results().iter().map(|(rank, (v, _))| (score(v), *rank)).collect();
        // The furthest first; equal ones in the order of the search.
        ranked.sort_by_key(|(score, rank)| (std::cmp::Reverse(*score), *rank));
        let best = ranked.iter().take(PROMISING).map(|(_, rank)| self.predicate(*rank));
        let first = (0..ranked.len().min(PROMISING)).map(|rank| self.predicate(rank));
        let mut chosen: Vec<usize> = Vec::new();
        for (a, b) in best.zip(first) {
            for n in [a, b] {
                if !chosen.contains(&n) {
                    chosen.push(n);
                }
            }
        }
        let mut pairs = Vec::new();
        // By the sum of both ranks, so that two good ones come before a best and a
        // worst.
        for sum in 1..2 * chosen.len() {
            for i in 0..=sum.min(chosen.len() - 1) {
                let j = sum - i;
                if i < j && j < chosen.len() {
                    let (a, b) = (chosen[i], chosen[j]);
                    if predicates[a].number != predicates[b].number {
                        pairs.push([a.min(b), a.max(b)]);
                    }
                }
            }
        }
        pairs
    }
}

/// For each predicate, which execution of its branch it is, from 1.
fn occurrences(predicates: &[Predicate]) -> Vec<u64> {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    predicates
        .iter()
        .map(|p| {
            let count = counts.entry(p.pc).or_default();
            *count += 1;
            *count
        })
        .collect()
}

/// Executions of a branch up to and with a predicate.
fn counts_up_to(predicates: &[Predicate], counts: &[u64], n: usize, pc: u64) -> u64 {
    let latest = (0..=n).rev().find(|i| predicates[*i].pc == pc);
    latest.map_or(0, |i| counts[i])
}
