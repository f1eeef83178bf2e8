//! Stock gdb on recordings, forward and backward, and the plain prompt.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles and records a program.
    fn record(&self, name: &str, source: &str, flags: &[&str]) {
        let file = self.path(&format!("{name}.c"));
        fs::write(&file, source).expect("writes");
        let status = Command::new("gcc")
            .args(["-g"])
            .args(flags)
            .arg("-o")
            .args([&self.path(name), &file])
            .status()
            .expect("gcc is installed (cargo xtask setup)");
        assert!(status.success());
        self.why(&["record", "--", self.path(name).to_str().expect("UTF-8")], "");
    }

    /// Runs `why` to its end. Its output goes to a file, because a server may live
    /// a little longer than its gdb.
    fn why(&self, arguments: &[&str], input: &str) -> String {
        let (out, given) = (self.path("out"), self.path("in"));
        fs::write(&given, input).expect("writes");
        let to = File::create(&out).expect("creates");
        let status = Command::new("timeout")
            .args(["-k", "1", "300", env!("CARGO_BIN_EXE_why")])
            .args(arguments)
            .env("WHY_DIR", self.path("home"))
            .current_dir(self.0.path())
            .stdin(File::open(&given).expect("opens"))
            .stderr(Stdio::from(to.try_clone().expect("copies")))
            .stdout(Stdio::from(to))
            .status()
            .expect("why runs");
        let text = fs::read_to_string(&out).expect("text");
        assert_ne!(status.code(), Some(124), "it took too long:\n{text}");
        text
    }

    /// What gdb says to some commands on the latest recording.
    fn gdb(&self, at: &str, commands: &[&str]) -> String {
        let mut arguments = vec!["debug", "--at", at, "--", "-batch"];
        for command in commands {
            arguments.extend(["-ex", command]);
        }
        self.why(&arguments, "")
    }
}

/// Do the texts come in this order?
fn in_order(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for piece in wanted {
        let Some(at) = rest.find(piece) else { panic!("`{piece}` is missing in:\n{text}") };
        rest = &rest[at + piece.len()..];
    }
}

/// A loop, a library, and a crash at its end.
const SUMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int total, other;
__attribute__((noinline)) int twice(int n) { return n + n; }
int main(void)
{
    for (int i = 0; i < 10; i++) {
        other += 3;
        if (i % 2)
            total += twice(i);
        char *p = malloc(100 + i);
        memset(p, i, 100 + i);
        free(p);
    }
    int *nowhere = 0;
    if (total > 5) *nowhere = total;
    return 0;
}
"#;

// F-001-43, F-001-45
#[test]
fn gdb_moves_both_ways_in_a_run_that_crashed() {
    for level in ["-O0", "-O2"] {
        let place = Place::new();
        place.record("tally", SUMS, &[level]);
        let said = place.gdb(
            "start",
            &[
                "break twice",
                "continue",
                "backtrace",
                "finish",
                "delete",
                "continue",
                "backtrace",
                "watch total",
                "reverse-continue",
                "print total",
                "reverse-continue",
                "print total",
                "info proc mappings",
                "info auxv",
                "info sharedlibrary",
            ],
        );
        in_order(
            &said,
            &[
                "Breakpoint 1, twice (n=",
                "main () at",
                "Value returned is $1 = 2",
                "Program received signal SIGSEGV",
                "main () at",
                "Old value = 50",
                "New value = 32",
                "= 32",
                "New value = 18",
                "= 18",
                "[stack]",
                "AT_ENTRY",
                "libc.so.6",
            ],
        );
    }
}

#[test]
fn steps_back_undo_steps() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.gdb(
        "start",
        &[
            "break tally.c:10 if i == 4",
            "continue",
            "next",
            "next",
            "next",
            "print other",
            "reverse-next",
            "reverse-next",
            // The line's condition is code of its own, at which gdb stops as well.
            "reverse-next",
            "reverse-next",
            "print other",
            "print i",
            "stepi",
            "reverse-stepi",
            "reverse-stepi",
            "why where",
        ],
    );
    in_order(&said, &["Breakpoint 1, main", "$1 = 15", "$2 = 12", "$3 = 4"]);
}

