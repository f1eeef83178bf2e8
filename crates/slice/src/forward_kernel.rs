//! What the kernel passes on in a forward walk: through calls, files, pipes, maps and
//! the frames of signals.

use crate::calls::arguments;
use crate::follow::Visitor;
use crate::forward::Forward;
use crate::kernel::{RT_SIGRETURN, moved_from, path_of, position_address};
use crate::signals::{frame_registers, kept_whole, set_for_handler};
use crate::sweep::object_address;
use crate::touched::Touched;
use crate::wanted::Distance;
use program::effects::Cells;
use trace::{Call, CallSite, Direction, Event, Transfer};

impl<V: Visitor> Forward<'_, V> {
    pub(crate) fn event(&mut self, event: &Event) {
        if let Event::Signal { written, sp, .. } = event {
            self.signal(written, sp + 8);
        }
    }

    /// A handler begins: general registers go to its frame one by one, where it may
    /// look at them; the rest is kept until it ends.
    fn signal(&mut self, written: &[(u64, u64)], context: u64) {
        for (start, len) in written {
            self.memory.remove(*start, *len);
        }
        for (cell, address) in frame_registers(context) {
            let seen = Cells::from(cell).minus(self.never);
            if let Some(distance) = self.thread.nearest(seen) {
                self.memory.add(address, 1, distance);
            }
        }
        let kept = self.thread.part(kept_whole());
        if !kept.is_empty() {
            self.interrupted.insert((self.current, context), kept);
        }
        self.thread.remove(set_for_handler());
    }

    /// It ends: they come back.
    fn signal_return(&mut self, site: &CallSite, context: u64) {
        let mut thread = std::mem::take(self.thread_of(site.thread));
        thread.remove(kept_whole());
        for (cell, address) in frame_registers(context) {
            thread.remove(cell.into());
            if let Some(distance) = self.memory.nearest(address, 1) {
                thread.add(Cells::from(cell).minus(self.never), distance);
            }
        }
        if let Some(kept) = self.interrupted.remove(&(site.thread, context)) {
            thread.merge(&kept);
        }
        *self.thread_of(site.thread) = thread;
    }

    fn thread_of(&mut self, thread: u32) -> &mut Touched {
        if thread == self.current {
            &mut self.thread
        } else {
            self.others.entry(thread).or_default()
        }
    }

    /// A system call: what it is given, and what it gives.
    pub(crate) fn call(&mut self, n: usize, site: &CallSite) {
        let trace = self.trace;
        let call = trace.call(site);
        let (transfer, moves) = (trace.objects.transfer(n), trace.objects.moves(n));
        let thread = self.thread_of(site.thread).clone();
        let position = moves.map(|m| position_address(m.object));
        let stood = position.filter(|_| moves.is_some_and(|m| m.uses));
        let used = [
            thread.nearest(arguments(call.number)),
            self.reason(site),
            stood.and_then(|at| self.memory.nearest(at, 1)),
        ];
        let used = used.into_iter().flatten().min();
        let named = path_of(call).and_then(|(start, len)| self.memory.nearest(start, len));
        let through = transfer.and_then(|t| self.transferred(t));
        let moved = self.moved(call);
        let before = moved.iter().map(|(_, distance)| *distance).min();
        let begins = self.criteria.iter().position(|at| *at == site.instance);
        let begins = begins.map(|n| self.criteria.swap_remove(n));
        let distance = |used: Option<Distance>| match begins {
            Some(_) => Some(0),
            None => used.map(|d| d + 1),
        };
        let all = [used, named, through, before].into_iter().flatten().min();
        if let Some(distance) = distance(all).filter(|_| begins.is_none())
            && site.instance >= self.options.from
            && distance <= self.options.depth
        {
            self.visitor.instance(site.instance, trace.instruction(site.instance), distance);
        }
        if call.number == RT_SIGRETURN {
            return self.signal_return(site, call.sp);
        }
        let whole = distance(used);
        let received = transfer.map_or(Vec::new(), |t| self.other_side(t, whole));
        for (start, len) in call.written.iter().chain(&call.mapped) {
            self.define(*start, *len, whole);
        }
        for (address, distance) in received.into_iter().chain(moved) {
            self.memory.add(address, 1, distance + 1);
        }
        if let Some(position) = position {
            self.define(position, 1, whole);
        }
        let rax = Cells::gpr(0, 8);
        if let Some(child) = call.spawned {
            let mut inherited = thread;
            inherited.remove(rax);
            self.others.insert(child, inherited);
        }
        let result = distance(used.into_iter().chain(named).min());
        let thread = self.thread_of(site.thread);
        thread.remove(rax);
        if let Some(distance) = result {
            thread.add(rax, distance);
        }
    }

    /// Memory gets a new value: touched or not.
    fn define(&mut self, start: u64, len: u64, touched: Option<Distance>) {
        self.memory.remove(start, len);
        if let Some(distance) = touched {
            self.memory.add(start, len, distance);
        }
    }

    /// Did something touched decide that a call was made?
    fn reason(&self, site: &CallSite) -> Option<Distance> {
        let (trace, at) = (self.trace, site.instance);
        if !self.options.control || self.deciding.is_empty() {
            return None;
        }
        let first = trace.control.first_label(at.time);
        let parent = trace.control.parent(trace.records.path(at.time), at, first)?;
        self.deciding.get(&parent).copied()
    }

    /// Touched bytes that `mremap` takes along, where they are then.
    fn moved(&self, call: &Call) -> Vec<(u64, Distance)> {
        let Some(from) = moved_from(call) else { return Vec::new() };
        let new = call.result as u64;
        let (old, len) = (call.args[0], call.args[1].min(call.args[2]));
        let hits = self.memory.hits(old, len).into_iter();
        let there = hits.map(|(address, distance)| (new + (address - old), distance));
        there.filter(|(address, _)| from(*address).is_some()).collect()
    }

    /// The nearest touched byte that a call sends or receives.
    fn transferred(&self, t: &Transfer) -> Option<Distance> {
        match t.direction {
            Direction::Write => {
                t.pieces.iter().filter_map(|(start, len)| self.memory.nearest(*start, *len)).min()
            }
            Direction::Read => self.memory.nearest(object_address(t.object, t.offset), t.len()),
        }
    }

    /// Bytes on the other side of a transfer that are touched by it.
    fn other_side(&mut self, t: &Transfer, whole: Option<Distance>) -> Vec<(u64, Distance)> {
        let object = object_address(t.object, t.offset);
        match t.direction {
            Direction::Write => {
                let mut sent = Vec::new();
                for (start, len) in &t.pieces {
                    for (address, distance) in self.memory.hits(*start, *len) {
                        let offset = t.offset_of(address).unwrap_or(t.offset);
                        sent.push((object_address(t.object, offset), distance));
                    }
                }
                self.define(object, t.len(), whole);
                sent
            }
            Direction::Read => {
                let hits = self.memory.hits(object, t.len());
                let received = hits.into_iter().filter_map(|(at, distance)| {
                    Some((t.address_of(t.offset + (at - object))?, distance))
                });
                received.collect()
            }
        }
    }
}
