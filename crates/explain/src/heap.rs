//! Which blocks of memory did the allocator give out, and when did it get them back?

use crate::functions::Functions;
use position::{Run, States, Targets, executions};
use program::debug::{Register, State};
use std::collections::HashMap;
use std::time::Instant;
use trace::{Instance, Range, Time, Walk};

/// RAX, RDX, RSI and RDI, as debug information counts them.
const RESULT: Register = Register(0);
const THIRD: Register = Register(1);
const SECOND: Register = Register(4);
const FIRST: Register = Register(5);

/// How a function of the allocator is told what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// So many bytes.
    Bytes,
    /// So many bytes, of which whole pages are given.
    Pages,
    /// So many elements of a size, all zero.
    Zeroed,
    /// Another size for a block.
    Resized,
    /// An alignment and so many bytes.
    Aligned,
    /// Where to put the address, an alignment and so many bytes.
    Stored,
    /// A block that is not needed any more.
    Freed,
}

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The allocator's functions.
const FUNCTIONS: [(&str, Kind); 10] = [
    ("malloc", Kind::Bytes),
    ("calloc", Kind::Zeroed),
    ("realloc", Kind::Resized),
    ("aligned_alloc", Kind::Aligned),
    ("memalign", Kind::Aligned),
    ("posix_memalign", Kind::Stored),
    ("valloc", Kind::Bytes),
    ("pvalloc", Kind::Pages),
    ("free", Kind::Freed),
    ("cfree", Kind::Freed),
];

/// A call of the allocator.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    kind: Kind,
    /// Its first instruction.
    pub entry: Instance,
    /// The first record of its caller behind it, if it came back.
    pub back: Option<Time>,
    /// Of which thread.
    pub thread: u32,
    /// The bytes that were asked for.
    size: u64,
    /// The first argument.
    first: u64,
    /// The block it gave, 0 if none.
    result: u64,
}

impl Call {
    /// The block it gave.
    pub fn given(&self) -> Option<Range> {
        (self.result != 0).then_some(Range { start: self.result, len: self.size })
    }

    /// The block that it was given back.
    pub fn taken(&self) -> Option<u64> {
        let is_taken = match self.kind {
            Kind::Freed => true,
            // A block that cannot grow stays as it is.
            Kind::Resized => self.back.is_none() || self.result != 0 || self.size == 0,
            _ => false,
        };
        (is_taken && self.first != 0).then_some(self.first)
    }

    /// Does it set what it gives?
    pub fn sets(&self) -> bool {
        self.kind == Kind::Zeroed
    }
}

/// What the allocator was asked.
pub struct Heap {
    /// All its calls, in order of time.
    pub calls: Vec<Call>,
    /// The file that it is in.
    pub image: usize,
    /// Was it asked how large blocks really are? Then all of that may be used.
    pub tells_sizes: bool,
}

impl Heap {
    /// Finds the calls; `None` if not all can be known, or not in time.
    pub fn of(run: &Run, late: Instant) -> Option<Heap> {
        let (image, mut calls) = entered(run)?;
        let mut looks: Vec<(Instance, usize, bool)> = Vec::new();
        for (n, call) in calls.iter_mut().enumerate() {
            if late <= Instant::now() {
                return None;
            }
            let left = left(run, call.entry);
            call.back = left.map(|(_, back)| back);
            looks.push((call.entry, n, true));
            looks.extend(left.map(|(last, _)| (last, n, false)));
        }
        if !all_come_back(run, &calls) {
            return None;
        }
        looks.sort_unstable();
        let mut walk = Walk::new(&run.trace);
        let mut states = run.states().ok()?;
        for (at, n, enters) in looks {
            if late <= Instant::now() {
                return None;
            }
            let number = walk.number(at);
            match enters {
                true => calls[n].enter(run, &mut states, number)?,
                false => calls[n].leave(run, &mut states, number, at)?,
            }
        }
        let asks = run.program.symbols_named("malloc_usable_size");
        let is_asked = |id| asks.iter().any(|(_, at)| *at == run.trace.code.info(id).address());
        let tells_sizes = run.trace.code.instructions().any(|(id, _)| is_asked(id));
        Some(Heap { calls, image, tells_sizes })
    }
}

/// Does the run go on behind a call only once that has come back? A handler may jump out of it.
fn all_come_back(run: &Run, calls: &[Call]) -> bool {
    let control = &run.trace.control;
    let depth = |call: &Call| control.frame(control.frame_of(call.entry.time)).depth;
    let mut lost: Vec<&Call> = Vec::new();
    for call in calls {
        if lost.iter().any(|lost| lost.thread == call.thread && depth(call) <= depth(lost)) {
            return false;
        }
        if call.back.is_none() {
            lost.push(call);
        }
    }
    true
}

