//! What people run every day, where more than one recording and its replay is to be seen:
//! sanitizers, servers whose clients are not recorded, programs in a terminal, the same program
//! again.
//! `cargo xtask compat` has the rest.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("WHY_DIR", self.path("home")).current_dir(self.0.path());
        command
    }

    fn why(&self, arguments: &[&str]) -> Output {
        self.command(WHY, arguments).output().expect("why runs")
    }

    fn info(&self, recording: &str) -> serde_json::Value {
        let output = self.why(&["info", "--json", recording]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Compiles a program with an option.
    fn compile(&self, name: &str, option: &str, text: &str) {
        fs::write(self.path(&format!("{name}.c")), text).expect("a source");
        let source = format!("{name}.c");
        let status = self.command("gcc", &["-g", option, "-o", name, &source]).status();
        assert!(status.expect("gcc runs").success());
    }
}

const WHY: &str = env!("CARGO_BIN_EXE_why");

/// Types into programs in a terminal; also used by `cargo xtask compat`.
const TERMINAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/src/compat/programs/terminal.py");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const LEAK: &str = "#include <stdlib.h>
#include <stdio.h>
int main(void) { void *volatile p = malloc(100); p = NULL; return puts(\"leaked\") < 0; }
";

#[test]
fn leak_checking_is_switched_off_and_said() {
    let place = Place::new();
    place.compile("leak", "-fsanitize=address", LEAK);
    let recorded = place.why(&["record", "-o", "rec", "./leak"]);
    let said = text(&recorded.stderr);
    assert_eq!(recorded.status.code(), Some(0), "{said}");
    assert!(said.contains("leak checking was switched off"), "{said}");
    assert_eq!(place.info("rec")["switched_off"], serde_json::json!(["leak checking"]));
    assert!(text(&place.why(&["info", "rec"]).stdout).contains("switched off"));
    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!((replayed.status.code(), text(&replayed.stdout)), (Some(0), "leaked\n".into()));
}

#[test]
fn leak_checking_of_a_child_is_switched_off_and_said() {
    let place = Place::new();
    place.compile("leak", "-fsanitize=leak", LEAK);
    let recorded = place.why(&["record", "-o", "rec", "/bin/sh", "-c", "./leak; echo $?"]);
    assert_eq!(text(&recorded.stdout), "leaked\n0\n");
    assert!(text(&recorded.stderr).contains("leak checking was switched off"));
    assert_eq!(place.info("rec")["switched_off"], serde_json::json!(["leak checking"]));
}

#[test]
fn programs_that_look_for_no_leaks_keep_their_environment() {
    let place = Place::new();
    let recorded = place.why(&["record", "-o", "rec", "/usr/bin/env"]);
    assert!(!text(&recorded.stdout).contains("LSAN_OPTIONS"));
    assert!(!text(&recorded.stderr).contains("switched off"));
    assert_eq!(place.info("rec")["switched_off"], serde_json::json!([]));
}

/// Asks an HTTP server for a path, and returns its whole answer.
fn ask(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_server_is_recorded_while_its_clients_are_not() {
    let place = Place::new();
    fs::write(place.path("page"), "a page of the server\n").expect("a page");
    let server = ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"];
    let mut recorder = place
        .command(WHY, &[&["record", "-q", "-o", "rec", "--"][..], &server].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("why runs");
    let mut stdout = BufReader::new(recorder.stdout.take().expect("piped"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("it says where it listens");
    let port = first.split(' ').skip_while(|w| *w != "port").nth(1).expect("a port");
    for _ in 0..5 {
        assert!(ask(port.parse().expect("a number"), "/page").ends_with("a page of the server\n"));
    }
    assert!(ask(port.parse().expect("a number"), "/other").contains("404"));
    let killed = Command::new("kill").arg(recorder.id().to_string()).status();
    assert!(killed.expect("kill runs").success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("output");
    let recorded = recorder.wait_with_output().expect("it ends");
    assert_eq!(recorded.status.code(), Some(143));

    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!(replayed.status.code(), Some(143), "{}", text(&replayed.stderr));
    assert_eq!(text(&replayed.stdout), first + &rest);
    assert_eq!(text(&replayed.stderr), text(&recorded.stderr));
    assert_eq!(text(&replayed.stderr).matches("GET /page").count(), 5);
}

#[test]
fn programs_in_a_terminal_are_recorded_and_replayed() {
    for (scene, status) in [("vim", 0), ("less", 0), ("top", 0), ("size", 3)] {
        let place = Place::new();
        let record = [TERMINAL, scene, WHY, "record", "-q", "-o", "rec", "--"];
        let typed = place.command("python3", &record).output().expect("python runs");
        let said = format!("{}{}", text(&typed.stdout), text(&typed.stderr));
        assert!(said.starts_with(&format!("{scene} {status}")), "{said}");
        let replayed = place.why(&["replay", "rec", "--verify"]);
        assert_eq!(replayed.status.code(), Some(status), "{scene}: {}", text(&replayed.stderr));
        assert!(!replayed.stdout.is_empty(), "{scene}");
    }
}

/// The files of translated code, each with what changes when it is written again.
fn kept_code(place: &Place) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(place.path("home/code")).expect("translations are kept");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a file"))
        .map(|entry| (entry.path(), entry.metadata().expect("a file").ino()))
        .collect();
    files.sort();
    files
}

/// A program whose text is its own to change, and that prints what its text says.
const PATCHES_ITSELF: &str = "#include <stdio.h>
#include <sys/mman.h>
__attribute__((noipa, aligned(4096))) int answer(void) { return 41; }
int main(void) {
  volatile unsigned char *code = (unsigned char *)answer;
  printf(\"%d\", answer());
  if (mprotect((void *)code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC)) return 1;
  for (int i = 0; i < 16; i++) if (code[i] == 41) { code[i] = 42; break; }
  if (mprotect((void *)code, 4096, PROT_READ | PROT_EXEC)) return 1;
  return printf(\" %d\\n\", answer()) < 0;
}
";

#[test]
fn the_second_run_of_a_program_finds_its_code_translated() {
    let place = Place::new();
    place.compile("patches", "-O1", PATCHES_ITSELF);
    let record = |name: &str| {
        let output = place.why(&["record", "-q", "-o", name, "./patches"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "41 42\n".into()));
        let replayed = place.why(&["replay", name, "--verify"]);
        assert_eq!((replayed.status.code(), text(&replayed.stdout)), (Some(0), "41 42\n".into()));
    };
    record("first");
    let kept = kept_code(&place);
    assert_eq!(kept.len(), 1, "of one program");
    record("second");
    assert_eq!(kept_code(&place), kept, "nothing new was translated");
}

#[test]
fn damaged_translations_are_made_anew() {
    let place = Place::new();
    let record = |name: &str| {
        let output = place.why(&["record", "-q", "-o", name, "/bin/echo", "hello"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "hello\n".into()));
    };
    record("first");
    let kept = kept_code(&place);
    let mut bytes = fs::read(&kept[0].0).expect("just seen");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xcc);
    fs::write(&kept[0].0, bytes).expect("it can be written");
    record("second");
    assert_ne!(kept_code(&place), kept, "written again");
}

#[test]
fn a_program_that_changed_is_translated_anew() {
    let place = Place::new();
    for (n, said) in ["one", "two"].into_iter().enumerate() {
        let source =
            format!("#include <stdio.h>\nint main(void) {{ return !puts(\"{said}\"); }}\n");
        place.compile("says", "-O1", &source);
        for again in 0..2 {
            let output = place.why(&["record", "-q", "-o", &format!("rec{n}{again}"), "./says"]);
            assert_eq!(text(&output.stdout), format!("{said}\n"));
        }
    }
    assert_eq!(kept_code(&place).len(), 2);
}

#[test]
fn a_failing_program_that_was_explained_runs_as_before() {
    let place = Place::new();
    let source = "#include <assert.h>\nint main(int c, char **v) { (void)v; assert(c > 1); }\n";
    place.compile("fails", "-O1", source);
    let explain = || {
        let output = place.command(WHY, &["./fails"]).output().expect("why runs");
        let said = text(&output.stderr);
        assert!(said.contains("at fails.c:2 in main"), "{said}");
        output.status.code()
    };
    assert_eq!(explain(), explain());
    let recorded = place.why(&["record", "-q", "-o", "rec", "./fails"]);
    assert_eq!(recorded.status.code(), Some(134), "{}", text(&recorded.stderr));
}

/// Libraries that differ in one constant: whatever is known of one is wrong for the other.
#[test]
fn a_library_that_changed_at_its_address_is_translated_anew() {
    let place = Place::new();
    for (folder, constant) in [("one", 1), ("two", 2)] {
        fs::create_dir(place.path(folder)).expect("a folder");
        let source = format!("int constant(void) {{ return {constant}; }}\n");
        fs::write(place.path("library.c"), source).expect("a source");
        let library = format!("{folder}/libconstant.so");
        let arguments = ["-O1", "-shared", "-fPIC", "-o", &library, "library.c"];
        assert!(place.command("gcc", &arguments).status().expect("gcc runs").success());
    }
    let main = "int constant(void);\nint main(void) { return constant(); }\n";
    fs::write(place.path("main.c"), main).expect("a source");
    let arguments = ["-o", "main", "main.c", "-Lone", "-lconstant"];
    assert!(place.command("gcc", &arguments).status().expect("gcc runs").success());
    for n in 0..3 {
        for (folder, constant) in [("one", 1), ("two", 2)] {
            let name = format!("{folder}{n}");
            let mut command = place.command(WHY, &["record", "-q", "-o", &name, "./main"]);
            let status = command.env("LD_LIBRARY_PATH", folder).status().expect("why runs");
            assert_eq!(status.code(), Some(constant), "{folder}");
            assert_eq!(place.why(&["replay", &name]).status.code(), Some(constant), "{folder}");
        }
    }
}

/// The memory of a killed process is the next one's.
#[test]
fn processes_that_are_killed_leave_nothing_to_those_that_follow() {
    let place = Place::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do
        sh -c 'kill -9 $$; echo no' 2>/dev/null
        sh -c 'echo $0' $i
        (for j in 1 2; do sh -c 'echo $0' $i.$j & done; wait) | sort
    done 2>/dev/null";
    let native = place.command("sh", &["-c", script]).output().expect("sh runs");
    let recorded = place.why(&["record", "-q", "-o", "rec", "sh", "-c", script]);
    assert_eq!(text(&recorded.stdout), text(&native.stdout));
    assert_eq!(text(&place.why(&["replay", "rec"]).stdout), text(&native.stdout));
}
