//! Which branches hid a dependence? What was not done leaves no trace; a branch that might
//! have changed a value is switched, and the value looked at.

use crate::failure::Error;
use crate::predicates::Predicate;
use program::effects::Cells;
use slice::{Distance, Options, Slicer, Start};
use std::collections::{HashMap, HashSet};
use trace::{Flow, Instance};
use whatif::{Batch, Change, Experiment, Laboratory, Limits, Oracle, Target, Trigger, Verdict};

/// A branch that might have changed a value, had it gone the other way.
#[derive(Clone, Copy, Debug)]
pub struct Potential {
    /// The branch.
    pub predicate: Predicate,
    /// Dependences between it and the value.
    pub distance: Distance,
}

/// What switching them showed.
#[derive(Clone, Debug, Default)]
pub struct Omitted {
    /// The value is another, or is not computed at all.
    pub confirmed: Vec<Potential>,
    /// It is the same.
    pub refuted: Vec<Potential>,
    /// The trial could not tell.
    pub unknown: Vec<Potential>,
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// At most so many branches, the nearest first.
    pub trials: usize,
    /// At a time.
    pub jobs: usize,
    /// How far each trial may go.
    pub limits: Limits,
}

/// Switches the branches that are in the relevant slice of a value but not in its slice.
pub fn omitted(
    run: &position::Run,
    slicer: &Slicer,
    options: &Options,
    start: &Start,
    laboratory: &mut Laboratory,
    reach: &Reach,
) -> Result<Omitted, Error> {
    let mut potential = potential(run, slicer, options, start);
    potential.truncate(reach.trials);
    let look = look(run, start);
    let mut experiments: Vec<Experiment> =
        potential.iter().map(|p| experiment(run, start.at(), &look, p.predicate.number)).collect();
    // What is there without a change.
    let Some(first) = experiments.first() else { return Ok(Omitted::default()) };
    experiments.push(Experiment { changes: Vec::new(), ..first.clone() });
    let mut batch = Batch::new(experiments, Oracle::default());
    (batch.limits, batch.jobs) = (reach.limits, reach.jobs);
    let mut told = vec![None; batch.experiments.len()];
    laboratory.perform(&batch, &mut |n, outcome| {
        told[n] = match outcome.verdict {
            Verdict::Unserved(_) | Verdict::NeedsChild | Verdict::Lost => None,
            Verdict::StepLimit | Verdict::MemoryLimit => None,
            _ => Some(outcome.told),
        };
        true
    })?;
    let recorded = told.pop().flatten().unwrap_or_default();
    let mut found = Omitted::default();
    for (potential, told) in potential.into_iter().zip(told) {
        match told {
            Some(told) if told == recorded => found.refuted.push(potential),
            Some(_) => found.confirmed.push(potential),
            None => found.unknown.push(potential),
        }
    }
    Ok(found)
}

/// Branches in the relevant slice only, the nearest first.
fn potential(
    run: &position::Run,
    slicer: &Slicer,
    options: &Options,
    start: &Start,
) -> Vec<Potential> {
    let starts = std::slice::from_ref(start);
    let slice: HashSet<Instance> =
        slicer.instances(starts, options).0.into_iter().map(|(at, ..)| at).collect();
    let relevant = Options { relevant: true, ..options.clone() };
    let mut nearest: HashMap<Instance, Potential> = HashMap::new();
    for (at, instruction, distance) in slicer.instances(starts, &relevant).0 {
        let info = run.trace.code.info(instruction);
        if slice.contains(&at) || info.flow != Flow::Branch || !run.is_own(instruction) {
            continue;
        }
        let (number, pc) = (run.trace.number(at), info.address());
        let predicate = Predicate { number, instance: at, instruction, pc };
        let known = nearest.entry(at).or_insert(Potential { predicate, distance });
        known.distance = known.distance.min(distance);
    }
    let mut all: Vec<Potential> = nearest.into_values().collect();
    all.sort_by_key(|p| (p.distance, std::cmp::Reverse(p.predicate.number)));
    all
}

/// What a value is kept in.
fn look(run: &position::Run, start: &Start) -> Vec<Change> {
    let (cells, memory) = match start {
        Start::Before(_, cells, memory) => (*cells, memory.clone()),
        Start::Instance(at) => {
            let info = run.trace.code.info(run.trace.instruction(*at));
            let loaded = run.trace.loaded(*at).into_iter().map(|r| (r.start, r.len));
            (info.uses.union(info.condition), loaded.collect())
        }
    };
    let registers = (0..16).filter(|n| cells.overlaps(&Cells::gpr(*n, 8)));
    let registers = registers.map(|n| (Target::Register(n), 8));
    let vectors = (0..16).filter(|n| cells.overlaps(&Cells::ymm(*n, 16)));
    let vectors = vectors.map(|n| (Target::Vector(n), 16));
    let memory = memory.into_iter().map(|(address, len)| (Target::Memory(address), len));
    let tell = registers.chain(vectors).chain(memory);
    let tell = tell.map(|(target, len)| Change::Tell { target, len });
    tell.chain([Change::End]).collect()
}

/// Switches a branch, and looks when the run comes to an instance as often as then.
fn experiment(run: &position::Run, at: Instance, look: &[Change], number: u64) -> Experiment {
    let trace = &run.trace;
    let pc = run.address(at);
    let between = number + 1..=trace.number(at);
    let here = |n: &u64| trace.at_number(*n).is_some_and(|at| run.address(at) == pc);
    let nth = between.filter(here).count() as u64;
    let mut experiment = Experiment::one(number, Change::Switch);
    let triggers = look.iter().cloned().map(|change| Trigger::at(pc, nth, change));
    experiment.triggers = triggers.collect();
    experiment
}
