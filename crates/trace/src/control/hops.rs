//! Calls that come back within a segment: a pass need not go through what they did.
//!
//! What is open when a call comes back is what was open when it was made. Most records lie within
//! such calls, so that only few are left to be gone through.

use super::shape::{End, FunctionId, Gaits, NO_FUNCTION};
use crate::captured::Captured;
use crate::code::PathId;
use crate::records::{Records, SEGMENT, Time};
use engine::trace::Event;
use std::sync::mpsc::sync_channel;

/// From a call to behind its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// The record that calls, as the n-th of its segment.
    pub from: u32,
    /// The record behind the one that returns.
    pub to: u32,
    /// Where its return address lies, when it calls and when it returns.
    pub slot: u64,
    /// What the segment captured before that record.
    pub captured: u32,
    /// Labels in between.
    pub labels: u32,
    /// Activations that began.
    pub frames: u32,
}

/// What a path does to the depth of calls.
#[derive(Clone, Copy)]
enum Kind {
    On,
    Call,
    Return,
    /// To another function, or to a computed place.
    Jump,
}

/// All that is asked of a path, for every record.
#[derive(Clone, Copy)]
struct Stride {
    captures: u16,
    labels: u16,
    kind: Kind,
    /// Does it anything to activations?
    matters: bool,
    /// Behind it, nobody knows which activations are over.
    loses: bool,
    /// Where the return address lies, if there is one: one of [`Gaits::slot`].
    slot: u32,
    /// The function that it begins in, whether it is the entry of that, and the function that takes
    /// its place, if one does.
    function: FunctionId,
    is_entry: bool,
    enters: FunctionId,
}

/// Of all paths.
pub(super) struct Strides<'a> {
    all: Vec<Stride>,
    gaits: &'a Gaits,
}

impl Strides<'_> {
    pub fn of(gaits: &Gaits, paths: usize) -> Strides<'_> {
        let stride = |n: u32| {
            let (gait, shape) = (gaits.gait(PathId(n)), gaits.shape(PathId(n)));
            let (kind, slot) = match gait.end {
                End::Call(slot) => (Kind::Call, slot),
                End::Return(slot) => (Kind::Return, slot),
                End::Jump => (Kind::Jump, 0),
                End::On => (Kind::On, 0),
            };
            let loses = gaits.switches_stack(PathId(n));
            let enters = gaits.entered_by(gait).unwrap_or(NO_FUNCTION);
            Stride {
                captures: gait.captures,
                labels: shape.labels,
                kind,
                matters: loses || enters != NO_FUNCTION || gait.end != End::On,
                loses,
                slot,
                function: gait.function,
                is_entry: gait.is_entry,
                enters,
            }
        };
        Strides { all: (0..paths as u32).map(stride).collect(), gaits }
    }
}

/// A call that has not come back.
#[derive(Clone, Copy)]
struct Waiting {
    from: u32,
    slot: u64,
    labels: u32,
    frames: u32,
    /// The function that calls, as the pass knows it.
    function: FunctionId,
}

/// Finds the hops of a segment, none within another. Where something happens between two records,
/// no hop leads over it.
struct Search<'a> {
    all: Captured<'a>,
    captured: u32,
    labels: u32,
    frames: u32,
    waiting: Vec<Waiting>,
    hops: Vec<Hop>,
    /// The function of the innermost activation, as the pass knows it; none until it comes to one.
    function: FunctionId,
    /// The last record ended in a jump that may leave the function.
    jumped: bool,
}

