//! The backward walk: from the criterion to the beginning of the run, once.
//!
//! A dependence always points back in time. So one pass over the records, latest
//! first, that carries what is still *wanted* (register cells per thread, bytes of
//! memory, branches) meets every definition before it meets what that definition
//! was computed from. Nothing is searched for, nothing is stored per dependence,
//! and records that define nothing wanted cost a few nanoseconds.

use crate::statics::{Binding, Statics};
use crate::wanted::{Distance, WantedCells, WantedMemory};
use program::effects::{Cell, Cells, Flow as DataFlow, Shape, Source, Target};
use std::collections::{BTreeMap, HashMap, HashSet};
use trace::{
    Bases, CallSite, Direction, Flow, FrameId, Instance, InstructionId, Op, Operand, PathId, Span,
    Time, Trace,
};

/// Which dependences are followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Control dependences.
    pub control: bool,
    /// From a memory operand to the registers its address was made of.
    pub addresses: bool,
    /// Also bookkeeping: the stack pointer, saved registers, binding of symbols.
    pub bookkeeping: bool,
    /// Nothing farther than this is looked for.
    pub depth: Distance,
    /// Nothing before this is looked for.
    pub from: Time,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            control: true,
            addresses: true,
            bookkeeping: false,
            depth: Distance::MAX,
            from: Time::START,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Start {
    /// All that an instance uses, and the instance itself.
    Instance(Instance),
    /// Registers and memory as they are before an instance, in its thread.
    Before(Instance, Cells, Vec<(u64, u64)>),
}

impl Start {
    fn at(&self) -> Instance {
        match self {
            Start::Instance(at) | Start::Before(at, ..) => *at,
        }
    }
}

/// Who is told what the walk finds.
pub trait Visitor {
    /// An instance is in the slice.
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance);
    /// One instance depends on another that defined something it used.
    fn is_watching_edges(&self) -> bool {
        false
    }
}

/// What was wanted and has no definition in the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Memory that was there from the start: the program's data, its arguments.
    pub memory: Vec<(u64, Distance)>,
    /// Bytes of files, standard input and the like that were read.
    pub objects: Vec<(trace::ObjectId, u64, Distance)>,
}

/// The kernel's own memory: an object's bytes have addresses too.
const OBJECTS: u64 = 1 << 62;
const OBJECT_BITS: u32 = 40;

fn object_address(object: trace::ObjectId, offset: u64) -> u64 {
    OBJECTS + (u64::from(object.0) << OBJECT_BITS) + (offset & ((1 << OBJECT_BITS) - 1))
}

/// A callee-saved register that was restored, until its save is met.
struct Restore {
    slot: u64,
    frame: FrameId,
    register: u8,
    cells: Vec<(Cell, Distance)>,
    at: Instance,
}

/// All of those, found by their slots. There are few, and the latest is met first.
struct Restores {
    list: Vec<Restore>,
    filter: Box<[u8; 4096]>,
}

impl Default for Restores {
    fn default() -> Self {
        Restores { list: Vec::new(), filter: Box::new([0; 4096]) }
    }
}

impl Restores {
    fn bucket(slot: u64) -> usize {
        (slot >> 3) as usize % 4096
    }

    fn add(&mut self, restore: Restore) -> bool {
        let count = &mut self.filter[Self::bucket(restore.slot)];
        let new = *count < u8::MAX && !self.list.iter().any(|r| r.slot.abs_diff(restore.slot) < 8);
        if new {
            *count += 1;
            self.list.push(restore);
        }
        new
    }

    /// May a write reach one of the slots? Never wrong when it says no.
    #[inline]
    fn may_have(&self, start: u64, len: u64) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let end = start.wrapping_add(len);
        if len > 64 {
            return self.list.iter().any(|r| r.slot < end && start < r.slot + 8);
        }
        let (first, last) = (start >> 3, (end.wrapping_sub(1)) >> 3);
        (first.wrapping_sub(1)..=last).any(|w| self.filter[w as usize % 4096] != 0)
    }

    /// Takes out one that a write reaches.
    fn take(&mut self, start: u64, len: u64) -> Option<Restore> {
        let end = start.saturating_add(len);
        let n = self.list.iter().rposition(|r| r.slot < end && start < r.slot + 8)?;
        let restore = self.list.remove(n);
        self.filter[Self::bucket(restore.slot)] -= 1;
        Some(restore)
    }
}

