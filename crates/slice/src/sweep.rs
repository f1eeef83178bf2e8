//! The backward walk: from the criterion to the beginning of the run, once.
//!
//! A dependence always points back in time. So one pass over the records, latest
//! first, that carries what is still *wanted* (register cells per thread, bytes of
//! memory, branches) meets every definition before it meets what that definition
//! was computed from. Nothing is searched for, nothing is stored per dependence,
//! and records that define nothing wanted cost a few nanoseconds.

use crate::Ground;
use crate::clock::Clock;
use crate::demands::Demands;
use crate::digests::{Block, Written};
use crate::follow::Follow;
use crate::hits::Hits;
use crate::options::{Options, Origins, Start};
use crate::potential::Potential;
use crate::restores::Restores;
use crate::rote::{Followed, Learned, Rote};
use crate::signals::{Done, Kernel};
use crate::snapshots::{OFTEN, Snapshot};
use crate::statics::{BINDS, Binding, Brief, Statics};
use crate::stores::Store;
use crate::walk::{Interest, Walk};
use crate::wanted::{Lookout, WantedMemory};
use crate::wanted_cells::WantedCells;
use program::effects::{Cell, Cells};
use std::collections::{HashMap, HashSet};
use trace::{Bases, Captured, Direction, FrameId, Instance, PathId, Span, Time, Trace};

/// The kernel's own memory: an object's bytes have addresses too.
pub const OBJECTS: u64 = 1 << 62;
pub const OBJECT_BITS: u32 = 40;
/// Behind all bytes of an object: its position, if it is an open file.
pub const POSITION: u64 = (1 << OBJECT_BITS) - 1;

pub fn object_address(object: trace::ObjectId, offset: u64) -> u64 {
    OBJECTS + (u64::from(object.0) << OBJECT_BITS) + (offset & ((1 << OBJECT_BITS) - 1))
}

/// What is wanted of one thread.
#[derive(Clone)]
pub(crate) struct Thread<M> {
    pub wanted: WantedCells<M>,
    /// What was wanted when a symbol's binding was entered from behind.
    pub behind_binding: Option<Box<(FrameId, WantedCells<M>)>>,
}

impl<M: Copy + Default> Default for Thread<M> {
    fn default() -> Self {
        Thread { wanted: WantedCells::default(), behind_binding: None }
    }
}

impl<M> Thread<M> {
    fn is_idle(&self) -> bool {
        self.wanted.cells.is_empty() && self.behind_binding.is_none()
    }
}

/// One walk.
pub(crate) struct Sweep<'a, F: Follow> {
    ground: Ground<'a>,
    pub trace: &'a Trace,
    pub statics: &'a Statics,
    pub options: &'a Options,
    /// Nothing before this is looked for: what is told ends there.
    pub from: Instance,
    pub follow: &'a mut F,
    /// The thread whose records are met, and the others.
    pub current: u32,
    pub thread: Thread<F::Mark>,
    pub others: HashMap<u32, Thread<F::Mark>>,
    pub memory: WantedMemory<F::Mark>,
    pub branches: Demands<F::Mark>,
    pub restores: Restores<F::Mark>,
    /// Restores that turned out to be none.
    pub refuted: &'a mut HashSet<Instance>,
    /// The latest of those that this walk has passed by.
    pub refuted_since: Option<Instance>,
    pub snapshots: Vec<Snapshot<F>>,
    /// Records met since the last snapshot.
    pub met: u32,
    /// Registers a thread starts with, until its start is met.
    pub inherited: HashMap<u32, WantedCells<F::Mark>>,
    /// What is wanted as it was when a signal came, by thread and the frame's place.
    pub interrupted: HashMap<(u32, u64), WantedCells<F::Mark>>,
    pub never: Cells,
    /// What code does to what is wanted, as far as it was learned.
    pub rote: Option<Box<(Followed, Rote)>>,
    /// For relevant slices.
    pub potential: Option<Box<Potential>>,
    /// Room for what one instruction hits, made once.
    pub scratch: Hits<F::Mark>,
    clock: Clock,
}

