//! Where does looking back begin? At the value that was wrong where it is known, else
//! at what decided that the run ended as it did.

use locate::{Criterion, Failure, Predicate};
use position::Run;
use program::effects::Cells;
use slice::Start;
use std::collections::HashSet;
use trace::{Flow, Instance};
use whatif::Original;

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
    original: &Original,
    predicates: &[Predicate],
    hung: bool,
) -> Failure {
    let mut focus = failure.clone();
    if hung {
        // Whatever it was doing last, over and over.
        focus.starts.extend(deciding(run, predicates));
        return focus;
    }
    match failure.criterion {
        Criterion::Crash => {
            let values = failure.starts.iter().map(|start| wrong_value(run, start.at()));
            focus.starts.extend(values.collect::<Vec<_>>());
        }
        Criterion::Output(..) => {}
        Criterion::Missing(..) | Criterion::End => {
            if let Some(call) = panicking(run, original) {
                focus.starts = vec![Start::Instance(call)];
                focus.until = run.trace.number(call);
            } else if focus.starts.is_empty() {
                focus.starts = deciding(run, predicates);
                focus.starts.push(Start::Instance(run.trace.last_instance()));
            }
        }
    }
    focus
}

/// The address that could not be used, or what was given to the function that gave up.
fn wrong_value(run: &Run, at: Instance) -> Start {
    let info = run.trace.code.info(run.trace.instruction(at));
    let cells = match info.flow {
        Flow::Call => Cells::gpr(FIRST_ARGUMENT, 8),
        _ => {
            let accesses = info.effects.accesses.iter();
            accesses.fold(Cells::NONE, |all, access| all.union(access.address.registers()))
        }
    };
    Start::Before(at, cells, Vec::new())
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

/// The program's own instance that made it panic.
fn panicking(run: &Run, original: &Original) -> Option<Instance> {
    if original.status? >> 8 & 0xff != PANICKED {
        return None;
    }
    let entries: HashSet<u64> =
        run.program.functions_named("rust_begin_unwind").iter().map(|f| f.start).collect();
    let control = &run.trace.control;
    let frames = (0..control.frame_count() as u32).rev().map(trace::FrameId);
    let mut calls = frames.filter_map(|frame| control.frame(frame).call);
    let call = calls.find(|call| {
        let info = run.trace.code.info(run.trace.instruction(*call));
        entries.contains(&info.instruction.near_branch_target())
    })?;
    run.own_instance(call)
}
