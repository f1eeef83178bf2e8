//! Potential dependences, for relevant slices: a branch between a definition and
//! its use that, had it gone the other way, might have defined the same thing.

use crate::aside::{Base, Regions, within};
use crate::follow::Follow;
use crate::sweep::{Record, Sweep};
use std::collections::HashMap;
use trace::{Flow, FrameId, Instance, Op};

/// What a walk knows that looks for potential dependences.
pub(crate) struct Potential {
    regions: Regions,
    /// Where each thread went on behind the record that is met.
    next: HashMap<u32, u64>,
    /// Where frames lie.
    bases: HashMap<(FrameId, Base), u64>,
}

impl Potential {
    pub(crate) fn new(regions: Regions) -> Potential {
        Potential { regions, next: HashMap::new(), bases: HashMap::new() }
    }
}

impl<F: Follow> Sweep<'_, F> {
    /// A record is about to be met: learns where its frame lies.
    pub(crate) fn learn_frame(&mut self, record: &Record) {
        let trace = self.trace;
        let Some(potential) = &mut self.potential else { return };
        let frame = trace.control.frame_of(record.time);
        for op in trace.code.ops(trace.code.path(record.path)) {
            let info = trace.code.info(op.instruction);
            let Some(base) = potential.regions.base(trace, &info.instruction) else { continue };
            let explicit = info.instruction.memory_displacement64() as i64;
            let operand = trace.code.operands(op).iter().find(|o| {
                let a = &o.access().address;
                a.displacement == explicit && a.index.is_none()
            });
            let address = operand.and_then(|o| o.address(record.captured, record.bases));
            if let Some(address) = address {
                let value = address.wrapping_sub(explicit as u64);
                potential.bases.entry((frame, base)).or_insert(value);
            }
        }
    }

    /// A record was met: its thread went on there.
    pub(crate) fn leave_record(&mut self, record: &Record, thread: u32) {
        let code = &self.trace.code;
        if let Some(potential) = &mut self.potential {
            potential.next.insert(thread, code.start(code.path(record.path)));
        }
    }

    /// A branch that might have defined something wanted is wanted too.
    pub(crate) fn look_aside(&mut self, record: &Record, op: &Op, at: Instance, thread: u32) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        if info.flow != Flow::Branch {
            return;
        }
        let Some(potential) = &mut self.potential else { return };
        let path = trace.code.path(record.path);
        let went =
            within(&trace.code, path, at.index).or_else(|| potential.next.get(&thread).copied());
        let frame = trace.control.frame_of(record.time);
        let mut marks = Vec::new();
        for region in potential.regions.missed(trace, &info.instruction, went) {
            let hit = region.cells.intersection(self.thread.wanted.cells);
            marks.extend(self.thread.wanted.joined(hit, self.follow));
            let placed = region.frame.iter().filter_map(|(base, at, len)| {
                let base = potential.bases.get(&(frame, *base))?;
                Some((base.wrapping_add(*at as u64), *len))
            });
            for (start, len) in placed.chain(region.fixed.iter().copied()) {
                marks.extend(self.memory.hits(start, len).into_iter().map(|(_, mark)| mark));
            }
        }
        let Some(mark) = marks.into_iter().reduce(|a, b| self.follow.join(a, b)) else { return };
        if self.is_demanded(at) || at < self.options.from {
            return;
        }
        self.follow.potential(at, op.instruction);
        self.want_branch(Some(at), mark);
    }
}