/// Walks back from the criterion. `new` makes what directs the walk: a walk that
/// took something for a saved register that was none is begun anew.
pub(crate) fn sweep<F: Follow>(
    ground: Ground<'_>,
    starts: &[Start],
    options: &Options,
    (refuted, learned): (&mut HashSet<Instance>, &mut Learned),
    new: &dyn Fn() -> F,
) -> (F, Origins<F::Mark>) {
    loop {
        let mut follow = new();
        let mut sweep = Sweep::new(ground, options, &mut follow, refuted);
        if sweep.follow.counts() {
            let followed = Followed::of(options, sweep.never);
            sweep.rote = followed.map(|f| Box::new((f, learned.take(&f))));
        }
        let origins = sweep.run(starts);
        sweep.tell();
        if let Some((followed, rote)) = sweep.rote.take().map(|r| *r) {
            learned.put(followed, rote);
        }
        let late = sweep.clock.late;
        if sweep.refuted_since.is_none() {
            if late {
                follow.cut_short();
            }
            return (follow, origins);
        }
        if late {
            // What was found may be wrong, and there is no time to begin anew.
            let mut nothing = new();
            nothing.cut_short();
            return (nothing, Origins::default());
        }
    }
}

/// What a walk never looks for.
pub(crate) fn never(options: &Options) -> Cells {
    let left_out = if options.bookkeeping { Cells::NONE } else { bookkeeping() };
    options.pruned.cells.union(left_out)
}

/// What the processor and the thread library keep to themselves.
pub(crate) fn bookkeeping() -> Cells {
    Cells::gpr(4, 8).union(Cell::FS.into()).union(Cell::GS.into())
}

/// One record as the walk meets it.
pub(crate) struct Record<'a> {
    pub time: Time,
    pub path: PathId,
    pub captured: Captured<'a>,
    pub bases: Bases,
    pub first_label: usize,
}

/// What stores are looked at for.
struct Sought<'a, M> {
    lookout: Lookout<'a>,
    memory: &'a WantedMemory<M>,
    restores: &'a Restores<M>,
}

impl<M: Copy + Default + PartialEq> Sought<'_, M> {
    /// May these stores of a record write some of it?
    #[inline(always)]
    fn may_be_in(&self, stores: &[Store], captured: Captured<'_>, bases: Bases) -> bool {
        for store in stores {
            let Some((start, len)) = store.range(captured, bases) else { return true };
            if self.may_be_in_range(start, len) {
                return true;
            }
        }
        false
    }

    /// May something be there that is written in a block of records?
    #[inline(always)]
    fn may_be_there(&self, written: Written) -> bool {
        let (start, len) = written.range();
        self.may_be_in_range(start, len)
    }

    #[inline(always)]
    fn may_be_in_range(&self, start: u64, len: u64) -> bool {
        self.lookout.may_concern(start, len)
            && (self.memory.has(start, len) || self.restores.may_have(start, len))
    }
}

/// What records and blocks of them are looked at for, as long as nothing is met.
struct Look<'a, M> {
    /// Registers, in short.
    wanted: u64,
    stores: &'a [Store],
    bases: Bases,
    sought: Sought<'a, M>,
}

impl<M: Copy + Default + PartialEq + Sync> Interest for Look<'_, M> {
    #[inline(always)]
    fn is_in_record(&self, brief: &Brief, captured: Captured<'_>, own: usize) -> bool {
        let in_memory =
            || self.sought.may_be_in(brief.of(self.stores), captured.from(own), self.bases);
        self.wanted & brief.defs != 0 || brief.stores() && in_memory()
    }

    #[inline]
    fn is_in_block(&self, block: &Block, written: &[Written]) -> bool {
        self.wanted & block.defs != 0
            || block.is_odd
            || written.iter().any(|written| self.sought.may_be_there(*written))
    }
}

impl<'a, F: Follow> Sweep<'a, F> {
    fn new(
        ground: Ground<'a>,
        options: &'a Options,
        follow: &'a mut F,
        refuted: &'a mut HashSet<Instance>,
    ) -> Self {
        Sweep {
            ground,
            trace: ground.trace,
            statics: ground.statics,
            options,
            from: options.from.max(options.region.from),
            follow,
            current: u32::MAX,
            thread: Thread::default(),
            others: HashMap::new(),
            memory: match options.relevant {
                true => WantedMemory::counted::<F>(),
                false => WantedMemory::default(),
            },
            branches: Demands::default(),
            restores: Restores::default(),
            refuted,
            refuted_since: None,
            snapshots: Vec::new(),
            met: 0,
            inherited: HashMap::new(),
            interrupted: HashMap::new(),
            never: never(options),
            scratch: Hits::default(),
            rote: None,
            clock: Clock::new(options.until),
            potential: options.relevant.then(Box::default),
        }
    }