impl Call {
    /// Reads the arguments.
    fn enter(&mut self, run: &Run, states: &mut States<'_>, number: u64) -> Option<()> {
        // A function does not begin by forgetting what it was asked.
        let second = Instance { index: self.entry.index + 1, ..self.entry };
        let path = run.trace.code.path(run.trace.records.path(self.entry.time));
        let second = if second.index < path.len { second } else { self.entry };
        let state = either(run, states, [(number, self.entry), (number + 1, second)])?;
        let argument = |register| state.register(register);
        self.first = argument(FIRST)?;
        self.size = match self.kind {
            Kind::Bytes => self.first,
            Kind::Pages => self.first.saturating_add(PAGE - 1) / PAGE * PAGE,
            Kind::Zeroed => self.first.saturating_mul(argument(SECOND)?),
            Kind::Resized | Kind::Aligned => argument(SECOND)?,
            Kind::Stored => argument(THIRD)?,
            Kind::Freed => 0,
        };
        Some(())
    }

    /// Reads the result.
    fn leave(
        &mut self,
        run: &Run,
        states: &mut States<'_>,
        number: u64,
        last: Instance,
    ) -> Option<()> {
        if self.kind == Kind::Freed {
            return Some(());
        }
        let behind = Instance { time: self.back?, index: 0 };
        let state = either(run, states, [(number, last), (number + 1, behind)])?;
        self.result = state.register(RESULT)?;
        if self.kind == Kind::Stored {
            let stored = state.memory(self.first, 8).filter(|_| self.result == 0);
            let stored = stored.and_then(|bytes| bytes.try_into().ok());
            self.result = stored.map_or(0, u64::from_le_bytes);
        }
        Some(())
    }
}

/// The state at the first of two instants that is the thread's own: where threads take turns, the
/// registers may still be another one's.
fn either<'s>(
    run: &Run,
    states: &'s mut States<'_>,
    instants: [(u64, Instance); 2],
) -> Option<position::Instant<'s>> {
    for (number, at) in instants {
        if states.at(number).ok()?.pc() == run.address(at) {
            return states.at(number).ok();
        }
    }
    None
}

/// Calls of the allocator and the file that it is in. `None` if it is not the C library's: others
/// have ways to give out blocks that are not known here.
fn entered(run: &Run) -> Option<(usize, Vec<Call>)> {
    let mut entries: HashMap<u64, (usize, u32)> = HashMap::new();
    for (n, (name, _)) in FUNCTIONS.iter().enumerate() {
        for (image, start) in run.program.symbols_named(name) {
            entries.entry(start).or_insert((image, n as u32));
        }
    }
    let entry = |id| entries.get(&run.trace.code.info(id).address());
    let executed = run.trace.code.instructions().filter_map(|(id, _)| entry(id));
    let mut images: Vec<usize> = executed.map(|(image, _)| *image).collect();
    // What the loader gave to itself is never freed.
    images.retain(|image| !is_loader(run, *image));
    images.sort_unstable();
    images.dedup();
    let image = match images[..] {
        [] => return Some((0, Vec::new())),
        [image] if is_c_library(run, image) => image,
        _ => return None,
    };
    let number = |id| entry(id).filter(|(of, _)| *of == image).map(|(_, n)| *n);
    let mut targets = Targets::groups(&run.trace, number);
    targets.each = true;
    let mut calls: Vec<Call> = Vec::new();
    executions(run, &targets, None, &mut |function, entry| {
        let kind = FUNCTIONS[function as usize].1;
        let thread = run.trace.thread(entry.time);
        calls.push(Call { kind, entry, back: None, thread, size: 0, first: 0, result: 0 });
        true
    });
    Some((image, calls))
}

fn file_name(run: &Run, image: usize) -> String {
    let path = run.program.images()[image].path();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_loader(run: &Run, image: usize) -> bool {
    file_name(run, image).starts_with("ld-linux")
}

/// The C library, or a program that has it in itself.
fn is_c_library(run: &Run, image: usize) -> bool {
    let is_libc = |image| file_name(run, image).starts_with("libc.so");
    is_libc(image) || image == 0 && !(0..run.program.images().len()).any(is_libc)
}

/// Is an instance part of the allocator's work?
pub fn is_allocator(run: &Run, at: Instance) -> bool {
    let names = FUNCTIONS.map(|(name, _)| name);
    Functions::new(run).around(at, &names).is_some()
}

/// The last instruction of an activation and the first record of its caller behind it.
fn left(run: &Run, entry: Instance) -> Option<(Instance, Time)> {
    let trace = &run.trace;
    let frame = trace.control.frame_of(entry.time);
    let caller = trace.control.frame(frame).caller;
    let mut last = entry.time;
    for time in (entry.time.0 + 1..trace.records.len()).map(Time) {
        match trace.control.frame_of(time) {
            inside if inside == frame => last = time,
            outside if outside == caller => {
                let ops = trace.code.ops(trace.code.path(trace.records.path(last))).len();
                let index = ops.checked_sub(1)? as u16;
                return Some((Instance { time: last, index }, time));
            }
            _ => {}
        }
    }
    None
}
