//! Where a backward walk begins: all that a criterion uses, or what is named there.

use crate::follow::{Follow, Used};
use crate::options::Start;
use crate::sources::{address_registers, by_register};
use crate::sweep::{Record, Sweep};
use program::effects::Cells;
use trace::{Flow, Instance, Op, Operand};

impl<F: Follow> Sweep<'_, F> {
    /// A record with criteria in it: walked instruction by instruction, because
    /// what is wanted grows on the way. What lies behind a criterion is not its.
    pub(crate) fn begin(&mut self, record: &Record, starts: &[Start]) {
        let code = &self.trace.code;
        let path = code.path(record.path);
        let ops = code.ops(path).iter().chain(code.faulting(path));
        let ops: Vec<(usize, &Op)> = ops.enumerate().collect();
        self.learn_frame(record);
        for (index, op) in ops.into_iter().rev() {
            let at = Instance { time: record.time, index: index as u16 };
            if index < usize::from(path.len) {
                self.look_aside(record, op, at, self.current);
                self.instruction(record, op, at);
            }
            for start in starts.iter().filter(|s| s.at() == at) {
                match start {
                    Start::Instance(_) => self.include_all(record, op, at),
                    Start::Before(_, cells, memory) => self.want_named(at, *cells, memory),
                }
            }
        }
        self.leave_record(record, self.current);
    }

    fn want_named(&mut self, at: Instance, cells: Cells, memory: &[(u64, u64)]) {
        for (used, cells) in by_register(cells) {
            let mark = self.follow.named(at, used);
            self.thread.wanted.add(cells, mark, self.follow);
        }
        for &(start, len) in memory {
            let mark = self.follow.named(at, Used::Memory { start, len });
            self.memory.add(start, len, mark, self.follow);
        }
    }

    /// Everything the instance uses is wanted.
    fn include_all(&mut self, record: &Record, op: &Op, at: Instance) {
        let info = self.trace.code.info(op.instruction);
        self.follow.start(at, op.instruction);
        for (used, cells) in by_register(info.uses.union(info.condition).minus(self.never)) {
            let mark = self.follow.seed(at, used);
            self.want_cells(cells, mark);
        }
        for operand in self.trace.code.operands(op) {
            self.include_operand(record, operand, at);
        }
        if info.flow == Flow::System {
            self.include_call_uses(at);
        }
        let mark = self.follow.seed(at, Used::Control);
        self.want_parent(record, at, mark);
    }

    fn include_operand(&mut self, record: &Record, operand: &Operand, at: Instance) {
        let registers = address_registers(operand).minus(self.never);
        for (used, cells) in by_register(registers) {
            let used = if let Used::Register(r) = used { Used::Address(r) } else { used };
            if self.options.addresses {
                let mark = self.follow.seed(at, used);
                self.want_cells(cells, mark);
            }
        }
        if operand.access().reads {
            let range = operand.range(record.captured, record.bases);
            let (start, len) = range.map_or((0, 0), |r| (r.start, r.len));
            let mark = self.follow.seed(at, Used::Memory { start, len });
            self.want_operand(record, operand, mark);
        }
    }
}
