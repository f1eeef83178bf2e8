//! The plain prompt.

use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

#[test]
fn the_plain_prompt_needs_no_gdb() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let commands = "break twice\nc\nbt\nwatch total\ndelete\nc\nrsi\nwhy where\nslice :total\nsprev\n\
                    goto tally.c:12#3\nprint i\nstep\nreverse-step\nthreads\nhelp\nquit\n";
    let said = place.told(&["debug", "--plain"], commands);
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
fn critical_branches_are_searched_for_at_the_prompt() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(&["debug", "--plain"], "why critical\n");
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
    let plain = place.told(&["debug", "--plain"], commands);
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

/// A thread waits for four bytes; meanwhile the other one goes on, and sends them.
const WAITS: &str = include_str!("../support/waits.c");

#[test]
fn a_backward_search_finds_what_a_call_wrote_that_had_waited() {
    let place = Place::new();
    place.record("waits", WAITS, &["-O0", "-pthread"]);
    let commands = "goto waits.c:20\nwatch buf\nrc\nwhere\nrc\n";
    let said = place.told(&["debug", "--plain"], commands);
    in_order(&said, &["watched memory", "read#1", "T2", "the beginning of the run"]);
}

#[test]
fn a_position_that_is_not_there_has_its_status_with_and_without_gdb() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    for (at, status) in [("nowhere", 2), ("tally.c:12#99", 1), ("tally.c:12", 0)] {
        for how in [&["debug", "--plain", "--at", at][..], &["debug", "--at", at, "--", "-batch"]] {
            let ended = place.why(how);
            let said = place::text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(status), "{how:?}: {said}");
        }
    }
}

#[test]
fn the_prompt_fits_a_terminal_and_repeats_itself() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(&["debug", "--plain"], "help\n");
    let wide: Vec<&str> = said.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let said = place.told(
        &["debug", "--plain"],
        "\nbreak tally.c:12\nc\n\n\ndelete\nset var total=6\nc\nrollback\nc\n",
    );
    in_order(
        &said,
        &[
            "tally.c:12#1",
            "tally.c:12#2",
            "tally.c:12#3",
            "what-if",
            "it was killed",
            "history",
            "signal 11",
        ],
    );
}

/// Lines that begin with a place, as the prompt shows where it stopped.
fn places(said: &str) -> Vec<String> {
    let answers = said.lines().map(|l| match l.strip_prefix("(why ") {
        Some(rest) => rest.split_once(") ").map_or("", |(_, answer)| answer),
        None => l,
    });
    answers.filter(|l| l.starts_with("calls.c:")).map(str::to_owned).collect()
}

#[test]
fn the_prompt_stays_where_it_is_if_a_position_is_past_the_end() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said =
        place.told(&["debug", "--plain"], "goto tally.c:12#3\ngoto @999999999\nwhere\nprint i\n");
    in_order(&said, &["at tally.c:12#3", "past the end", "tally.c:12#3", "5"]);
}

#[test]
fn breakpoints_of_the_prompt_have_conditions_and_moves_counts() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(
        &["debug", "--plain"],
        "break twice if n == 5\nc\nprint n\ndelete\nbreak tally.c:12\nc 2\nprint i\ndelete\n\
         watch other\nrc 2\ndelete\ngoto tally.c:10#1\nstep 2\nwhere\nstep some\nprint $rip\n",
    );
    in_order(
        &said,
        &[
            "(tally.c:6)",
            "breakpoint\n",
            "5\n",
            "tally.c:12#5\n",
            "9\n",
            "watched memory",
            "tally.c:10#9",
            "at tally.c:10#1",
            "tally.c:13#1",
            "`some` is no count",
            "0x1",
        ],
    );
    let said = place.told(
        &["debug", "--plain"],
        "break twice\nc\nprint n\nslice\nsbreak 1 all\nlbreak free\ndelete\nc\n",
    );
    in_order(&said, &["1\n", "slice 1", "library breakpoint 1", "signal 11"]);
}