#[test]
fn catchpoints_meet_calls_and_signals() {
    let source = r#"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void caught(int n) { write(1, "c\n", 2); }
int main(void)
{
    signal(SIGUSR1, caught);
    raise(SIGUSR1);
    write(1, "x\n", 2);
    abort();
}
"#;
    let place = Place::new();
    place.record("calls", source, &["-O1"]);
    let said = place.gdb(
        "start",
        &[
            "catch syscall write",
            "continue",
            "backtrace",
            "continue",
            "continue",
            "continue",
            "continue",
            "backtrace",
            "reverse-continue",
        ],
    );
    in_order(
        &said,
        &[
            "Program received signal SIGUSR1",
            "call to syscall write",
            "returned from syscall write",
            "call to syscall write",
            "returned from syscall write",
            "Catchpoint 1",
        ],
    );
    let said = place.gdb("start", &["continue", "continue", "backtrace"]);
    in_order(&said, &["SIGUSR1", "SIGABRT", "abort ()", "main ()"]);
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile long shared;
__attribute__((noinline)) static void add(long n) { shared += n; }
static void *work(void *argument)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        add((long) argument);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    for (long n = 0; n < 3; n++) pthread_create(&threads[n], 0, work, (void *) (n + 1));
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    printf("%ld\n", shared);
    return 0;
}
"#;

// F-001-43, F-001-45
#[test]
fn threads_are_seen_and_time_runs_back_through_them() {
    for level in ["-O0", "-O2"] {
        let place = Place::new();
        place.record("team", THREADS, &[level, "-pthread"]);
        let said = place.gdb(
            "exit",
            &[
                "break add",
                "reverse-continue",
                "print shared",
                "info threads",
                "watch shared",
                "reverse-continue",
                "stepi",
                "reverse-stepi",
                "continue",
                "backtrace",
            ],
        );
        in_order(&said, &["hit Breakpoint 1, add (n=", "= 119", "Thread 1.", "shared", "work ("]);
    }
}

// F-001-03 to 08, 40, 41
#[test]
fn slices_are_made_pruned_stopped_at_and_stepped_along() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.gdb(
        "crash",
        &[
            "why instance tally.c:12",
            "why slice tally.c:18:total --save sum",
            "why slices",
            "why sbreak 1 tally.c:12",
            "reverse-continue",
            "why instance tally.c:12",
            "reverse-continue",
            "why instance tally.c:12",
            "continue",
            "why instance tally.c:12",
            "delete",
            "why sprev",
            "why snext",
            "why deps tally.c:12#5",
            "why prune 1 total",
            "why region on tally.c:12#4",
            "why slice tally.c:18:total",
            "why slices --remove 2",
            "why slices",
            "why chop tally.c:12#1 tally.c:18",
        ],
    );
    in_order(
        &said,
        &[
            "tally.c:12#5",
            "slice 1 of tally.c:18:total",
            "tally.c:12",
            "saved as sum",
            "slice 1: stops at 5 executions",
            "Breakpoint",
            "tally.c:12#5",
            "tally.c:12#4",
            "tally.c:12#5",
            "slice 1, 23 of 25: tally.c:11#10",
            "i = 9",
            "slice 1, 24 of 25: tally.c:12#5",
            "total = 32",
            "without total",
            "slices see what happened from @",
            "slice 2 of",
            "slice 2 is gone",
            "slice 1 of",
        ],
    );
    assert!(!said.contains("tally.c:10\n"), "`other` is in no slice of `total`:\n{said}");
    let again = place.gdb("start", &["why slices", "why snext 1", "why snext sum"]);
    in_order(&again, &["saved as sum", "slice 1, 1 of", "slice 1, 2 of"]);
}

