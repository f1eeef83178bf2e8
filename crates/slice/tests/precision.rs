//! How exact slices are: one small guest per promise. Each says which of its marked
//! instructions a slice must have and which it must not, and every slice must equal
//! the reference slicer's, with and without bookkeeping: of the criterion, and in small
//! guests of every instruction that was executed (F-002-02, F-002-06).

#[path = "precision/assembly.rs"]
mod assembly;
#[path = "precision/calls.rs"]
mod calls;
#[path = "precision/control.rs"]
mod control;
#[path = "precision/languages.rs"]
mod languages;
#[path = "precision/maps.rs"]
mod maps;
#[allow(dead_code, reason = "each of its users needs a part")]
mod reference;
mod support;
#[path = "precision/threads.rs"]
mod threads;
#[path = "precision/whole.rs"]
mod whole;

use reference::{bypass::Pairs, knowledge::Knowledge, run::Run, slicer};
use slice::{Instances, Options, Slicer, Start};
use std::path::Path;
use std::process::ExitCode;
use support::{Guest, Marks};
use trace::Trace;

/// A guest and what is expected of a slice.
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    /// The program.
    pub guest: Guest,
    /// Where the slice begins: the last execution of what has this mark.
    pub criterion: &'static str,
    /// Marks that must be in it.
    pub inside: &'static [&'static str],
    /// Marks that must not. "FILE behind MARK" is code of a mapped file that ran after
    /// the mark did.
    pub outside: &'static [&'static str],
    /// Bytes that came from outside, by where they are in their file: these and no others.
    pub from: Option<&'static [u64]>,
    /// Is the reference too slow for it?
    pub large: bool,
}

impl Case {
    fn coming_from(self, offsets: &'static [u64]) -> Case {
        Case { from: Some(offsets), ..self }
    }
}

fn cases() -> Vec<Case> {
    let single = [assembly::cases(), calls::cases(), maps::cases()];
    let whole = [control::cases(), threads::cases(), languages::cases()];
    single.into_iter().chain(whole).flatten().collect()
}

fn main() -> ExitCode {
    support::main(&cases().iter().map(|c| (c.name, &c.guest)).collect::<Vec<_>>(), |name, dir| {
        let case = cases().into_iter().find(|c| c.name == name).expect("a case's name");
        check(&case, dir);
    })
}

fn check(case: &Case, dir: &Path) {
    let recording = recording::Recording::open(&dir.join("recording")).expect("a recording");
    let trace = Trace::build(&recording, &mut |_| ()).expect("a trace");
    let marks = Marks::of(&dir.join("marks"), &trace);
    let fast = Slicer::new(&trace);
    let at = marks.last(&trace, case.criterion);
    let start = [Start::Instance(at)];
    let (found, origins) = fast.visit(&start, &Options::default(), &Instances::default);
    let addresses = found.0.iter().map(|(_, id, _)| trace.code.info(*id).address()).collect();
    for mark in case.inside {
        assert!(marks.any(mark, &addresses), "{mark} must be in the slice");
    }
    for mark in case.outside {
        let inside = match mark.split_once(" behind ") {
            Some((file, mark)) => {
                let first = marks.last(&trace, mark);
                let later = found.0.iter().filter(|(at, ..)| *at > first);
                support::any_in_file(&trace, file, later.map(|(_, id, _)| *id))
            }
            None => marks.any(mark, &addresses),
        };
        assert!(!inside, "{mark} must not be in the slice");
    }
    if let Some(from) = case.from {
        let found: Vec<u64> = origins.objects.iter().map(|(_, offset, _)| *offset).collect();
        assert_eq!(found, from, "bytes from outside");
    }
    whole::slices_go_both_ways(&trace);
    whole::slices_are_counted_right(&trace);
    whole::a_packed_trace_has_the_same_slices(&recording, &trace, at);
    if !case.large {
        equals_reference(&recording, &trace, at);
    }
}

fn equals_reference(recording: &recording::Recording, trace: &Trace, at: trace::Instance) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("knowledge");
    let run = Run::walk(recording, trace, &mut Knowledge::open(&file));
    whole::times_have_no_gaps(trace, &run);
    whole::the_path_goes_both_ways(trace, &run);
    let criteria = match trace.records.instructions() {
        few @ 0..SMALL => {
            whole::addresses_are_those_of_single_steps(trace, &run);
            (0..few as usize).collect()
        }
        _ => vec![run.numbers.step(at)],
    };
    let fast = Slicer::new(trace);
    for bookkeeping in [true, false] {
        let pairs: Option<&dyn Pairs> = if bookkeeping { None } else { Some(&fast) };
        let reference = slicer::Reference::new(trace, &run, pairs);
        let options = Options { bookkeeping, ..Options::default() };
        let show = |n: usize| {
            let step = &run.steps[n];
            format!("@{n} {}", trace.code.info(step.instruction).instruction)
        };
        for (n, slow) in criteria.iter().zip(reference.slices(&criteria)) {
            let start = [Start::Instance(run.numbers.instance(*n))];
            let quick = slicer::numbers(&run, &fast.instances(&start, &options));
            let fast_only: Vec<String> = quick.difference(&slow).map(|n| show(*n)).collect();
            let slow_only: Vec<String> = slow.difference(&quick).map(|n| show(*n)).collect();
            assert!(
                fast_only.is_empty() && slow_only.is_empty(),
                "{}, bookkeeping {bookkeeping}: only fast {fast_only:?}, only slow {slow_only:?}",
                show(*n)
            );
        }
    }
}

/// Guests of fewer instructions are looked at from everywhere.
const SMALL: u64 = 3000;
