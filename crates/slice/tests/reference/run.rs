//! A run, one instruction after the other, as a replay shows it.

use super::knowledge::{Knowledge, Known};
use super::relation::Location;
use engine::lockstep::probe::Place;
use engine::{Access, Grain, Observer, Profile, Registers, ReplayOptions, Replayer};
use iced_x86::{Instruction, Mnemonic};
use recording::Recording;
use std::collections::{HashMap, HashSet, VecDeque};
use trace::{Event, Instance, InstructionId, PathId, Time, Trace};

/// One executed instruction.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which.
    pub instruction: InstructionId,
    /// Its address.
    pub address: u64,
    /// Whose.
    pub thread: u32,
    /// The stack pointer before it.
    pub sp: u64,
    /// Addresses of its memory operands; of the first element if it repeats.
    pub operands: Vec<u64>,
    /// Elements of a repeated instruction; 1 for others.
    pub elements: u64,
    /// Do its elements go downward?
    pub down: bool,
}

/// Which step an instance of a trace is, without counting each time.
pub struct Numbers {
    /// Of each record: the number of its first step.
    firsts: Vec<usize>,
}

impl Numbers {
    /// Counts once.
    pub fn of(trace: &Trace) -> Numbers {
        let mut next = 0;
        let paths = trace.records.paths().iter();
        let first = |path: &PathId| {
            let first = next;
            next += usize::from(trace.code.path(*path).len);
            first
        };
        Numbers { firsts: paths.map(first).collect() }
    }

    /// The step that an instance is.
    pub fn step(&self, at: Instance) -> usize {
        self.firsts[at.time.0 as usize] + usize::from(at.index)
    }

    /// The instance that a step is; the last record may not have it.
    pub fn instance(&self, step: usize) -> Instance {
        let record = self.firsts.partition_point(|first| *first <= step) - 1;
        let index = (step - self.firsts[record]) as u16;
        Instance { time: Time(record as u32), index }
    }
}

/// All of them.
pub struct Run {
    /// In order.
    pub steps: Vec<Step>,
    /// Where each is in the trace.
    pub numbers: Numbers,
    /// What is known of each instruction, by its number.
    pub known: Vec<Option<Known>>,
}

struct Walker<'a> {
    trace: &'a Trace,
    numbers: Numbers,
    known: Vec<Option<Known>>,
    ids: HashMap<(u64, Vec<u8>), InstructionId>,
    steps: Vec<Step>,
    /// Per thread: its last step, and the registers before it.
    last: HashMap<u32, (usize, Registers)>,
    /// Instructions that were begun and faulted before a step, by its number: they are none.
    faults: HashMap<usize, VecDeque<u64>>,
    wrong: Vec<String>,
}

const DF: u64 = 1 << 10;

impl Run {
    /// Replays a recording of which there is a trace, and checks that the two have
    /// the same instructions, and that nothing changed that the processor did not
    /// say would.
    pub fn walk(recording: &Recording, trace: &Trace, knowledge: &mut Knowledge) -> Run {
        // Both the processor that is asked and the replay are forks.
        trace.settle();
        let executed = executed(trace);
        let know = |id: InstructionId, knowledge: &mut Knowledge| {
            let info = trace.code.info(id);
            knowledge.of(&info.instruction, info.bytes())
        };
        let known: Vec<Option<Known>> = trace
            .code
            .instructions()
            .map(|(id, _)| executed.contains(&id).then(|| know(id, knowledge)).flatten())
            .collect();
        knowledge.save();
        let ids = trace.code.instructions().map(|(id, i)| ((i.address(), i.bytes().to_vec()), id));
        let numbers = Numbers::of(trace);
        let mut walker = Walker {
            trace,
            faults: faults(trace, &numbers),
            numbers,
            known,
            ids: ids.collect(),
            steps: Vec::new(),
            last: HashMap::new(),
            wrong: Vec::new(),
        };
        let silent = ReplayOptions { verify: false, silent: true };
        let replayer = Replayer::new(recording, Profile::INSTRUCTIONS, &silent);
        replayer.expect("a replay").observe(&mut walker).expect("a whole replay");
        assert!(walker.wrong.is_empty(), "{}", walker.wrong.join("\n"));
        let Walker { steps, numbers, known, .. } = walker;
        let run = Run { steps, numbers, known };
        run.equals(trace);
        run
    }

    /// The trace has the same instructions of the same threads, in the same order.
    fn equals(&self, trace: &Trace) {
        let executed = trace.records.instructions();
        for (n, step) in self.steps.iter().enumerate().take(executed as usize) {
            let at = self.numbers.instance(n);
            assert_eq!(trace.instruction(at), step.instruction, "instruction {n}");
            assert_eq!(trace.thread(at.time), step.thread, "thread of instruction {n}");
        }
        let more = self.steps.len() as u64 - executed;
        assert!(more <= 1, "{more} instructions are not in the trace");
    }
}