// F-001-11
#[test]
fn a_library_breakpoint_finds_the_first_of_two_frees() {
    let source = r#"
#include <stdlib.h>
#include <string.h>
static void drop(char *p) { free(p); }
int main(int count, char **words)
{
    char *a = malloc(24), *b = malloc(24), *room = malloc(900);
    strcpy(room, words[0]);
    drop(b);
    drop(a);
    drop(a);
    return 0;
}
"#;
    let place = Place::new();
    place.record("twice", source, &["-O0", "-Wl,-z,now"]);
    let said = place.gdb(
        "start",
        &[
            "break twice.c:9",
            "continue",
            "why lbreak free if arg1 == a",
            "continue",
            "up",
            "up",
            "why lbreak --remove 1",
            "why goto start",
            "delete",
            "break main",
            "continue",
            "why lbreak malloc if ret == 0x1234",
            "why lbreak",
            "continue",
        ],
    );
    in_order(
        &said,
        &[
            "library breakpoint 1",
            "why: library breakpoint 1",
            "drop (",
            "10",
            "no stop at free",
            "malloc if ret",
            "SIGABRT",
        ],
    );
    let said = place.gdb(
        "start",
        &[
            "break twice.c:8",
            "continue",
            "why lbreak strcpy if write room 4",
            "continue",
            "why lbreak --remove 1",
            "why where",
        ],
    );
    in_order(&said, &["why: library breakpoint 1: strcpy if write room 4"]);
}

// F-001-12 to 14
#[test]
fn rolling_back_brings_back_state_instances_and_files() {
    let source = r#"
#include <stdio.h>
#include <unistd.h>
#include <fcntl.h>
char first[9], second[9];
int main(void)
{
    int fd = open("data", O_RDONLY);
    read(fd, first, 4);
    read(fd, second, 4);
    printf("%s %s\n", first, second);
    return 0;
}
"#;
    let place = Place::new();
    fs::write(place.path("data"), "abcdefgh").expect("writes");
    place.record("reader", source, &["-O0"]);
    fs::remove_file(place.path("data")).expect("removes");
    let said = place.gdb(
        "start",
        &[
            "break reader.c:10",
            "continue",
            "why checkpoint between",
            "next",
            "print second",
            "why instance reader.c:10",
            "why checkpoints",
            "why rollback 1",
            "print second",
            "print first",
            "why instance reader.c:11",
            "next",
            "print second",
            "why checkpoint --remove 1",
            "why checkpoints",
        ],
    );
    in_order(
        &said,
        &[
            "checkpoint 1: between",
            "$1 = \"efgh",
            "reader.c:10#1",
            "1: between (@",
            "$2 = \"\\000",
            "$3 = \"abcd",
            "reader.c:11#0",
            "$4 = \"efgh",
            "checkpoint between is gone",
            "there are no checkpoints",
        ],
    );
}

#[test]
fn programs_of_the_machine_open_too() {
    for program in [
        &["/usr/bin/python3", "-c", "print(sum(i * i for i in range(1000)))"][..],
        &[
            "/usr/bin/sqlite3",
            ":memory:",
            "create table t(a); insert into t values (7); select a from t",
        ],
    ] {
        let place = Place::new();
        let arguments = [&["record", "--"], program].concat();
        place.why(&arguments, "");
        let said = place.gdb(
            "start",
            &[
                "set breakpoint pending on",
                "break write",
                "continue",
                "backtrace 1",
                "reverse-stepi",
                "stepi",
                "info registers rip",
                "info threads",
            ],
        );
        in_order(&said, &["Breakpoint 1, ", "write", "write", "rip "]);
    }
}

#[test]
fn a_recording_that_was_moved_still_has_its_symbols() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    fs::remove_file(place.path("tally")).expect("removes");
    let said = place.gdb("crash", &["backtrace", "info source"]);
    in_order(&said, &["main () at", "tally.c"]);
}

// F-001-01, 02, 46
#[test]
fn a_changed_state_is_a_branch_and_history_comes_back() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.gdb(
        "tally.c:18",
        &[
            "set var total = 3",
            "print total",
            "stepi",
            "reverse-stepi",
            "reverse-stepi",
            "print total",
            "continue",
            "why where",
            "why rollback",
            "print total",
            "continue",
        ],
    );
    in_order(
        &said,
        &["$1 = 3", "$2 = 50", "it exited with status 0", "back in history", "$3 = 50", "SIGSEGV"],
    );
    for alteration in ["why switch tally.c:18", "why skip tally.c:18", "why set tally.c:18 total=1"]
    {
        let said = place.gdb("start", &[alteration, "continue", "why rollback", "continue"]);
        in_order(&said, &["in a what-if branch", "it exited with status 0", "back in", "SIGSEGV"]);
    }
}