#[derive(Default)]
struct Thread {
    wanted: WantedCells,
    /// What was wanted when a symbol's binding was entered from behind.
    behind_binding: Option<Box<(FrameId, WantedCells)>>,
}

impl Thread {
    fn is_idle(&self) -> bool {
        self.wanted.cells.is_empty() && self.behind_binding.is_none()
    }
}

/// One walk.
pub struct Sweep<'a, V> {
    trace: &'a Trace,
    statics: &'a Statics,
    options: &'a Options,
    visitor: &'a mut V,
    /// The thread whose records are met, and the others.
    current: u32,
    thread: Thread,
    others: HashMap<u32, Thread>,
    memory: WantedMemory,
    branches: BTreeMap<(u32, u16), Distance>,
    restores: Restores,
    /// Restores that turned out to be none.
    refuted: &'a mut HashSet<Instance>,
    refutes: bool,
    /// Registers a thread starts with, until its start is met.
    inherited: HashMap<u32, WantedCells>,
    never: Cells,
}

/// Walks back from the criterion.
pub fn sweep<V: Visitor + Default>(
    trace: &Trace,
    statics: &Statics,
    starts: &[Start],
    options: &Options,
    refuted: &mut HashSet<Instance>,
) -> (V, Origins) {
    loop {
        let mut visitor = V::default();
        let before = refuted.len();
        let mut sweep = Sweep::new(trace, statics, options, &mut visitor, refuted);
        let origins = sweep.run(starts);
        if !sweep.refutes || refuted.len() == before {
            return (visitor, origins);
        }
    }
}

/// What the processor and the thread library keep to themselves.
fn bookkeeping() -> Cells {
    Cells::gpr(4, 8).union(Cell::FS.into()).union(Cell::GS.into())
}

/// One record as the walk meets it.
struct Record<'a> {
    time: Time,
    path: PathId,
    captured: &'a [u64],
    bases: Bases,
    first_label: usize,
}

impl<'a, V: Visitor> Sweep<'a, V> {
    fn new(
        trace: &'a Trace,
        statics: &'a Statics,
        options: &'a Options,
        visitor: &'a mut V,
        refuted: &'a mut HashSet<Instance>,
    ) -> Self {
        Sweep {
            trace,
            statics,
            options,
            visitor,
            current: u32::MAX,
            thread: Thread::default(),
            others: HashMap::new(),
            memory: WantedMemory::default(),
            branches: BTreeMap::new(),
            restores: Restores::default(),
            refuted,
            refutes: false,
            inherited: HashMap::new(),
            never: if options.bookkeeping { Cells::NONE } else { bookkeeping() },
        }
    }

