//! Where a run crashed, said so that it can be found in another run.

use crate::experiment::{CrashPoint, Step, Way};
use position::Run;
use program::debug::State;
use std::collections::HashMap;
use trace::{Event, Flow, FrameId, Instance, Time};

/// A crash, and the run's way to it.
#[derive(Clone, Debug)]
pub struct Crash {
    /// How it is found again.
    pub point: CrashPoint,
    /// The instance that could not be executed, or that called what died.
    pub instance: Instance,
    /// The signal of a fault.
    pub signal: Option<i32>,
    /// For each call, and then for the instruction: when it was executed on the way,
    /// and which execution it was within its activation.
    steps: Vec<Vec<(u64, u64)>>,
}

impl Crash {
    /// Where the run died: the instruction that faulted, or the program's own call
    /// inside of which it was killed, by `abort` for instance. `None` for a run that
    /// did not die, or not by anything it did.
    pub fn of(run: &Run) -> Result<Option<Crash>, position::Error> {
        let Some(last) = position::crash(run) else { return Ok(None) };
        let fault = run.trace.events.iter().rev().find_map(|(at, event)| match event {
            Event::Fault { signal, pc, .. } => Some((*at, *signal, *pc)),
            _ => None,
        });
        let fault = fault.filter(|(at, ..)| at.0 == run.trace.records.len());
        // A jump into nowhere has no instruction of its own.
        let here = fault.filter(|(.., pc)| run.address(last) == *pc);
        let (instance, inside) = match here {
            Some(_) => (last, None),
            None => {
                let Some(call) = run.own_instance(last) else { return Ok(None) };
                let info = run.trace.code.info(run.trace.instruction(call));
                if info.flow != Flow::Call {
                    return Ok(None);
                }
                (call, Some(info.instruction.next_ip()))
            }
        };
        let signal = fault.map(|(_, signal, _)| signal);
        let chain = chain(run, run.trace.control.frame_of(instance.time));
        let mut states = run.states()?;
        // Whoever comes to a call that never returns has failed already. What decides is the
        // check before it.
        let checked = match inside {
            Some(_) if gives_up(run, instance) => check(run, instance),
            _ => None,
        };
        let point = checked.unwrap_or(instance);
        let pc = run.address(point);
        let steps = steps(run, pc, &chain, point);
        let mut calls = Vec::new();
        for (call, steps) in chain.iter().zip(&steps) {
            let sp = states.before(*call)?.registers().gpr[4];
            let info = run.trace.code.info(run.trace.instruction(*call));
            let number = run.trace.number(*call);
            let nth = steps.iter().find(|(n, _)| *n == number).map_or(1, |(_, nth)| *nth);
            let returns_to = info.instruction.next_ip();
            calls.push(Step { pc: info.address(), sp, returns_to, intact: true, nth });
        }
        let state = states.before(point)?;
        for call in &mut calls {
            let slot = state.memory(call.sp.wrapping_sub(8), 8);
            call.intact = slot.is_some_and(|bytes| bytes == call.returns_to.to_le_bytes());
        }
        // The check has the same: nothing is pushed between the two.
        let sp = state.registers().gpr[4];
        let mut crash =
            Crash { point: CrashPoint { pc, sp, calls, nth: 0, inside }, instance, signal, steps };
        crash.point.nth = crash.way(run.trace.number(point)).here + 1;
        Ok(Some(crash))
    }

    /// How far the run was on the way after so many instructions.
    pub fn way(&self, number: u64) -> Way {
        // What was done before the last step of an outer call was done elsewhere.
        let mut since = 0;
        let mut counts = self.steps.iter().map(|steps| {
            let n = steps.partition_point(|(at, _)| *at < number);
            match n.checked_sub(1).map(|n| steps[n]).filter(|(at, _)| *at >= since) {
                Some((at, count)) => {
                    since = at;
                    count
                }
                None => 0,
            }
        });
        let calls = counts.by_ref().take(self.steps.len() - 1).collect();
        Way { calls, here: counts.next().unwrap_or(0) }
    }
}