// F-001-46
#[test]
fn a_run_of_threads_can_be_changed_too() {
    let place = Place::new();
    place.record("team", THREADS, &["-O1", "-pthread"]);
    let said = place.gdb(
        "add#300",
        &[
            "set var shared = 1000000",
            "stepi",
            "continue",
            "print shared > 1000000",
            "why rollback",
            "print shared < 2000",
        ],
    );
    in_order(&said, &["it exited with status 0", "$1 = 1", "$2 = 1"]);
}

#[test]
fn the_plain_prompt_needs_no_gdb() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let commands = "break twice\nc\nbt\nwatch total\ndelete\nc\nrsi\nwhy where\nslice :total\nsprev\n\
                    goto tally.c:12#3\nprint i\nstep\nreverse-step\nthreads\nhelp\nquit\n";
    let said = place.why(&["debug", "--plain"], commands);
    in_order(
        &said,
        &[
            "breakpoint at 0x",
            "breakpoint\n",
            "#0 0x",
            "twice",
            "#1 0x",
            "main",
            "signal 11",
            "tally.c:18",
            "slice 1 of",
            "slice 1,",
            "at tally.c:12#3",
            "5",
            "T1 (tid",
            "why goto POS",
        ],
    );
}

#[test]
fn a_server_listens_on_this_machine_only() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let mut server = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(["serve-gdb", "--port", "0"])
        .env("WHY_DIR", place.path("home"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("serves");
    let mut line = String::new();
    let output = server.stdout.take().expect("an output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("reads");
    let gdb = Command::new("timeout")
        .args(["60", "gdb", "-q", "-batch", "-ex"])
        .arg(format!("target remote {}", line.trim()))
        .args(["-ex", "continue", "-ex", "backtrace"])
        .output()
        .expect("gdb is installed (cargo xtask setup)");
    let said = String::from_utf8_lossy(&gdb.stdout);
    assert!(line.starts_with("localhost:"), "{line}");
    in_order(&said, &["SIGSEGV", "main () at"]);
    assert!(server.wait().expect("ends").success());
    assert!(Path::new("/usr/bin/gdb").exists());
}

// F-001-01, F-001-02: all instances.
#[test]
fn all_instances_are_switched_and_skipped_in_a_branch() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    // Without `i % 2`, the even ones are added: 2 * (0 + 2 + 4 + 6 + 8).
    let said = place.why(
        &["debug", "--plain"],
        "why switch tally.c:11#all\nbreak tally.c:17\nc\nprint total\nrc\nc\nprint total\n\
         rollback\nc\nprint total\n",
    );
    in_order(&said, &["whenever it comes by", "what-if", ") 40\n", ") 40\n", "history", ") 50\n"]);
    let said = place.why(
        &["debug", "--plain"],
        "why skip tally.c:10#all\nbreak tally.c:17\nc\nprint other\nprint total\n",
    );
    in_order(&said, &["whenever it comes by", ") 0\n", ") 50\n"]);
    let said = place.gdb(
        "start",
        &["why switch tally.c:11#all", "break tally.c:17", "continue", "print total"],
    );
    in_order(&said, &["whenever it comes by", "$1 = 40"]);
}

#[test]
fn critical_branches_are_searched_for_at_the_prompt() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.why(&["debug", "--plain"], "why critical\n");
    assert!(said.contains("tally.c:18"), "{said}");
    let said = place.gdb("start", &["why critical"]);
    assert!(said.contains("tally.c:18"), "{said}");
}

#[test]
fn a_backward_search_for_writes_stops_the_same_with_a_trace() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let commands = "goto exit\nwatch total\nrc\nwhere\nrc\nwhere\nrc\nwhere\n";
    // The prompt has a trace, which gdb has not until something asks for one.
    let plain = place.why(&["debug", "--plain"], commands);
    let at = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.split_once(") @").map_or(line.strip_prefix('@'), |w| Some(w.1)))
            .map(str::to_owned)
            .collect()
    };
    let moves = [
        "watch total",
        "reverse-continue",
        "why where",
        "reverse-continue",
        "why where",
        "reverse-continue",
        "why where",
    ];
    let gdb = place.gdb("exit", &moves);
    assert_eq!(at(&plain).len(), 3, "{plain}");
    assert_eq!(at(&plain), at(&gdb), "{plain}\n{gdb}");
}
