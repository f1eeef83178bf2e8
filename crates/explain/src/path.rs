//! The causal path: from the failure back to its cause, line by line.

use crate::options;
use crate::ranking::{Helping, Lines, Suspected};
use crate::spots::Spots;
use locate::Failure;
use position::Run;
use report::{Step, StepLink as Link};
use slice::{Node, Slicer};
use trace::{Flow, Instance, InstructionId};

/// So many steps are told, if not all are wanted.
const TOLD: usize = 8;

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

/// The way from the failure to the branch that helps, else to the most suspect line
/// that is farthest back.
pub fn path(
    run: &Run,
    slicer: &Slicer<'_>,
    failure: &Failure,
    helping: &[Helping<'_>],
    suspects: &[Suspected],
    full: bool,
) -> Vec<Taken> {
    let of = Lines::of(run, false);
    let group = |at: Instance, id: InstructionId| of.group(at, id);
    let tree = slicer.tree(&failure.starts, &options(run), &group);
    let mut way: Vec<Node> = Vec::new();
    let goals = helping.iter().map(|h| h.predicate.instance);
    let farthest = suspects.iter().take(5).map(|s| s.at).min();
    for goal in goals.chain(farthest) {
        way = tree.way(goal);
        if !way.is_empty() {
            break;
        }
    }
    way.reverse();
    let steps = steps(run, &of, &way);
    if full { steps } else { shortened(steps) }
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

/// The beginning and the end, with what lies between left out.
fn shortened(mut steps: Vec<Taken>) -> Vec<Taken> {
    if steps.len() > TOLD {
        let end = steps.split_off(steps.len() - TOLD / 2);
        steps.truncate(TOLD / 2);
        steps.extend(end);
    }
    steps
}
