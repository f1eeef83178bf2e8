//! What system calls define and use, and what threads begin with.

use crate::follow::{Follow, Used};
use crate::sources::by_register;
use crate::sweep::{OBJECT_BITS, OBJECTS, POSITION, Sweep, object_address};
use crate::wanted_cells::WantedCells;
use program::effects::Cells;
use trace::{Call, CallSite, Direction, Instance, ObjectId, Span};

/// Comes back from a signal's handler.
pub const RT_SIGRETURN: u32 = 15;

impl<F: Follow> Sweep<'_, F> {
    /// What a thread wants at its first instruction comes from its parent.
    pub(crate) fn thread_begins(&mut self, span: &Span) {
        let first = self.trace.spans.spans.iter().find(|s| s.thread == span.thread);
        if first == Some(span) && !self.thread.wanted.cells.is_empty() {
            self.inherited.insert(span.thread, std::mem::take(&mut self.thread.wanted));
        }
    }

    /// A system call: memory it wrote, its result, and what passed through it.
    pub(crate) fn call(&mut self, n: usize) {
        let trace = self.trace;
        let site = &trace.spans.calls[n];
        let call = trace.call(site);
        let transfer = trace.objects.transfer(n);
        let mut reached: Vec<(u64, F::Mark)> = Vec::new();
        for (start, len) in call.written.iter().chain(&call.mapped) {
            reached.extend(self.memory.hits(*start, *len));
            while let Some(restore) = self.take_restore(*start, *len) {
                self.refute(&restore);
            }
        }
        if let Some(t) = transfer.filter(|t| t.direction == Direction::Write) {
            reached.extend(self.memory.hits(object_address(t.object, t.offset), t.len()));
        }
        if call.number == RT_SIGRETURN {
            self.signal_return(site, call.sp);
        }
        let moves = trace.objects.moves(n);
        if let Some(moves) = moves {
            reached.extend(self.memory.hits(position_address(moves.object), 1));
        }
        let inherited = call.spawned.and_then(|thread| self.inherited.remove(&thread));
        let mark = self.call_result(site, inherited.as_ref());
        let marks = reached.iter().map(|(_, mark)| *mark).chain(mark);
        let Some(joined) = marks.reduce(|a, b| self.follow.join(a, b)) else { return };
        for (address, _) in &reached {
            self.memory.remove(*address);
        }
        let Some(next) = self.include_call(site, joined) else { return };
        if let Some(t) = transfer {
            for (address, _) in &reached {
                self.want_other_side(t, *address, next);
            }
        }
        if let Some(moves) = moves.filter(|moves| moves.uses) {
            self.want_memory(position_address(moves.object), 1, next);
        }
        if let Some(from) = moved_from(call) {
            for (address, _) in &reached {
                if let Some(old) = from(*address) {
                    self.want_memory(old, 1, next);
                }
            }
        }
        if mark.is_some()
            && let Some((start, len)) = path_of(call)
        {
            self.want_memory(start, len, next);
        }
    }

    /// A system call as a criterion: its arguments, and the memory it took in.
    pub(crate) fn include_call_uses(&mut self, at: Instance) {
        let trace = self.trace;
        // They are in the order in which they were done, behind their instructions.
        let n = trace.spans.calls.partition_point(|site| site.at <= at.time);
        let found = trace.spans.calls[n..].iter().position(|site| site.instance == at);
        let Some(n) = found.map(|k| n + k) else { return };
        let call = trace.call(&trace.spans.calls[n]);
        for (used, cells) in by_register(crate::calls::arguments(call.number)) {
            let mark = self.follow.seed(at, used);
            self.want_cells(cells, mark);
        }
        let transfer = trace.objects.transfer(n);
        let mut taken: Vec<(u64, u64)> = match transfer {
            Some(t) if t.direction == Direction::Write => t.pieces.clone(),
            Some(t) => vec![(object_address(t.object, t.offset), t.len())],
            None => Vec::new(),
        };
        let moves = trace.objects.moves(n).filter(|moves| moves.uses);
        taken.extend(moves.map(|moves| (position_address(moves.object), 1)));
        if moved_from(call).is_some() {
            taken.push((call.args[0], call.args[1].min(call.args[2])));
        }
        for (start, len) in taken {
            let mark = self.follow.seed(at, Used::Memory { start, len });
            self.want_memory(start, len, mark);
        }
        if let Some((start, len)) = path_of(call) {
            let mark = self.follow.seed(at, Used::Memory { start, len });
            self.want_memory(start, len, mark);
        }
    }

    /// The call's result is its thread's RAX; a new thread begins with its parent's
    /// registers but for that. Returns the result's mark if it is wanted.
    fn call_result(
        &mut self,
        site: &CallSite,
        inherited: Option<&WantedCells<F::Mark>>,
    ) -> Option<F::Mark> {
        let mut thread = std::mem::take(self.thread_of(site.thread));
        let rax = Cells::gpr(0, 8);
        let mark = thread.wanted.joined(rax.intersection(thread.wanted.cells), self.follow);
        thread.wanted.remove(rax);
        if let Some(inherited) = inherited {
            thread.wanted.merge(inherited, self.follow);
            thread.wanted.remove(rax);
        }
        *self.thread_of(site.thread) = thread;
        mark
    }

    fn want_other_side(&mut self, t: &trace::Transfer, address: u64, next: F::Mark) {
        if t.direction == Direction::Read {
            if let Some(offset) = t.offset_of(address) {
                self.want_memory(object_address(t.object, offset), 1, next);
            }
        } else if address >= OBJECTS {
            let offset = (address - OBJECTS) & ((1 << OBJECT_BITS) - 1);
            if let Some(from) = t.address_of(offset) {
                self.want_memory(from, 1, next);
            }
        }
    }

    /// The instruction that made a call is in the slice, with its arguments.
    fn include_call(&mut self, site: &CallSite, mark: F::Mark) -> Option<F::Mark> {
        let trace = self.trace;
        let call = trace.call(site);
        let path = trace.records.path(site.instance.time);
        let ops = trace.code.ops(trace.code.path(path));
        let op = ops.get(usize::from(site.instance.index))?;
        let next = self.include(site.instance, op.instruction, mark)?;
        let arguments = crate::calls::arguments(call.number);
        let mut thread = std::mem::take(self.thread_of(site.thread));
        thread.wanted.add(arguments, next, self.follow);
        *self.thread_of(site.thread) = thread;
        if self.options.control {
            let first = trace.control.first_label(site.instance.time);
            self.want_branch(trace.control.parent(path, site.instance, first), next);
        }
        Some(next)
    }
}

/// Where the path is that a call names: start and length, its end included.
pub(crate) fn path_of(call: &Call) -> Option<(u64, u64)> {
    // openat, unlinkat and openat2 have a folder before it.
    let second = matches!(call.number, 257 | 263 | 437);
    Some((call.args[usize::from(second)], call.path.as_ref()?.len() as u64 + 1))
}

pub(crate) fn position_address(object: ObjectId) -> u64 {
    object_address(object, POSITION)
}

/// `mremap` takes contents along, if it moves: where each byte of the new place was
/// before.
pub(crate) fn moved_from(call: &Call) -> Option<impl Fn(u64) -> Option<u64>> {
    const MREMAP: u32 = 25;
    let [old, old_len, new_len, ..] = call.args;
    let new = u64::try_from(call.result).ok();
    let new = new.filter(|new| call.number == MREMAP && *new != old)?;
    Some(move |address: u64| {
        let offset = address.checked_sub(new)?;
        (offset < old_len.min(new_len)).then_some(old + offset)
    })
}