#[test]
fn breakpoints_of_the_prompt_find_functions_that_were_inlined() {
    let place = Place::new();
    place.record("inlined", INLINED, &["-O2"]);
    // By name and by line; `outer` is called five times, and has two copies.
    for place_of in ["twice", "inlined.c:4"] {
        let moves = "c\n".repeat(11);
        let said = place.told(&["debug", "--plain"], &format!("break {place_of}\n{moves}"));
        assert_eq!(said.matches("breakpoint at 0x").count(), 2, "{said}");
        assert_eq!(said.matches("breakpoint\n").count(), 10, "{said}");
    }
}

#[test]
fn conditions_neither_end_nor_swallow_other_moves() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(
        &["debug", "--plain"],
        "break tally.c:14 if i == 99\ngoto tally.c:10#2\nuntil tally.c:14\nwhere\n\
         break tally.c:12 if i == 0xffffffff\nbreak tally.c:12 if i == 5\nc\nprint i\n\
         break tally.c:10#3\nwatch 0x1000 0\ndelete\nbreak tally.c:12\ngoto tally.c:10#2\n\
         next 50\n",
    );
    in_order(
        &said,
        &[
            "tally.c:14#2",
            "breakpoint\n",
            "tally.c:12#3",
            "5\n",
            "every execution",
            "is no memory",
            "at tally.c:10#2",
            "breakpoint\n",
            "tally.c:12#1",
        ],
    );
}

#[test]
fn a_breakpoint_on_a_library_stops_behind_the_prologue_before_it_is_there() {
    let place = Place::new();
    let library = place.path("libtwice.so");
    fs::write(place.path("lib.c"), "int libtwice(int n)\n{\n    return n + n;\n}\n")
        .expect("writes");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O0", "-shared", "-fPIC", "-o"]).arg(&library).arg(place.path("lib.c"));
    assert!(gcc.status().expect("gcc").success());
    let source = "int libtwice(int);\nint main(void) { return libtwice(4) - 8; }\n";
    let folder = library.parent().expect("a folder").to_str().expect("UTF-8").to_owned();
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    place.record("calls", source, &["-O0", "-Wl,--no-as-needed", &search, &run, "-ltwice"]);
    let said = place.told(&["debug", "--plain"], "break libtwice if n == 4\nc\nprint n\n");
    in_order(&said, &["(lib.c:3)", "breakpoint\n", "4\n"]);
}

#[test]
fn floating_point_is_not_compared_by_its_bits() {
    let place = Place::new();
    let source = "volatile float q = 0.5f;\nint main(void)\n{\n    return q > 1;\n}\n";
    place.record("half", source, &["-O0"]);
    let said = place.told(&["debug", "--plain"], "break half.c:4 if q < 1\nc\n");
    in_order(&said, &["cannot be told", "half.c:4"]);
}

/// A function that is only there as a part of others.
const INLINED: &str = r#"
#include <stdio.h>
static volatile int sum;
static inline __attribute__((always_inline)) int twice(int n) { sum += n; return sum * 2; }
__attribute__((noinline)) int outer(int n) { return twice(n) + twice(n + 1); }
int main(void)
{
    for (int i = 0; i < 5; i++)
        sum += outer(i);
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn what_is_no_text_does_not_end_the_prompt() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let given = place.path("in");
    fs::write(&given, b"\xff\xfe\nwhere\n").expect("writes");
    let mut why = place.command(&["debug", "--plain"]);
    let ended = why.stdin(File::open(&given).expect("opens")).output().expect("why runs");
    in_order(&place::text(&ended.stdout), &["no such verb", "@0"]);
    assert_eq!(ended.status.code(), Some(0));
}