impl<'a> Search<'a> {
    /// Of a segment that captured all this.
    fn new(all: Captured<'a>) -> Search<'a> {
        let (waiting, hops) = (Vec::new(), Vec::new());
        let (function, jumped) = (NO_FUNCTION, false);
        Search { all, captured: 0, labels: 0, frames: 0, waiting, hops, function, jumped }
    }

    fn segment(mut self, strides: &Strides<'_>, paths: &[PathId], stops: &[u32]) -> Vec<Hop> {
        let mut first = 0;
        for stop in stops.iter().map(|stop| *stop as usize).chain([paths.len()]) {
            self.waiting.clear();
            self.stretch(strides, &paths[first..stop], first as u32);
            first = stop;
        }
        self.hops
    }

    /// Records between which nothing happens.
    fn stretch(&mut self, strides: &Strides<'_>, paths: &[PathId], first: u32) {
        (self.function, self.jumped) = (NO_FUNCTION, false);
        let (mut captured, mut labels, mut arrives) = (self.captured, self.labels, true);
        for (n, path) in (first..).zip(paths) {
            let stride = &strides.all[path.0 as usize];
            let before = captured;
            captured += u32::from(stride.captures);
            labels += u32::from(stride.labels);
            // Most records do nothing else.
            if arrives | stride.matters {
                if arrives {
                    self.arrive(stride);
                }
                (self.captured, self.labels) = (captured, labels);
                self.does(strides.gaits, stride, n, before);
                arrives = self.jumped || self.function == NO_FUNCTION;
            }
        }
        (self.captured, self.labels) = (captured, labels);
    }

    /// What a record does to activations, given what was captured before it.
    #[inline]
    fn does(&mut self, gaits: &Gaits, stride: &Stride, n: u32, before: u32) {
        if stride.loses {
            self.waiting.clear();
        }
        if stride.enters != NO_FUNCTION {
            self.function = stride.enters;
        }
        let slot = || gaits.slot(stride.slot).address(self.all.from(before as usize));
        match stride.kind {
            Kind::On => {}
            Kind::Jump => self.jumped = true,
            Kind::Call => self.calls(n, slot()),
            Kind::Return => self.returns(slot(), n + 1),
        }
    }

    /// Control comes to a path, called or by a jump. A function that is jumped to takes another's
    /// place, and all below that stays as it is; but a jump into the middle of one may lead to an
    /// activation below.
    #[inline]
    fn arrive(&mut self, stride: &Stride) {
        let other = self.function != NO_FUNCTION && self.function != stride.function;
        if self.jumped && !stride.is_entry && other {
            self.waiting.clear();
        }
        (self.function, self.jumped) = (stride.function, false);
    }

    #[inline]
    fn calls(&mut self, from: u32, slot: u64) {
        let Search { labels, frames, function, .. } = *self;
        self.leave(slot);
        self.waiting.push(Waiting { from, slot, labels, frames, function });
        self.frames += 1;
        self.function = NO_FUNCTION;
    }

    #[inline]
    fn returns(&mut self, slot: u64, to: u32) {
        match self.waiting.pop_if(|call| call.slot == slot) {
            Some(call) => {
                self.function = call.function;
                self.hop(call, to);
            }
            // Nobody knows which activations are over.
            None => {
                self.waiting.clear();
                self.function = NO_FUNCTION;
            }
        }
    }

    /// Calls with a return address below the stack pointer never come back.
    #[inline]
    fn leave(&mut self, slot: u64) {
        while self.waiting.pop_if(|call| call.slot <= slot).is_some() {}
    }

    fn hop(&mut self, call: Waiting, to: u32) {
        while self.hops.pop_if(|within| within.from > call.from).is_some() {}
        self.hops.push(Hop {
            from: call.from,
            to,
            slot: call.slot,
            captured: self.captured,
            labels: self.labels - call.labels,
            frames: self.frames - call.frames,
        });
    }
}

/// Where hops are found.
#[derive(Clone, Copy)]
pub(super) struct Hops<'a> {
    pub strides: &'a Strides<'a>,
    pub records: &'a Records,
    pub events: &'a [(Time, Event)],
}

/// So many segments' hops may wait for whoever needs them.
const AHEAD: usize = 4;

