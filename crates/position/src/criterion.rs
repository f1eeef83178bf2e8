//! From a criterion to where a walk begins.

use crate::Error;
use crate::executions::{statement, statement_at};
use crate::grammar::{Criterion, Of, Position, What};
use crate::resolve::{Resolved, resolve, targets};
use crate::run::{ENCODED, Run};
use program::debug::{Located, Piece, Register};
use program::effects::{Cell, Cells};
use slice::{Options, Pruned, Slicer, Start};
use trace::{Instance, Trace};

/// What a criterion comes to.
#[derive(Clone, Debug)]
pub struct Meant {
    /// The instant.
    pub at: Instance,
    /// Where a backward walk begins.
    pub starts: Vec<Start>,
    /// The instructions that make up the instance, a line's in order.
    pub instances: Vec<Instance>,
    /// Where a forward walk begins.
    pub onward: Vec<Start>,
    /// The byte that is meant, as it is in memory before the instant: output that
    /// is about to go.
    pub byte: Option<u64>,
}

/// Registers and memory that something is kept in.
#[derive(Clone, Debug, Default)]
struct Kept {
    cells: Cells,
    memory: Vec<(u64, u64)>,
}

/// Finds what a criterion means.
pub fn meant(run: &Run, criterion: &Criterion) -> Result<Meant, Error> {
    let resolved = resolve(run, &criterion.position)?;
    let at = resolved.instance();
    let instances = instances(run, &criterion.position, at)?;
    let starts = match (&criterion.what, resolved) {
        (What::Everything, Resolved::Byte(at, address)) => {
            let byte = Start::Before(at, Cells::NONE, vec![(address, 1)]);
            let writer = writer(run, &byte);
            [byte].into_iter().chain(writer).collect()
        }
        (What::Everything, _) => instances.iter().map(|at| Start::Instance(*at)).collect(),
        (What::Register(name), _) => vec![Start::Before(at, register(name)?, Vec::new())],
        (What::Memory(address, len), _) => {
            vec![Start::Before(at, Cells::NONE, vec![(*address, *len)])]
        }
        // Where a function begins, its parameters may be in their places only behind its head.
        (What::Expression(text), _) if is_entry(&criterion.position) => {
            vec![expression(run, text, &statement_at(run, at))?]
        }
        (What::Expression(text), _) => vec![expression(run, text, &instances)?],
    };
    let onward = match (&criterion.what, resolved) {
        (What::Everything, Resolved::Brought(at, address)) => {
            vec![Start::Before(run.trace.seen(at), Cells::NONE, vec![(address, 1)])]
        }
        _ => starts.clone(),
    };
    let byte = match (&criterion.what, resolved) {
        (What::Everything, Resolved::Byte(_, address)) => Some(address),
        _ => None,
    };
    Ok(Meant { at, starts, instances, onward, byte })
}

/// Does it name a function?
fn is_entry(position: &Position) -> bool {
    matches!(position, Position::Execution { of: Of::Function(_), part: None, .. })
}

/// The line that wrote a byte out, if the byte is a constant: nothing in the run has made
/// it, so only that it was written can be asked about.
pub fn writer(run: &Run, byte: &Start) -> Option<Start> {
    let options = Options { control: false, ..Options::default() };
    let byte = std::slice::from_ref(byte);
    let (direct, _) = Slicer::new(&run.trace).direct(byte, &options, &|_, _| false);
    let is_made = direct.dependences().next().is_some();
    let at = byte[0].at();
    (!is_made).then(|| Start::Instance(run.own_instance(at).unwrap_or(at)))
}

/// Where a walk begins that asks for what was there before a position, whatever the
/// line itself then does to it.
pub fn before(run: &Run, criterion: &Criterion) -> Result<Vec<Start>, Error> {
    let What::Expression(text) = &criterion.what else {
        return Ok(meant(run, criterion)?.starts);
    };
    let at = resolve(run, &criterion.position)?.instance();
    let mut states = run.states()?;
    let state = states.before(at)?;
    let found = kept(&run.program.evaluate(state.pc(), text, &state)?);
    Ok(vec![Start::Before(at, found.cells, found.memory)])
}

/// All instructions of the execution of a line; one for other positions.
fn instances(run: &Run, position: &Position, at: Instance) -> Result<Vec<Instance>, Error> {
    match position {
        Position::Execution { of, part: None, .. } => {
            let targets = targets(run, of)?;
            if targets.each {
                return Ok(vec![at]);
            }
            Ok(statement(run, at, |id| targets.of(id).is_some()))
        }
        _ => Ok(vec![at]),
    }
}

fn register(name: &str) -> Result<Cells, Error> {
    let wrong = || Error::NoRegister { name: name.to_owned() };
    let register = Register::named(name).ok_or_else(wrong)?;
    cells(register, 0, 32).ok_or_else(wrong)
}

