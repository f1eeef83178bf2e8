//! Which thread ran when, and which instance each system call belongs to.

use crate::code::{Bases, Path, PathId, sets_direction};
use crate::control::Instance;
use crate::records::{Records, Time};
use crate::{Code, Trace};
use engine::trace::{Call, Event};
use std::collections::HashMap;

/// A stretch of records of one thread, with unchanged segment bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First record.
    pub start: Time,
    /// First record past it.
    pub end: Time,
    /// Whose.
    pub thread: u32,
    /// Its segment bases.
    pub bases: Bases,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// What it did was done for records from here on.
    pub at: Time,
    /// Its instruction.
    pub instance: Instance,
    /// Which event of the trace.
    pub event: usize,
    /// Whose.
    pub thread: u32,
}

/// A signal that was delivered to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalSite {
    /// The handler's first record.
    pub at: Time,
    /// Which event of the trace.
    pub event: usize,
    /// Whose.
    pub thread: u32,
}

/// All of them, in order of time.
#[derive(Default)]
pub struct Spans {
    /// Never empty ones.
    pub spans: Vec<Span>,
    /// Calls.
    pub calls: Vec<CallSite>,
    /// Signals.
    pub signals: Vec<SignalSite>,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    bases: Bases,
    last: Option<Time>,
}

impl Spans {
    /// Reads the events.
    pub fn find(code: &Code, records: &Records, events: &[(Time, Event)]) -> Spans {
        let mut all = Spans::default();
        let mut threads: HashMap<u32, Thread> = HashMap::new();
        let (mut current, mut start) = (0, Time(0));
        for (n, (at, event)) in events.iter().enumerate() {
            match event {
                Event::Thread(_) | Event::FsBase(_) | Event::GsBase(_) => {
                    all.close(start, *at, current, &mut threads);
                    start = *at;
                }
                Event::Call(_) => {
                    let thread = threads.entry(current).or_default();
                    let last = if *at > start { Some(Time(at.0 - 1)) } else { thread.last };
                    if let Some(time) = last {
                        let path = code.path(records.path(time));
                        let instance = Instance { time, index: path.len.saturating_sub(1) };
                        all.calls.push(CallSite { at: *at, instance, event: n, thread: current });
                    }
                }
                Event::Signal { .. } => {
                    all.signals.push(SignalSite { at: *at, event: n, thread: current });
                }
                _ => {}
            }
            match event {
                Event::Thread(to) => current = *to,
                Event::FsBase(base) => threads.entry(current).or_default().bases.fs = *base,
                Event::GsBase(base) => threads.entry(current).or_default().bases.gs = *base,
                _ => {}
            }
        }
        all.close(start, records.now(), current, &mut threads);
        all.split_by_direction(code, records);
        all
    }

    /// Cuts spans where string instructions change their direction. Hardly any
    /// program has them do so.
    fn split_by_direction(&mut self, code: &Code, records: &Records) {
        let turns = |path: &Path| {
            let ops = code.ops(path).iter().rev();
            ops.filter_map(|op| sets_direction(&code.info(op.instruction).instruction)).next()
        };
        let turning: HashMap<PathId, bool> =
            code.paths().filter_map(|(id, path)| Some((id, turns(path)?))).collect();
        if !turning.values().any(|down| *down) {
            return;
        }
        let mut down: HashMap<u32, bool> = HashMap::new();
        let mut cut = Vec::new();
        for mut span in std::mem::take(&mut self.spans) {
            let now = down.entry(span.thread).or_default();
            span.bases.down = *now;
            for time in (span.start.0..span.end.0).map(Time) {
                let Some(turned) = turning.get(&records.path(time)) else { continue };
                if turned != now && time.0 + 1 < span.end.0 {
                    let next = Time(time.0 + 1);
                    cut.push(Span { end: next, ..span });
                    span.start = next;
                    span.bases.down = *turned;
                }
                *now = *turned;
            }
            cut.push(span);
        }
        self.spans = cut;
    }

    fn close(&mut self, start: Time, end: Time, thread: u32, threads: &mut HashMap<u32, Thread>) {
        if end > start {
            let state = threads.entry(thread).or_default();
            state.last = Some(Time(end.0 - 1));
            self.spans.push(Span { start, end, thread, bases: state.bases });
        }
    }

    /// The span that a record belongs to.
    pub fn at(&self, time: Time) -> &Span {
        let n = self.spans.partition_point(|s| s.end <= time);
        &self.spans[n.min(self.spans.len() - 1)]
    }
}

impl Trace {
    /// What a call did.
    pub fn call(&self, site: &CallSite) -> &Call {
        match &self.events[site.event].1 {
            Event::Call(call) => call,
            _ => unreachable!("a call site is made for a call"),
        }
    }

    /// The thread of a record.
    pub fn thread(&self, time: Time) -> u32 {
        self.spans.at(time).thread
    }
}
