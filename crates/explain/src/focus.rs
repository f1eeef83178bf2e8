//! Where does looking back begin? At the value that was wrong where it is known, else
//! at what decided that the run ended as it did.

use crate::accesses::found_by;
use crate::blocks::Misuse;
use locate::{Criterion, Failure, Predicate};
use position::{Offset, Position, Resolved, Run, Targets, executions};
use program::effects::Cells;
use slice::Start;
use std::collections::HashSet;
use trace::{Flow, Instance};
use whatif::{Original, Stream};

/// So many branches may have decided that something did not happen.
const DECIDING: usize = 8;
/// The status of a Rust program that panicked.
const PANICKED: i32 = 101;
/// RDI holds a function's first argument.
const FIRST_ARGUMENT: u8 = 7;

/// The failure with all that is known of where it comes from.
pub fn focus(
    run: &Run,
    failure: &Failure,
    predicates: &[Predicate],
    misuses: &[Misuse],
    original: &Original,
    hung: bool,
) -> Failure {
    let mut focus = failure.clone();
    if hung {
        // Whatever it was doing last, over and over.
        focus.starts.extend(deciding(run, predicates));
        return focus;
    }
    match failure.criterion {
        // How the allocator came upon it tells nothing.
        Criterion::Crash if !misuses.is_empty() => {
            focus.starts = misuses.iter().flat_map(|misuse| misuse.starts(run)).collect();
        }
        Criterion::Crash => {
            let values = failure.starts.iter().map(|start| wrong_value(run, start.at()));
            focus.starts.extend(values.collect::<Vec<_>>());
        }
        Criterion::Output(..) => {}
        Criterion::Missing(..) | Criterion::End => {
            let is_known = !is_end(run, &failure.starts);
            match complaint(run, original).filter(|_| failure.other.is_none() && !is_known) {
                Some(said) => focus.starts = said,
                None if focus.starts.is_empty() => {
                    focus.starts = deciding(run, predicates);
                    focus.starts.push(Start::Instance(run.trace.last_instance()));
                }
                None => {}
            }
        }
    }
    focus
}

/// The address that could not be used, or what was given to the function that gave up.
fn wrong_value(run: &Run, at: Instance) -> Start {
    let cells = match run.trace.code.info(run.trace.instruction(at)).flow {
        Flow::Call => Cells::gpr(FIRST_ARGUMENT, 8),
        _ => found_by(run, at, |_| true),
    };
    Start::Before(at, cells, Vec::new())
}

/// Is nothing known but that the run ended?
fn is_end(run: &Run, starts: &[Start]) -> bool {
    starts.iter().all(|start| start.at() == run.trace.last_instance())
}

/// Where a run panicked, or the end of what it said last on standard error, if it then ended with
/// a status that means failure: what it complains of is what failed.
fn complaint(run: &Run, original: &Original) -> Option<Vec<Start>> {
    if let Some(call) = panicking(run, original) {
        return Some(vec![Start::Instance(call)]);
    }
    let status = original.status?;
    if status & 0x7f != 0 || status >> 8 & 0xff == 0 {
        return None;
    }
    let said = &original.outputs[Stream::Err as usize];
    let last = said.iter().rposition(|byte| !b"\r\n".contains(byte))?;
    let position = Position::Output(position::Stream::Err, Offset::Byte(last as u64));
    Some(match position::resolve(run, &position).ok()? {
        Resolved::Byte(at, address) => {
            let byte = Start::Before(at, Cells::NONE, vec![(address, 1)]);
            let writer = position::writer(run, &byte);
            [byte].into_iter().chain(writer).collect()
        }
        other => vec![Start::Instance(other.instance())],
    })
}

/// The last executions of the program's last branches.
fn deciding(run: &Run, predicates: &[Predicate]) -> Vec<Start> {
    let mut seen = HashSet::new();
    let last = predicates
        .iter()
        .rev()
        .filter(|p| run.places.at(p.instruction).is_some_and(|place| seen.insert(place)));
    last.take(DECIDING).map(|p| Start::Instance(p.instance)).collect()
}

/// The call with which a panic begins. The check that failed, which it depends on, is often
/// in the library's code.
pub fn panicking(run: &Run, original: &Original) -> Option<Instance> {
    if original.status? >> 8 & 0xff != PANICKED {
        return None;
    }
    let entries: HashSet<u64> =
        run.program.functions_named("rust_begin_unwind").iter().map(|f| f.start).collect();
    // By where it arrives: it is called through a table of addresses, too.
    let entered = Targets::addresses(&run.trace, |address| entries.contains(&address), true);
    let mut last = None;
    executions(run, &entered, None, &mut |_, at| {
        last = Some(at);
        true
    });
    let control = &run.trace.control;
    control.frame(control.frame_of(last?.time)).call.or(last)
}

/// Has the run been at an address in the second half of what is known of it?
pub fn has_reached(run: &Run, pc: u64) -> bool {
    let there = Targets::addresses(&run.trace, |address| address == pc, true);
    let half = trace::Time(run.trace.records.len() / 2);
    let mut reached = false;
    executions(run, &there, None, &mut |_, at| {
        reached = at.time >= half;
        !reached
    });
    reached
}
