//! From what a person writes to the instance that is meant.

use crate::Error;
use crate::executions::{Executions, Target};
use crate::grammar::{Of, Offset, Position, Stream, Which};
use crate::run::Run;
use trace::{Direction, Event, Instance, ObjectId};

/// What a position comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// An instance.
    Instance(Instance),
    /// A byte of memory, as it is before an instance: output that is about to go.
    Byte(Instance, u64),
}

impl Resolved {
    /// The instance.
    pub fn instance(self) -> Instance {
        match self {
            Resolved::Instance(at) | Resolved::Byte(at, _) => at,
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
        Position::Execution { thread, of, which, part } => {
            execution(run, *thread, of, *which, *part).map(Resolved::Instance)
        }
    }
}

/// The instance that could not be executed, if the run crashed.
pub fn crash(run: &Run) -> Option<Instance> {
    let (at, event) = run
        .trace
        .events
        .iter()
        .rev()
        .find(|(_, event)| matches!(event, Event::Fault { .. } | Event::Call(_)))?;
    // A fault that was handled is followed by more records.
    let last = at.0 == run.trace.records.len();
    (last && matches!(event, Event::Fault { .. })).then(|| run.trace.last_instance())
}

fn execution(
    run: &Run,
    thread: Option<u32>,
    of: &Of,
    which: Which,
    part: Option<u32>,
) -> Result<Instance, Error> {
    let executions = Executions::of(run, target(run, of)?, thread);
    let found = match which {
        Which::Nth(n) => executions.forward().nth(n as usize - 1),
        Which::FromEnd(n) => executions.backward().nth(n as usize - 1),
    };
    let Some(first) = found else {
        let times = executions.forward().count();
        return Err(Error::Never { of: describe(of), times });
    };
    match part {
        None => Ok(first),
        Some(n) => nth_instruction(run, first, n, &target(run, of)?),
    }
}

fn describe(of: &Of) -> String {
    match of {
        Of::Line { file, line } => format!("{file}:{line}"),
        Of::Function(name) => name.clone(),
        Of::Address(address) => format!("{address:#x}"),
    }
}

/// The code that is meant.
pub fn target(run: &Run, of: &Of) -> Result<Target, Error> {
    match of {
        Of::Address(address) => Ok(Target::Addresses(vec![*address])),
        Of::Line { file, line } => Ok(Target::Line(run.program.addresses(file, *line)?)),
        Of::Function(name) => {
            let found = run.program.functions_named(name);
            if found.is_empty() {
                return Err(Error::NoFunction { name: name.clone() });
            }
            Ok(Target::Addresses(found.iter().map(|f| f.start).collect()))
        }
    }
}

/// The n-th instruction of a line's execution.
fn nth_instruction(run: &Run, first: Instance, n: u32, target: &Target) -> Result<Instance, Error> {
    let Target::Line(ranges) = target else { return Ok(first) };
    let start = run.trace.number(first);
    let frame = run.trace.control.frame_of(first.time);
    let mut left = n.max(1);
    for number in start..start + 100_000 {
        let Some(at) = run.trace.at_number(number) else { break };
        if run.trace.control.frame_of(at.time) != frame {
            continue;
        }
        let address = run.address(at);
        if !ranges.iter().any(|r| (r.start..r.end).contains(&address)) {
            break;
        }
        left -= 1;
        if left == 0 {
            return Ok(at);
        }
    }
    Err(Error::NoPart { n })
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
            && t.address_of(offset).is_some()
        {
            return Ok(Resolved::Instance(site.instance));
        }
    }
    Err(Error::NoInput { what: run.trace.objects.name(object), offset })
}
