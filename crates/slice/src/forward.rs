//! The forward walk: from the criterion to the end of the run, once.
//!
//! The same dependences as the backward walk's, followed the other way: what the
//! criterion defined is *touched*; an instance that uses something touched is in
//! the slice, and what it computes from that is touched in turn, until something
//! else overwrites it.

use crate::flows::Spread;
use crate::follow::Visitor;
use crate::options::{Options, Start};
use crate::reader::Reader;
use crate::sources::address_registers;
use crate::statics::{Binding, Statics};
use crate::sweep::bookkeeping;
use crate::touched::{Touched, TouchedMemory};
use crate::wanted::Distance;
use program::effects::Cells;
use std::collections::HashMap;
use trace::{Bases, Captured, Flow, FrameId, Instance, Op, Operand, PathId, Time, Trace};

/// A callee-saved register that is touched, while the callee keeps it on the stack.
struct Saved {
    frame: FrameId,
    register: u8,
    touched: Touched,
}

/// One walk.
pub(crate) struct Forward<'a, V> {
    pub(crate) trace: &'a Trace,
    statics: &'a Statics,
    pub(crate) options: &'a Options,
    pub(crate) visitor: V,
    pub(crate) current: u32,
    pub(crate) thread: Touched,
    pub(crate) others: HashMap<u32, Touched>,
    pub(crate) memory: TouchedMemory,
    /// Branches and calls whose outcome is touched.
    pub(crate) deciding: HashMap<Instance, Distance>,
    saved: HashMap<u64, Saved>,
    behind_binding: HashMap<u32, (FrameId, Touched)>,
    /// What a signal's frame keeps whole, by thread and the frame's place.
    pub(crate) interrupted: HashMap<(u32, u64), Touched>,
    /// System calls that are criteria.
    pub(crate) criteria: Vec<Instance>,
    pub(crate) never: Cells,
}

/// One record as the walk meets it.
pub(crate) struct Record<'a> {
    pub time: Time,
    pub path: PathId,
    pub captured: Captured<'a>,
    pub bases: Bases,
    pub first_label: usize,
}

/// Walks forward from the criterion.
pub(crate) fn forward<V: Visitor>(
    trace: &Trace,
    statics: &Statics,
    starts: &[Start],
    options: &Options,
    visitor: V,
) -> V {
    let left_out = if options.bookkeeping { Cells::NONE } else { bookkeeping() };
    let mut walk = Forward {
        trace,
        statics,
        options,
        visitor,
        current: u32::MAX,
        thread: Touched::default(),
        others: HashMap::new(),
        memory: TouchedMemory::default(),
        deciding: HashMap::new(),
        saved: HashMap::new(),
        behind_binding: HashMap::new(),
        interrupted: HashMap::new(),
        criteria: Vec::new(),
        never: options.pruned.cells.union(left_out),
    };
    walk.run(starts);
    walk.visitor
}

