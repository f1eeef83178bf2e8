//! Which executions a slice consists of: runs of instructions that follow each other.

use crate::{Distance, Options, Slicer, Start, Visitor};
use std::ops::Range;
use trace::{Instance, InstructionId, Walk};

/// Numbers of instructions, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Never empty ones, which do not touch.
    runs: Vec<Range<u64>>,
}

impl Runs {
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().cloned()
    }

    /// How many instructions they are.
    pub fn instructions(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    /// The number behind the last.
    pub fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// As few bytes: how many instructions lie before each run, and how many it has.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut behind = 0;
        let told = |run: &Range<u64>| {
            let before = run.start - std::mem::replace(&mut behind, run.end);
            (before, run.end - run.start)
        };
        let told: Vec<(u64, u64)> = self.runs.iter().map(told).collect();
        postcard::to_allocvec(&told).expect("numbers can be written")
    }

    /// What [`Self::to_bytes`] made; `None` if it did not.
    pub fn from_bytes(bytes: &[u8]) -> Option<Runs> {
        let told: Vec<(u64, u64)> = postcard::from_bytes(bytes).ok()?;
        let mut runs: Vec<Range<u64>> = Vec::with_capacity(told.len());
        for (before, len) in told {
            let behind = runs.last().map_or(0, |run| run.end);
            let touches = before == 0 && !runs.is_empty();
            if len == 0 || touches {
                return None;
            }
            let start = behind.checked_add(before)?;
            runs.push(start..start.checked_add(len)?);
        }
        Some(Runs { runs })
    }
}

/// Instances alone: there may be many.
#[derive(Default)]
struct Found(Vec<Instance>);

impl Visitor for Found {
    fn instance(&mut self, at: Instance, _: InstructionId, _: Distance) {
        self.0.push(at);
    }
}

impl Slicer<'_> {
    /// Which executions a backward slice consists of.
    pub fn runs(&self, starts: &[Start], options: &Options) -> Runs {
        let Found(mut found) = self.visit(starts, options, &Found::default).0;
        found.sort_unstable();
        let mut walk = Walk::new(self.trace);
        found.into_iter().map(|at| walk.number(at)).collect()
    }
}

/// Of numbers that do not descend; equal ones are one.
impl FromIterator<u64> for Runs {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Runs {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for number in numbers {
            match runs.last_mut() {
                Some(last) if number < last.end => {}
                Some(last) if number == last.end => last.end += 1,
                _ => runs.push(number..number + 1),
            }
        }
        Runs { runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_the_numbers_they_were_made_of(
            mut numbers in prop::collection::vec(
                prop_oneof![0..60u64, 0..u64::MAX / 2], 0..80),
        ) {
            numbers.sort_unstable();
            let runs: Runs = numbers.iter().copied().collect();
            numbers.dedup();
            prop_assert_eq!(runs.instructions(), numbers.len() as u64);
            prop_assert_eq!(runs.iter().flatten().collect::<Vec<u64>>(), numbers);
            prop_assert_eq!(Runs::from_bytes(&runs.to_bytes()), Some(runs));
        }

        #[test]
        fn other_bytes_are_no_runs_or_some(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(runs) = Runs::from_bytes(&bytes) {
                prop_assert!(runs.iter().all(|run| run.start < run.end));
            }
        }
    }
}
