//! Calls that come back within a segment: a pass need not go through what they did.
//!
//! What is open when a call comes back is what was open when it was made. Most records lie within
//! such calls, so that only few are left to be gone through.

use super::shape::{End, FunctionId, Gaits, NO_FUNCTION, Slot};
use crate::captured::Captured;
use crate::code::PathId;
use crate::records::{Records, SEGMENT, Time};
use engine::trace::Event;

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

/// What is asked of a path at every record, in one word: most paths do nothing else, and so much of
/// all of them stays in a near cache. From the lowest bit on: captures, labels, and whether it
/// [matters](Deed).
#[derive(Clone, Copy)]
struct Stride(u64);

/// Bits of what is counted.
const COUNT_BITS: u32 = 31;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const MATTERS: u64 = 1 << (2 * COUNT_BITS);

/// Sums of captures and labels: of a whole segment, either fits, because a unit has a few dozen
/// instructions and each captures a few registers at most.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Stride {
    fn new(captures: u16, labels: u16, matters: bool) -> Stride {
        debug_assert!(u64::from(captures.max(labels)) * (SEGMENT as u64) < COUNT);
        let counts = u64::from(captures) | u64::from(labels) << COUNT_BITS;
        Stride(if matters { counts | MATTERS } else { counts })
    }

    #[inline(always)]
    fn matters(self) -> bool {
        self.0 & MATTERS != 0
    }
}

impl Sum {
    #[inline(always)]
    fn with(self, stride: Stride) -> Sum {
        Sum(self.0 + (stride.0 & !MATTERS))
    }

    fn captured(self) -> u32 {
        (self.0 & COUNT) as u32
    }

    fn labels(self) -> u32 {
        (self.0 >> COUNT_BITS) as u32
    }
}

/// What a path does to activations, if it does anything, and where it begins.
#[derive(Clone, Copy)]
struct Deed {
    kind: Kind,
    /// Behind it, nobody knows which activations are over.
    loses: bool,
    /// Where the return address lies, if there is one.
    slot: Slot,
    /// The function that it begins in, whether it is the entry of that, and the function that takes
    /// its place, if one does.
    function: FunctionId,
    is_entry: bool,
    enters: FunctionId,
}

impl Deed {
    fn of(gaits: &Gaits, path: PathId) -> Deed {
        let gait = gaits.gait(path);
        let (kind, slot) = match gait.end {
            End::Call(slot) => (Kind::Call, *gaits.slot(slot)),
            End::Return(slot) => (Kind::Return, *gaits.slot(slot)),
            End::Jump => (Kind::Jump, Slot::NOWHERE),
            End::On => (Kind::On, Slot::NOWHERE),
        };
        Deed {
            kind,
            loses: gaits.switches_stack(path),
            slot,
            function: gait.function,
            is_entry: gait.is_entry,
            enters: gaits.entered_by(gait).unwrap_or(NO_FUNCTION),
        }
    }

    fn matters(&self) -> bool {
        self.loses || self.enters != NO_FUNCTION || !matches!(self.kind, Kind::On)
    }
}

/// Of all paths.
pub(super) struct Strides {
    all: Vec<Stride>,
    deeds: Vec<Deed>,
}

impl Strides {
    pub fn of(gaits: &Gaits, paths: usize) -> Strides {
        let ids = || (0..paths as u32).map(PathId);
        let deeds: Vec<Deed> = ids().map(|path| Deed::of(gaits, path)).collect();
        let stride = |(path, deed): (PathId, &Deed)| {
            let (captures, labels) = (gaits.gait(path).captures, gaits.shape(path).labels);
            Stride::new(captures, labels, deed.matters())
        };
        Strides { all: ids().zip(&deeds).map(stride).collect(), deeds }
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
    sum: Sum,
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
        Search { all, sum: Sum::default(), frames: 0, waiting, hops, function, jumped }
    }

    fn segment(mut self, strides: &Strides, paths: &[PathId], stops: &[u32]) -> Vec<Hop> {
        let mut first = 0;
        for stop in stops.iter().map(|stop| *stop as usize).chain([paths.len()]) {
            self.waiting.clear();
            self.stretch(strides, &paths[first..stop], first as u32);
            first = stop;
        }
        self.hops
    }

