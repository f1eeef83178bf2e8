//! Every access to memory of a run, in order of time.

use position::Run;
use trace::{Instance, InstructionId, Range, SEGMENT, Time};

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// When.
    pub at: Instance,
    /// By which instruction.
    pub instruction: InstructionId,
    /// Of which thread.
    pub thread: u32,
    /// Where.
    pub range: Range,
    pub reads: bool,
    pub writes: bool,
}

/// Tells all accesses up to an instance. False if it is too late before all are told.
pub fn accesses(
    run: &Run,
    until: Instance,
    late: std::time::Instant,
    tell: &mut dyn FnMut(Access),
) -> bool {
    let trace = &run.trace;
    for span in &trace.spans.spans {
        let mut start = span.start;
        while start < span.end && start <= until.time {
            if late <= std::time::Instant::now() {
                return false;
            }
            let segment = start.0 as usize / SEGMENT;
            let end = Time(((segment + 1) * SEGMENT) as u32).min(span.end);
            let captured = trace.records.captured(segment);
            let mut from = captures_before(run, segment, start);
            for time in (start.0..end.0.min(until.time.0 + 1)).map(Time) {
                let path = trace.code.path(trace.records.path(time));
                let held = &captured[from..from + usize::from(path.captures)];
                from += usize::from(path.captures);
                for (index, op) in trace.code.ops(path).iter().enumerate() {
                    let at = Instance { time, index: index as u16 };
                    let (instruction, thread) = (op.instruction, span.thread);
                    for operand in trace.code.operands(op) {
                        let Some(range) = operand.range(held, span.bases) else { continue };
                        let (reads, writes) = (operand.access().reads, operand.access().writes);
                        tell(Access { at, instruction, thread, range, reads, writes });
                    }
                }
            }
            start = end;
        }
    }
    true
}

fn captures_before(run: &Run, segment: usize, time: Time) -> usize {
    let trace = &run.trace;
    let first = (segment * SEGMENT) as u32;
    let paths = (first..time.0).map(|t| trace.code.path(trace.records.path(Time(t))));
    paths.map(|path| usize::from(path.captures)).sum()
}

/// Does an instruction use an object rather than a variable of its own function?
pub fn is_object(run: &Run, instruction: InstructionId) -> bool {
    use iced_x86::Register;
    let i = &run.trace.code.info(instruction).instruction;
    ![Register::RSP, Register::RBP].contains(&i.memory_base())
}

/// Is it one step to everybody else?
pub fn is_atomic(run: &Run, id: InstructionId) -> bool {
    let i = &run.trace.code.info(id).instruction;
    i.has_lock_prefix() || i.mnemonic() == iced_x86::Mnemonic::Xchg
}