/// Where instructions faulted, by the number of the step that came next.
fn faults(trace: &Trace, numbers: &Numbers) -> HashMap<usize, VecDeque<u64>> {
    let mut faults: HashMap<usize, VecDeque<u64>> = HashMap::new();
    for (time, event) in trace.events.iter() {
        if let Event::Fault { pc, .. } = event
            && *time < trace.records.now()
        {
            let next = numbers.step(Instance { time: *time, index: 0 });
            faults.entry(next).or_default().push_back(*pc);
        }
    }
    faults
}

/// An instruction that ran and of which nothing can be known: a gather.
pub fn unknown(trace: &Trace) -> Option<Instruction> {
    let mut instructions = executed(trace).into_iter().map(|id| trace.code.info(id).instruction);
    instructions.find(|i| i.is_vsib())
}

/// Instructions that ran, or faulted.
fn executed(trace: &Trace) -> HashSet<InstructionId> {
    let paths: HashSet<PathId> = trace.records.paths().iter().copied().collect();
    let path = |id: &PathId| trace.code.path(*id);
    paths
        .iter()
        .flat_map(|id| trace.code.ops(path(id)).iter().chain(trace.code.faulting(path(id))))
        .map(|op| op.instruction)
        .collect()
}

impl Observer for Walker<'_> {
    fn grain(&self) -> Grain {
        Grain::Instructions
    }

    fn instruction(&mut self, replayer: &Replayer, i: &Instruction, _: &[Access]) {
        let (regs, thread) = (replayer.registers(), replayer.thread().0);
        self.finish(thread, regs);
        let n = self.steps.len();
        let id = match (n as u64) < self.trace.records.instructions() {
            true if self.faulted(n, i) => return,
            true => self.trace.instruction(self.numbers.instance(n)),
            false => match self.by_bytes(i) {
                Some(id) => id,
                // The run jumped to where no code is.
                None => return,
            },
        };
        let address = self.trace.code.info(id).address();
        if address != i.ip() {
            self.wrong.push(format!("step {n} is at {:#x}, in the trace {address:#x}", i.ip()));
        }
        let known = self.known[id.0 as usize].as_ref();
        let operands = known.map_or(Vec::new(), |known| {
            let address = |o: &Location| o.address(regs).expect("only gathers have none");
            known.operands.iter().map(address).collect()
        });
        self.steps.push(Step {
            instruction: id,
            address: i.ip(),
            thread,
            sp: regs.gpr[4],
            operands,
            elements: 1,
            down: regs.rflags & DF != 0,
        });
        self.last.insert(thread, (n, regs.clone()));
    }
}

impl Walker<'_> {
    /// The last instruction, if it faulted: it is in the trace, but not counted.
    fn by_bytes(&self, i: &Instruction) -> Option<InstructionId> {
        let same = |address: u64, bytes: &[u8]| address == i.ip() && bytes.len() == i.len();
        let found = self.ids.iter().find(|((address, bytes), _)| same(*address, bytes));
        found.map(|(_, id)| *id)
    }

    /// Was this instruction begun before a step, and did it fault? Where it is a trap, the
    /// signal comes behind it.
    fn faulted(&mut self, step: usize, i: &Instruction) -> bool {
        let is_trap = matches!(i.mnemonic(), Mnemonic::Int3 | Mnemonic::Int1 | Mnemonic::Int);
        let own = |pc: &mut u64| *pc == i.ip() || is_trap && *pc == i.next_ip();
        self.faults.get_mut(&step).and_then(|faults| faults.pop_front_if(own)).is_some()
    }

    /// The thread's last instruction is done: these are the registers behind it.
    fn finish(&mut self, thread: u32, regs: &Registers) {
        let Some((n, before)) = self.last.remove(&thread) else { return };
        let id = self.steps[n].instruction;
        let i = &self.trace.code.info(id).instruction;
        if i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix()) {
            self.steps[n].elements = before.gpr[1].wrapping_sub(regs.gpr[1]);
        }
        let went_on = regs.rip == i.next_ip() || i.flow_control() != iced_x86::FlowControl::Next;
        if i.mnemonic() != iced_x86::Mnemonic::Syscall && went_on {
            self.check(n, &before, regs);
        }
    }

    /// Whatever general register differs must be one that the instruction defines.
    /// Flags are left out: translated code changes those that are overwritten before
    /// they are read.
    fn check(&mut self, n: usize, before: &Registers, after: &Registers) {
        let id = self.steps[n].instruction;
        let Some(known) = &self.known[id.0 as usize] else { return };
        let mut changed = Vec::new();
        for (r, (a, b)) in before.gpr.iter().zip(&after.gpr).enumerate() {
            let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes()).enumerate();
            let cells = bytes.filter(|(_, (a, b))| a != b).map(|(k, _)| (8 * r + k) as u16);
            changed.extend(cells);
        }
        let missing =
            changed.iter().find(|cell| !known.from.contains_key(&Place::Register(**cell)));
        if let Some(cell) = missing {
            let i = &self.trace.code.info(id).instruction;
            let name = super::relation::name(&Place::Register(*cell));
            self.wrong.push(format!("step {n}, {i}: {name} changed"));
        }
    }
}
