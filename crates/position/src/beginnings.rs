//! Where may the executions of a line have begun that an instruction is part of?
//!
//! The head of a loop is entered in two ways: from above, where it sets its variable, and from
//! below, where it counts. What is part of the one is never part of the other, so that how often
//! each was met adds up.

use crate::executions::Shape;
use std::collections::{BTreeSet, HashMap, HashSet};
use trace::{InstructionId, PathId, Trace};

/// For each instruction of the lines that are looked for: the first ones of executions.
#[derive(Default)]
pub(crate) struct Beginnings(HashMap<InstructionId, BTreeSet<InstructionId>>);

/// What is known of a path while it is found out.
#[derive(Clone, Default)]
struct Open {
    /// Where what it begins in may have begun, if it goes on with that.
    first: BTreeSet<InstructionId>,
    /// Those that go on with what this ends in.
    next: Vec<PathId>,
}

impl Beginnings {
    /// Of paths of these shapes. `ran` says whether a path began what it begins with, and `links`
    /// which went on with what which other ended in.
    pub fn of(
        trace: &Trace,
        shapes: &[Shape],
        ran: impl Fn(PathId) -> bool,
        links: &HashSet<(PathId, PathId)>,
    ) -> Beginnings {
        let mut open = vec![Open::default(); shapes.len()];
        for (from, to) in links {
            open[from.0 as usize].next.push(*to);
        }
        let mut work: Vec<PathId> = links.iter().map(|(from, _)| *from).collect();
        while let Some(path) = work.pop() {
            let code = &trace.code;
            let ops = code.ops(code.path(path));
            let Some(last) = ops.len().checked_sub(1) else { continue };
            let at_end = begun(trace, &shapes[path.0 as usize], &open, path, last, &ran);
            for next in open[path.0 as usize].next.clone() {
                let known = &mut open[next.0 as usize].first;
                let before = known.len();
                known.extend(at_end.iter().copied());
                if known.len() > before {
                    work.push(next);
                }
            }
        }
        let mut all = Beginnings::default();
        for (n, shape) in (0..).zip(shapes).filter(|(_, shape)| !shape.begins.is_empty()) {
            let path = PathId(n);
            for (index, op) in trace.code.ops(trace.code.path(path)).iter().enumerate() {
                let from = begun(trace, shape, &open, path, index, &ran);
                all.0.entry(op.instruction).or_default().extend(from);
            }
        }
        all
    }

    /// In how many executions of a line did some instruction take part, of which `met` has how often
    /// each did?
    ///
    /// Executions that began elsewhere are others. Of those that began at one place, an
    /// instruction is in each once at most, so that there are as many as the one met most often
    /// says.
    pub fn together(&self, met: &[(InstructionId, u64)]) -> u64 {
        let mut by_beginning: HashMap<InstructionId, u64> = HashMap::new();
        for (id, times) in met {
            let from = self.0.get(id).filter(|from| from.len() == 1);
            if let Some(one) = from.and_then(BTreeSet::first) {
                let most = by_beginning.entry(*one).or_default();
                *most = (*most).max(*times);
            }
        }
        let most = met.iter().map(|(_, times)| *times).max().unwrap_or(0);
        most.max(by_beginning.values().sum())
    }
}

/// Where what a path is in at an instruction may have begun.
fn begun(
    trace: &Trace,
    shape: &Shape,
    open: &[Open],
    path: PathId,
    index: usize,
    ran: &impl Fn(PathId) -> bool,
) -> BTreeSet<InstructionId> {
    let ops = trace.code.ops(trace.code.path(path));
    let Some((begin, _)) = shape.begins.iter().rev().find(|(at, _)| usize::from(*at) <= index)
    else {
        return BTreeSet::new();
    };
    let own = || ops[usize::from(*begin)].instruction;
    match begin {
        0 => {
            let mut from = open[path.0 as usize].first.clone();
            from.extend(ran(path).then(own));
            from
        }
        _ => BTreeSet::from([own()]),
    }
}
