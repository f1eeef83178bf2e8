//! How a replay goes along a slice: in stretches that are executed in one go.

use crate::Runs;
use engine::Stretch;
use std::iter::Peekable;
use std::ops::Range;
use trace::{Trace, Walk};

/// So few instructions between two of the slice are executed with them. To put in what
/// they did takes as long as a few thousand instructions do.
const BRIDGED: u64 = 2000;

/// Runs of a stretch at most: it becomes one event.
const LONGEST: usize = 1 << 16;

/// The addresses of a slice's instructions, in ascending order.
pub fn addresses(trace: &Trace, runs: &Runs) -> Vec<u64> {
    let mut walk = Walk::new(trace);
    let mut seen = vec![false; trace.code.instructions().count()];
    for number in runs.iter().flatten() {
        let at = walk.at_number(number).unwrap_or_else(|| trace.last_instance());
        seen[trace.instruction(at).0 as usize] = true;
    }
    let seen = trace.code.instructions().filter(|(id, _)| seen[id.0 as usize]);
    let mut all: Vec<u64> = seen.map(|(_, info)| info.address()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// All stretches of a slice, in order.
pub struct Stretches<'a> {
    trace: &'a Trace,
    walk: Walk<'a>,
    runs: Peekable<Box<dyn Iterator<Item = Range<u64>> + 'a>>,
    /// What is left of a run that an exception came into.
    rest: Option<Range<u64>>,
}

impl<'a> Stretches<'a> {
    /// Of a slice of this trace.
    pub fn new(trace: &'a Trace, runs: &'a Runs) -> Stretches<'a> {
        let all: Box<dyn Iterator<Item = Range<u64>>> = Box::new(runs.iter());
        Stretches { trace, walk: Walk::new(trace), runs: all.peekable(), rest: None }
    }

    /// The run behind this one, if it is so near that both are one stretch.
    fn bridged(&mut self, behind: u64) -> Option<Range<u64>> {
        let next = self.runs.peek().filter(|next| next.start - behind <= BRIDGED)?.start;
        match self.walk.next_fault(next) {
            None => self.runs.next(),
            Some(_) => None,
        }
    }
}

impl Iterator for Stretches<'_> {
    type Item = Stretch;

    fn next(&mut self) -> Option<Stretch> {
        let first = self.rest.take().or_else(|| self.runs.next())?;
        // What the run crashed at was not executed.
        let at = self.walk.at_number(first.start).unwrap_or_else(|| self.trace.last_instance());
        let pc = self.trace.code.info(self.trace.instruction(at)).address();
        let mut runs = Vec::new();
        let mut next = Some(first);
        while let Some(run) = next {
            let raised = self.walk.next_fault(run.end);
            if let Some(at) = raised.filter(|at| (run.start + 1..run.end).contains(at)) {
                self.rest = Some(at..run.end);
                runs.push(run.start..at);
                break;
            }
            let behind = run.end;
            runs.push(run);
            next = match raised.is_none() && runs.len() < LONGEST {
                true => self.bridged(behind),
                false => None,
            };
        }
        Some(Stretch { pc, runs })
    }
}
