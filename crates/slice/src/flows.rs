//! How one instruction passes on what is touched.

use crate::follow::Visitor;
use crate::forward::{Forward, Record};
use crate::wanted::Distance;
use program::effects::{Cell, Cells, Flow as DataFlow, Shape, Source, Target};
use trace::{Op, Operand};

/// One instruction as the walk meets it.
pub(crate) struct Spread<'r> {
    pub record: &'r Record<'r>,
    pub op: &'r Op,
    /// Something touched decided that it ran.
    pub parent: Option<Distance>,
    /// Its own distance, if it is in the slice.
    pub distance: Option<Distance>,
    pub never: Cells,
}

/// What a flow defines, piece by piece, before it is stored.
#[derive(Default)]
struct Defined {
    cells: Vec<(Cell, Distance)>,
    bytes: Vec<(u64, Distance)>,
}

impl Spread<'_> {
    /// Overwrites what the instruction defines: touched where a source is.
    pub fn apply<V: Visitor>(&self, walk: &mut Forward<'_, V>) {
        let trace = walk.trace();
        let info = trace.code.info(self.op.instruction);
        let operands = trace.code.operands(self.op);
        let mut defined = Defined::default();
        if self.distance.is_some() {
            for flow in &info.effects.flows {
                self.flow(walk, flow, operands, &mut defined);
            }
        }
        walk.thread.remove(info.defs);
        for operand in operands.iter().filter(|o| o.access().writes) {
            if let Some(range) = operand.range(self.record.captured, self.record.bases)
                && walk.memory.may_have(range.start, range.len)
            {
                walk.memory.remove(range.start, range.len);
            }
        }
        for (cell, distance) in defined.cells {
            walk.thread.add(cell.into(), distance);
        }
        for (address, distance) in defined.bytes {
            walk.memory.add(address, 1, distance);
        }
    }

    fn flow<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        flow: &DataFlow,
        operands: &[Operand],
        defined: &mut Defined,
    ) {
        let Some(own) = self.distance else { return };
        let whole = self.of_whole(walk, flow, operands);
        match &flow.to {
            Target::Cells(cells) => {
                for (n, cell) in cells.iter().enumerate() {
                    let here = whole.or_else(|| self.of_byte(walk, flow, operands, n as u64));
                    if here.is_some() && !self.never.contains(cell) {
                        defined.cells.push((cell, own));
                    }
                }
            }
            Target::Memory { access, first, len } => {
                let operand = &operands[usize::from(*access)];
                let range = operand.range(self.record.captured, self.record.bases);
                let Some(range) = range else { return };
                let size = u64::from(operand.access().size).max(1);
                let inside = u64::from(*first)..u64::from(*first) + u64::from(*len);
                for n in (0..range.len).filter(|n| inside.contains(&(n % size))) {
                    let here = whole
                        .or_else(|| self.of_element(walk, flow, operands, n, inside.start, size));
                    if here.is_some() {
                        defined.bytes.push((range.start + n, own));
                    }
                }
            }
        }
    }

    /// Touched sources that reach every byte of a flow's target.
    fn of_whole<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        flow: &DataFlow,
        operands: &[Operand],
    ) -> Option<Distance> {
        let also = flow.also.iter().filter_map(|s| self.source(walk, s, operands));
        let from = flow.from.iter().filter_map(|s| match flow.shape {
            Shape::Whole => self.source(walk, s, operands),
            _ => self.source_address(walk, s, operands),
        });
        let target = match &flow.to {
            Target::Memory { access, .. } => walk.address(&operands[usize::from(*access)]),
            Target::Cells(_) => None,
        };
        also.chain(from).chain(target).chain(self.parent).min()
    }

    fn source_address<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        source: &Source,
        operands: &[Operand],
    ) -> Option<Distance> {
        match source {
            Source::Cells(_) => None,
            Source::Memory { access, .. } => walk.address(&operands[usize::from(*access)]),
        }
    }

    /// A source as a whole.
    fn source<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        source: &Source,
        operands: &[Operand],
    ) -> Option<Distance> {
        match source {
            Source::Cells(cells) => walk.thread.nearest(cells.minus(self.never)),
            Source::Memory { access, first, len } => {
                let operand = &operands[usize::from(*access)];
                let address = walk.address(operand);
                let bytes = match operand.range(self.record.captured, self.record.bases) {
                    Some(range) if range.len > u64::from(operand.access().size) => {
                        walk.memory.nearest(range.start, range.len)
                    }
                    Some(range) if range.len > 0 => {
                        walk.memory.nearest(range.start + u64::from(*first), u64::from(*len))
                    }
                    Some(_) => None,
                    None => self.gathered(walk, operand),
                };
                address.into_iter().chain(bytes).min()
            }
        }
    }

    /// Touched sources of one byte of a flow's target.
    fn of_byte<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        flow: &DataFlow,
        operands: &[Operand],
        n: u64,
    ) -> Option<Distance> {
        let parts = flow.from.iter().filter_map(|s| self.part(walk, s, operands, flow.shape, n));
        parts.min()
    }

    /// Byte `n` of a source, or all up to it.
    fn part<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        source: &Source,
        operands: &[Operand],
        shape: Shape,
        n: u64,
    ) -> Option<Distance> {
        let from = if shape == Shape::Upward { 0 } else { n };
        match source {
            Source::Cells(cells) => {
                let wanted = |at: usize| (from..=n).contains(&(at as u64));
                let parts = cells.iter().enumerate().filter(|(at, _)| wanted(*at));
                let cells = parts.fold(Cells::NONE, |all, (_, cell)| all.union(cell.into()));
                walk.thread.nearest(cells.minus(self.never))
            }
            Source::Memory { access, first, .. } => {
                let operand = &operands[usize::from(*access)];
                let Some(range) = operand.range(self.record.captured, self.record.bases) else {
                    return self.gathered(walk, operand);
                };
                let start = range.start + u64::from(*first) + from;
                walk.memory.nearest(start, n - from + 1)
            }
        }
    }

    /// A gather: any of its elements.
    fn gathered<V: Visitor>(&self, walk: &Forward<'_, V>, operand: &Operand) -> Option<Distance> {
        let size = u64::from(operand.access().size);
        let all = walk.trace().gathered(self.record.time).iter();
        all.filter_map(|at| walk.memory.nearest(*at, size)).min()
    }

    /// The same for byte `n` of a target in memory, which may be repeated.
    fn of_element<V: Visitor>(
        &self,
        walk: &Forward<'_, V>,
        flow: &DataFlow,
        operands: &[Operand],
        n: u64,
        first: u64,
        size: u64,
    ) -> Option<Distance> {
        let within = n % size - first;
        let repeated = |s: &Source| match s {
            Source::Memory { access, .. } => {
                let operand = &operands[usize::from(*access)];
                let range = operand.range(self.record.captured, self.record.bases)?;
                (operand.access().repeats.is_some() && flow.shape == Shape::Bytewise)
                    .then_some((range.start + n, range.len > n))
            }
            Source::Cells(_) => None,
        };
        let parts = flow.from.iter().filter_map(|s| match repeated(s) {
            Some((address, true)) => walk.memory.nearest(address, 1),
            Some(_) => None,
            None => self.part(walk, s, operands, flow.shape, within),
        });
        parts.min()
    }
}
