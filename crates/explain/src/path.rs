//! The causal path: from the failure back to its cause, line by line.

use crate::ranking::{Ranking, Suspected};
use crate::spots::Spots;
use crate::ways::{Lines, Ways};
use position::{PlaceId, Run};
use report::{Step, StepLink as Link};
use slice::Node;
use std::collections::HashSet;
use trace::{Flow, Instance};

/// So many steps are told, if not all are wanted.
const TOLD: usize = 8;
/// The way leads to one of so many suspects.
const GOALS: usize = 8;

/// A step before it is shown.
pub struct Taken {
    /// Where.
    pub at: Instance,
    link: Link,
    folded: u64,
}

impl Taken {
    /// As people see it.
    pub fn shown(&self, spots: &Spots<'_>) -> Step {
        Step { spot: spots.get(self.at), link: self.link, folded: self.folded }
    }
}

/// The way from the failure to one of the most suspect lines, past as much suspicion as
/// possible.
pub fn path(
    run: &Run,
    ways: &Ways<'_>,
    ranking: &Ranking,
    suspects: &[Suspected],
    full: bool,
) -> Vec<Taken> {
    let of = Lines::of(run, false);
    let trees = [&ways.values, &ways.data, &ways.all];
    let place = |at: Instance| ways.place(run, at);
    let weight = |at: Instance| place(at).map_or(0.0, |place| ranking.score(place));
    let goals: Vec<PlaceId> = suspects.iter().take(GOALS).filter_map(|s| place(s.at)).collect();
    let ways = goals.iter().flat_map(|goal| trees.iter().map(|t| t.way_from_group(goal.0)));
    let told = ways.map(|mut way| {
        way.reverse();
        let steps = steps(run, &of, &way);
        if full { steps } else { shortened(steps, &weight) }
    });
    let mut best: (f64, Vec<Taken>) = (f64::MIN, Vec::new());
    for steps in told {
        let lines: HashSet<Option<PlaceId>> = steps.iter().map(|s| place(s.at)).collect();
        let suspicion: f64 = lines.iter().flatten().map(|place| ranking.score(*place)).sum();
        // A long way is harder to read.
        let worth = suspicion - 0.2 * steps.len() as f64;
        if worth > best.0 && !steps.is_empty() {
            best = (worth, steps);
        }
    }
    best.1
}

/// Instances become lines; the same line several times in a row is one step.
fn steps(run: &Run, of: &Lines<'_>, way: &[Node]) -> Vec<Taken> {
    let line_of = |at: Instance| of.group(at, run.trace.instruction(at)).map(|g| g.number);
    let mut steps: Vec<Taken> = Vec::new();
    let mut before: Option<Instance> = None;
    for node in way {
        let Some(line) = line_of(node.at) else { continue };
        let link = before.map_or(Link::Value, |user| link(run, user, node.at));
        before = Some(node.at);
        let own = run.own_instance(node.at).unwrap_or(node.at);
        match steps.last_mut() {
            Some(last) if line_of(last.at) == Some(line) => {
                let same = run.trace.control.frame_of(last.at.time)
                    == run.trace.control.frame_of(own.time);
                let again = last.at.time != own.time || !same;
                last.folded +=
                    u64::from(again && own < last.at && is_branch_apart(run, own, last.at));
            }
            _ => steps.push(Taken { at: own, link, folded: 1 }),
        }
    }
    steps
}

/// Do two instances belong to different executions of a line? They do if the line
/// was left in between, which takes more than a few records.
fn is_branch_apart(run: &Run, earlier: Instance, later: Instance) -> bool {
    let id = run.trace.instruction(earlier);
    id == run.trace.instruction(later)
}

fn link(run: &Run, user: Instance, source: Instance) -> Link {
    if run.trace.parent(user) != Some(source) {
        return Link::Value;
    }
    match run.trace.code.info(run.trace.instruction(source)).flow {
        Flow::Call => Link::Call,
        _ => Link::Control,
    }
}

/// The beginning, the end, and what is most suspect between them.
fn shortened(steps: Vec<Taken>, weight: &dyn Fn(Instance) -> f64) -> Vec<Taken> {
    if steps.len() <= TOLD {
        return steps;
    }
    let last = steps.len() - 1;
    let mut between: Vec<usize> = (1..last).collect();
    between.sort_by(|a, b| weight(steps[*b].at).total_cmp(&weight(steps[*a].at)).then(a.cmp(b)));
    between.truncate(TOLD - 2);
    let is_told = |n: usize| n == 0 || n == last || between.contains(&n);
    steps.into_iter().enumerate().filter(|(n, _)| is_told(*n)).map(|(_, step)| step).collect()
}