/// The cells of a register's bytes.
fn cells(register: Register, first: u16, len: u16) -> Option<Cells> {
    let n = usize::from(register.0);
    let (all, most) = match n {
        0..=15 => (Cells::gpr(ENCODED[n] as u8, 8), 8),
        17..=32 => (Cells::ymm((n - 17) as u8, 32), 32),
        33..=40 => return Some(Cell::X87.into()),
        _ => return None,
    };
    let wanted = first..first.saturating_add(len).min(most);
    let bytes = all.iter().enumerate().filter(|(n, _)| wanted.contains(&(*n as u16)));
    Some(bytes.fold(Cells::NONE, |all, (_, cell)| all.union(cell.into())))
}

/// The value of an expression: behind the line if the line changes it, else
/// before it.
fn expression(run: &Run, text: &str, line: &[Instance]) -> Result<Start, Error> {
    let (Some(first), Some(last)) = (line.first(), line.last()) else { return Err(Error::Empty) };
    let mut states = run.states()?;
    let before = {
        let state = states.before(*first)?;
        run.program.evaluate(state.pc(), text, &state).map(|value| kept(&value))
    };
    let next = following(&run.trace, *last);
    let behind = match next {
        Some(next) => {
            let state = states.before(next)?;
            let at = |pc| run.program.evaluate(pc, text, &state).ok();
            let value = run.jump(*last).and_then(at).or_else(|| at(state.pc()));
            value.map(|value| (next, kept(&value)))
        }
        None => None,
    };
    let start = match behind {
        Some((next, kept)) if before.is_err() || changes(run, line, &kept) => {
            Start::Before(next, kept.cells, kept.memory)
        }
        _ => {
            let kept = before?;
            Start::Before(*first, kept.cells, kept.memory)
        }
    };
    match &start {
        Start::Before(_, cells, memory) if cells.is_empty() && memory.is_empty() => {
            Err(Error::Nowhere { what: text.to_owned() })
        }
        _ => Ok(start),
    }
}

/// The next instance of the same activation.
pub fn following(trace: &Trace, at: Instance) -> Option<Instance> {
    let frame = trace.control.frame_of(at.time);
    let path = trace.code.path(trace.records.path(at.time));
    if at.index + 1 < path.len {
        return Some(Instance { time: at.time, index: at.index + 1 });
    }
    let mut later = (at.time.0 + 1..trace.records.len()).map(trace::Time);
    let time = later.find(|t| trace.control.frame_of(*t) == frame)?;
    Some(Instance { time, index: 0 })
}

fn kept(value: &Located) -> Kept {
    let mut all = Kept::default();
    for piece in &value.pieces {
        match piece {
            Piece::Memory { address, len } => all.memory.push((*address, *len)),
            Piece::Register { number, first_byte, len } => {
                if let Some(found) = cells(*number, *first_byte as u16, *len as u16) {
                    all.cells = all.cells.union(found);
                }
            }
            _ => {}
        }
    }
    all
}

/// Does some instruction of a line write what a value is kept in?
fn changes(run: &Run, line: &[Instance], kept: &Kept) -> bool {
    line.iter().any(|at| {
        let info = run.trace.code.info(run.trace.instruction(*at));
        info.defs.overlaps(&kept.cells)
            || run.trace.stored(*at).iter().any(|stored| {
                kept.memory.iter().any(|(start, len)| {
                    stored.start < start + len && *start < stored.start + stored.len
                })
            })
    })
}

/// Registers and variables whose dependences are to be left out. A variable is
/// looked for where the criterion is, and in the functions that called it.
pub fn pruned(run: &Run, criterion: &Criterion, names: &[String]) -> Result<Pruned, Error> {
    let mut pruned = Pruned::default();
    if names.is_empty() {
        return Ok(pruned);
    }
    let at = resolve(run, &criterion.position)?.instance();
    let mut states = run.states()?;
    let state = states.before(at)?;
    for name in names {
        if let Some(cells) = Register::named(name).and_then(|r| cells(r, 0, 32)) {
            pruned.cells = pruned.cells.union(cells);
            continue;
        }
        let here = run.program.evaluate(state.pc(), name, &state);
        let frames = run.program.unwind(&state);
        let mut calling = frames.iter().skip(1).filter_map(|frame| {
            run.program.evaluate(frame.executing(), name, &frame.state(&state)).ok()
        });
        let value = match here {
            Ok(value) => value,
            Err(error) => calling.next().ok_or(error)?,
        };
        let kept = kept(&value);
        pruned.cells = pruned.cells.union(kept.cells);
        pruned.memory.extend(kept.memory);
    }
    Ok(pruned)
}
