//! What a slice leaves out: stretches of each thread, from an execution that is not in
//! the slice to the next one that is.

use crate::Runs;
use serde::Serialize;
use std::collections::HashMap;
use trace::{Instance, InstructionId, Time, Trace};

/// An execution of an instruction, counted within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Execution {
    /// Its address.
    pub pc: u64,
    /// Which of its executions, from 1.
    pub nth: u64,
}

/// A stretch of one thread that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Exclusion {
    /// The thread.
    pub thread: u32,
    /// Its first execution.
    pub start: Execution,
    /// The execution behind its last; none if the thread has no more in the slice.
    pub end: Option<Execution>,
    /// Number of the first one in the run.
    pub from: u64,
    /// How many they are.
    pub instructions: u64,
}

/// All that is not in these runs.
pub fn exclusions(trace: &Trace, runs: &Runs) -> Vec<Exclusion> {
    let mut counts: HashMap<(u32, InstructionId), u64> = HashMap::new();
    let mut open: HashMap<u32, Exclusion> = HashMap::new();
    let mut all = Vec::new();
    let mut rest = runs.iter().flatten().peekable();
    let mut number = 0;
    for time in (0..trace.records.len()).map(Time) {
        let thread = trace.thread(time);
        for index in 0..trace.code.path(trace.records.path(time)).len {
            let id = trace.instruction(Instance { time, index });
            let nth = counts.entry((thread, id)).or_default();
            *nth += 1;
            let here = Execution { pc: trace.code.info(id).address(), nth: *nth };
            if rest.next_if_eq(&number).is_some() {
                let closed = open.remove(&thread);
                all.extend(closed.map(|left| Exclusion { end: Some(here), ..left }));
            } else {
                let new =
                    Exclusion { thread, start: here, end: None, from: number, instructions: 0 };
                open.entry(thread).or_insert(new).instructions += 1;
            }
            number += 1;
        }
    }
    all.extend(open.into_values());
    all.sort_unstable_by_key(|left| left.from);
    all
}
