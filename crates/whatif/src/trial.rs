//! One experiment, in the process that was forked for it.

use crate::experiment::{Change, CrashPoint, Experiment, Target};
use crate::judge::Judge;
use crate::oracle::Oracle;
use crate::verdict::{Outcome, Verdict};
use crate::way::Point;
use engine::sandbox::{Sandbox, Stopped, Stream};

/// What all experiments of a batch share.
pub struct Setting<'a> {
    pub oracle: &'a Oracle,
    pub crash: Option<&'a CrashPoint>,
    pub keep_outputs: bool,
}

/// Performs it.
pub fn perform(sandbox: &mut Sandbox, experiment: &Experiment, setting: &Setting) -> Outcome {
    let pc = sandbox.registers().rip;
    let mut taken = None;
    for change in &experiment.changes {
        match apply(sandbox, change) {
            Ok(was) => taken = was.or(taken),
            Err(()) => return Outcome { pc, ..Outcome::of(Verdict::NotReached) },
        }
    }
    let mut point = setting.crash.map(|point| Point::new(point, &experiment.way));
    let mut counts = vec![0; experiment.triggers.len()];
    set_stops(sandbox, experiment, point.as_ref());
    let mut judge = Judge::new(setting.oracle);
    let stopped = loop {
        match sandbox.run(&mut judge) {
            Stopped::At(at) => {
                if point.as_mut().is_some_and(|point| point.see(sandbox)) {
                    set_stops(sandbox, experiment, point.as_ref());
                }
                if fire(sandbox, experiment, &mut counts, at).is_err() {
                    return Outcome { pc, taken, ..Outcome::of(Verdict::NotReached) };
                }
            }
            stopped => break stopped,
        }
    };
    let at_point = point.as_ref().is_some_and(|p| p.died_there(sandbox, &stopped));
    let passed = point.as_ref().map(|p| p.came() && !at_point);
    let unfired = experiment.triggers.iter().zip(&counts).any(|(t, n)| *n < t.nth);
    let verdict = judge.verdict(sandbox, &stopped, at_point, passed);
    let ended = matches!(stopped, Stopped::Exited(_) | Stopped::Killed { .. });
    // A run that did not do what was to be changed was not the experiment.
    let verdict = if unfired && ended { Verdict::NotReached } else { verdict };
    let outputs = [Stream::Out, Stream::Err].map(|stream| sandbox.output(stream).to_vec());
    Outcome {
        verdict,
        stopped: Some(stopped),
        steps: sandbox.steps(),
        outputs: setting.keep_outputs.then_some(outputs),
        pc,
        taken,
    }
}

fn set_stops(sandbox: &mut Sandbox, experiment: &Experiment, point: Option<&Point>) {
    let triggers = experiment.triggers.iter().map(|t| t.pc);
    let all: Vec<u64> = triggers.chain(point.iter().flat_map(|p| p.stops())).collect();
    sandbox.stop_at(&all);
}

/// Makes the changes that are due at this instruction.
fn fire(
    sandbox: &mut Sandbox,
    experiment: &Experiment,
    counts: &mut [u64],
    at: u64,
) -> Result<(), ()> {
    for (trigger, count) in experiment.triggers.iter().zip(counts) {
        if trigger.pc != at {
            continue;
        }
        *count += 1;
        if trigger.nth == 0 || trigger.nth == *count {
            apply(sandbox, &trigger.change)?;
        }
    }
    Ok(())
}

/// Makes a change. Says what a switched branch would have done.
pub fn apply(sandbox: &mut Sandbox, change: &Change) -> Result<Option<bool>, ()> {
    match change {
        Change::Switch => sandbox.switch().map(Some).map_err(|_| ()),
        Change::Set { target: Target::Register(n), bytes } => {
            let n = usize::from(*n);
            let mut value = sandbox.registers().gpr[n].to_le_bytes();
            let len = bytes.len().min(8);
            value[..len].copy_from_slice(&bytes[..len]);
            sandbox.set_register(n, u64::from_le_bytes(value));
            Ok(None)
        }
        Change::Set { target: Target::Vector(n), bytes } => {
            sandbox.set_vector(usize::from(*n), bytes);
            Ok(None)
        }
        Change::Set { target: Target::Memory(address), bytes } => {
            if sandbox.set_memory(*address, bytes) { Ok(None) } else { Err(()) }
        }
        Change::Skip { to, value } => {
            sandbox.skip_to(*to, *value);
            Ok(None)
        }
    }
}