    fn run(&mut self, starts: &[Start]) -> Origins {
        let mut starts = starts.to_vec();
        starts.sort_by_key(|s| s.at());
        let Some(last) = starts.last().map(|s| s.at().time) else { return Origins::default() };
        let trace = self.trace;
        let mut calls = &trace.spans.calls[..];
        // Calls that finish after the criterion do not matter, unless it is one.
        while let [rest @ .., call] = calls
            && call.instance.time > last
        {
            calls = rest;
        }
        let mut walk = Walk::new(trace, self.statics, last);
        let spans = trace.spans.spans.partition_point(|s| s.start <= last);
        for span in trace.spans.spans[..spans].iter().rev() {
            self.span(span, &mut walk, &mut calls, &mut starts);
            if self.is_idle() && starts.is_empty() || span.start <= self.options.from {
                break;
            }
        }
        self.origins()
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

    fn thread_of(&mut self, thread: u32) -> &mut Thread {
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
        calls: &mut &'a [CallSite],
        starts: &mut Vec<Start>,
    ) {
        self.switch(span.thread);
        while let Some((time, path, captured, first_label)) = walk.back_to(span.start) {
            if time < self.options.from {
                return;
            }
            while let [rest @ .., call] = calls
                && call.at > time
            {
                *calls = rest;
                self.call(rest.len());
            }
            let record = Record { time, path, captured, bases: span.bases, first_label };
            while starts.last().is_some_and(|s| s.at().time == time) {
                // Several criteria in one record are taken together.
                let all: Vec<Start> = drain_at(starts, time);
                self.begin(&record, &all);
            }
            self.record(&record);
        }
        self.thread_begins(span);
    }

    fn is_idle(&self) -> bool {
        self.memory.is_empty()
            && self.branches.is_empty()
            && self.inherited.is_empty()
            && self.restores.list.is_empty()
            && self.thread.is_idle()
            && self.others.values().all(Thread::is_idle)
    }

    /// The criterion's own record: what lies before the criterion in it is walked
    /// instruction by instruction.
    fn begin(&mut self, record: &Record, starts: &[Start]) {
        let code = &self.trace.code;
        let path = code.path(record.path);
        let ops: Vec<Op> = code.ops(path).iter().chain(code.faulting(path)).copied().collect();
        let last = starts.iter().map(|s| s.at().index).max().unwrap_or(0);
        for index in (0..=last).rev() {
            let Some(op) = ops.get(usize::from(index)) else { continue };
            let at = Instance { time: record.time, index };
            let here: Vec<&Start> = starts.iter().filter(|s| s.at().index == index).collect();
            if index < last {
                self.instruction(record, op, at);
            }
            for start in here {
                match start {
                    Start::Instance(_) => self.include_all(record, op, at),
                    Start::Before(_, cells, memory) => {
                        self.thread.wanted.add(*cells, 0);
                        for (address, len) in memory {
                            self.memory.add(*address, *len, 0);
                        }
                    }
                }
            }
        }
    }

    /// Everything the instance uses is wanted.
    fn include_all(&mut self, record: &Record, op: &Op, at: Instance) {
        let info = self.trace.code.info(op.instruction);
        self.visitor.instance(at, op.instruction, 0);
        self.want_cells(info.uses.union(info.condition), 1);
        for operand in self.trace.code.operands(op) {
            self.want_address(operand, 1);
            if operand.access().reads {
                self.want_operand(record, operand, 1);
            }
        }
        self.want_parent(record, at, 1);
    }

    fn record(&mut self, record: &Record) {
        let facts = self.statics.path(record.path);
        if facts.binding.is_some() && !self.options.bookkeeping {
            self.binding(record, facts.binding);
        }
        let next = self.branches.last_key_value();
        let demanded = next.is_some_and(|((t, _), _)| *t == record.time.0);
        if !demanded && !self.thread.wanted.cells.overlaps(&facts.defs) && !self.may_store(record) {
            return;
        }
        let code = &self.trace.code;
        let ops = code.ops(code.path(record.path));
        for (index, op) in ops.iter().enumerate().rev() {
            let at = Instance { time: record.time, index: index as u16 };
            self.instruction(record, op, at);
        }
    }

    /// May the record write something that is wanted?
    #[inline]
    fn may_store(&self, record: &Record) -> bool {
        let stores = self.statics.stores(self.statics.path(record.path));
        stores.iter().any(|store| match store.range(record.captured, record.bases) {
            Some((start, len)) => self.memory.has(start, len) || self.restores.may_have(start, len),
            None => true,
        })
    }

    /// One instruction: does it define something wanted?
    fn instruction(&mut self, record: &Record, op: &Op, at: Instance) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let demanded = match self.branches.last_key_value() {
            Some((key, _)) if *key == (at.time.0, at.index) => self.branches.pop_last(),
            _ => None,
        };
        let demanded = demanded.map(|(_, distance)| distance);
        let touches = self.thread.wanted.cells.overlaps(&info.defs);
        let writes = info.effects.accesses.iter().any(|a| a.writes);
        if demanded.is_none() && !touches && !writes {
            return;
        }
        if touches && self.bypass_restore(record, op, at) {
            return;
        }
        if writes && self.bypass_save(record, op) {
            return;
        }
        let hits = self.hits(record, op);
        let distance = hits.nearest().min(demanded.unwrap_or(Distance::MAX));
        self.kill(op, &hits);
        if distance == Distance::MAX || distance > self.options.depth {
            return;
        }
        self.visitor.instance(at, op.instruction, distance);
        let next = distance + 1;
        if demanded.is_some() {
            self.want_decision(record, op, next);
        }
        for hit in &hits.list {
            self.want_sources(record, op, &info.effects.flows[hit.flow], hit, next);
        }
        self.want_parent(record, at, next);
    }

