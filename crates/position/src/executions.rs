//! When was a line, a function or an instruction executed?

use crate::run::Run;
use trace::{FrameId, Instance, InstructionId, PathId, Time, Trace};

/// Which instructions belong to what is looked for.
pub struct Targets {
    /// By instruction: the number of a target.
    of: Vec<Option<u32>>,
    /// Is an execution every instance of every instruction, rather than an entry
    /// to a group of them?
    pub each: bool,
}

impl Targets {
    /// Instructions at one of these addresses are target 0.
    pub fn addresses(trace: &Trace, is_meant: impl Fn(u64) -> bool, each: bool) -> Targets {
        let number = |info: &trace::Info| is_meant(info.address()).then_some(0);
        let of = trace.code.instructions().map(|(_, info)| number(info)).collect();
        Targets { of, each }
    }

    /// Groups of instructions by number.
    pub fn groups(trace: &Trace, number: impl Fn(InstructionId) -> Option<u32>) -> Targets {
        let of = trace.code.instructions().map(|(id, _)| number(id)).collect();
        Targets { of, each: false }
    }

    /// The target that an instruction belongs to.
    pub fn of(&self, instruction: InstructionId) -> Option<u32> {
        self.of[instruction.0 as usize]
    }
}

/// What a path does with targets.
#[derive(Clone, Default)]
pub(crate) struct Shape {
    /// Places where a target begins: index and target.
    pub begins: Vec<(u16, u32)>,
    first: Option<u32>,
    last: Option<u32>,
    start: u64,
    end: u64,
}

/// What was last executed in an activation.
#[derive(Clone, Copy)]
struct Left {
    target: Option<u32>,
    address: u64,
    path: PathId,
}

/// Knows, record by record from the first on, where targets begin.
///
/// Control enters a line when the same activation executed another line before,
/// or jumps back to its beginning. A call made by a line does not leave it.
pub(crate) struct Arrivals {
    pub shapes: Vec<Shape>,
    left: Vec<Left>,
    /// Are all instances looked for, rather than entries?
    each: bool,
}

impl Arrivals {
    pub fn new(trace: &Trace, targets: &Targets) -> Arrivals {
        let shapes = trace.code.paths().map(|(id, _)| shape(trace, targets, id)).collect();
        let nothing = Left { target: None, address: 0, path: PathId(0) };
        let left = vec![nothing; trace.control.frame_count()];
        Arrivals { shapes, left, each: targets.each }
    }

    /// An activation runs a path. If it goes on with a target, which then does not begin with the
    /// path: the path that it goes on from.
    #[inline]
    pub fn goes_on(&mut self, path: PathId, frame: FrameId) -> Option<PathId> {
        let shape = &self.shapes[path.0 as usize];
        let left = Left { target: shape.last, address: shape.end, path };
        let before = std::mem::replace(&mut self.left[frame.0 as usize], left);
        let goes_on = !self.each
            && shape.first.is_some()
            && shape.first == before.target
            && shape.start > before.address;
        goes_on.then_some(before.path)
    }
}

/// Goes through a run and tells every execution of a target, in order of time,
/// until `tell` has heard enough.
pub fn executions(
    run: &Run,
    targets: &Targets,
    thread: Option<u32>,
    tell: &mut dyn FnMut(u32, Instance) -> bool,
) {
    let trace = &run.trace;
    let mut arrivals = Arrivals::new(trace, targets);
    let mut frames = trace.control.frames_from(Time::START);
    for span in &trace.spans.spans {
        let skipped = thread.is_some_and(|t| t != span.thread);
        for (time, frame) in frames.by_ref().take((span.end.0 - span.start.0) as usize) {
            let path = trace.records.path(time);
            let known = usize::from(arrivals.goes_on(path, frame).is_some());
            if skipped {
                continue;
            }
            for &(index, target) in &arrivals.shapes[path.0 as usize].begins[known..] {
                if !tell(target, Instance { time, index }) {
                    return;
                }
            }
        }
    }
}

fn shape(trace: &Trace, targets: &Targets, id: PathId) -> Shape {
    let code = &trace.code;
    let path = code.path(id);
    let ops: Vec<_> = code.ops(path).iter().chain(code.faulting(path)).collect();
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return Shape::default() };
    let mut shape = Shape {
        first: targets.of(first.instruction),
        last: targets.of(last.instruction),
        start: code.info(first.instruction).address(),
        end: code.info(last.instruction).address(),
        ..Shape::default()
    };
    let mut before = None;
    for (n, op) in ops.iter().enumerate() {
        let here = targets.of(op.instruction);
        if let Some(target) = here
            && (targets.each || n == 0 || here != before)
        {
            shape.begins.push((n as u16, target));
        }
        before = here;
    }
    shape
}

/// The instructions that one execution of a line ran, calls not included. The
/// line's own instructions are told by `is_inside`.
pub fn statement(
    run: &Run,
    first: Instance,
    is_inside: impl Fn(InstructionId) -> bool,
) -> Vec<Instance> {
    let trace = &run.trace;
    let (frame, thread) = (trace.control.frame_of(first.time), trace.thread(first.time));
    let mut found: Vec<Instance> = Vec::new();
    let mut last = 0;
    for time in (first.time.0..trace.records.len()).map(Time) {
        if trace.control.frame_of(time) != frame {
            if !run.is_active(frame, time, thread) {
                break;
            }
            continue;
        }
        let path = trace.code.path(trace.records.path(time));
        let ops = trace.code.ops(path).iter().chain(trace.code.faulting(path)).enumerate();
        let skip = if time == first.time { usize::from(first.index) } else { 0 };
        for (index, op) in ops.skip(skip) {
            let address = trace.code.info(op.instruction).address();
            let back = index == 0 && !found.is_empty() && address <= last;
            if !is_inside(op.instruction) || back {
                return found;
            }
            last = address;
            found.push(Instance { time, index: index as u16 });
        }
    }
    found
}

/// The same, for the line that an instance belongs to.
pub fn statement_at(run: &Run, first: Instance) -> Vec<Instance> {
    let place = run.places.at(run.trace.instruction(first));
    if place.is_none() {
        return vec![first];
    }
    statement(run, first, |id| run.places.at(id) == place)
}
