//! Stock gdb on recordings, in both directions.

use super::*;

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

/// A function within a function, called in a loop.
const NESTED: &str = r#"
#include <stdio.h>
static volatile long sum;
__attribute__((noinline)) long inner(long n)
{
    sum += n;
    return sum;
}
__attribute__((noinline)) long outer(long n)
{
    long a = inner(n);
    for (int i = 0; i < 3; i++)
        sum += i;
    return a + inner(n + 1);
}
int main(void)
{
    for (int i = 0; i < 4; i++)
        sum += outer(i);
    printf("%ld\n", sum);
    return 0;
}
"#;

// F-001-43, F-001-45
#[test]
fn gdb_leaves_functions_and_loops_both_ways_and_sees_wide_registers() {
    let place = Place::new();
    place.record("nested", NESTED, &["-O0"]);
    let said = place.gdb(
        "start",
        &[
            "break inner if n == 2",
            "continue",
            "delete",
            "step",
            "up",
            "print n",
            "down",
            "reverse-finish",
            "reverse-step",
            "tbreak nested.c:13",
            "continue",
            "next",
            "until",
            "info line",
            "advance nested.c:19",
            "frame",
            "info registers ymm0",
            "print $mxcsr",
        ],
    );
    in_order(
        &said,
        &[
            "Breakpoint 1, inner (n=2)",
            "7\t",
            "outer (n=1)",
            "= 1",
            "in outer (n=1) at",
            "Temporary breakpoint 2, outer (n=2)",
            "12\t",
            "14\t",
            "Line 14",
            "in main () at",
            "v8_float",
            "IM",
        ],
    );
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
        place.told(&arguments, "");
        let said = place.gdb(
            "start",
            &[
                "set breakpoint pending on",
                "break write if $rdi == 1",
                "continue",
                "backtrace 1",
                "finish",
                "reverse-stepi",
                "delete",
                "catch syscall write",
                "reverse-continue",
                "delete",
                "break malloc if $rdi > 200",
                "reverse-continue",
                "print $rdi > 200",
                "finish",
                "set $block = $rax",
                "delete",
                "watch *(char(*)[16])$block",
                "continue",
                "reverse-continue",
                "delete",
                "tbreak free",
                "continue",
                "stepi",
                "reverse-stepi",
                "info symbol $pc",
                "info proc mappings",
                "info auxv",
                "info sharedlibrary",
                "info threads",
            ],
        );
        in_order(
            &said,
            &[
                "Breakpoint 1, ",
                "write",
                "Value returned is",
                "(call to syscall write)",
                "Breakpoint 3",
                "malloc",
                "$2 = 1",
                "Value returned is",
                "Old value",
                "Old value",
                "Temporary breakpoint",
                "free in section .text of",
                program[0],
                "[stack]",
                "AT_ENTRY",
                "libc.so.6",
                "(T1, running)",
            ],
        );
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

/// Servers of this test's folder that run.
fn servers(place: &Place) -> usize {
    let folder = place.folder().to_str().expect("UTF-8").to_owned();
    let serves = |entry: fs::DirEntry| {
        let said = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        said.contains("serve-gdb") && said.contains(&folder)
    };
    fs::read_dir("/proc")
        .expect("is there")
        .flatten()
        .filter(|e| e.file_name() != "self")
        .map(serves)
        .filter(|s| *s)
        .count()
}

/// If gdb does not come to connect, nobody waits for it, and nothing is left.
#[test]
fn nothing_is_left_of_a_session_that_did_not_begin() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let temporary = place.path("temporary");
    fs::create_dir(&temporary).expect("makes");
    let ends = |arguments: &[&str], path: Option<&str>, status: i32, said: &str| {
        let mut why = place.command(arguments);
        why.env("TMPDIR", &temporary);
        if let Some(path) = path {
            why.env("PATH", path);
        }
        let ended = why.output().expect("why runs");
        let text = place::text(&ended.stdout) + &place::text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    };
    ends(&["debug", "--map", "nothing"], None, 2, "write FROM=TO");
    ends(&["debug", "--", "--no-such-option"], None, 1, "unrecognized option");
    let only = place.path("bin");
    fs::create_dir(&only).expect("makes");
    std::os::unix::fs::symlink("/usr/bin/timeout", only.join("timeout")).expect("links");
    ends(&["debug"], only.to_str(), 125, "apt install gdb");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while servers(&place) > 0 || fs::read_dir(&temporary).expect("a folder").count() > 0 {
        assert!(std::time::Instant::now() < deadline, "a server or its folder is left");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_socket_that_is_taken_is_said() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    fs::write(place.path("taken"), "mine").expect("writes");
    let ended = place.why(&["serve-gdb", "--socket", "taken"]);
    let said = place::text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(125), "{said}");
    assert!(said.contains("cannot listen at taken; remove it or name another"), "{said}");
    assert_eq!(fs::read(place.path("taken")).expect("is there"), b"mine");
}

#[test]
fn sources_are_found_where_the_map_says() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let moved = place.path("moved");
    fs::create_dir(&moved).expect("makes");
    fs::rename(place.path("tally.c"), moved.join("tally.c")).expect("moves");
    let list = ["--", "-batch", "-ex", "list twice"];
    let without = place.told(&[&["debug", "--at", "crash"][..], &list].concat(), "");
    assert!(!without.contains("return n + n"), "{without}");
    let map = format!("{}={}", place.folder().display(), moved.display());
    let with = place.told(&[&["debug", "--at", "crash", "--map", &map][..], &list].concat(), "");
    assert!(with.contains("return n + n"), "{with}");
}