impl Hops<'_> {
    /// Those of a segment.
    fn of(self, segment: usize) -> Vec<Hop> {
        let (paths, start) = (self.records.paths_of(segment), (segment * SEGMENT) as u32);
        let end = start + paths.len() as u32;
        let first = self.events.partition_point(|(at, _)| at.0 < start);
        let here = self.events[first..].iter().map(|(at, _)| at.0).take_while(|at| *at < end);
        let mut stops: Vec<u32> = here.map(|at| at - start).collect();
        stops.dedup();
        let captured = self.records.captured(segment);
        Search::new(captured.all()).segment(self.strides, paths, &stops)
    }

    /// Those of all segments, one after the other. Another processor finds them, if there is one.
    pub fn each(self, segments: usize, mut then: impl FnMut(usize, &[Hop])) {
        std::thread::scope(|scope| {
            let (sender, found) = sync_channel(AHEAD);
            let search = move || {
                _ = (0..segments).try_for_each(|n| sender.send(self.of(n)));
            };
            let beside = std::thread::Builder::new().name("hops".into());
            let beside = beside.spawn_scoped(scope, search).is_ok();
            for n in 0..segments {
                let hops = if beside { found.recv().ok() } else { None };
                then(n, &hops.unwrap_or_else(|| self.of(n)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured::Uppers;

    // Those that call and return capture where the return address lies, and nothing else.
    const ON: Stride = Stride {
        captures: 0,
        labels: 1,
        kind: Kind::On,
        matters: true,
        loses: false,
        slot: 0,
        function: 1,
        is_entry: false,
        enters: NO_FUNCTION,
    };
    const CALL: Stride = Stride { captures: 1, labels: 2, kind: Kind::Call, ..ON };
    const RETURN: Stride = Stride { captures: 1, kind: Kind::Return, ..ON };
    /// Goes to a computed place.
    const JUMP: Stride = Stride { kind: Kind::Jump, ..ON };
    /// In another function, of which it is not the entry.
    const AMID: Stride = Stride { function: 2, ..ON };
    const SWITCHES_STACK: Stride = Stride { loses: true, ..ON };

    /// Records that go on, call or return, and where the return addresses of the last two lie.
    fn found(records: &[(u32, u32)], stops: &[u32]) -> Vec<Hop> {
        let paths: Vec<PathId> = records.iter().map(|(n, _)| PathId(*n)).collect();
        let captures = |n: &u32| matches!(n, 1 | 2);
        let slots: Vec<u32> = records.iter().filter(|r| captures(&r.0)).map(|r| r.1).collect();
        let uppers = Uppers::default();
        let search = Search::new(Captured::new(&slots, &uppers));
        let gaits = Gaits::with_slot_in_first_capture(6);
        let all = vec![ON, CALL, RETURN, JUMP, AMID, SWITCHES_STACK];
        let strides = Strides { all, gaits: &gaits };
        search.segment(&strides, &paths, stops)
    }

    /// The same on a stack that is as it should be.
    fn hops(paths: &[u32], stops: &[u32]) -> Vec<(u32, u32)> {
        let mut depth = 100;
        let slot = |n: &u32| {
            depth -= u32::from(*n == 1);
            let slot = depth;
            depth += u32::from(*n == 2);
            (*n, slot)
        };
        let records: Vec<(u32, u32)> = paths.iter().map(slot).collect();
        found(&records, stops).iter().map(|hop| (hop.from, hop.to)).collect()
    }

    #[test]
    fn a_hop_leads_from_a_call_to_behind_its_return_and_has_all_others_within() {
        assert_eq!(hops(&[0, 1, 0, 1, 2, 2, 0, 1, 2], &[]), [(1, 6), (7, 9)]);
        assert_eq!(hops(&[2, 1, 0, 1, 2], &[]), [(3, 5)], "one was called before, one goes on");
    }

    #[test]
    fn no_hop_leads_over_what_happens_between_records() {
        assert_eq!(hops(&[1, 1, 2, 0, 2, 1, 2], &[3]), [(1, 3), (5, 7)]);
    }

    fn from_to(hops: &[Hop]) -> Vec<(u32, u32)> {
        hops.iter().map(|hop| (hop.from, hop.to)).collect()
    }

    #[test]
    fn no_hop_leads_over_what_returns_to_elsewhere() {
        // Called at 16, 8 and 4; what was called last never returns.
        let unwound = [(1, 16), (1, 8), (1, 4), (0, 0), (2, 8), (1, 8), (2, 8), (2, 16)];
        assert_eq!(from_to(&found(&unwound, &[])), [(5, 7)]);
        // Another stack, below this one: its returns were called by nobody.
        let fibers = [(1, 100), (1, 92), (2, 40), (2, 48), (1, 48), (1, 40), (2, 92), (2, 100)];
        assert_eq!(from_to(&found(&fibers, &[])), []);
    }

    #[test]
    fn no_hop_leads_over_a_jump_into_the_middle_of_another_function() {
        let within = [(1, 8), (3, 0), (0, 0), (2, 8)];
        assert_eq!(from_to(&found(&within, &[])), [(0, 4)], "a table of cases");
        let out = [(1, 8), (3, 0), (4, 0), (2, 8)];
        assert_eq!(from_to(&found(&out, &[])), []);
        let runs_into = [(1, 8), (0, 0), (4, 0), (2, 8)];
        assert_eq!(from_to(&found(&runs_into, &[])), [(0, 4)], "as string functions do");
        let called = [(0, 0), (1, 8), (4, 0), (2, 8), (0, 0)];
        assert_eq!(from_to(&found(&called, &[])), [(1, 4)]);
        // Behind a call, control is in the function again that made it.
        let inner = [(4, 0), (1, 16), (4, 0), (1, 8), (0, 0), (2, 8), (3, 0), (4, 0), (2, 16)];
        assert_eq!(from_to(&found(&inner, &[])), [(1, 9)]);
    }

    #[test]
    fn no_hop_leads_over_a_switch_of_stacks() {
        assert_eq!(hops(&[1, 0, 5, 2, 1, 2], &[]), [(4, 6)]);
    }

    #[test]
    fn a_hop_counts_what_it_leads_over() {
        let records = [(0, 0), (1, 8), (1, 4), (2, 4), (0, 0), (2, 8)];
        let hop = Hop { from: 1, to: 6, slot: 8, captured: 4, labels: 5, frames: 2 };
        assert_eq!(found(&records, &[]), [hop]);
    }
}