    /// Which flows of an instruction define something wanted.
    fn hits(&self, record: &Record, op: &Op) -> Hits {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let operands = trace.code.operands(op);
        let wanted = &self.thread.wanted;
        let mut hits = Hits::default();
        for (n, flow) in info.effects.flows.iter().enumerate() {
            match &flow.to {
                Target::Cells(cells) => {
                    let hit = cells.intersection(wanted.cells);
                    if !hit.is_empty() {
                        let distance = wanted.nearest(hit);
                        hits.list.push(Hit { flow: n, cells: hit, bytes: Vec::new(), distance });
                    }
                }
                Target::Memory { access, first, len } => {
                    let operand = &operands[usize::from(*access)];
                    let Some(range) = operand.range(record.captured, record.bases) else {
                        continue;
                    };
                    if !self.memory.may_have(range.start, range.len) {
                        continue;
                    }
                    let size = u64::from(operand.access().size).max(1);
                    let (first, len) = (u64::from(*first), u64::from(*len));
                    let bytes: Vec<(u64, Distance)> = self
                        .memory
                        .hits(range.start, range.len)
                        .into_iter()
                        .filter(|(a, _)| (first..first + len).contains(&((a - range.start) % size)))
                        .collect();
                    if let Some(distance) = bytes.iter().map(|(_, d)| *d).min() {
                        let bytes = bytes.iter().map(|(a, _)| a - range.start).collect();
                        hits.list.push(Hit { flow: n, cells: Cells::NONE, bytes, distance });
                        hits.memory.push(range.start);
                    }
                }
            }
        }
        hits
    }

    /// What the instruction overwrites is not wanted before it.
    fn kill(&mut self, op: &Op, hits: &Hits) {
        let info = self.trace.code.info(op.instruction);
        self.thread.wanted.remove(info.defs);
        let mut starts = hits.memory.iter();
        for hit in hits.list.iter().filter(|h| !h.bytes.is_empty()) {
            let start = starts.next().expect("one for each");
            for byte in &hit.bytes {
                self.memory.remove(start + byte);
            }
        }
    }

    fn want_cells(&mut self, cells: Cells, distance: Distance) {
        let cells = cells.minus(self.never);
        if !cells.is_empty() {
            self.thread.wanted.add(cells, distance);
        }
    }

    fn want_operand(&mut self, record: &Record, operand: &Operand, distance: Distance) {
        match operand.range(record.captured, record.bases) {
            Some(range) => self.memory.add(range.start, range.len, distance),
            None => self.want_gather(record, operand, distance),
        }
    }

    /// A gather: its elements are told by an event before the record.
    fn want_gather(&mut self, record: &Record, operand: &Operand, distance: Distance) {
        let size = u64::from(operand.access().size);
        for address in self.trace.gathered(record.time) {
            self.memory.add(*address, size, distance);
        }
    }

    fn want_address(&mut self, operand: &Operand, distance: Distance) {
        if !self.options.addresses {
            return;
        }
        let access = operand.access();
        let counted = access.repeats.map_or(Cells::NONE, |r| r.registers());
        self.want_cells(access.address.registers().union(counted), distance);
    }