    fn run(&mut self, starts: &[Start]) -> Origins<F::Mark> {
        let mut starts = starts.to_vec();
        starts.retain(|s| s.at() >= self.from);
        starts.sort_by_key(|s| s.at());
        let Some(last) = starts.last().map(|s| s.at().time) else { return Origins::default() };
        let trace = self.trace;
        // What is done after the criterion does not matter, though it may have been asked
        // for before.
        let calls = trace.spans.calls.partition_point(|call| call.at <= last);
        let signals = trace.spans.signals.partition_point(|signal| signal.at <= last);
        let mut kernel = Kernel { calls, signals };
        let mut walk = Walk::new(self.ground, last);
        while !self.spans(&mut walk, &mut kernel, &mut starts) {
            let Some(kept) = self.go_back() else { break };
            walk = Walk::new(self.ground, Time(kept.next - 1));
            (kernel, starts) = (kept.kernel, kept.starts.clone());
            self.carry(kept);
        }
        // What is still wanted was not looked for, if it is late: it has no origin yet.
        match self.clock.late {
            true => Origins::default(),
            false => self.origins(kernel.calls),
        }
    }

    /// Walks to the beginning. Says whether all that was found is right.
    fn spans(&mut self, walk: &mut Walk<'a>, kernel: &mut Kernel, starts: &mut Vec<Start>) -> bool {
        let trace = self.trace;
        let spans = trace.spans.spans.partition_point(|s| s.start.0 < walk.next());
        for span in trace.spans.spans[..spans].iter().rev() {
            self.span(span, walk, kernel, starts);
            let done = self.is_idle() && starts.is_empty() || span.start <= self.from.time;
            if self.clock.late || done || self.must_go_back() {
                break;
            }
        }
        self.refuted_since.is_none()
    }

    /// Another thread's records come next.
    fn switch(&mut self, to: u32) {
        if self.current != to {
            let next = self.others.remove(&to).unwrap_or_default();
            let before = std::mem::replace(&mut self.thread, next);
            self.others.insert(self.current, before);
            self.current = to;
        }
    }

    pub(crate) fn thread_of(&mut self, thread: u32) -> &mut Thread<F::Mark> {
        if thread == self.current {
            &mut self.thread
        } else {
            self.others.entry(thread).or_default()
        }
    }

    fn span(
        &mut self,
        span: &Span,
        walk: &mut Walk<'a>,
        kernel: &mut Kernel,
        starts: &mut Vec<Start>,
    ) {
        self.switch(span.thread);
        let mut floor = self.floor(span, kernel, starts);
        loop {
            self.pass(span, walk, floor);
            let next = walk.next();
            if self.met >= OFTEN && next > span.start.0 && self.pause(next, kernel, starts) {
                return;
            }
            self.met += 1;
            let Some((time, path, captured, first_label)) = walk.back_to(span.start) else { break };
            if time < self.from.time || self.clock.is_late() {
                return;
            }
            let record = Record { time, path, captured, bases: span.bases, first_label };
            if time >= floor {
                self.record(&record);
                continue;
            }
            while let Some(done) = kernel.before(self.trace, time) {
                match done {
                    Done::Call(n) => self.call(n),
                    Done::Signal(n) => self.signal(n),
                }
            }
            if starts.last().is_some_and(|s| s.at().time == time) {
                self.begin(&record, &drain_at(starts, time));
            } else {
                self.record(&record);
            }
            floor = self.floor(span, kernel, starts);
        }
        self.thread_begins(span);
    }

    /// From this record on nothing happens but records.
    fn floor(&self, span: &Span, kernel: &Kernel, starts: &[Start]) -> Time {
        let start = starts.last().map_or(Time::START, |start| Time(start.at().time.0 + 1));
        span.start.max(self.from.time).max(kernel.next(self.trace)).max(start)
    }

    /// Passes by records that define nothing wanted, as far as nothing else happens.
    fn pass(&self, span: &Span, walk: &mut Walk<'a>, floor: Time) {
        if !self.options.skipping || self.potential.is_some() {
            return;
        }
        let floor = floor.0.max(self.branches.next().map_or(0, |at| at.time.0 + 1));
        let stores = self.statics.stores();
        let wanted = self.thread.wanted.short | BINDS;
        let look = Look { wanted, stores, bases: span.bases, sought: self.sought() };
        walk.pass(Time(floor), &look);
    }

