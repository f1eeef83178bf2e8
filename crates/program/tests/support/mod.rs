//! Little programs, compiled when a test runs, and their state at a line.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use object::LittleEndian;
use object::elf::{FileHeader64, NT_PRSTATUS, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use program::debug::{Limits, MappedFile, Program, Register, State, from_disk};

/// A compiled program in a folder of its own.
pub struct Built {
    pub folder: tempfile::TempDir,
    pub source: PathBuf,
    pub path: PathBuf,
    text: String,
}

/// Compiles `text` with a command line such as `gcc -O2 -g`. The file name's
/// ending says the language.
pub fn compile(command: &str, name: &str, text: &str) -> Built {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let source = folder.path().join(name);
    let path = folder.path().join("prog");
    std::fs::write(&source, text).expect("the source is written");
    let mut words = command.split_whitespace();
    let mut compiler = Command::new(words.next().expect("a compiler"));
    compiler.args(words).arg(&source).arg("-o").arg(&path).current_dir(folder.path());
    let output = compiler.output().expect("the compiler runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
    Built { folder, source, path, text: text.to_owned() }
}

impl Built {
    /// The number of the line that contains `mark`.
    pub fn line_with(&self, mark: &str) -> u32 {
        let index = self.text.lines().position(|line| line.contains(mark));
        index.expect("a line with the mark") as u32 + 1
    }

    /// The program alone, as if mapped at `bias`.
    pub fn program_at(&self, bias: u64) -> Program {
        Program::new(vec![mapped(&self.path, bias)], from_disk())
    }

    /// The source file's name.
    pub fn name(&self) -> &str {
        self.source.file_name().and_then(|name| name.to_str()).expect("a name")
    }

    /// Runs the program to the line that contains `mark`, and takes a picture.
    pub fn stop_at(&self, mark: &str) -> Stopped {
        let place = format!("{}:{}", self.source.display(), self.line_with(mark));
        self.stop(&[&format!("break {place}"), "run"])
    }

    /// Runs commands of gdb, and takes a picture of the program then.
    pub fn stop(&self, commands: &[&str]) -> Stopped {
        let core = self.folder.path().join("core");
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-ex", "set confirm off", "-ex", "set debuginfod enabled off"]);
        gdb.args(["-ex", "set use-coredump-filter off", "-ex", "set startup-with-shell off"]);
        for command in commands {
            gdb.args(["-ex", command]);
        }
        gdb.args(["-ex", &format!("generate-core-file {}", core.display()), "-ex", "kill"]);
        let output = gdb.arg(&self.path).output().expect("gdb runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let core = std::fs::read(core).unwrap_or_else(|_| panic!("no core file: {said}"));
        Stopped::read(&core)
    }
}

fn mapped(path: &Path, bias: u64) -> MappedFile {
    let data = std::fs::read(path).expect("the file is readable");
    MappedFile { path: path.to_owned(), data: Arc::new(data), bias }
}

/// A program stopped at an instant.
pub struct Stopped {
    pub program: Program,
    pub state: Picture,
}

/// Registers and memory at an instant.
pub struct Picture {
    pub registers: [u64; 17],
    vectors: Vec<[u8; 16]>,
    fs_base: u64,
    memory: BTreeMap<u64, Vec<u8>>,
    /// Segments of files. gdb leaves out what a run cannot have changed.
    unchanged: BTreeMap<u64, Vec<u8>>,
}

impl State for Picture {
    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(usize::from(register.0)).copied()
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        [&self.memory, &self.unchanged].into_iter().find_map(|memory| {
            let (start, bytes) = memory.range(..=address).next_back()?;
            let first = usize::try_from(address - start).ok()?;
            Some(bytes.get(first..first.checked_add(len)?)?.to_vec())
        })
    }

    fn fs_base(&self) -> u64 {
        self.fs_base
    }

    fn wide_register(&self, register: Register) -> Option<Vec<u8>> {
        let index = usize::from(register.0).checked_sub(17)?;
        Some(self.vectors.get(index)?.to_vec())
    }
}

impl Stopped {
    /// The address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.state.registers[16]
    }

    /// The text of an expression.
    pub fn text(&self, expression: &str) -> String {
        match self.program.evaluate(self.pc(), expression, &self.state) {
            Ok(value) => self.program.text(&value, &self.state, Limits::default()),
            Err(error) => format!("error: {error}"),
        }
    }

    fn read(core: &[u8]) -> Self {
        let endian = LittleEndian;
        let header = FileHeader64::<LittleEndian>::parse(core).expect("a core file");
        let mut state = Picture {
            registers: [0; 17],
            vectors: Vec::new(),
            fs_base: 0,
            memory: BTreeMap::new(),
            unchanged: BTreeMap::new(),
        };
        let mut files = Vec::new();
        for segment in header.program_headers(endian, core).expect("program headers") {
            if segment.p_type(endian) == PT_LOAD {
                let bytes = segment.data(endian, core).expect("memory").to_vec();
                state.memory.insert(segment.p_vaddr(endian), bytes);
            } else if segment.p_type(endian) == PT_NOTE {
                let notes = segment.notes(endian, core).expect("notes");
                for note in notes.into_iter().flatten() {
                    let note = note.expect("a note");
                    match note.n_type(endian) {
                        NT_PRSTATUS => state.read_registers(note.desc()),
                        object::elf::NT_PRFPREG => state.read_vectors(note.desc()),
                        object::elf::NT_FILE => files = read_files(note.desc()),
                        _ => {}
                    }
                }
            }
        }
        let images = files.iter().filter_map(|(path, start)| image(path, *start));
        let images: Vec<MappedFile> = images.collect();
        images.iter().for_each(|image| state.add_segments(image));
        Self { program: Program::new(images, from_disk()), state }
    }
}

impl Picture {
    fn read_registers(&mut self, desc: &[u8]) {
        // `struct elf_prstatus` has 112 bytes before its registers, which have the
        // order of `struct user_regs_struct`.
        const ORDER: [usize; 17] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];
        let word = |index: usize| word_at(desc, 112 + 8 * index);
        self.registers = ORDER.map(word);
        self.fs_base = word(21);
    }

    fn read_vectors(&mut self, desc: &[u8]) {
        // In the format of `fxsave`, the vector registers begin at byte 160.
        let vectors = desc[160..160 + 256].chunks(16);
        self.vectors = vectors.map(|bytes| bytes.try_into().expect("16 bytes")).collect();
    }
}

