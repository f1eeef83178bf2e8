//! The causal path: from the failure back to its cause, line by line.

use crate::options;
use crate::ranking::{Ranking, Suspected};
use crate::spots::Spots;
use crate::ways::{Lines, Ways};
use position::{PlaceId, Run};
use report::{Step, StepLink as Link};
use slice::{Node, Options, Slicer, Start};
use std::collections::HashSet;
use std::time::Instant;
use trace::{Flow, Instance, InstructionId};

/// So many steps are told, if not all are wanted.
const TOLD: usize = 8;
/// The way leads to one of so many suspects.
const GOALS: usize = 8;

/// So many reasons of reasons are told.
const BECAUSE: usize = 6;

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

/// The way from a value to a line that it comes from.
pub fn between(
    run: &Run,
    slicer: &Slicer<'_>,
    start: &Start,
    goal: Option<PlaceId>,
    late: Instant,
) -> Vec<Taken> {
    let of = Lines::of(run, false);
    let within = Options { control: false, until: Some(late), ..options(run) };
    let group = |at: Instance, id: InstructionId| of.group(at, id);
    let tree = slicer.tree(std::slice::from_ref(start), &within, &group);
    let mut way = goal.map(|goal| tree.way_from_group(goal.0)).unwrap_or_default();
    way.reverse();
    steps(run, &of, &way)
}

/// Why an instance happened: what decided that, and what decided what was decided by.
pub fn because(run: &Run, slicer: &Slicer<'_>, at: Instance, late: Instant) -> Vec<Taken> {
    let within = Options { control: false, addresses: false, until: Some(late), ..options(run) };
    let mut steps = vec![Taken { at, link: Link::Value, folded: 1 }];
    let mut next = Some(at);
    while let Some(at) = next.filter(|_| steps.len() < BECAUSE) {
        let Some(parent) = decided(run, at) else { break };
        steps.push(Taken { at: parent, link: decides(run, parent), folded: 1 });
        let source = said(run, slicer, parent, &within);
        steps.extend(source.map(|at| Taken { at, link: Link::Value, folded: 1 }));
        next = source.or(Some(parent));
    }
    steps
}

/// What decided that an instance happened, in another line: how often a loop ran before tells
/// nothing.
fn decided(run: &Run, at: Instance) -> Option<Instance> {
    let place = |at| run.places.at(run.trace.instruction(at));
    let mut next = at;
    loop {
        let parent = run.trace.parent(next).and_then(|parent| run.own_instance(parent))?;
        if parent >= next {
            return None;
        }
        if place(parent) != place(at) {
            return Some(parent);
        }
        next = parent;
    }
}

/// The constant that a branch went by, if it comes from another line.
fn said(run: &Run, slicer: &Slicer<'_>, branch: Instance, within: &Options) -> Option<Instance> {
    let place = |at| run.places.at(run.trace.instruction(at));
    if run.trace.code.info(run.trace.instruction(branch)).flow != Flow::Branch {
        return None;
    }
    let tree = slicer.tree(&[Start::Instance(branch)], within, &|_, _| None);
    let nodes = tree.nodes();
    let used: HashSet<u32> = nodes.iter().filter_map(|node| node.towards).collect();
    let ends = nodes.iter().enumerate().filter(|(n, _)| !used.contains(&(*n as u32)));
    let own = ends.map(|(_, node)| node.at).filter(|at| run.is_own(run.trace.instruction(*at)));
    own.max().filter(|at| place(*at) != place(branch))
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
    decides(run, source)
}

/// How an instance decides that another one happens.
fn decides(run: &Run, at: Instance) -> Link {
    match run.trace.code.info(run.trace.instruction(at)).flow {
        Flow::Call => Link::Call,
        _ => Link::Control,
    }
}

/// The beginning, the end, and what is most suspect between them.
pub fn shortened(steps: Vec<Taken>, weight: &dyn Fn(Instance) -> f64) -> Vec<Taken> {
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