    /// What decides where a branch goes.
    fn want_decision(&mut self, record: &Record, op: &Op, distance: Distance) {
        let info = self.trace.code.info(op.instruction);
        self.want_cells(info.condition, distance);
        let linkage = self.statics.instruction(op.instruction).is_linkage;
        if matches!(info.flow, Flow::Indirect | Flow::Call | Flow::Return)
            && (!linkage || self.options.bookkeeping)
        {
            for operand in self.trace.code.operands(op) {
                if operand.access().reads {
                    self.want_address(operand, distance);
                    self.want_operand(record, operand, distance);
                }
            }
        }
    }

    fn want_parent(&mut self, record: &Record, at: Instance, distance: Distance) {
        if !self.options.control {
            return;
        }
        let parent = self.trace.control.parent(record.path, at, record.first_label);
        if let Some(parent) = parent.filter(|p| p.time >= self.options.from) {
            let entry = self.branches.entry((parent.time.0, parent.index)).or_insert(distance);
            *entry = distance.min(*entry);
        }
    }

    /// What the wanted bytes of one flow were computed from.
    fn want_sources(
        &mut self,
        record: &Record,
        op: &Op,
        flow: &DataFlow,
        hit: &Hit,
        next: Distance,
    ) {
        let operands = self.trace.code.operands(op);
        if let Target::Memory { access, .. } = &flow.to {
            self.want_address(&operands[usize::from(*access)], next);
        }
        let places = hit.places(flow, operands);
        for source in &flow.from {
            self.want_source(record, operands, source, flow.shape, &places, next);
        }
        for source in &flow.also {
            self.want_source(record, operands, source, Shape::Whole, &places, next);
        }
    }

    fn want_source(
        &mut self,
        record: &Record,
        operands: &[Operand],
        source: &Source,
        shape: Shape,
        places: &Places,
        next: Distance,
    ) {
        match source {
            Source::Cells(cells) => {
                let cells = places.of_cells(*cells, shape);
                self.want_cells(cells, next);
            }
            Source::Memory { access, first, len } => {
                let operand = &operands[usize::from(*access)];
                self.want_address(operand, next);
                let Some(range) = operand.range(record.captured, record.bases) else {
                    return self.want_gather(record, operand, next);
                };
                let size = u64::from(operand.access().size);
                for (from, until) in places.of_memory(*first, *len, size, range.len, shape) {
                    self.memory.add(range.start + from, until - from, next);
                }
            }
        }
    }

    /// A saved register comes back: look for the save instead of the slot.
    fn bypass_restore(&mut self, record: &Record, op: &Op, at: Instance) -> bool {
        let facts = self.statics.instruction(op.instruction);
        let Some(register) = facts.restores.filter(|_| !self.options.bookkeeping) else {
            return false;
        };
        if self.refuted.contains(&at) {
            return false;
        }
        let info = self.trace.code.info(op.instruction);
        let read = self.trace.code.operands(op).iter().find(|o| o.access().reads);
        let slot = read.and_then(|o| o.address(record.captured, record.bases));
        let Some(slot) = slot else { return false };
        let wanted = &mut self.thread.wanted;
        let hit = Cells::gpr(register, 8).intersection(wanted.cells);
        if hit.is_empty() {
            return false;
        }
        let cells = hit.iter().map(|c| (c, wanted.distance(c))).collect();
        let frame = self.trace.control.frame_of(record.time);
        let bypassed = self.restores.add(Restore { slot, frame, register, cells, at });
        if bypassed {
            wanted.remove(info.defs);
        }
        bypassed
    }

    /// Something writes slots that saved registers came from.
    fn bypass_save(&mut self, record: &Record, op: &Op) -> bool {
        let mut bypassed = false;
        for operand in self.trace.code.operands(op).iter().filter(|o| o.access().writes) {
            let Some(range) = operand.range(record.captured, record.bases) else { continue };
            if !self.restores.may_have(range.start, range.len) {
                continue;
            }
            while let Some(restore) = self.restores.take(range.start, range.len) {
                let whole = (range.start, range.len) == (restore.slot, 8);
                bypassed |= self.meet_save(record, op, &restore, whole);
            }
        }
        bypassed
    }

