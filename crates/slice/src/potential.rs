//! Potential dependences, for relevant slices: a branch between a definition and
//! its use that, had it gone the other way, might have defined the same thing.

use crate::aside::{Region, Regions, within};
use crate::follow::Follow;
use crate::sweep::{Record, Sweep};
use crate::unrun::{RBP, RSP};
use std::collections::HashMap;
use trace::{Flow, FrameId, Instance, Op, PathId, Trace};

/// How far below the stack pointer other functions may have their frames.
const STACK: u64 = 8 << 20;

/// What a walk knows that looks for potential dependences.
#[derive(Default)]
pub(crate) struct Potential {
    regions: Regions,
    /// Where each thread went on behind the record that is met.
    pub next: HashMap<u32, u64>,
    /// Where activations of functions found the stack pointer.
    entries: HashMap<(FrameId, u64), u64>,
    /// What paths say about that.
    sights: HashMap<PathId, Vec<Sight>>,
}

/// An operand that tells where the stack pointer was at a function's entry.
#[derive(Clone, Copy)]
struct Sight {
    function: u64,
    op: usize,
    operand: usize,
    /// How far the operand is below it.
    below: i64,
}

impl Potential {
    fn sights(&mut self, trace: &Trace, path: PathId) -> &[Sight] {
        let regions = &mut self.regions;
        self.sights.entry(path).or_insert_with(|| sights(trace, regions, path))
    }

    /// Learns where the frames of a record lie.
    fn learn(&mut self, trace: &Trace, record: &Record) {
        let frame = trace.control.frame_of(record.time);
        let ops = trace.code.ops(trace.code.path(record.path));
        for n in 0..self.sights(trace, record.path).len() {
            let sight = self.sights[&record.path][n];
            let at = &trace.code.operands(&ops[sight.op])[sight.operand];
            if let Some(address) = at.address(record.captured, record.bases) {
                let entry = address.wrapping_add(sight.below as u64);
                self.entries.entry((frame, sight.function)).or_insert(entry);
            }
        }
    }
}

/// One for each function that a path has code of.
fn sights(trace: &Trace, regions: &mut Regions, path: PathId) -> Vec<Sight> {
    let mut found: Vec<Sight> = Vec::new();
    for (n, op) in trace.code.ops(trace.code.path(path)).iter().enumerate() {
        let address = trace.code.info(op.instruction).address();
        let Some(function) = trace.function_of(address) else { continue };
        if found.iter().any(|sight| sight.function == function) {
            continue;
        }
        let Some(depth) = regions.depth(trace, function, address) else { continue };
        let below = |o: &trace::Operand| {
            let address = &o.access().address;
            let base = match address.base.filter(|_| address.index.is_none())? {
                RSP => depth.stack?,
                RBP => depth.frame?,
                _ => return None,
            };
            Some(base - address.displacement)
        };
        let operands = trace.code.operands(op).iter().enumerate();
        let Some((operand, below)) = operands.filter_map(|(n, o)| Some((n, below(o)?))).next()
        else {
            continue;
        };
        found.push(Sight { function, op: n, operand, below });
    }
    found
}

impl<F: Follow> Sweep<'_, F> {
    /// A record is about to be met: learns where its frame lies.
    pub(crate) fn learn_frame(&mut self, record: &Record) {
        if let Some(potential) = &mut self.potential {
            potential.learn(self.trace, record);
        }
    }

    /// A record was met: its thread went on there.
    pub(crate) fn leave_record(&mut self, record: &Record, thread: u32) {
        let code = &self.trace.code;
        if let Some(potential) = &mut self.potential {
            potential.next.insert(thread, code.start(code.path(record.path)));
        }
    }

    /// A branch that might have defined something wanted is wanted too.
    pub(crate) fn look_aside(&mut self, record: &Record, op: &Op, at: Instance, thread: u32) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        if !matches!(info.flow, Flow::Branch | Flow::Indirect) {
            return;
        }
        let Some(potential) = &mut self.potential else { return };
        let path = trace.code.path(record.path);
        let went =
            within(&trace.code, path, at.index).or_else(|| potential.next.get(&thread).copied());
        let missed = potential.regions.missed(trace, &info.instruction, info.flow, went);
        let Some(missed) = missed else { return };
        let frame = trace.control.frame_of(record.time);
        let entry = potential.entries.get(&(frame, missed.function)).copied();
        let marks = missed.ways.iter().filter_map(|region| self.might_define(region, entry));
        let marks: Vec<F::Mark> = marks.collect();
        let Some(mark) = marks.into_iter().reduce(|a, b| self.follow.join(a, b)) else { return };
        if self.is_demanded(at) || at < self.from {
            return;
        }
        self.follow.potential(at, op.instruction);
        self.want_branch(Some(at), mark);
    }

    /// The marks of all that is wanted and a region might define, joined. `entry` is where the
    /// stack pointer was when its function was entered.
    fn might_define(&mut self, region: &Region, entry: Option<u64>) -> Option<F::Mark> {
        let hit = region.cells.intersection(self.thread.wanted.cells);
        let mut mark = self.thread.wanted.joined(hit, self.follow);
        let in_frame = !region.frame.is_empty() || region.below.is_some();
        if region.anywhere || (in_frame && entry.is_none()) {
            let any = self.memory.joined_all(self.follow);
            return either(mark, any, self.follow);
        }
        let entry = entry.unwrap_or_default();
        let placed = region.frame.iter().map(|(at, len)| (entry.wrapping_add(*at as u64), *len));
        let below = region.below.map(|at| {
            let top = entry.wrapping_add(at as u64);
            (top.saturating_sub(STACK), STACK.min(top))
        });
        for (start, len) in placed.chain(region.fixed.iter().copied()).chain(below) {
            if self.memory.has_nearby(start, len) {
                for (_, hit) in self.memory.hits(start, len) {
                    mark = either(mark, Some(hit), self.follow);
                }
            }
        }
        mark
    }
}

fn either<F: Follow>(a: Option<F::Mark>, b: Option<F::Mark>, follow: &mut F) -> Option<F::Mark> {
    match (a, b) {
        (Some(a), Some(b)) => Some(follow.join(a, b)),
        (a, b) => a.or(b),
    }
}
