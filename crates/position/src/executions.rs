//! When was a line, a function or an instruction executed?

use crate::run::Run;
use program::debug::LineRange;
use trace::{Flow, Instance, PathId, Time};

/// What to look for, as a question about addresses.
pub enum Target {
    /// Any of these instructions.
    Addresses(Vec<u64>),
    /// Entries to a line, whose code is here.
    Line(Vec<LineRange>),
}

/// Where in a path an execution begins.
#[derive(Clone, Copy)]
struct Candidate {
    index: u16,
    /// At the path's beginning: only if control did not come from the same line.
    first: bool,
}

/// All executions of a target.
pub struct Executions<'a> {
    run: &'a Run,
    target: Target,
    /// By path; most have none.
    candidates: Vec<Vec<Candidate>>,
    thread: Option<u32>,
}

impl<'a> Executions<'a> {
    /// Looks at the code.
    pub fn of(run: &'a Run, target: Target, thread: Option<u32>) -> Executions<'a> {
        let paths = run.trace.code.paths();
        let candidates = paths.map(|(id, _)| candidates(run, &target, id)).collect();
        Executions { run, target, candidates, thread }
    }

    /// In order of time.
    pub fn forward(&self) -> impl Iterator<Item = Instance> + '_ {
        (0..self.run.trace.records.len()).flat_map(|t| self.at(Time(t), false))
    }

    /// The latest first.
    pub fn backward(&self) -> impl Iterator<Item = Instance> + '_ {
        (0..self.run.trace.records.len()).rev().flat_map(|t| self.at(Time(t), true))
    }

    fn at(&self, time: Time, reverse: bool) -> Vec<Instance> {
        let path = self.run.trace.records.path(time);
        let list = &self.candidates[path.0 as usize];
        if list.is_empty() || self.thread.is_some_and(|t| t != self.run.trace.thread(time)) {
            return Vec::new();
        }
        let entered = |c: &&Candidate| !c.first || self.is_entered(time, path);
        let instance = |c: &Candidate| Instance { time, index: c.index };
        let mut found: Vec<Instance> = list.iter().filter(entered).map(instance).collect();
        if reverse {
            found.reverse();
        }
        found
    }

    /// Does control come to the line here, rather than stay in it?
    fn is_entered(&self, time: Time, path: PathId) -> bool {
        let trace = &self.run.trace;
        let start = trace.code.start(trace.code.path(path));
        let frame = trace.control.frame_of(time);
        let thread = trace.thread(time);
        // The record before, in the same activation.
        let mut before = time.0;
        for _ in 0..64 {
            let Some(earlier) = before.checked_sub(1).map(Time) else { return true };
            before = earlier.0;
            if trace.control.frame_of(earlier) != frame || trace.thread(earlier) != thread {
                // Back from a call that the line made: it goes on.
                return !self.is_behind_call(start);
            }
            let last = trace.code.last(trace.code.path(trace.records.path(earlier)));
            let Some(last) = last else { continue };
            let back = matches!(last.flow, Flow::Branch | Flow::Jump) && start <= last.address();
            return back || !self.contains(last.address());
        }
        true
    }

    /// Is the instruction before this address a call of the same line?
    fn is_behind_call(&self, address: u64) -> bool {
        let mut infos = self.run.trace.code.instructions().map(|(_, info)| info);
        infos.any(|i| {
            i.flow == Flow::Call && i.instruction.next_ip() == address && self.contains(i.address())
        })
    }

    fn contains(&self, address: u64) -> bool {
        match &self.target {
            Target::Addresses(_) => false,
            Target::Line(ranges) => ranges.iter().any(|r| (r.start..r.end).contains(&address)),
        }
    }
}

fn candidates(run: &Run, target: &Target, id: PathId) -> Vec<Candidate> {
    let code = &run.trace.code;
    let path = code.path(id);
    let mut found = Vec::new();
    let mut inside = false;
    let ops = code.ops(path).iter().chain(code.faulting(path));
    for (n, op) in ops.enumerate() {
        let address = code.info(op.instruction).address();
        match target {
            Target::Addresses(list) => {
                if list.contains(&address) {
                    found.push(Candidate { index: n as u16, first: false });
                }
            }
            Target::Line(ranges) => {
                let here = ranges.iter().any(|r| (r.start..r.end).contains(&address));
                if here && !inside {
                    found.push(Candidate { index: n as u16, first: n == 0 });
                }
                inside = here;
            }
        }
    }
    found
}