impl Picture {
    fn add_segments(&mut self, image: &MappedFile) {
        let data = (*image.data).as_ref();
        for segment in segments(data).expect("a file that ran") {
            let address = segment.p_vaddr(LittleEndian).wrapping_add(image.bias);
            let bytes = segment.data(LittleEndian, data).expect("a segment").to_vec();
            self.unchanged.insert(address, bytes);
        }
    }
}

fn segments(data: &[u8]) -> Option<Vec<object::elf::ProgramHeader64<LittleEndian>>> {
    let header = FileHeader64::<LittleEndian>::parse(data).ok()?;
    let segments = header.program_headers(LittleEndian, data).ok()?.iter();
    Some(segments.filter(|s| s.p_type(LittleEndian) == PT_LOAD).copied().collect())
}

/// The files of a `NT_FILE` note, and where their beginnings are mapped.
fn read_files(desc: &[u8]) -> Vec<(PathBuf, u64)> {
    let count = word_at(desc, 0) as usize;
    let mut names = desc[16 + 24 * count..].split(|byte| *byte == 0);
    let mut files = Vec::new();
    for index in 0..count {
        let name = String::from_utf8_lossy(names.next().expect("a name")).into_owned();
        let entry = 16 + 24 * index;
        if word_at(desc, entry + 16) == 0 {
            files.push((PathBuf::from(name), word_at(desc, entry)));
        }
    }
    files
}

fn image(path: &Path, start: u64) -> Option<MappedFile> {
    let data = std::fs::read(path).ok()?;
    let lowest = segments(&data)?.iter().map(|segment| segment.p_vaddr(LittleEndian)).min()?;
    let bias = start.wrapping_sub(lowest & !0xfff);
    Some(MappedFile { path: path.to_owned(), data: Arc::new(data), bias })
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