    fn meet_save(&mut self, record: &Record, op: &Op, restore: &Restore, whole: bool) -> bool {
        let saved = self.statics.instruction(op.instruction).saves;
        let frame = self.trace.control.frame_of(record.time);
        if !whole || saved != Some(restore.register) || frame != restore.frame {
            // The slot was overwritten: the restore is a dependence like any other.
            self.refute(restore);
            return false;
        }
        for (cell, distance) in &restore.cells {
            self.want_cells((*cell).into(), *distance);
        }
        // Somebody else may want the slot's contents all the same.
        !self.memory.may_have(restore.slot, 8) || self.memory.hits(restore.slot, 8).is_empty()
    }

    fn refute(&mut self, restore: &Restore) {
        self.refuted.insert(restore.at);
        self.refutes = true;
    }

    /// Binding a symbol leaves registers as they are: what is wanted behind it is
    /// wanted before it.
    fn binding(&mut self, record: &Record, binding: Option<Binding>) {
        let frame = self.trace.control.frame_of(record.time);
        let thread = &mut self.thread;
        match binding {
            Some(Binding::Ends) => {
                let wanted = std::mem::take(&mut thread.wanted);
                thread.behind_binding = Some(Box::new((frame, wanted)));
            }
            Some(Binding::Begins) => {
                let matches = thread.behind_binding.as_ref().is_some_and(|b| b.0 == frame);
                if matches && let Some(behind) = thread.behind_binding.take() {
                    thread.wanted.merge(&behind.1);
                }
            }
            None => {}
        }
    }

    /// What a thread wants at its first instruction comes from its parent.
    fn thread_begins(&mut self, span: &Span) {
        let first = self.trace.spans.spans.iter().find(|s| s.thread == span.thread);
        if first == Some(span) && !self.thread.wanted.cells.is_empty() {
            self.inherited.insert(span.thread, std::mem::take(&mut self.thread.wanted));
        }
    }

    /// A system call: memory it wrote, its result, and what passed through it.
    fn call(&mut self, n: usize) {
        let trace = self.trace;
        let site = &trace.spans.calls[n];
        let call = trace.call(site);
        let transfer = trace.objects.transfer(n);
        let mut reached: Vec<(u64, Distance)> = Vec::new();
        for (start, len) in call.written.iter().chain(&call.mapped) {
            reached.extend(self.memory.hits(*start, *len));
            while let Some(restore) = self.restores.take(*start, *len) {
                self.refute(&restore);
            }
        }
        if let Some(t) = transfer.filter(|t| t.direction == Direction::Write) {
            reached.extend(self.memory.hits(object_address(t.object, t.offset), t.len()));
        }
        let inherited = call.spawned.and_then(|thread| self.inherited.remove(&thread));
        let thread = self.thread_of(site.thread);
        let result = Cells::gpr(0, 8).intersection(thread.wanted.cells);
        let mut distance = reached.iter().map(|(_, d)| *d).min().unwrap_or(Distance::MAX);
        if !result.is_empty() {
            distance = distance.min(thread.wanted.nearest(result));
        }
        thread.wanted.remove(Cells::gpr(0, 8));
        if let Some(inherited) = inherited {
            thread.wanted.merge(&inherited);
            thread.wanted.remove(Cells::gpr(0, 8));
        }
        if call.number == 15 {
            self.signal_return(site, call.sp);
        }
        if distance == Distance::MAX || distance > self.options.depth {
            return;
        }
        for (address, _) in &reached {
            self.memory.remove(*address);
        }
        let next = distance + 1;
        if let Some(t) = transfer {
            for (address, _) in &reached {
                self.want_other_side(t, *address, next);
            }
        }
        self.include_call(site, distance);
        if !result.is_empty()
            && let Some(path) = &call.path
        {
            let at =
                if matches!(call.number, 257 | 263 | 437) { call.args[1] } else { call.args[0] };
            self.memory.add(at, path.len() as u64 + 1, next);
        }
    }

