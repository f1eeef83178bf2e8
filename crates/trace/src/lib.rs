//! What happened, instant by instant: the whole-execution trace and its queries.
//!
//! A trace has a static side, the [`Code`] that ran, and a dynamic one, the
//! [`Records`]: which path ran when, with the registers from which every address
//! follows. [`Control`] adds why each record ran. Values are not kept: a replay
//! gives them.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! let trace = trace::Trace::open(&recording, &mut |_| ())?;
//! println!("{} instructions", trace.records.instructions());
//! # Ok(())
//! # }
//! ```

mod batch;
mod builder;
mod captured;
mod code;
mod control;
mod decoding;
mod graph;
mod images;
mod later;
mod numbers;
mod objects;
mod packed;
mod records;
mod room;
mod spans;
mod stored;
mod walk;
mod writes;

pub use captured::{Captured, Whole};
pub use code::{Bases, Code, Flow, Info, InstructionId, Linear, Op, Operand, Path, PathId, Range};
pub use control::{Control, Frame, FrameId, Instance, Parent};
pub use engine::is_address;
pub use engine::trace::{Call, Descriptor, DescriptorKind, Ended, Event, Mapped};
pub use images::{Image, Images, program_of};
pub use later::Later;
pub use objects::{Direction, Moves, ObjectId, Objects, Transfer};
pub use packed::Guess;
pub use records::{Records, SEGMENT, Segment, Time};
pub use spans::{CallSite, SignalSite, Span, Spans};
pub use walk::Walk;
pub use writes::Write;

use builder::{Builder, Targets};
use engine::trace::Leaving;
use images::Contents;
use program::debug::Program;
use recording::Recording;
use std::sync::Arc;
use stored::{Parts, View};

/// Why a trace cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replay failed.
    #[error("the run cannot be traced")]
    Engine(#[from] engine::Error),
    /// There is not memory enough.
    #[error(
        "the run is too long to be traced: {} instructions took {} GiB and it was not over; ask a \
         part of it, made by `why cut`",
        instructions, bytes >> 30
    )]
    TooLong {
        /// How many were traced.
        instructions: u64,
        /// How much memory that took.
        bytes: u64,
    },
}

mishap::mishaps! { Error {
    Error::TooLong { .. } = Error::TooLong { instructions: 5_000_000_000, bytes: 17 << 30 } =>
        "A trace has every instruction of the run, and there is not memory enough for so many.",
        "Make a recording of a part of it (`why cut REC --from @N --to @M -o DIR`) and ask that, or \
         let `why explain` choose a part.";
} passes on { Error::Engine(_) } }

/// A whole execution.
pub struct Trace {
    /// The code that ran.
    pub code: Arc<Code>,
    /// What ran when.
    pub records: Arc<Records>,
    /// What happened between records: before the record of that number.
    pub events: Arc<[(Time, Event)]>,
    /// Why it ran. What must be known of that beforehand is found beside all else.
    pub control: Later<Control>,
    /// The files the code came from.
    pub images: Images,
    /// What those say about symbols and lines.
    pub program: Arc<Program>,
    /// Who ran when.
    pub spans: Spans,
    /// What passed through the kernel.
    pub objects: Objects,
    /// Where control could go.
    pub graph: Arc<program::flow::Flow>,
    /// How it ended.
    pub ended: Ended,
    targets: Targets,
    /// The process that traced, which may still be at keeping what it translated. It ends before
    /// this does.
    _traced: Option<Leaving>,
}

impl Trace {
    /// Replays a recording and keeps what happened. `progress` is told how many
    /// instructions have been traced.
    ///
    /// The process must not have other threads, since it forks: no trace may be there that has not
    /// [settled](Trace::settle). The new one has not, either.
    pub fn build(recording: &Recording, progress: &mut dyn FnMut(u64)) -> Result<Trace, Error> {
        Trace::build_within(recording, records::PLAIN_BYTES, progress)
    }

