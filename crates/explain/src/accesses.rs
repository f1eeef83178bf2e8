//! Every access to memory of a run, in order of time.

use position::Run;
use program::effects::{self, Cells};
use trace::{Captured, Code, Instance, InstructionId, Operand, Path, Range, SEGMENT, Time, Whole};

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

/// The registers that an instance's accesses of some kind found their memory by.
pub fn found_by(run: &Run, at: Instance, wanted: fn(&effects::Access) -> bool) -> Cells {
    let info = run.trace.code.info(run.trace.instruction(at));
    let accesses = info.accesses.iter().filter(|access| wanted(access));
    accesses.fold(Cells::NONE, |all, access| all.union(access.address.registers()))
}

/// What records captured, in any order within a segment: where each record's values begin is
/// found out once for all of a segment. Threads that take short turns ask for the same one
/// again and again.
pub struct Reader<'a> {
    run: &'a Run,
    segment: Option<(usize, Whole<'a>)>,
    /// Where the values of each record of the segment begin, and where the last ones end.
    starts: Vec<u32>,
}

impl<'a> Reader<'a> {
    /// Has not read anything.
    pub fn new(run: &'a Run) -> Reader<'a> {
        Reader { run, segment: None, starts: Vec::new() }
    }

    /// What a record captured.
    pub fn captured(&mut self, time: Time) -> Captured<'_> {
        let (segment, within) = (time.0 as usize / SEGMENT, time.0 as usize % SEGMENT);
        if self.segment.as_ref().is_none_or(|(known, _)| *known != segment) {
            self.read(segment);
        }
        let all = &self.segment.as_ref().expect("just read").1;
        all.all().range(self.starts[within] as usize..self.starts[within + 1] as usize)
    }

    /// The memory that an instance read by itself.
    pub fn loaded(&mut self, at: Instance) -> Vec<Range> {
        let trace = &self.run.trace;
        let bases = trace.spans.at(at.time).bases;
        let path = trace.code.path(trace.records.path(at.time));
        let Some(op) = trace.code.ops(path).get(usize::from(at.index)) else {
            return trace.loaded(at);
        };
        let held = self.captured(at.time);
        let reads = trace.code.operands(op).iter().filter(|operand| operand.access().reads);
        let ranges: Option<Vec<Range>> = reads.map(|operand| operand.range(held, bases)).collect();
        // The elements of a gather are kept elsewhere.
        ranges.unwrap_or_else(|| trace.loaded(at))
    }

    fn read(&mut self, segment: usize) {
        let trace = &self.run.trace;
        let mut end = 0;
        self.starts.clear();
        self.starts.push(0);
        for path in trace.records.paths_of(segment) {
            end += u32::from(trace.code.path(*path).captures);
            self.starts.push(end);
        }
        self.segment = Some((segment, trace.records.captured(segment)));
    }
}

/// After so many records it is asked whether it is too late.
const PATIENCE: u32 = 1 << 14;

/// An operand in memory of a path's instruction.
struct Touch<'a> {
    index: u16,
    instruction: InstructionId,
    operand: &'a Operand,
}

fn touches<'a>(code: &'a Code, path: &Path) -> Vec<Touch<'a>> {
    let ops = code.ops(path).iter().enumerate();
    let touches = ops.flat_map(|(index, op)| {
        let (index, instruction) = (index as u16, op.instruction);
        code.operands(op).iter().map(move |operand| Touch { index, instruction, operand })
    });
    touches.collect()
}

/// Tells all accesses up to an instance. False if it is too late before all are told.
pub fn accesses(
    run: &Run,
    until: Instance,
    late: std::time::Instant,
    tell: &mut dyn FnMut(Access),
) -> bool {
    let trace = &run.trace;
    let mut reader = Reader::new(run);
    let paths: Vec<Vec<Touch<'_>>> =
        trace.code.paths().map(|(_, path)| touches(&trace.code, path)).collect();
    for span in &trace.spans.spans {
        for time in (span.start.0..span.end.0.min(until.time.0 + 1)).map(Time) {
            if time.0.is_multiple_of(PATIENCE) && late <= std::time::Instant::now() {
                return false;
            }
            let held = reader.captured(time);
            for touch in &paths[trace.records.path(time).0 as usize] {
                let Some(range) = touch.operand.range(held, span.bases) else { continue };
                let at = Instance { time, index: touch.index };
                let (instruction, thread) = (touch.instruction, span.thread);
                let (reads, writes) = (touch.operand.access().reads, touch.operand.access().writes);
                tell(Access { at, instruction, thread, range, reads, writes });
            }
        }
    }
    true
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