    fn want_other_side(&mut self, t: &trace::Transfer, address: u64, next: Distance) {
        if t.direction == Direction::Read {
            if let Some(offset) = t.offset_of(address) {
                self.memory.add(object_address(t.object, offset), 1, next);
            }
        } else if address >= OBJECTS {
            let offset = (address - OBJECTS) & ((1 << OBJECT_BITS) - 1);
            if let Some(from) = t.address_of(offset) {
                self.memory.add(from, 1, next);
            }
        }
    }

    /// The instruction that made a call is in the slice, with its arguments.
    fn include_call(&mut self, site: &CallSite, distance: Distance) {
        let trace = self.trace;
        let call = trace.call(site);
        let path = trace.records.path(site.instance.time);
        let ops = trace.code.ops(trace.code.path(path));
        let Some(op) = ops.get(usize::from(site.instance.index)) else { return };
        self.visitor.instance(site.instance, op.instruction, distance);
        let next = distance + 1;
        let arguments = crate::calls::arguments(call.number);
        self.thread_of(site.thread).wanted.add(arguments, next);
        if self.options.control {
            let first = trace.control.first_label(&trace.records, site.instance.time);
            if let Some(p) = trace.control.parent(path, site.instance, first) {
                let entry = self.branches.entry((p.time.0, p.index)).or_insert(next);
                *entry = next.min(*entry);
            }
        }
    }

    /// Registers come back from a signal's frame.
    fn signal_return(&mut self, site: &CallSite, sp: u64) {
        // struct ucontext: uc_flags, uc_link, uc_stack, then the registers.
        const ORDER: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];
        let thread = self.thread_of(site.thread);
        let mut found = Vec::new();
        for (n, register) in ORDER.iter().enumerate() {
            let hit = Cells::gpr(*register, 8).intersection(thread.wanted.cells);
            for cell in hit.iter() {
                let byte = u64::from(cell.number() % 8);
                found.push((sp + 40 + 8 * n as u64 + byte, thread.wanted.distance(cell)));
            }
            thread.wanted.remove(hit);
        }
        for (address, distance) in found {
            self.memory.add(address, 1, distance);
        }
    }

    fn origins(&mut self) -> Origins {
        let mut origins = Origins::default();
        for (address, distance) in self.memory.all() {
            if address >= OBJECTS {
                let object = trace::ObjectId(((address - OBJECTS) >> OBJECT_BITS) as u32);
                let offset = (address - OBJECTS) & ((1 << OBJECT_BITS) - 1);
                origins.objects.push((object, offset, distance));
            } else {
                origins.memory.push((address, distance));
            }
        }
        origins
    }
}

fn drain_at(starts: &mut Vec<Start>, time: Time) -> Vec<Start> {
    let n = starts.partition_point(|s| s.at().time < time);
    starts.split_off(n)
}

/// One flow that defines something wanted.
struct Hit {
    flow: usize,
    cells: Cells,
    /// Offsets in the operand's memory.
    bytes: Vec<u64>,
    distance: Distance,
}

#[derive(Default)]
struct Hits {
    list: Vec<Hit>,
    /// First address, for each hit in memory.
    memory: Vec<u64>,
}

impl Hits {
    fn nearest(&self) -> Distance {
        self.list.iter().map(|h| h.distance).min().unwrap_or(Distance::MAX)
    }
}

/// Which bytes of a flow's target are wanted.
struct Places {
    /// Within one element, all elements taken together.
    within: Vec<u64>,
    /// The same, counted over all elements; for repeated operands.
    over_all: Option<Vec<u64>>,
    all: bool,
}

