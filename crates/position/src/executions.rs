//! When was a line, a function or an instruction executed?

use crate::run::Run;
use trace::{Instance, InstructionId, PathId, Time, Trace};

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
struct Shape {
    /// Places where a target begins: index and target.
    begins: Vec<(u16, u32)>,
    first: Option<u32>,
    last: Option<u32>,
    start: u64,
    end: u64,
}

/// What was last executed in an activation.
#[derive(Clone, Copy, Default)]
struct Left {
    target: Option<u32>,
    address: u64,
}

/// Goes through a run and tells every execution of a target, in order of time,
/// until `tell` has heard enough.
///
/// Control enters a line when the same activation executed another line before,
/// or jumps back to its beginning. A call made by a line does not leave it.
pub fn executions(
    run: &Run,
    targets: &Targets,
    thread: Option<u32>,
    tell: &mut dyn FnMut(u32, Instance) -> bool,
) {
    let trace = &run.trace;
    let shapes: Vec<Shape> = trace.code.paths().map(|(id, _)| shape(trace, targets, id)).collect();
    let mut left = vec![Left::default(); trace.control.frame_count()];
    for span in &trace.spans.spans {
        let skipped = thread.is_some_and(|t| t != span.thread);
        for time in (span.start.0..span.end.0).map(Time) {
            let shape = &shapes[trace.records.path(time).0 as usize];
            let frame = &mut left[trace.control.frame_of(time).0 as usize];
            let before = std::mem::replace(frame, Left { target: shape.last, address: shape.end });
            for &(index, target) in &shape.begins {
                let goes_on = index == 0
                    && !targets.each
                    && shape.first == before.target
                    && shape.start > before.address;
                if !goes_on && !skipped && !tell(target, Instance { time, index }) {
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