/// Functions of the C library and of C++ that never return: they are called to give up.
const GIVE_UP: [&str; 8] = [
    "abort",
    "__assert_fail",
    "__assert_fail_base",
    "__assert_perror_fail",
    "__stack_chk_fail",
    "__chk_fail",
    "__cxa_throw",
    "_ZSt9terminatev",
];

/// Did a call lead straight into one of them?
fn gives_up(run: &Run, call: Instance) -> bool {
    let (control, end) = (&run.trace.control, run.trace.records.len());
    let into = |time: &Time| run.call_of(control.frame_of(*time)) == Some(call);
    // Stubs of the linkage table and what binds them come first.
    (call.time.0 + 1..end).map(Time).filter(into).any(|time| {
        let function = run.program.function(run.address(Instance { time, index: 0 }));
        function.is_some_and(|function| GIVE_UP.contains(&function.name.as_str()))
    })
}

/// The branch of the same activation that led to a call.
fn check(run: &Run, call: Instance) -> Option<Instance> {
    let control = &run.trace.control;
    let branch = run.trace.parent(call)?;
    let same = control.frame_of(branch.time) == control.frame_of(call.time);
    let is_branch = run.trace.code.info(run.trace.instruction(branch)).flow == Flow::Branch;
    (same && is_branch).then_some(branch)
}

/// The calls that led to an activation, outermost first.
fn chain(run: &Run, mut frame: FrameId) -> Vec<Instance> {
    let mut calls = Vec::new();
    while let Some(call) = run.trace.control.frame(frame).call {
        let caller = run.trace.control.frame(frame).caller;
        // A thread's first activation was called by nobody in it.
        if caller == frame {
            break;
        }
        calls.push(call);
        frame = caller;
    }
    calls.reverse();
    calls
}

/// When each step of the way was taken, before the crash.
fn steps(run: &Run, pc: u64, calls: &[Instance], crash: Instance) -> Vec<Vec<(u64, u64)>> {
    let trace = &run.trace;
    let wanted: Vec<u64> = calls.iter().map(|at| run.address(*at)).collect();
    // A call counts in an activation that the calls before it led to; the
    // instruction itself stands behind the last.
    let mut depths: HashMap<FrameId, Option<usize>> = HashMap::new();
    let mut depth_of = |frame| {
        *depths.entry(frame).or_insert_with(|| {
            let addresses: Vec<u64> = chain(run, frame).iter().map(|at| run.address(*at)).collect();
            wanted.starts_with(&addresses).then_some(addresses.len())
        })
    };
    let places: Vec<Vec<(u16, u64)>> = trace
        .code
        .paths()
        .map(|(_, path)| {
            let ops = trace.code.ops(path).iter().enumerate();
            let addresses =
                ops.map(|(n, op)| (n as u16, trace.code.info(op.instruction).address()));
            addresses.filter(|(_, a)| *a == pc || wanted.contains(a)).collect()
        })
        .collect();
    let thread = trace.thread(crash.time);
    let mut counts: HashMap<FrameId, u64> = HashMap::new();
    let mut steps = vec![Vec::new(); wanted.len() + 1];
    let mut number = trace.records.before();
    for time in (0..=crash.time.0).map(Time) {
        let id = trace.records.path(time);
        let here = &places[id.0 as usize];
        if !here.is_empty() && trace.thread(time) == thread {
            let frame = trace.control.frame_of(time);
            if let Some(depth) = depth_of(frame) {
                let address = wanted.get(depth).copied().unwrap_or(pc);
                for (index, _) in here.iter().filter(|(_, a)| *a == address) {
                    let count = counts.entry(frame).or_default();
                    *count += 1;
                    steps[depth].push((number + u64::from(*index), *count));
                }
            }
        }
        number += u64::from(trace.code.path(id).len);
    }
    steps
}