const CALLS: &str = r#"
#include <stdio.h>
static volatile int sum;
__attribute__((noinline)) int inner(int n)
{
    sum += n;
    return sum;
}
__attribute__((noinline)) int outer(int n)
{
    int a = inner(n);
    int b = inner(n + 1);
    return a + b;
}
int main(void)
{
    for (int i = 0; i < 3; i++)
        sum += outer(i);
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn the_prompt_passes_over_calls_and_leaves_them_both_ways() {
    let place = Place::new();
    place.record("calls", CALLS, &["-O0"]);
    let said = place.told(
        &["debug", "--plain"],
        "goto calls.c:11#2\nnext\nnext\nreverse-next\nreverse-next\nstep\nfinish\n\
         goto calls.c:6#4\nreverse-finish\nuntil calls.c:13\nfinish\nnext\nuntil\nuntil\n",
    );
    assert_eq!(
        places(&said),
        [
            "calls.c:12#2",
            "calls.c:13#2",
            "calls.c:12#2",
            "calls.c:11#2",
            "calls.c:5#3",
            "calls.c:11#2",
            "calls.c:12#2",
            "calls.c:13#2",
            "calls.c:18#2",
            "calls.c:17#3",
            "calls.c:19",
            "calls.c:20",
        ],
        "{said}"
    );
}

#[test]
fn steps_of_the_prompt_pass_over_what_has_no_lines() {
    let place = Place::new();
    place.record("calls", CALLS, &["-O0"]);
    let said =
        place.told(&["debug", "--plain"], "goto calls.c:19\nstep\nreverse-step\nreverse-step\n");
    assert_eq!(places(&said), ["calls.c:20", "calls.c:19", "calls.c:17#4"], "{said}");
}

#[test]
fn the_prompt_meets_calls_of_the_kernel_and_reads() {
    let place = Place::new();
    place.record("calls", CALLS, &["-O0"]);
    let said = place.told(
        &["debug", "--plain"],
        "catch syscall 1\nc\nc\ndelete\nrwatch sum\nrc\ndelete\nfinish\ncatch what\nbreak nothing\n",
    );
    in_order(
        &said,
        &[
            "stops before and after",
            "system call 1\n",
            "system call 1 has returned",
            "watching 4 bytes",
            "watched memory at 0x",
            "calls.c:19\n",
            "write `catch syscall`",
            "there is no code for nothing",
        ],
    );
}

/// A loop of one block that faults in its middle, page after page.
const FAULTS: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
static char *room;
static volatile int faults;
static void on_fault(int signal, siginfo_t *info, void *context)
{
    faults++;
    mprotect((void *) ((long) info->si_addr & -4096), 4096, PROT_READ | PROT_WRITE);
}
__attribute__((noinline)) void fill(char *at, long len)
{
    for (long i = 0; i < len; i++) at[i] = (char) i;
}
int main(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, 0);
    room = mmap(0, 8 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(room + 100, 8 * 4096 - 100);
    printf("%d\n", faults);
    return 0;
}
"#;

/// The trace counts instructions one way and moves count them another.
#[test]
fn a_position_is_where_the_trace_says_in_a_loop_that_faults() {
    let place = Place::new();
    place.record("faults", FAULTS, &["-O1"]);
    let commands: String =
        (1..=8).map(|n| format!("goto on_fault#{n}\nprint faults\nbacktrace\n")).collect();
    let said = place.told(&["debug", "--plain"], &commands);
    let entered: Vec<&str> =
        said.lines().filter(|l| l.contains("#0 0x") && l.contains(" on_fault at")).collect();
    assert_eq!(entered.len(), 8, "{said}");
    for n in 0..8 {
        assert!(said.contains(&format!(") {n}\n")), "{n}: {said}");
    }
    let ended = place.told(&["debug", "--plain"], "goto exit\nprint faults\n");
    in_order(&ended, &[") 8\n"]);
}

#[test]
fn an_interrupt_ends_a_move_and_not_the_session() {
    // Divisions: so that it takes long enough.
    let source = "volatile long n = 1L << 62; int main(void) { \
                  for (long i = 1; i < 60000000; i++) n = (n / i) | (1L << 62); return 0; }";
    let place = Place::new();
    place.record("long", source, &["-O1"]);
    // Not by way of `timeout`, which sends a signal twice; a second one kills.
    let mut why = Command::new(env!("CARGO_BIN_EXE_why"));
    why.args(["debug", "--plain"]).env("WHY_DIR", place.path("home"));
    let mut child = why.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("why runs");
    let mut input = child.stdin.take().expect("an input");
    let mut output = BufReader::new(child.stdout.take().expect("an output"));
    let mut line = String::new();
    input.write_all(b"why checkpoint a\nc\n").expect("writes");
    output.read_line(&mut line).expect("reads");
    assert!(line.contains("checkpoint 1: a"), "{line}");
    std::thread::sleep(Duration::from_millis(150));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    input.write_all(b"why checkpoints\nquit\n").expect("writes");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("reads");
    assert!(child.wait().expect("ends").success(), "{said}");
    in_order(&said, &["interrupted", "1: a (@0)"]);
}
