//! One experiment, in the process that was forked for it.

use crate::changes::{Done, Unchangeable, apply};
use crate::experiment::{Change, CrashPoint, Experiment};
use crate::judge::Judge;
use crate::oracle::Oracle;
use crate::verdict::{Outcome, Verdict};
use crate::way::{Death, Point};
use engine::sandbox::{Sandbox, Stopped, Stream};

/// What all experiments of a batch share.
pub struct Setting<'a> {
    pub oracle: &'a Oracle,
    pub crash: Option<&'a CrashPoint>,
    pub keep_outputs: bool,
    pub rejoins: bool,
}

/// Performs it.
pub fn perform(sandbox: &mut Sandbox, experiment: &Experiment, setting: &Setting) -> Outcome {
    let mut seen = Seen { pc: sandbox.registers().rip, ..Seen::default() };
    for change in &experiment.changes {
        match apply(sandbox, change) {
            Ok(done) => seen.add(done),
            Err(_) => return seen.outcome(Verdict::NotReached),
        }
    }
    let mut point = setting.crash.map(|point| Point::new(point, &experiment.way));
    let mut counts = vec![0; experiment.triggers.len()];
    set_stops(sandbox, experiment, point.as_ref());
    // A program that says something else never comes back, whatever its state.
    let edited = experiment.changes.iter().any(|c| matches!(c, Change::Code { .. }));
    if setting.rejoins && experiment.triggers.is_empty() && !edited {
        sandbox.end_where_it_rejoins();
    }
    let mut judge = Judge::new(setting.oracle);
    let stopped = loop {
        if seen.ended {
            break Stopped::Enough;
        }
        match sandbox.run(&mut judge) {
            Stopped::At(at) => {
                if point.as_mut().is_some_and(|point| point.see(sandbox)) {
                    set_stops(sandbox, experiment, point.as_ref());
                }
                if fire(sandbox, experiment, &mut counts, at, &mut seen).is_err() {
                    return seen.outcome(Verdict::NotReached);
                }
            }
            stopped => break stopped,
        }
    };
    let fate = point.as_ref().map_or(Death::Elsewhere, |p| p.death(sandbox, &stopped));
    let passed = point.as_ref().map(|p| p.came() && fate != Death::ThePoint);
    let unfired = experiment.triggers.iter().zip(&counts).any(|(t, n)| *n < t.nth);
    let verdict = match seen.ended {
        true => Verdict::Unjudged,
        false => judge.verdict(sandbox, &stopped, fate, passed),
    };
    let ended = matches!(stopped, Stopped::Exited(_) | Stopped::Killed { .. });
    // A run that did not do what was to be changed was not the experiment.
    let verdict = if unfired && ended { Verdict::NotReached } else { verdict };
    let outputs = [Stream::Out, Stream::Err].map(|stream| sandbox.output(stream).to_vec());
    Outcome {
        stopped: Some(stopped),
        steps: sandbox.steps(),
        outputs: setting.keep_outputs.then_some(outputs),
        ..seen.outcome(verdict)
    }
}

/// What changes came to.
#[derive(Default)]
struct Seen {
    pc: u64,
    taken: Option<bool>,
    told: Vec<Vec<u8>>,
    ended: bool,
}

impl Seen {
    fn add(&mut self, done: Done) {
        match done {
            Done::Changed => {}
            Done::Switched(taken) => self.taken = Some(taken),
            Done::Told(bytes) => self.told.push(bytes),
            Done::Ended => self.ended = true,
        }
    }

    fn outcome(self, verdict: Verdict) -> Outcome {
        let Seen { pc, taken, told, .. } = self;
        Outcome { pc, taken, told, ..Outcome::of(verdict) }
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
    seen: &mut Seen,
) -> Result<(), Unchangeable> {
    // What was made before this instruction.
    let made: Vec<bool> =
        experiment.triggers.iter().zip(&*counts).map(|(t, n)| *n >= t.nth.max(1)).collect();
    for (trigger, count) in experiment.triggers.iter().zip(counts) {
        let waits = trigger.follows.is_some_and(|other| !made.get(other).is_some_and(|made| *made));
        if trigger.pc != at || waits {
            continue;
        }
        *count += 1;
        if trigger.nth == 0 || trigger.nth == *count {
            seen.add(apply(sandbox, &trigger.change)?);
        }
    }
    Ok(())
}
