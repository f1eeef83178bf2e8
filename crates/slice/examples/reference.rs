//! Compares fast slices of a recording with the reference slicer's:
//! `reference RECORDING KNOWLEDGE [CRITERIA [SEED [MAX_INSTRUCTIONS]]]`.
//!
//! KNOWLEDGE is a file in which what the processor said is kept. `cargo xtask slices`
//! runs it. Ends with 0 if all slices are equal, 1 if not, 3 if the run is too long or has
//! gathers.

#[allow(dead_code, reason = "each of its users needs a part")]
#[path = "../tests/reference/mod.rs"]
mod reference;

use reference::{bypass::Pairs, knowledge::Knowledge, run::Run, slicer};
use slice::{Options, Slicer, Start};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use trace::Trace;

/// Instances of one difference that are shown.
const SHOWN: usize = 4;

struct Comparison<'a> {
    trace: &'a Trace,
    run: &'a Run,
    differences: usize,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which recording?")?;
    let knowledge = arguments.next().ok_or("which file of knowledge?")?;
    let criteria: usize = arguments.next().map_or(Ok(10), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let most: u64 = arguments.next().map_or(Ok(u64::MAX), |n| n.parse())?;
    let recording = recording::Recording::open(Path::new(&folder))?;
    // A run that is too long need not be traced to its end.
    let trace = Trace::build_part(&recording, 0..most.saturating_add(1), &mut |_| ())?;
    let executed = trace.records.instructions();
    if executed > most {
        println!("{executed} instructions, more than {most}");
        return Ok(ExitCode::from(3));
    }
    if let Some(i) = reference::run::unknown(&trace) {
        println!("{i} takes elements from addresses that the reference does not know");
        return Ok(ExitCode::from(3));
    }
    let run = Run::walk(&recording, &trace, &mut Knowledge::open(Path::new(&knowledge)));
    let mut comparison = Comparison { trace: &trace, run: &run, differences: 0 };
    for bookkeeping in [true, false] {
        comparison.compare(bookkeeping, criteria, seed);
    }
    let differences = comparison.differences;
    println!("{executed} instructions, 2 × {criteria} slices, {differences} differences");
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Comparison<'_> {
    fn compare(&mut self, bookkeeping: bool, criteria: usize, mut seed: u64) {
        let fast = Slicer::new(self.trace);
        let pairs: Option<&dyn Pairs> = if bookkeeping { None } else { Some(&fast) };
        let reference = slicer::Reference::new(self.trace, self.run, pairs);
        self.parents(&reference);
        let options = Options { bookkeeping, ..Options::default() };
        let numbers: Vec<usize> = (0..criteria)
            .map(|_| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                self.criterion(seed)
            })
            .collect();
        for (n, slow) in numbers.iter().zip(reference.slices(&numbers)) {
            let at = self.run.numbers.instance(*n);
            let quick =
                slicer::numbers(self.run, &fast.instances(&[Start::Instance(at)], &options));
            let what = format!("slice of {}, bookkeeping {bookkeeping}", self.name(*n));
            self.report(&what, &(&quick - &slow), &(&slow - &quick));
        }
    }

    /// Three of four are in the program itself.
    fn criterion(&self, seed: u64) -> usize {
        let executed = self.trace.records.instructions() as usize;
        let first = (seed >> 33) as usize % executed;
        let own = |n: &usize| self.trace.program.is_own(self.run.steps[*n].address);
        let near = (first..executed).chain(0..first).find(own);
        if seed >> 60 & 3 == 0 { first } else { near.unwrap_or(first) }
    }

    /// Shows each pair of instructions once that are taken for each other.
    fn parents(&mut self, reference: &slicer::Reference) {
        let mut wrong = BTreeSet::new();
        let name = |n: Option<usize>| n.map_or("nothing".to_owned(), |n| self.name(n));
        let address = |n: Option<usize>| n.map(|n| self.run.steps[n].address);
        let mut pairs = BTreeSet::new();
        for n in 0..self.trace.records.instructions() as usize {
            let at = self.run.numbers.instance(n);
            let path = self.trace.records.path(at.time);
            let first = self.trace.control.first_label(at.time);
            let parent = self.trace.control.parent(path, at, first);
            let parent = parent.map(|p| self.run.numbers.step(p));
            let right = reference.parent(n);
            if parent != right {
                wrong.insert(n);
                if pairs.insert((address(parent), address(right))) {
                    println!("{}: not {} but {}", self.name(n), name(parent), name(right));
                }
            }
        }
        self.report("reasons", &wrong, &BTreeSet::new());
    }

    fn report(&mut self, what: &str, only_fast: &BTreeSet<usize>, only_slow: &BTreeSet<usize>) {
        if only_fast.is_empty() && only_slow.is_empty() {
            return;
        }
        self.differences += 1;
        println!("{what}: {} too many, {} too few", only_fast.len(), only_slow.len());
        for (sign, set) in [("+", only_fast), ("-", only_slow)] {
            for n in set.iter().rev().take(SHOWN) {
                println!("  {sign} {}", self.name(*n));
            }
        }
    }

    fn name(&self, n: usize) -> String {
        let step = &self.run.steps[n];
        let i = &self.trace.code.info(step.instruction).instruction;
        format!("@{n} {:#x} {i}", i.ip())
    }
}
