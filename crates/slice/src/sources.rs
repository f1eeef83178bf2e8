//! What a backward walk wants next: the sources of what an instance defines, and what
//! decided that it ran.

use crate::follow::{Follow, Used};
use crate::hits::{Hit, Places};
use crate::sweep::{Record, Sweep};
use program::effects::{Cells, Flow as DataFlow, Shape, Source, Target};
use trace::{Flow, Instance, Op, Operand};

impl<F: Follow> Sweep<'_, F> {
    pub(crate) fn want_cells(&mut self, cells: Cells, mark: F::Mark) {
        let cells = cells.minus(self.never);
        if !cells.is_empty() {
            self.thread.wanted.add(cells, mark, self.follow);
        }
    }

    pub(crate) fn want_memory(&mut self, start: u64, len: u64, mark: F::Mark) {
        if self.options.pruned.memory.is_empty() {
            return self.memory.add(start, len, mark, self.follow);
        }
        for address in start..start.saturating_add(len) {
            let mut pruned = self.options.pruned.memory.iter();
            if !pruned.any(|(from, len)| address.wrapping_sub(*from) < *len) {
                self.memory.add(address, 1, mark, self.follow);
            }
        }
    }

    pub(crate) fn want_operand(&mut self, record: &Record, operand: &Operand, mark: F::Mark) {
        match operand.range(record.captured, record.bases) {
            Some(range) => self.want_memory(range.start, range.len, mark),
            None => self.want_gather(record, operand, mark),
        }
    }

    /// A gather: its elements are told by an event before the record.
    pub(crate) fn want_gather(&mut self, record: &Record, operand: &Operand, mark: F::Mark) {
        let size = u64::from(operand.access().size);
        for address in self.trace.gathered(record.time) {
            self.want_memory(*address, size, mark);
        }
    }

    pub(crate) fn want_address(&mut self, operand: &Operand, mark: F::Mark) {
        if self.options.addresses {
            self.want_cells(address_registers(operand), mark);
        }
    }

    /// What decides where a branch goes.
    pub(crate) fn want_decision(&mut self, record: &Record, op: &Op, mark: F::Mark) {
        let info = self.trace.code.info(op.instruction);
        if self.statics.instruction(op.instruction).is_linkage && !self.options.bookkeeping {
            return;
        }
        self.want_cells(info.condition, mark);
        if matches!(info.flow, Flow::Indirect | Flow::Call | Flow::Return) {
            for operand in self.trace.code.operands(op) {
                if operand.access().reads {
                    self.want_address(operand, mark);
                    self.want_operand(record, operand, mark);
                }
            }
        }
    }

    pub(crate) fn want_parent(&mut self, record: &Record, at: Instance, mark: F::Mark) {
        if self.options.control {
            let parent = self.trace.control.parent(record.path, at, record.first_label);
            self.want_branch(parent, mark);
        }
    }

    pub(crate) fn want_branch(&mut self, branch: Option<Instance>, mark: F::Mark) {
        if let Some(branch) = branch.filter(|b| *b >= self.from) {
            self.branches.add(branch, mark, self.follow);
        }
    }

    /// What the wanted bytes of one flow were computed from.
    pub(crate) fn want_sources(
        &mut self,
        record: &Record,
        op: &Op,
        flow: &DataFlow,
        hit: &Hit<F::Mark>,
        next: F::Mark,
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

    pub(crate) fn want_source(
        &mut self,
        record: &Record,
        operands: &[Operand],
        source: &Source,
        shape: Shape,
        places: &Places,
        next: F::Mark,
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
                    self.want_memory(range.start + from, until - from, next);
                }
            }
        }
    }
}

/// The registers that an operand's place and length follow from.
pub(crate) fn address_registers(operand: &Operand) -> Cells {
    let access = operand.access();
    let counted = access.repeats.map_or(Cells::NONE, |r| r.registers());
    access.address.registers().union(counted)
}

/// Cells, register by register.
pub(crate) fn by_register(cells: Cells) -> impl Iterator<Item = (Used, Cells)> {
    let general = (0..16u8).map(|r| (Used::Register(r), Cells::gpr(r, 8)));
    let all = general.clone().fold(Cells::NONE, |all, (_, cells)| all.union(cells));
    let parts = general.map(move |(used, of)| (used, of.intersection(cells)));
    let rest = std::iter::once((Used::Other, cells.minus(all)));
    parts.chain(rest).filter(|(_, cells)| !cells.is_empty())
}
