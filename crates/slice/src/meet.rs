//! One instruction as the backward walk meets it: does it define something wanted, and
//! what does it want in turn?

use crate::follow::Follow;
use crate::hits::{Hit, Hits};
use crate::sweep::{Record, Sweep};
use program::effects::{Cells, Target};
use trace::{Instance, InstructionId, Op};

impl<F: Follow> Sweep<'_, F> {
    /// One instruction: does it define something wanted?
    pub(crate) fn instruction(&mut self, record: &Record, op: &Op, at: Instance) {
        let facts = self.statics.instruction(op.instruction);
        let demanded = if facts.decides { self.take_demand(at) } else { None };
        let writes = facts.writes;
        if demanded.is_none() && self.thread.wanted.short & facts.defs == 0 && !writes {
            return;
        }
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let wanted = &self.thread.wanted;
        let touches = wanted.short & facts.defs != 0 && wanted.cells.overlaps(&info.defs);
        if demanded.is_none() && !touches && !self.may_write(record, op) {
            return;
        }
        if facts.sets_frame && !self.options.bookkeeping {
            self.thread.wanted.remove(info.defs);
            return;
        }
        if touches && self.bypass_restore(record, op, at) {
            return;
        }
        if writes && self.bypass_save(record, op, at) {
            return;
        }
        let mut hits = std::mem::take(&mut self.scratch);
        self.hits(record, op, &mut hits);
        self.kill(op, &hits);
        let marks = hits.list.iter().map(|h| h.mark).chain(demanded);
        if let Some(mark) = marks.reduce(|a, b| self.follow.join(a, b))
            && let Some(next) = self.include(at, op.instruction, mark)
        {
            if demanded.is_some() {
                self.want_decision(record, op, next);
            }
            for hit in &hits.list {
                self.want_sources(record, op, &info.effects.flows[hit.flow], hit, next);
            }
            self.want_parent(record, at, next);
        }
        hits.list.clear();
        hits.memory.clear();
        self.scratch = hits;
    }

    /// Takes the mark of an instance that decided why something wanted ran.
    fn take_demand(&mut self, at: Instance) -> Option<F::Mark> {
        let mark = self.branches.mark(at)?;
        self.branches.pop();
        Some(mark)
    }

    /// May an instruction write something that is wanted?
    fn may_write(&self, record: &Record, op: &Op) -> bool {
        self.trace.code.operands(op).iter().filter(|o| o.access().writes).any(|operand| {
            let range = operand.range(record.captured, record.bases);
            range.is_none_or(|r| r.len > 0 && self.memory.may_concern(r.start, r.len))
        })
    }

    /// An instance belongs to the answer, unless it lies before all that is looked for.
    pub(crate) fn include(
        &mut self,
        at: Instance,
        instruction: InstructionId,
        mark: F::Mark,
    ) -> Option<F::Mark> {
        if at < self.from {
            return None;
        }
        self.follow.include(at, instruction, mark)
    }

    /// Which flows of an instruction define something wanted.
    fn hits(&mut self, record: &Record, op: &Op, hits: &mut Hits<F::Mark>) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let operands = trace.code.operands(op);
        let wanted = &self.thread.wanted;
        for (n, flow) in info.effects.flows.iter().enumerate() {
            match &flow.to {
                Target::Cells(cells) if !cells.overlaps(&wanted.cells) => {}
                Target::Cells(cells) => {
                    let hit = cells.intersection(wanted.cells);
                    if let Some(mark) = wanted.joined(hit, self.follow) {
                        hits.list.push(Hit { flow: n, cells: hit, bytes: Vec::new(), mark });
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
                    let bytes: Vec<(u64, F::Mark)> = self
                        .memory
                        .hits(range.start, range.len)
                        .into_iter()
                        .filter(|(a, _)| (first..first + len).contains(&((a - range.start) % size)))
                        .collect();
                    let marks = bytes.iter().map(|(_, mark)| *mark);
                    if let Some(mark) = marks.reduce(|a, b| self.follow.join(a, b)) {
                        let bytes = bytes.iter().map(|(a, _)| a - range.start).collect();
                        hits.list.push(Hit { flow: n, cells: Cells::NONE, bytes, mark });
                        hits.memory.push(range.start);
                    }
                }
            }
        }
    }

    /// What the instruction overwrites is not wanted before it.
    fn kill(&mut self, op: &Op, hits: &Hits<F::Mark>) {
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
}