    /// The same, with captured registers beyond `limit` bytes packed: less memory,
    /// slower answers.
    pub fn build_within(
        recording: &Recording,
        limit: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Trace, Error> {
        Trace::read(recording, Builder::new(Contents::of(recording), limit, progress))
    }

    /// The trace of a part of a run: from the instant on at which so many instructions
    /// have been executed, to another and a little further. Instructions are numbered as in
    /// the whole run; how often a line was executed before is not known.
    pub fn build_part(
        recording: &Recording,
        part: std::ops::Range<u64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Trace, Error> {
        let contents = Contents::of(recording);
        let builder = Builder::new(contents, records::PLAIN_BYTES, progress);
        Trace::read(recording, builder.after(part.start).until(part.end))
    }

    fn read(recording: &Recording, mut builder: Builder<'_>) -> Result<Trace, Error> {
        engine::large::generous_heaps();
        let from = builder.records.before();
        let (ended, leaving) = engine::trace::trace_from(recording, from, &mut builder)?;
        if let Some((instructions, bytes)) = builder.too_much() {
            return Err(Error::TooLong { instructions, bytes });
        }
        let trace = Trace::of(recording, builder.finish(ended));
        Ok(Trace { _traced: leaving, ..trace })
    }

    /// The trace that is kept with a recording, else a new one. That is not kept by
    /// itself: storing takes a good part of the time that tracing does, and loading saves hardly any.
    pub fn open(recording: &Recording, progress: &mut dyn FnMut(u64)) -> Result<Trace, Error> {
        if let Some(trace) = Trace::load(recording) {
            return Ok(trace);
        }
        Trace::build(recording, progress)
    }

    /// The trace that is kept with a recording, if there is one that can be used.
    pub fn load(recording: &Recording) -> Option<Trace> {
        stored::load(recording).map(|parts| Trace::of(recording, parts))
    }

    /// Keeps the trace with its recording. Returns how many bytes it takes.
    pub fn store(&self, recording: &Recording) -> std::io::Result<u64> {
        let Trace { code, records, events, targets, ended, .. } = self;
        stored::store(recording, &View { code, records, events, targets, ended: *ended })
    }

    /// Bytes of the trace that is kept with a recording.
    pub fn stored_size(recording: &Recording) -> Option<u64> {
        std::fs::metadata(recording.derived(stored::NAME)).ok().map(|m| m.len())
    }

    /// Bytes that the records would take if they were told by another guess.
    pub fn packed_size(&self, guess: Guess) -> std::io::Result<u64> {
        stored::packed_size(&self.records, guess)
    }

    /// Was the run traced from its first instruction on?
    pub fn is_from_start(&self) -> bool {
        self.records.before() == 0
    }

    /// Was all of the run traced?
    pub fn is_whole(&self) -> bool {
        self.is_from_start() && self.ended.complete
    }

    fn of(recording: &Recording, parts: Parts) -> Trace {
        let Parts { code, records, events, contents, targets, ended } = parts;
        let images = Images::of(contents, &events);
        let program = Arc::new(images::program(&images));
        let graph = Arc::new(graph::discover(&code, &images, &program, &targets));
        let (code, records, events) = (Arc::new(code), Arc::new(records), Arc::from(events));
        let control = find_control(&code, &records, &events, &graph);
        let spans = Spans::find(&code, &records, &events);
        let files = recording.root().join("files");
        let size = |file: &str| files.join(file).metadata().ok().map(|m| m.len());
        let objects = Objects::find(&events, &spans, &size);
        Trace {
            code,
            records,
            events,
            control,
            images,
            program,
            spans,
            objects,
            graph,
            ended,
            targets,
            _traced: None,
        }
    }

    /// Waits for what is found beside everything else. From then on no other thread is at work,
    /// and the process may fork.
    pub fn settle(&self) {
        let _: &Control = &self.control;
    }

    /// The last instruction that was executed, or the one that faulted.
    pub fn last_instance(&self) -> Instance {
        let time = Time(self.records.len().saturating_sub(1));
        let path = self.code.path(self.records.path(time));
        let index = if path.faults { path.len } else { path.len.saturating_sub(1) };
        Instance { time, index }
    }

    /// Entry of the function that code belongs to.
    pub fn function_of(&self, address: u64) -> Option<u64> {
        self.graph.function_of(address)
    }

    /// Addresses of the elements of a gather.
    pub fn gathered(&self, time: Time) -> &[u64] {
        let from = self.events.partition_point(|(at, _)| *at < time);
        let here = self.events[from..].iter().take_while(|(at, _)| *at == time);
        let gather = here.filter_map(|(_, event)| match event {
            Event::Gather(addresses) => Some(&addresses[..]),
            _ => None,
        });
        gather.last().unwrap_or(&[])
    }

    /// How many instructions were executed before an instance.
    pub fn number(&self, at: Instance) -> u64 {
        self.records.instructions_before(&self.code, at.time) + u64::from(at.index)
    }

    /// The instruction that raised an exception after so many were executed. It was not
    /// executed itself, so the first of the handler has the same number.
    pub fn fault_at_number(&self, number: u64) -> Option<Instance> {
        let behind = self.at_number(number).filter(|at| at.index == 0)?;
        let time = Time(behind.time.0.checked_sub(1)?);
        let path = self.code.path(self.records.path(time));
        path.faults.then_some(Instance { time, index: path.len })
    }

    /// The instance that so many instructions were executed before.
    pub fn at_number(&self, number: u64) -> Option<Instance> {
        let segments = self.records.segments();
        let n = segments.partition_point(|s| s.instructions <= number).checked_sub(1)?;
        let mut left = number - segments[n].instructions;
        for (within, path) in self.records.paths_of(n).iter().enumerate() {
            let len = u64::from(self.code.path(*path).len);
            if left < len {
                let time = Time((n * SEGMENT + within) as u32);
                return Some(Instance { time, index: left as u16 });
            }
            left -= len;
        }
        None
    }

    /// What the records of a record's segment captured, and which of that is its own.
    pub fn captured(&self, at: Time) -> (Whole<'_>, std::ops::Range<usize>) {
        let before = self.records.captured_before(&self.code, at);
        let captures = usize::from(self.code.path(self.records.path(at)).captures);
        (self.records.captured(at.0 as usize / SEGMENT), before..before + captures)
    }

    /// The memory that an instance wrote by itself, not by the kernel's help.
    pub fn stored(&self, at: Instance) -> Vec<Range> {
        self.touched(at, |access| access.writes)
    }

    /// The memory that an instance read by itself.
    pub fn loaded(&self, at: Instance) -> Vec<Range> {
        self.touched(at, |access| access.reads)
    }

    fn touched(&self, at: Instance, wanted: fn(&program::effects::Access) -> bool) -> Vec<Range> {
        let (whole, own) = self.captured(at.time);
        let captured = whole.all().range(own);
        let bases = self.spans.at(at.time).bases;
        let Some(op) = self.op(at) else { return Vec::new() };
        let operands = self.code.operands(op).iter().filter(|o| wanted(o.access()));
        let sized = |operand: &Operand| u64::from(operand.access().size);
        operands
            .flat_map(|operand| match operand.range(captured, bases) {
                Some(range) => vec![range],
                None => {
                    let elements = self.gathered(at.time).iter();
                    elements.map(|start| Range { start: *start, len: sized(operand) }).collect()
                }
            })
            .collect()
    }

    fn op(&self, at: Instance) -> Option<&Op> {
        let path = self.code.path(self.records.path(at.time));
        self.code.ops(path).get(usize::from(at.index)).or(self.code.faulting(path))
    }

    /// Bytes that the trace takes in memory, not counting the program's files.
    pub fn size(&self) -> u64 {
        self.records.size() + self.control.size()
    }

    /// Every instruction that was executed.
    pub fn executed(&self) -> Vec<InstructionId> {
        let paths = self.records.ran().iter().map(|id| self.code.path(*id));
        let ids = paths.flat_map(|path| self.code.ops(path).iter().map(|op| op.instruction));
        let mut all: Vec<InstructionId> = ids.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Why an instance ran: the branch or call that brought control there.
    pub fn parent(&self, at: Instance) -> Option<Instance> {
        let path = self.records.path(at.time);
        self.control.parent(path, at, self.control.first_label(at.time))
    }

    /// The instruction of an instance.
    pub fn instruction(&self, at: Instance) -> InstructionId {
        let path = self.code.path(self.records.path(at.time));
        let ops = self.code.ops(path);
        let op = ops.get(usize::from(at.index)).or(self.code.faulting(path));
        op.or(ops.last()).expect("a record has an instruction").instruction
    }
}

fn find_control(
    code: &Arc<Code>,
    records: &Arc<Records>,
    events: &Arc<[(Time, Event)]>,
    graph: &Arc<program::flow::Flow>,
) -> Later<Control> {
    let all = (code.clone(), records.clone(), events.clone(), graph.clone());
    Later::begin("control", move || Control::find(&all.0, &all.1, &all.2, &all.3))
}
