//! Guests that are compiled, recorded and looked at, each in processes of its own:
//! a guest lives at fixed addresses of the process that runs or replays it.

use engine::RecordOptions;
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use trace::{Flow, Instance, InstructionId, Trace};

/// A program.
pub struct Guest {
    /// Its source.
    pub source: String,
    /// The suffix of its file.
    pub language: Language,
    /// What it reads.
    pub input: &'static [u8],
}

/// What a guest is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Assembler, without a library.
    Assembly,
    /// C.
    C,
    /// C++.
    Cpp,
}

/// Runs every guest: compile, record, look.
pub fn main(guests: &[(&str, &Guest)], look: impl Fn(&str, &Path)) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[..] {
        [_, flag, dir] if flag == "--record" => {
            record(Path::new(dir));
            return ExitCode::SUCCESS;
        }
        [_, flag, name, dir] if flag == "--look" => {
            look(name, Path::new(dir));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let wanted = arguments.get(1).filter(|a| !a.starts_with('-')).cloned().unwrap_or_default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut failed = 0;
    let chosen = guests.iter().filter(|(name, _)| name.contains(&wanted));
    for (name, guest) in chosen.clone() {
        let dir = folder.path().join(name);
        std::fs::create_dir(&dir).expect("a folder");
        compile(&dir, guest);
        let ok =
            run(&["--record", path(&dir)], guest.input) && run(&["--look", name, path(&dir)], b"");
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed += usize::from(!ok);
    }
    println!("test result: {} passed; {failed} failed", chosen.count() - failed);
    ExitCode::from(u8::from(failed > 0))
}

fn path(dir: &Path) -> &str {
    dir.to_str().expect("a plain path")
}

/// This program again.
fn run(arguments: &[&str], input: &[u8]) -> bool {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("this program runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A guest need not read it.
    let _ = std::io::Write::write_all(&mut stdin, input);
    drop(stdin);
    child.wait().expect("it ends").success()
}

fn compile(dir: &Path, guest: &Guest) {
    let (suffix, compiler, flags): (&str, &str, &[&str]) = match guest.language {
        Language::Assembly => ("S", "gcc", &["-nostdlib", "-static"]),
        Language::C => ("c", "gcc", &["-g", "-O1", "-fno-inline", "-Wl,-z,lazy", "-pthread"]),
        Language::Cpp => ("cpp", "g++", &["-g", "-O1", "-fno-inline", "-Wl,-z,lazy"]),
    };
    let source = dir.join(format!("guest.{suffix}"));
    std::fs::write(&source, &guest.source).expect("writes");
    let mut command = Command::new(compiler);
    command.args(flags).arg("-o").arg(dir.join("guest")).arg(&source);
    let done = command.status().expect("a compiler (./test installs it)");
    assert!(done.success(), "{} does not compile", source.display());
    std::fs::copy(dir.join("guest"), dir.join("marks")).expect("copies");
    if guest.language == Language::Assembly {
        strip_marks(&dir.join("guest"));
    }
}

/// Marks in the middle of code are not functions: nobody but the test knows them.
fn strip_marks(program: &Path) {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let functions = file.symbols().filter(|s| s.kind() == object::SymbolKind::Text);
    let names = functions.filter_map(|s| Some(format!("--keep-symbol={}", s.name().ok()?)));
    let done = Command::new("strip").arg("-s").args(names).arg(program).status();
    assert!(done.expect("binutils (./test installs it)").success());
}

fn record(dir: &Path) {
    let mut options = RecordOptions::new(&dir.join("recording"), dir.join("guest"), &[]);
    options.store = recording::Store::at(dir.join("store"));
    engine::record(&options).expect("records");
}

/// Labels and functions of a guest, by name: first address and length.
pub struct Marks(BTreeMap<String, (u64, u64)>);

impl Marks {
    /// Reads them from a program, and finds where it was loaded.
    pub fn of(program: &Path, trace: &Trace) -> Marks {
        let bytes = std::fs::read(program).expect("the program");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let fixed = file.kind() == object::ObjectKind::Executable;
        let image = trace.images.iter().find(|i| i.mapped.path.ends_with(b"/guest"));
        let base = image.map_or(0, |i| i.mapped.start - i.mapped.offset);
        let base = if fixed { 0 } else { base };
        let symbols = file.symbols().filter_map(|s| {
            Some((s.name().ok()?.to_owned(), (s.address() + base, s.size().max(1))))
        });
        Marks(symbols.collect())
    }

    /// The last execution of a mark's first instruction.
    pub fn last(&self, trace: &Trace, mark: &str) -> Instance {
        let (address, _) = self.0[mark];
        let executed = trace.records.instructions();
        let at = |n: u64| trace.at_number(n).expect("numbered");
        let is_it = |n: &u64| trace.code.info(trace.instruction(at(*n))).address() == address;
        let n = (0..executed).rev().find(is_it).unwrap_or_else(|| panic!("{mark} never ran"));
        at(n)
    }

    /// Is an instruction of the mark among these?
    pub fn any(&self, mark: &str, addresses: &BTreeSet<u64>) -> bool {
        let (start, len) = *self.0.get(mark).unwrap_or_else(|| panic!("there is no {mark}"));
        addresses.range(start..start + len).next().is_some()
    }
}

/// Is one of these in a mapped file whose path has this in it, but for jumps that only lead
/// on?
pub fn any_in_file(
    trace: &Trace,
    file: &str,
    mut instructions: impl Iterator<Item = InstructionId>,
) -> bool {
    let named = |path: &[u8]| String::from_utf8_lossy(path).contains(file);
    let maps: Vec<_> = trace.images.iter().filter(|i| named(&i.mapped.path)).collect();
    assert!(!maps.is_empty(), "no file {file} was mapped");
    instructions.any(|id| {
        let info = trace.code.info(id);
        let address = info.address();
        info.flow != Flow::Indirect
            && maps.iter().any(|i| (i.mapped.start..i.mapped.end).contains(&address))
    })
}
