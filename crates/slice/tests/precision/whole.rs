//! What holds for the trace of every guest: it has the whole run, it can be asked both
//! ways, and slices do not depend on the way in which they are found.

use crate::reference::run::Run;
use recording::Recording;
use slice::{Instances, Options, Part, Slicer, Start};
use std::collections::{HashMap, HashSet};
use trace::{Instance, InstructionId, Time, Trace};

/// Instances that are compared with each other, at most.
const COMPARED: usize = 60;

/// F-002-01: times count the records that ran, none is missing, and their instructions
/// are as many as single steps.
pub fn times_have_no_gaps(trace: &Trace, run: &Run) {
    let mut steps = 0;
    for time in (0..trace.records.len()).map(Time) {
        let at = Instance { time, index: 0 };
        assert_eq!(trace.number(at), steps);
        steps += u64::from(trace.code.path(trace.records.path(time)).len);
    }
    let faulting = run.steps.len() as u64 - steps;
    assert!(faulting <= 1, "{} single steps, {steps} in the trace", run.steps.len());
}

/// F-002-03: from the middle, the path is found forward and backward.
pub fn the_path_goes_both_ways(trace: &Trace, run: &Run) {
    let (middle, end) = (trace.records.len() / 2, trace.records.len());
    let executed = |time: u32| {
        let path = trace.code.path(trace.records.path(Time(time)));
        trace.code.ops(path).iter().map(|op| trace.code.info(op.instruction).address())
    };
    let first = trace.number(Instance { time: Time(middle), index: 0 }) as usize;
    let behind = run.steps[first..].iter().map(|step| step.address);
    let counted = trace.records.instructions() as usize;
    let forward: Vec<u64> = (middle..end).flat_map(executed).collect();
    assert_eq!(forward, behind.take(counted - first).collect::<Vec<_>>());
    let before = run.steps[..first].iter().rev().map(|step| step.address);
    let backward = (0..middle).rev().flat_map(|time| executed(time).rev());
    assert!(backward.eq(before));
}

/// F-002-04: every address that follows from what was captured is one that the
/// registers before the step gave.
pub fn addresses_are_those_of_single_steps(trace: &Trace, run: &Run) {
    let (mut compared, mut equal) = (0, 0);
    for (n, step) in run.steps.iter().enumerate().take(trace.records.instructions() as usize) {
        let at = run.numbers.instance(n);
        let span = trace.spans.spans.iter().find(|s| s.start <= at.time && at.time < s.end);
        let bases = span.expect("some thread ran").bases;
        let op = &trace.code.ops(trace.code.path(trace.records.path(at.time)))[at.index as usize];
        let (whole, own) = trace.captured(at.time);
        let captured = whole.all().range(own);
        for operand in trace.code.operands(op).iter().filter(|o| o.access().repeats.is_none()) {
            let Some(address) = operand.address(captured, bases) else { continue };
            let near = |known: &u64| known.abs_diff(address) < 64;
            assert!(step.operands.iter().any(near), "{address:#x} of step {n}");
            compared += 1;
            equal += usize::from(step.operands.contains(&address));
        }
    }
    // Parts of an operand begin inside of it.
    assert!(compared == 0 || equal > 0, "{compared} addresses, none of them an operand's");
}

/// F-002-08: a trace that is packed segment by segment has the same slice.
pub fn a_packed_trace_has_the_same_slices(recording: &Recording, trace: &Trace, at: Instance) {
    if trace.records.segments().len() < 3 {
        return;
    }
    let packed = Trace::build_within(recording, 0, &mut |_| ()).expect("a trace");
    assert!(packed.records.size() < trace.records.size(), "something is packed");
    let all =
        |trace: &Trace| Slicer::new(trace).instances(&[Start::Instance(at)], &Options::default()).0;
    assert!(all(trace) == all(&packed), "packing changes a slice");
}

/// A slice that is counted has what one has that is told instance by instance: as many of
/// each instruction, as near, as late and as early.
pub fn slices_are_counted_right(trace: &Trace) {
    let executed = trace.records.instructions();
    let step = executed.div_ceil(COMPARED as u64).max(1) as usize;
    let slicer = Slicer::new(trace);
    for at in (0..executed).step_by(step).filter_map(|n| trace.at_number(n)) {
        let start = [Start::Instance(at)];
        let counted = slicer.backward(&start, &Options::default()).instructions;
        let mut told: HashMap<InstructionId, Part> = HashMap::new();
        for (at, id, distance) in slicer.instances(&start, &Options::default()).0 {
            let one = Part { instances: 1, distance, latest: at, earliest: at };
            let add = |all: &mut Part| {
                all.instances += 1;
                all.distance = all.distance.min(distance);
                (all.latest, all.earliest) = (all.latest.max(at), all.earliest.min(at));
            };
            told.entry(id).and_modify(add).or_insert(one);
        }
        assert_eq!(counted, told, "slice of @{}", trace.number(at));
    }
}

/// F-002-25, F-002-09, F-001-15: y is in the forward slice of x if and only if
/// x is in the backward slice of y; and that is the same when nothing is skipped.
pub fn slices_go_both_ways(trace: &Trace) {
    let executed = trace.records.instructions();
    let step = executed.div_ceil(COMPARED as u64).max(1) as usize;
    let chosen: Vec<Instance> =
        (0..executed).step_by(step).filter_map(|n| trace.at_number(n)).collect();
    let slicer = Slicer::new(trace);
    let options = Options { bookkeeping: true, ..Options::default() };
    let plodding = Options { skipping: false, ..options.clone() };
    let set = |found: Instances| found.0.into_iter().map(|i| i.0).collect::<HashSet<_>>();
    let backward: Vec<HashSet<Instance>> = chosen
        .iter()
        .map(|y| {
            let start = [Start::Instance(*y)];
            let found = set(slicer.instances(&start, &options));
            assert!(found == set(slicer.instances(&start, &plodding)), "skipping loses something");
            found
        })
        .collect();
    let text = |at: &Instance| {
        let i = &trace.code.info(trace.instruction(*at)).instruction;
        format!("@{} {i}", trace.number(*at))
    };
    let mut wrong = Vec::new();
    for x in &chosen {
        let start = [Start::Instance(*x)];
        let forward = set(slicer.forward(&start, &options, Instances::default()));
        for (y, behind) in chosen.iter().zip(&backward) {
            if forward.contains(y) != behind.contains(x) {
                let only = if behind.contains(x) { "backward" } else { "forward" };
                wrong.push(format!("from {} to {}: only {only}", text(x), text(y)));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
