//! The predicate trace: every conditional branch that was executed, in order.

use position::Run;
use trace::{Flow, Instance, InstructionId, Time};

/// An execution of a conditional branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Instructions executed before it.
    pub number: u64,
    /// Which execution.
    pub instance: Instance,
    /// Of which branch.
    pub instruction: InstructionId,
    /// Where that is.
    pub pc: u64,
}

/// All of the program's own branches before an instant, in order of time; those of
/// libraries too if wanted. Jumps through tables are none.
pub fn predicates(run: &Run, until: u64, libraries: bool) -> Vec<Predicate> {
    let trace = &run.trace;
    let branches: Vec<Vec<(u16, InstructionId, u64)>> = trace
        .code
        .paths()
        .map(|(_, path)| {
            let ops = trace.code.ops(path).iter().enumerate();
            ops.filter(|(_, op)| {
                let info = trace.code.info(op.instruction);
                info.flow == Flow::Branch && (libraries || run.is_own(op.instruction))
            })
            .map(|(n, op)| (n as u16, op.instruction, trace.code.info(op.instruction).address()))
            .collect()
        })
        .collect();
    let mut all = Vec::new();
    let mut number = trace.records.before();
    for time in (0..trace.records.len()).map(Time) {
        if number >= until {
            break;
        }
        let id = trace.records.path(time);
        for &(index, instruction, pc) in &branches[id.0 as usize] {
            let number = number + u64::from(index);
            if number < until {
                let instance = Instance { time, index };
                all.push(Predicate { number, instance, instruction, pc });
            }
        }
        number += u64::from(trace.code.path(id).len);
    }
    all
}