    /// Records between which nothing happens.
    fn stretch(&mut self, strides: &Strides, paths: &[PathId], first: u32) {
        (self.function, self.jumped) = (NO_FUNCTION, false);
        let (mut sum, mut arrives) = (self.sum, true);
        for (n, path) in (first..).zip(paths) {
            let stride = strides.all[path.0 as usize];
            let before = sum;
            sum = sum.with(stride);
            // Most records do nothing else.
            if arrives | stride.matters() {
                let deed = &strides.deeds[path.0 as usize];
                if arrives {
                    self.arrive(deed);
                }
                self.sum = sum;
                self.does(deed, n, before.captured());
                arrives = self.jumped || self.function == NO_FUNCTION;
            }
        }
        self.sum = sum;
    }

    /// What a record does to activations, given what was captured before it.
    #[inline]
    fn does(&mut self, deed: &Deed, n: u32, before: u32) {
        if deed.loses {
            self.waiting.clear();
        }
        if deed.enters != NO_FUNCTION {
            self.function = deed.enters;
        }
        let slot = || deed.slot.address(self.all.from(before as usize));
        match deed.kind {
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
    fn arrive(&mut self, deed: &Deed) {
        let other = self.function != NO_FUNCTION && self.function != deed.function;
        if self.jumped && !deed.is_entry && other {
            self.waiting.clear();
        }
        (self.function, self.jumped) = (deed.function, false);
    }

    #[inline]
    fn calls(&mut self, from: u32, slot: u64) {
        let Search { sum, frames, function, .. } = *self;
        self.leave(slot);
        let labels = sum.labels();
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
            captured: self.sum.captured(),
            labels: self.sum.labels() - call.labels,
            frames: self.frames - call.frames,
        });
    }
}

/// Where hops are found.
#[derive(Clone, Copy)]
pub(super) struct Hops<'a> {
    pub strides: &'a Strides,
    pub records: &'a Records,
    pub events: &'a [(Time, Event)],
}

impl Hops<'_> {
    /// Those of a segment.
    pub fn of(self, segment: usize) -> Vec<Hop> {
        let (paths, start) = (self.records.paths_of(segment), (segment * SEGMENT) as u32);
        let end = start + paths.len() as u32;
        let first = self.events.partition_point(|(at, _)| at.0 < start);
        let here = self.events[first..].iter().map(|(at, _)| at.0).take_while(|at| *at < end);
        let mut stops: Vec<u32> = here.map(|at| at - start).collect();
        stops.dedup();
        let captured = self.records.captured(segment);
        let mut hops = Search::new(captured.all()).segment(self.strides, paths, &stops);
        // Most that were found lie within others by now.
        hops.shrink_to_fit();
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured::Uppers;

    // Those that call and return capture where the return address lies, and nothing else.
    const ON: Deed = Deed {
        kind: Kind::On,
        loses: false,
        slot: Slot::IN_FIRST_CAPTURE,
        function: 1,
        is_entry: false,
        enters: NO_FUNCTION,
    };
    const CALL: Deed = Deed { kind: Kind::Call, ..ON };
    const RETURN: Deed = Deed { kind: Kind::Return, ..ON };
    /// Goes to a computed place.
    const JUMP: Deed = Deed { kind: Kind::Jump, ..ON };
    /// In another function, of which it is not the entry.
    const AMID: Deed = Deed { function: 2, ..ON };
    const SWITCHES_STACK: Deed = Deed { loses: true, ..ON };

    /// Captures, labels, and the rest.
    const ALL: [(u16, u16, Deed); 6] = [
        (0, 1, ON),
        (1, 2, CALL),
        (1, 1, RETURN),
        (0, 1, JUMP),
        (0, 1, AMID),
        (0, 1, SWITCHES_STACK),
    ];

    /// Records that go on, call or return, and where the return addresses of the last two lie.
    fn found(records: &[(u32, u32)], stops: &[u32]) -> Vec<Hop> {
        let paths: Vec<PathId> = records.iter().map(|(n, _)| PathId(*n)).collect();
        let captures = |n: &u32| matches!(n, 1 | 2);
        let slots: Vec<u32> = records.iter().filter(|r| captures(&r.0)).map(|r| r.1).collect();
        let uppers = Uppers::default();
        let search = Search::new(Captured::new(&slots, &uppers));
        let stride = |(captures, labels, deed): &(u16, u16, Deed)| {
            Stride::new(*captures, *labels, deed.matters())
        };
        let strides = Strides {
            all: ALL.iter().map(stride).collect(),
            deeds: ALL.map(|(_, _, deed)| deed).to_vec(),
        };
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