impl Hit {
    fn places(&self, flow: &DataFlow, operands: &[Operand]) -> Places {
        match &flow.to {
            Target::Cells(cells) => {
                if self.cells == *cells {
                    return Places { within: Vec::new(), over_all: None, all: true };
                }
                let wanted = |(_, cell): &(usize, Cell)| self.cells.contains(*cell);
                let within = cells.iter().enumerate().filter(wanted).map(|(n, _)| n as u64);
                Places { within: within.collect(), over_all: None, all: false }
            }
            Target::Memory { access, first, len } => {
                let access = operands[usize::from(*access)].access();
                let size = u64::from(access.size).max(1);
                let mut within: Vec<u64> =
                    self.bytes.iter().map(|b| b % size - u64::from(*first)).collect();
                within.sort_unstable();
                within.dedup();
                let repeats = access.repeats.is_some();
                let all = !repeats && within.len() == usize::from(*len);
                Places { within, over_all: repeats.then(|| self.bytes.clone()), all }
            }
        }
    }
}

impl Places {
    fn of_cells(&self, cells: Cells, shape: Shape) -> Cells {
        if self.all || shape == Shape::Whole {
            return cells;
        }
        let most = self.within.iter().max().copied().unwrap_or(0);
        let mut out = Cells::NONE;
        for (n, cell) in cells.iter().enumerate() {
            let n = n as u64;
            let needed = match shape {
                Shape::Bytewise => self.within.contains(&n),
                Shape::Upward => n <= most,
                Shape::Whole => true,
            };
            if needed {
                out.insert(cell);
            }
        }
        out
    }

    /// Offsets in a source operand's memory: from, until.
    fn of_memory(
        &self,
        first: u16,
        len: u16,
        size: u64,
        total: u64,
        shape: Shape,
    ) -> Vec<(u64, u64)> {
        let (first, len) = (u64::from(first), u64::from(len));
        if let (Some(bytes), Shape::Bytewise) = (&self.over_all, shape) {
            return bytes.iter().map(|b| (*b, b + 1)).filter(|(b, _)| *b < total).collect();
        }
        if total > size {
            return vec![(0, total)];
        }
        if self.all || shape == Shape::Whole {
            return vec![(first, first + len)];
        }
        match shape {
            Shape::Upward => {
                let most = self.within.iter().max().copied().unwrap_or(0);
                vec![(first, first + (most + 1).min(len))]
            }
            _ => self.within.iter().map(|b| (first + b, first + b + 1)).collect(),
        }
    }
}

/// Records, latest first.
struct Walk<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    /// Records before this are still to come.
    next: u32,
    segment: usize,
    paths: &'a [PathId],
    captured: &'a [u64],
    labels: usize,
}

impl<'a> Walk<'a> {
    fn new(trace: &'a Trace, statics: &'a Statics, last: Time) -> Walk<'a> {
        let segment = last.0 as usize / trace::SEGMENT;
        let s = &trace.records.segments()[segment];
        let within = last.0 as usize % trace::SEGMENT;
        let captures = |p: &PathId| usize::from(statics.path(*p).captures);
        let used: usize = s.paths[..=within].iter().map(captures).sum();
        let labels = trace.control.first_label(&trace.records, last)
            + trace.control.labels(trace.records.path(last));
        let (paths, captured) = (&s.paths[..=within], &s.captured[..used]);
        Walk { trace, statics, next: last.0 + 1, segment, paths, captured, labels }
    }

    /// The next one, unless it is before `start`.
    #[inline]
    fn back_to(&mut self, start: Time) -> Option<(Time, PathId, &'a [u64], usize)> {
        if self.next <= start.0 {
            return None;
        }
        if self.paths.is_empty() {
            self.segment -= 1;
            let s = &self.trace.records.segments()[self.segment];
            (self.paths, self.captured) = (&s.paths, &s.captured);
        }
        let (path, paths) = self.paths.split_last()?;
        self.paths = paths;
        let facts = self.statics.path(*path);
        let at = self.captured.len() - usize::from(facts.captures);
        let (rest, captured) = self.captured.split_at(at);
        self.captured = rest;
        self.labels -= usize::from(facts.labels);
        self.next -= 1;
        Some((Time(self.next), *path, captured, self.labels))
    }
}
