//! Where a run crashed, said so that it can be found in another run.

use crate::experiment::CrashPoint;
use position::Run;
use std::collections::HashMap;
use trace::{Event, FrameId, Instance, Time};

/// A crash, and the instants at which the same place was reached by the same calls.
#[derive(Clone, Debug)]
pub struct Crash {
    /// How it is found again.
    pub point: CrashPoint,
    /// The instance that could not be executed.
    pub instance: Instance,
    /// Its signal.
    pub signal: i32,
    reached: Vec<u64>,
}

impl Crash {
    /// Where an instruction of the run faulted and killed it. `None` for a run that
    /// did not crash, and for one that was killed otherwise, by `abort` for instance:
    /// there is no instruction that another run could execute unharmed.
    pub fn of(run: &Run) -> Result<Option<Crash>, position::Error> {
        let Some(instance) = position::crash(run) else { return Ok(None) };
        let events = &run.trace.events;
        let fault = events.iter().rev().find_map(|(at, event)| match event {
            Event::Fault { signal, pc, .. } => Some((*at, *signal, *pc)),
            _ => None,
        });
        let Some((at, signal, pc)) = fault.filter(|(at, ..)| at.0 == run.trace.records.len())
        else {
            return Ok(None);
        };
        // A jump into nowhere has no instruction of its own.
        if run.address(instance) != pc || at == Time::START {
            return Ok(None);
        }
        let frame = run.trace.control.frame_of(instance.time);
        let mut states = run.states()?;
        let mut calls = Vec::new();
        for call in chain(run, frame) {
            let state = states.before(call)?;
            let sp = state.registers().gpr[4];
            let info = run.trace.code.info(run.trace.instruction(call));
            calls.push((sp.wrapping_sub(8), info.instruction.next_ip()));
        }
        let sp = states.before(instance)?.registers().gpr[4];
        let mut reached = reached(run, pc, frame, run.trace.thread(instance.time));
        // The crashing one is not among what was executed.
        reached.retain(|number| *number < run.trace.number(instance));
        let occurrence = reached.len() as u64 + 1;
        Ok(Some(Crash {
            point: CrashPoint { pc, sp, calls, occurrence },
            instance,
            signal,
            reached,
        }))
    }

    /// How often the point was reached before so many instructions.
    pub fn before(&self, number: u64) -> u64 {
        self.reached.partition_point(|n| *n < number) as u64
    }
}

/// The calls that led to an activation, outermost first.
fn chain(run: &Run, mut frame: FrameId) -> Vec<Instance> {
    let mut calls = Vec::new();
    while let Some(call) = run.trace.control.frame(frame).call {
        calls.push(call);
        frame = run.trace.control.frame(frame).caller;
    }
    calls.reverse();
    calls
}

/// When an instruction was executed by the same calls.
fn reached(run: &Run, pc: u64, frame: FrameId, thread: u32) -> Vec<u64> {
    let trace = &run.trace;
    let addresses = |frame| chain(run, frame).iter().map(|at| run.address(*at)).collect::<Vec<_>>();
    let wanted = addresses(frame);
    let mut same: HashMap<FrameId, bool> = HashMap::new();
    let mut found = Vec::new();
    let places: Vec<Vec<u16>> = trace
        .code
        .paths()
        .map(|(_, path)| {
            let ops = trace.code.ops(path).iter().enumerate();
            let here = ops.filter(|(_, op)| trace.code.info(op.instruction).address() == pc);
            here.map(|(n, _)| n as u16).collect()
        })
        .collect();
    let mut number = 0;
    for time in (0..trace.records.len()).map(Time) {
        let id = trace.records.path(time);
        let here = &places[id.0 as usize];
        if !here.is_empty() && trace.thread(time) == thread {
            let frame = trace.control.frame_of(time);
            if *same.entry(frame).or_insert_with(|| addresses(frame) == wanted) {
                found.extend(here.iter().map(|index| number + u64::from(*index)));
            }
        }
        number += u64::from(trace.code.path(id).len);
    }
    found
}
