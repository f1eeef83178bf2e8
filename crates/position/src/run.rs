//! One recorded run with all that is known of it.

use crate::Error;
use crate::places::{At, Places};
use engine::{Profile, ReplayOptions, Replayer, Until};
use object::read::elf::{FileHeader, ProgramHeader};
use program::debug::{FileId, MappedFile, Program, Register, State, from_disk};
use recording::Recording;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::{FrameId, Image, Instance, InstructionId, Time, Trace};

/// A recording, its trace, and its program.
pub struct Run {
    /// The recording.
    pub recording: Recording,
    /// What happened.
    pub trace: Trace,
    /// What the binaries say.
    pub program: Program,
    /// Where instructions come from.
    pub places: Places,
    /// Paths of all source files of code that ran.
    pub(crate) files: HashSet<Arc<Path>>,
    own: Vec<bool>,
}

impl Run {
    /// Traces a recording. `progress` is told how many instructions are done.
    pub fn open(recording: Recording, progress: &mut dyn FnMut(u64)) -> Result<Run, Error> {
        let trace = Trace::build(&recording, progress)?;
        let program = program(&trace);
        let own: Vec<bool> =
            trace.code.instructions().map(|(_, i)| program.is_own(i.address())).collect();
        let places = Places::of(&trace, &program, &own);
        let files = places.iter().filter_map(|(_, place)| match place.at {
            At::Line(file, _) => Some(program.path(file)),
            At::Address(_) => None,
        });
        let files = files.collect();
        Ok(Run { recording, trace, program, places, files, own })
    }

    /// Is the instruction part of the user's own program?
    pub fn is_own(&self, id: InstructionId) -> bool {
        self.own[id.0 as usize]
    }

    /// Address of an instance's instruction.
    pub fn address(&self, at: Instance) -> u64 {
        self.trace.code.info(self.trace.instruction(at)).address()
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
        let replayer = Replayer::new(&self.recording, Profile::COUNTING, &silent)?;
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
        self.at_number(self.run.trace.number(at))
    }

    /// The state after an instance.
    pub fn after(&mut self, at: Instance) -> Result<Instant<'_>, Error> {
        self.at_number(self.run.trace.number(at) + 1)
    }

    fn at_number(&mut self, number: u64) -> Result<Instant<'_>, Error> {
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
        let vectors = &self.replayer.registers().vectors.0;
        let low = &vectors[160 + 16 * n..176 + 16 * n];
        let high = &vectors[576 + 16 * n..592 + 16 * n];
        Some([low, high].concat())
    }
}

/// The program that a trace's images make up, the main executable first.
fn program(trace: &Trace) -> Program {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for image in trace.images.iter() {
        let Some(bias) = bias(image) else { continue };
        if seen.insert((image.mapped.path.clone(), bias)) {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&image.mapped.path));
            files.push(MappedFile { path, data: Arc::new(image.bytes.clone()), bias });
        }
    }
    Program::new(files, from_disk())
}

/// What was added to the file's own addresses where it was mapped.
fn bias(image: &Image) -> Option<u64> {
    type Header = object::elf::FileHeader64<object::Endianness>;
    let header = Header::parse(&*image.bytes).ok()?;
    let endian = header.endian().ok()?;
    let m = &image.mapped;
    header.program_headers(endian, &*image.bytes).ok()?.iter().find_map(|segment| {
        let (offset, address) = (segment.p_offset(endian), segment.p_vaddr(endian));
        let page = offset & !4095;
        let fits = segment.p_type(endian) == object::elf::PT_LOAD && page == m.offset;
        fits.then(|| m.start.wrapping_sub(address - (offset - page)))
    })
}
