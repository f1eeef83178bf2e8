//! From what a person writes to the instance that is meant.

use crate::Error;
use crate::executions::{Targets, executions, statement};
use crate::grammar::{Of, Offset, Position, Stream, Which};
use crate::places::At;
use crate::run::Run;
use program::debug::DebugStatus;
use recording::Ending;
use std::collections::{BTreeSet, VecDeque};
use trace::{Direction, Instance, ObjectId};

/// What a position comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// An instance.
    Instance(Instance),
    /// A byte of memory, as it is before an instance: output that is about to go.
    Byte(Instance, u64),
    /// A byte of memory, as it is after an instance: input that has come.
    Brought(Instance, u64),
}

impl Resolved {
    /// The instance.
    pub fn instance(self) -> Instance {
        match self {
            Resolved::Instance(at) | Resolved::Byte(at, _) | Resolved::Brought(at, _) => at,
        }
    }
}

/// Finds the instance that a position means.
pub fn resolve(run: &Run, position: &Position) -> Result<Resolved, Error> {
    let trace = &run.trace;
    match position {
        Position::Start => Ok(Resolved::Instance(trace.at_number(0).ok_or(Error::Empty)?)),
        Position::Exit => Ok(Resolved::Instance(trace.last_instance())),
        Position::Crash => crash(run).map(Resolved::Instance).ok_or(Error::NoCrash),
        Position::Number(n) => {
            let total = trace.records.instructions();
            trace.at_number(*n).map(Resolved::Instance).ok_or(Error::PastEnd { n: *n, total })
        }
        Position::Output(stream, offset) => output(run, stream, *offset),
        Position::Input(path, offset) => input(run, path.as_deref(), *offset),
        Position::Argument(n, byte) => crate::beginning::argument(run, *n, *byte),
        Position::Environment(name, byte) => crate::beginning::environment(run, name, *byte),
        Position::Execution { thread, of, which, part } => {
            execution(run, *thread, of, *which, *part).map(Resolved::Instance)
        }
    }
}

/// The instance that a signal ended the run at, if one did: one that could not be
/// executed, or the last.
pub fn crash(run: &Run) -> Option<Instance> {
    let ending = run.recording.outcome().map(|outcome| outcome.ending);
    matches!(ending, Some(Ending::Killed { .. })).then(|| run.trace.last_instance())
}

/// The execution of a line, function or instruction that is meant.
fn execution(
    run: &Run,
    thread: Option<u32>,
    of: &Of,
    which: Which,
    part: Option<u32>,
) -> Result<Instance, Error> {
    let targets = targets(run, of)?;
    let thread = thread.map(|n| self::thread(run, n)).transpose()?;
    let first = nth(run, &targets, thread, which).map_err(|times| {
        let nearby = nearby(run, of);
        Error::Never { of: describe(of), times, nearby }
    })?;
    let Some(n) = part else { return Ok(first) };
    let all = statement(run, first, |id| targets.of(id).is_some());
    all.get(n.max(1) as usize - 1).copied().ok_or(Error::NoPart { n, of: all.len() })
}

/// A thread by its number, if the trace has it.
pub fn thread(run: &Run, n: u32) -> Result<u32, Error> {
    let threads: BTreeSet<u32> = run.trace.spans.spans.iter().map(|span| span.thread).collect();
    if !threads.contains(&n) {
        let threads = threads.into_iter().collect();
        return Err(Error::NoThread { n, threads, whole: run.trace.is_whole() });
    }
    Ok(n)
}

/// One execution of target 0, or how many there are.
fn nth(run: &Run, targets: &Targets, thread: Option<u32>, which: Which) -> Result<Instance, usize> {
    let mut times = 0;
    let mut last = VecDeque::new();
    let mut found = None;
    executions(run, targets, thread, &mut |_, at| {
        times += 1;
        match which {
            Which::Nth(n) if times as u64 == n => found = Some(at),
            Which::Nth(_) => {}
            Which::FromEnd(n) => {
                if last.len() as u64 == n {
                    last.pop_front();
                }
                last.push_back(at);
            }
        }
        found.is_none()
    });
    if let Which::FromEnd(n) = which
        && last.len() as u64 == n
    {
        found = last.pop_front();
    }
    found.ok_or(times)
}

/// Lines near one that was never executed, which were.
fn nearby(run: &Run, of: &Of) -> Vec<u32> {
    let Of::Line { file, line } = of else { return Vec::new() };
    let Ok(file) = run.program.source_file(&run.source_name(file)) else { return Vec::new() };
    let mut lines = run.executed_lines(file);
    lines.retain(|l| l != line);
    lines.sort_by_key(|l| l.abs_diff(*line));
    lines.truncate(4);
    lines.sort_unstable();
    lines
}

fn describe(of: &Of) -> String {
    match of {
        Of::Line { file, line } => format!("{file}:{line}"),
        Of::Function(name) => name.clone(),
        Of::Address(address) => format!("{address:#x}"),
    }
}