impl<'a, V: Visitor> Forward<'a, V> {
    pub(crate) fn trace(&self) -> &'a Trace {
        self.trace
    }

    fn run(&mut self, starts: &[Start]) {
        let mut starts = starts.to_vec();
        starts.sort_by_key(Start::at);
        starts.reverse();
        let Some(first) = starts.last().map(|s| s.at().time) else { return };
        let trace = self.trace;
        let mut calls = trace.spans.calls.partition_point(|c| c.at <= first);
        let mut events = trace.events.partition_point(|(at, _)| *at <= first);
        let mut read = Reader::new(trace, self.statics, first);
        let begin = trace.spans.spans.partition_point(|s| s.end <= first);
        for span in &trace.spans.spans[begin..] {
            self.switch(span.thread);
            while let Some((time, path, captured, first_label)) = read.next_before(span.end) {
                if time > self.options.region.to.time {
                    return;
                }
                while let Some(site) = trace.spans.calls.get(calls).filter(|c| c.at <= time) {
                    self.call(calls, site);
                    calls += 1;
                }
                while let Some((_, event)) = trace.events.get(events).filter(|e| e.0 <= time) {
                    self.event(event);
                    events += 1;
                }
                let record = Record { time, path, captured, bases: span.bases, first_label };
                self.record(&record, &mut starts);
            }
            if starts.is_empty() && self.is_idle() {
                return;
            }
        }
        for (n, site) in trace.spans.calls.iter().enumerate().skip(calls) {
            self.call(n, site);
        }
    }

    fn switch(&mut self, to: u32) {
        if self.current != to {
            let next = self.others.remove(&to).unwrap_or_default();
            let before = std::mem::replace(&mut self.thread, next);
            self.others.insert(self.current, before);
            self.current = to;
        }
    }

    fn is_idle(&self) -> bool {
        self.thread.is_empty()
            && self.memory.is_empty()
            && self.deciding.is_empty()
            && self.saved.is_empty()
            && self.others.values().all(Touched::is_empty)
            && self.behind_binding.values().all(|(_, t)| t.is_empty())
            && self.interrupted.values().all(Touched::is_empty)
            && self.criteria.is_empty()
    }

    fn record(&mut self, record: &Record, starts: &mut Vec<Start>) {
        let facts = self.statics.path(record.path);
        if facts.binding == Some(Binding::Begins) && !self.options.bookkeeping {
            let frame = self.trace.control.frame_of(record.time);
            let touched = std::mem::take(&mut self.thread);
            self.behind_binding.insert(self.current, (frame, touched));
        }
        let begins = starts.last().is_some_and(|s| s.at().time == record.time);
        if begins || self.is_concerned(record) {
            self.instructions(record, starts);
        }
        if facts.binding == Some(Binding::Ends) && !self.options.bookkeeping {
            let frame = self.trace.control.frame_of(record.time);
            if self.behind_binding.get(&self.current).is_some_and(|(f, _)| *f == frame)
                && let Some((_, touched)) = self.behind_binding.remove(&self.current)
            {
                self.thread = touched;
            }
        }
    }

    /// May the record use or overwrite something touched, or run because of it?
    fn is_concerned(&self, record: &Record) -> bool {
        let facts = self.statics.touching(self.trace, record.path);
        let cells = self.thread.cells();
        if cells.overlaps(&facts.uses) || cells.overlaps(&facts.defs) {
            return true;
        }
        if !self.memory.is_empty() {
            let touches = |s: &crate::stores::Store| {
                let range = s.range(record.captured, record.bases);
                range.is_none_or(|(start, len)| self.memory.may_have(start, len))
            };
            let stores = self.statics.stores_of(self.statics.path(record.path));
            if stores.iter().any(touches) || facts.loads.iter().any(touches) {
                return true;
            }
        }
        !self.deciding.is_empty() && self.options.control && {
            let control = &self.trace.control;
            let labels = control.label_instances(record.path, record.time, record.first_label);
            labels.flatten().any(|parent| self.deciding.contains_key(&parent))
        }
    }

    fn instructions(&mut self, record: &Record, starts: &mut Vec<Start>) {
        let code = &self.trace.code;
        let path = code.path(record.path);
        let ops: Vec<Op> = code.ops(path).iter().chain(code.faulting(path)).copied().collect();
        for (index, op) in ops.iter().enumerate() {
            let at = Instance { time: record.time, index: index as u16 };
            let mut is_start = false;
            while let Some(start) = starts.pop_if(|s| s.at() == at) {
                match start {
                    Start::Instance(_) => is_start = true,
                    Start::Before(_, cells, memory) => {
                        self.thread.add(cells, 0);
                        for (start, len) in memory {
                            self.memory.add(start, len, 0);
                        }
                    }
                }
            }
            if at > self.options.region.to {
                return;
            }
            if is_start {
                self.begin(record, op, at);
            } else {
                self.instruction(record, op, at);
            }
        }
    }

    /// The criterion: all that it defines is touched, and what it decides.
    fn begin(&mut self, record: &Record, op: &Op, at: Instance) {
        self.visitor.instance(at, op.instruction, 0);
        let info = self.trace.code.info(op.instruction);
        self.thread.add(info.defs.minus(self.never), 0);
        for operand in self.trace.code.operands(op).iter().filter(|o| o.access().writes) {
            if let Some(range) = operand.range(record.captured, record.bases) {
                self.memory.add(range.start, range.len, 0);
            }
        }
        if info.flow != Flow::Next {
            self.deciding.insert(at, 0);
        }
        if info.flow == Flow::System {
            self.criteria.push(at);
        }
    }

    fn instruction(&mut self, record: &Record, op: &Op, at: Instance) {
        let info = self.trace.code.info(op.instruction);
        if !self.options.bookkeeping {
            if self.statics.instruction(op.instruction).sets_frame {
                self.thread.remove(info.defs);
                return;
            }
            if self.bypass_restore(record, op) {
                return;
            }
        }
        let parent = self.parent(record, at);
        let used = self.used(record, op).into_iter().chain(parent).min();
        let included = used.filter(|_| at >= self.options.from).map(|d| d + 1);
        let included = included.filter(|d| *d <= self.options.depth);
        self.bypass_save(record, op, included.is_some());
        let facts = self.statics.instruction(op.instruction);
        if let Some(distance) = included {
            let saves = facts.saves.is_some() && parent.is_none() && !self.options.bookkeeping;
            if !saves {
                self.visitor.instance(at, op.instruction, distance);
            }
            let decides = self.decision(record, op).into_iter().chain(parent).min();
            if info.flow != Flow::Next && decides.is_some() {
                self.deciding.insert(at, distance);
            }
        }
        Spread { record, op, parent, distance: included, never: self.never }.apply(self);
    }

    /// Did something touched decide that the instance ran?
    fn parent(&self, record: &Record, at: Instance) -> Option<Distance> {
        if !self.options.control || self.deciding.is_empty() {
            return None;
        }
        let parent = self.trace.control.parent(record.path, at, record.first_label)?;
        self.deciding.get(&parent).copied()
    }

    /// The nearest touched thing that an instruction uses, in whatever way.
    fn used(&self, record: &Record, op: &Op) -> Option<Distance> {
        let info = self.trace.code.info(op.instruction);
        let cells = self.thread.nearest(info.uses.union(info.condition).minus(self.never));
        let operands = self.trace.code.operands(op).iter();
        let memory = operands.filter_map(|o| {
            let address = self.address(o);
            let read = o.access().reads.then(|| self.read(record, o)).flatten();
            address.into_iter().chain(read).min()
        });
        cells.into_iter().chain(memory).min()
    }

    /// The same for what decides where a branch goes.
    fn decision(&self, record: &Record, op: &Op) -> Option<Distance> {
        let info = self.trace.code.info(op.instruction);
        let cells = self.thread.nearest(info.condition.minus(self.never));
        let linkage = self.statics.instruction(op.instruction).is_linkage;
        let indirect = matches!(info.flow, Flow::Indirect | Flow::Call | Flow::Return)
            && (!linkage || self.options.bookkeeping);
        let operands = self.trace.code.operands(op).iter();
        let memory = operands.filter(|o| indirect && o.access().reads).filter_map(|o| {
            let address = self.address(o);
            address.into_iter().chain(self.read(record, o)).min()
        });
        cells.into_iter().chain(memory).min()
    }

    pub(crate) fn address(&self, operand: &Operand) -> Option<Distance> {
        if !self.options.addresses {
            return None;
        }
        self.thread.nearest(address_registers(operand).minus(self.never))
    }

    fn read(&self, record: &Record, operand: &Operand) -> Option<Distance> {
        match operand.range(record.captured, record.bases) {
            Some(range) => self.memory.nearest(range.start, range.len),
            None => {
                let size = u64::from(operand.access().size);
                let all = self.trace.gathered(record.time).iter();
                all.filter_map(|at| self.memory.nearest(*at, size)).min()
            }
        }
    }

    /// A register goes to the stack for the callee's sake. Its slot may get touched
    /// though the register is not, if the call itself was.
    fn bypass_save(&mut self, record: &Record, op: &Op, included: bool) {
        let saves = self.statics.instruction(op.instruction).saves;
        for operand in self.trace.code.operands(op).iter().filter(|o| o.access().writes) {
            let Some(range) = operand.range(record.captured, record.bases) else { continue };
            if !self.saved.is_empty() {
                let (start, end) = (range.start, range.start.saturating_add(range.len));
                self.saved.retain(|slot, _| slot + 8 <= start || end <= *slot);
            }
            if let Some(register) = saves
                && range.len == 8
            {
                let touched = self.thread.part(Cells::gpr(register, 8));
                if included || !touched.is_empty() {
                    let frame = self.trace.control.frame_of(record.time);
                    self.saved.insert(range.start, Saved { frame, register, touched });
                }
            }
        }
    }

    /// A saved register comes back: it is as touched as it was when it was saved.
    fn bypass_restore(&mut self, record: &Record, op: &Op) -> bool {
        let Some(register) = self.statics.instruction(op.instruction).restores else {
            return false;
        };
        let read = self.trace.code.operands(op).iter().find(|o| o.access().reads);
        let slot = read.and_then(|o| o.address(record.captured, record.bases));
        let Some(slot) = slot else { return false };
        let frame = self.trace.control.frame_of(record.time);
        let saved = self.saved.get(&slot);
        let fits = saved.filter(|s| s.frame == frame && s.register == register);
        if fits.is_none() && self.memory.nearest(slot, 8).is_some() {
            return false;
        }
        let touched = fits.map(|s| s.touched.clone()).unwrap_or_default();
        let info = self.trace.code.info(op.instruction);
        self.thread.remove(info.defs);
        self.thread.merge(&touched);
        true
    }
}
