//! One recorded run with all that is known of it.

use crate::Error;
use crate::places::{At, Places};
use engine::{Profile, ReplayOptions, Replayer, Until};
use program::debug::{FileId, Program, Register, State};
use recording::Recording;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use trace::{FrameId, Instance, InstructionId, Time, Trace};

/// A recording, its trace, and its program.
pub struct Run {
    /// The recording.
    pub recording: Recording,
    /// What happened.
    pub trace: Trace,
    /// What the binaries say.
    pub program: Arc<Program>,
    /// Where instructions come from.
    pub places: Places,
    /// Paths of all source files of code that ran.
    pub(crate) files: HashSet<Arc<Path>>,
    own: Vec<bool>,
}

impl Run {
    /// Traces a recording. `progress` is told how many instructions are done.
    pub fn open(recording: Recording, progress: &mut dyn FnMut(u64)) -> Result<Run, Error> {
        let trace = Trace::open(&recording, progress)?;
        Ok(Run::of(recording, trace))
    }

    /// Traces a part of a recording, by numbers of instructions, and a few more.
    pub fn open_part(
        recording: Recording,
        part: std::ops::Range<u64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Run, Error> {
        let trace = Trace::build_part(&recording, part, progress)?;
        Ok(Run::of(recording, trace))
    }

    fn of(recording: Recording, trace: Trace) -> Run {
        let program = trace.program.clone();
        let own: Vec<bool> =
            trace.code.instructions().map(|(_, i)| program.is_own(i.address())).collect();
        let places = Places::of(&trace, &program, &own, false);
        let files = places.iter().filter_map(|(_, place)| match place.at {
            At::Line(file, _) => Some(program.path(file)),
            At::Address(_) => None,
        });
        let files = files.collect();
        // Whoever has a run may replay it in a fork.
        trace.settle();
        Run { recording, trace, program, places, files, own }
    }

    /// From now on, code of libraries has places too.
    pub fn show_libraries(&mut self) {
        self.places = Places::of(&self.trace, &self.program, &self.own, true);
    }

    /// Is the instruction part of the user's own program?
    pub fn is_own(&self, id: InstructionId) -> bool {
        self.own[id.0 as usize]
    }

    /// Address of an instance's instruction.
    pub fn address(&self, at: Instance) -> u64 {
        self.trace.code.info(self.trace.instruction(at)).address()
    }

    /// Where the program itself begins: the first instance of its own code. What the
    /// loader did before is bookkeeping.
    pub fn beginning(&self) -> Option<Instance> {
        let code = &self.trace.code;
        let is_own = |op: &trace::Op| self.is_own(op.instruction);
        let first = |(_, path)| code.ops(path).iter().chain(code.faulting(path)).position(is_own);
        let first: Vec<Option<usize>> = code.paths().map(first).collect();
        (0..).zip(self.trace.records.paths()).find_map(|(time, path)| {
            let index = first[path.0 as usize]? as u16;
            Some(Instance { time: Time(time), index })
        })
    }

    /// An instance's instruction as an assembler writes it.
    pub fn disassembled(&self, at: Instance) -> Option<String> {
        use iced_x86::Formatter;
        let info = self.trace.code.info(self.trace.instruction(at));
        let mut text = String::new();
        iced_x86::IntelFormatter::new().format(&info.instruction, &mut text);
        Some(text)
    }

    /// Lines of a file that were executed, in no order.
    pub fn executed_lines(&self, file: FileId) -> Vec<u32> {
        let lines = self.places.iter().filter_map(|(_, place)| match place.at {
            At::Line(of, line) if of == file => Some(line),
            _ => None,
        });
        lines.collect::<HashSet<u32>>().into_iter().collect()
    }

    /// Has an activation of a thread not ended by a time at which it does not run
    /// itself? Other threads' records say nothing about it.
    pub fn is_active(&self, frame: FrameId, time: Time, thread: u32) -> bool {
        let control = &self.trace.control;
        let deeper = control.frame(control.frame_of(time)).depth > control.frame(frame).depth;
        deeper || self.trace.thread(time) != thread
    }

    /// Registers and memory at instants, which must come in ascending order.
    pub fn states(&self) -> Result<States<'_>, Error> {
        let silent = ReplayOptions { verify: false, silent: true };
        let mut replayer = Replayer::new(&self.recording, Profile::COUNTING, &silent)?;
        replayer.use_stock();
        Ok(States { run: self, replayer })
    }
}

/// A replay that is stopped at one instant after the other.
pub struct States<'a> {
    run: &'a Run,
    replayer: Replayer,
}

impl States<'_> {
    /// The state before an instance.
    pub fn before(&mut self, at: Instance) -> Result<Instant<'_>, Error> {
        self.at(self.run.trace.number(at))
    }

    /// The state after an instance.
    pub fn after(&mut self, at: Instance) -> Result<Instant<'_>, Error> {
        self.at(self.run.trace.number(at) + 1)
    }

    /// The state when so many instructions have been executed.
    pub fn at(&mut self, number: u64) -> Result<Instant<'_>, Error> {
        if self.replayer.instructions() < number {
            self.replayer.run(Until::Instruction(number))?;
        }
        Ok(Instant { replayer: &self.replayer })
    }
}

/// One instant of a replay.
pub struct Instant<'a> {
    replayer: &'a Replayer,
}

/// From the number in debug information to the one in encodings.
pub(crate) const ENCODED: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

impl Instant<'_> {
    /// The address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.replayer.registers().rip
    }

    /// The stack pointer that the program was started with.
    pub fn first_stack(&self) -> u64 {
        self.replayer.first_stack()
    }

    /// All registers.
    pub fn registers(&self) -> &engine::Registers {
        self.replayer.registers()
    }
}

impl State for Instant<'_> {
    fn register(&self, register: Register) -> Option<u64> {
        let registers = self.replayer.registers();
        match register.0 {
            n @ 0..16 => Some(registers.gpr[ENCODED[usize::from(n)]]),
            16 => Some(registers.rip),
            _ => None,
        }
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.replayer.read_memory(address, len)
    }

    fn fs_base(&self) -> u64 {
        self.replayer.registers().fs
    }

    fn wide_register(&self, register: Register) -> Option<Vec<u8>> {
        let n = usize::from(register.0.checked_sub(17).filter(|n| *n < 16)?);
        Some(self.replayer.registers().vector_registers()[n].to_vec())
    }
}