    fn is_idle(&self) -> bool {
        self.memory.is_empty()
            && self.branches.is_empty()
            && self.inherited.is_empty()
            && self.interrupted.is_empty()
            && self.restores.is_empty()
            && self.thread.is_idle()
            && self.others.values().all(Thread::is_idle)
    }

    fn record(&mut self, record: &Record) {
        let binding = self.statics.path(record.path).binding;
        if binding.is_none() || self.options.bookkeeping {
            return self.operations(record);
        }
        if binding == Some(Binding::Ends) {
            self.binding_ends(record);
        }
        self.operations(record);
        if binding == Some(Binding::Begins) {
            self.binding_begins(record);
        }
    }

    fn operations(&mut self, record: &Record) {
        if self.potential.is_some() {
            return self.operations_and_others(record);
        }
        // What is done by rote is told as a whole.
        let is_told = self.from.time < record.time && record.time < self.options.region.to.time;
        if is_told && let Some(mut rote) = self.rote.take() {
            self.by_rote(&mut rote.1, &rote.0, record);
            self.rote = Some(rote);
            return;
        }
        let facts = self.statics.path(record.path);
        let demanded = self.branches.next().is_some_and(|at| at.time == record.time);
        let skips = self.options.skipping && !demanded;
        if skips && self.thread.wanted.short & facts.defs == 0 {
            let stores = self.statics.stores_of(facts);
            if !self.sought().may_be_in(stores, record.captured, record.bases) {
                return;
            }
        }
        let code = &self.trace.code;
        let ops = code.ops(code.path(record.path));
        for (index, op) in ops.iter().enumerate().rev() {
            let at = Instance { time: record.time, index: index as u16 };
            self.instruction(record, op, at);
        }
    }

    /// The same, with an eye on branches that could have gone another way.
    fn operations_and_others(&mut self, record: &Record) {
        self.learn_frame(record);
        let code = &self.trace.code;
        let ops = code.ops(code.path(record.path));
        for (index, op) in ops.iter().enumerate().rev() {
            let at = Instance { time: record.time, index: index as u16 };
            self.look_aside(record, op, at, self.current);
            self.instruction(record, op, at);
        }
        self.leave_record(record, self.current);
    }

    /// Is a branch wanted that is met next?
    pub(crate) fn is_demanded(&self, at: Instance) -> bool {
        self.branches.has(at)
    }

    /// What stores are looked at for.
    #[inline(always)]
    fn sought(&self) -> Sought<'_, F::Mark> {
        let lookout = self.memory.lookout();
        Sought { lookout, memory: &self.memory, restores: &self.restores }
    }

    /// What is wanted where the walk ends: before it, so many calls were made.
    fn origins(&mut self, calls: usize) -> Origins<F::Mark> {
        self.leave_out_sent(calls);
        let mut origins = Origins::default();
        // Where only what is told ends, memory may have been written before.
        let is_beginning = self.from <= self.options.from;
        for (address, mark) in self.memory.all() {
            if address >= OBJECTS {
                let object = trace::ObjectId(((address - OBJECTS) >> OBJECT_BITS) as u32);
                let offset = (address - OBJECTS) & ((1 << OBJECT_BITS) - 1);
                // Where a file's position was at first is no byte of it.
                if offset != POSITION {
                    origins.objects.push((object, offset, mark));
                }
            } else if is_beginning {
                origins.memory.push((address, mark));
            }
        }
        origins
    }

    /// What the first calls of the run sent did not come from outside, though who made it is not
    /// looked for.
    fn leave_out_sent(&mut self, calls: usize) {
        if self.memory.is_empty() {
            return;
        }
        let transfers = (0..calls).filter_map(|n| self.trace.objects.transfer(n));
        for sent in transfers.filter(|t| t.direction == Direction::Write) {
            let hits = self.memory.hits(object_address(sent.object, sent.offset), sent.len());
            for (address, _) in hits {
                self.memory.remove(address);
            }
        }
    }
}

fn drain_at(starts: &mut Vec<Start>, time: Time) -> Vec<Start> {
    let n = starts.partition_point(|s| s.at().time < time);
    starts.split_off(n)
}