/// The code that is meant.
pub fn targets(run: &Run, of: &Of) -> Result<Targets, Error> {
    let trace = &run.trace;
    match of {
        Of::Address(address) => Ok(Targets::addresses(trace, |a| a == *address, true)),
        Of::Line { file, line } => {
            let name = run.source_name(file);
            if let Ok(file) = run.program.source_file(&name)
                && let Some(line) = run.places.line(At::Line(file, *line))
            {
                // As executions are counted when they are named: what was inlined from libraries
                // belongs to the line.
                let is_meant = |id| run.places.line_at(id) == Some(line);
                return Ok(Targets::groups(trace, |id| is_meant(id).then_some(0)));
            }
            let found = run.program.addresses(&name, *line);
            let ranges = found.map_err(|error| stripped(run).unwrap_or(error))?;
            let inside = |a| ranges.iter().any(|r| (r.start..r.end).contains(&a));
            Ok(Targets::addresses(trace, inside, false))
        }
        Of::Function(name) => {
            let found = run.program.functions_named(name);
            if found.is_empty() {
                return Err(Error::NoFunction { name: name.clone() });
            }
            Ok(Targets::addresses(trace, |a| found.iter().any(|f| f.start == a), true))
        }
    }
}

/// The line that answers for one that has no code of its own: an optimising compiler gave what it
/// begins with to another.
pub fn answers_for(run: &Run, position: &Position) -> Option<String> {
    let Position::Execution { of: Of::Line { file, line }, .. } = position else { return None };
    let name = run.source_name(file);
    let source = run.program.source_file(&name).ok()?;
    if run.places.line(At::Line(source, *line)).is_some() {
        return None;
    }
    let ranges = run.program.addresses(&name, *line).ok()?;
    let there = run.program.line(ranges.first()?.start).filter(|there| there.line != *line)?;
    Some(format!("{}:{}", run.short_path(&run.program.path(there.file)), there.line))
}

/// A program without debug information has no lines at all: that is worth saying,
/// rather than that it lacks one file.
fn stripped(run: &Run) -> Option<program::debug::Error> {
    let file = run.program.images().first()?.path().to_path_buf();
    match run.program.debug_status(0) {
        DebugStatus::Present => None,
        status => Some(program::debug::Error::NoDebugInfo { file, status }),
    }
}

fn output(run: &Run, stream: &Stream, offset: Offset) -> Result<Resolved, Error> {
    let object = match stream {
        Stream::Out => ObjectId::STDOUT,
        Stream::Err => ObjectId::STDERR,
        Stream::File(path) => {
            let named = run.trace.objects.named(path);
            named.ok_or_else(|| Error::NoFile { path: path.clone() })?
        }
    };
    let offset = match offset {
        Offset::Byte(n) => n,
        Offset::Line(n) => line_offset(run, object, n)?,
    };
    let mut total = 0;
    for (n, site) in run.trace.spans.calls.iter().enumerate() {
        let transfer = run.trace.objects.transfer(n);
        let Some(t) = transfer.filter(|t| t.object == object && t.direction == Direction::Write)
        else {
            continue;
        };
        if let Some(address) = t.address_of(offset) {
            return Ok(Resolved::Byte(site.instance, address));
        }
        total = total.max(t.offset + t.len());
    }
    Err(Error::NoOutput { what: run.trace.objects.name(object), offset, total })
}

/// The bytes that a run wrote, with where each piece is kept just before.
pub fn written(run: &Run, object: ObjectId) -> Result<Vec<u8>, Error> {
    let mut states = run.states()?;
    let mut bytes = Vec::new();
    for (n, site) in run.trace.spans.calls.iter().enumerate() {
        let transfer = run.trace.objects.transfer(n);
        let Some(t) = transfer.filter(|t| t.object == object && t.direction == Direction::Write)
        else {
            continue;
        };
        let state = states.before(site.instance)?;
        for &(start, len) in &t.pieces {
            use program::debug::State;
            bytes.extend(state.memory(start, len as usize).unwrap_or_default());
        }
    }
    Ok(bytes)
}

fn line_offset(run: &Run, object: ObjectId, line: u64) -> Result<u64, Error> {
    let bytes = written(run, object)?;
    let mut starts = std::iter::once(0)
        .chain(bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(n, _)| n as u64 + 1));
    let start = starts.nth(line as usize - 1).filter(|s| *s < bytes.len() as u64);
    let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
    let what = run.trace.objects.name(object);
    start.ok_or(Error::NoOutputLine { what, line, lines })
}

fn input(run: &Run, path: Option<&str>, offset: u64) -> Result<Resolved, Error> {
    let object = match path {
        None => ObjectId::STDIN,
        Some(path) => {
            let named = run.trace.objects.named(path);
            named.ok_or_else(|| Error::NoFile { path: path.to_owned() })?
        }
    };
    for (n, site) in run.trace.spans.calls.iter().enumerate() {
        let transfer = run.trace.objects.transfer(n);
        if let Some(t) = transfer.filter(|t| t.object == object && t.direction == Direction::Read)
            && let Some(address) = t.address_of(offset)
        {
            return Ok(Resolved::Brought(site.instance, address));
        }
    }
    Err(Error::NoInput { what: run.trace.objects.name(object), offset })
}

/// The last byte that the run wrote to standard output, else to standard error.
/// A line's end says nothing about the program; the byte before it does.
pub fn last_output(run: &Run) -> Result<Option<Position>, Error> {
    for (object, stream) in [(ObjectId::STDOUT, Stream::Out), (ObjectId::STDERR, Stream::Err)] {
        let bytes = written(run, object)?;
        let telling = bytes.iter().rposition(|b| !b"\r\n".contains(b));
        if let Some(last) = telling.or(bytes.len().checked_sub(1)) {
            return Ok(Some(Position::Output(stream, Offset::Byte(last as u64))));
        }
    }
    Ok(None)
}
