//! Rows of the checklists that a search or an experiment shows.

use crate::lab::Lab;
use serde_json::Value;

fn positions(report: &Value) -> Vec<String> {
    let all = report["critical"].as_array().unwrap().iter();
    all.map(|c| c["position"].as_str().unwrap().to_owned()).collect()
}

pub fn verdict(lab: &Lab, words: &[&str]) -> String {
    let answer = lab.json(&[&["what-if"], words].concat());
    answer["verdict"]["word"].as_str().unwrap().to_owned()
}

// F-001-02: the bad store, and no other, is left out; then a whole function.
#[test]
fn the_one_bad_store_can_be_left_out_and_so_can_a_function() {
    let source = r#"
#include <stdio.h>
static int cells[4];
static int *at[4] = {&cells[0], &cells[1], 0, &cells[3]};
static void put(int n) {
    *at[n] = n + 1;
}
int main(void) {
    for (int n = 0; n < 4; n++)
        put(n);
    printf("%d %d %d %d\n", cells[0], cells[1], cells[2], cells[3]);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let left_out = lab.json(&["what-if", "skip", "prog.c:6#3"]);
    assert_eq!(left_out["verdict"]["word"], "avoided");
    let written: Vec<&str> = left_out["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["text"].as_str().unwrap())
        .collect();
    assert_eq!(written, ["1 2 0 4"], "the other stores were made");
    let without = lab.json(&["what-if", "skip", "put#3"]);
    assert_eq!(without["output"][0]["text"], "1 2 0 4");
}

const FIGURE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int f(int a, int b) { return a - b; }
static int g(int a, int b) { return a + b; }
int main(int argc, char **argv) {
    int a = atoi(argv[1]), b = atoi(argv[2]);
    int x, y;
    int c = f(a, b);
    if (c < 5)
        x = a + b;
    else
        x = a - b;
    int d = g(a, b);
    if (d < 5)
        y = a * b;
    else
        y = a / b;
    int sum = x + y;
    printf("%d\n", sum);
    return 0;
}
"#;

// F-003-01: what the output was computed from, without what selected it, for all four ways.
#[test]
fn the_data_part_is_the_closure_of_data_dependences() {
    let lab = Lab::new(FIGURE, &["-O0"]);
    let ways = [
        (["1", "2"], [11, 16]),
        (["3", "4"], [11, 18]),
        (["2", "-9"], [13, 16]),
        (["9", "2"], [13, 18]),
    ];
    for (args, [x, y]) in ways {
        lab.record(&args, "");
        let data = lines(&lab.json(&["slice", "prog.c:20:sum", "--data"]));
        let selects = [10, 15];
        let branches = [11, 13, 16, 18];
        assert!(data.contains(&x) && data.contains(&y) && data.contains(&7), "{args:?} {data:?}");
        let wrong: Vec<u64> = branches
            .into_iter()
            .filter(|line| *line != x && *line != y)
            .chain(selects)
            .chain([4, 5, 9, 14])
            .filter(|line| data.contains(line))
            .collect();
        assert_eq!(wrong, [0; 0], "{args:?}");
    }
}

/// Lines of `prog.c` in a slice.
fn lines(slice: &Value) -> Vec<u64> {
    let text = slice.to_string();
    let mut found: Vec<u64> = text
        .match_indices("prog.c:")
        .filter_map(|(at, word)| {
            let rest = &text[at + word.len()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

// F-003-03: the wrong byte is found behind the buffer of stdio; output that breaks off, or that
// is not there at all, has no instance, and LEFS is used.
#[test]
fn the_first_wrong_byte_leads_to_the_call_that_made_it() {
    let source = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    for (int n = 0; n < 200; n++) {
        int shown = n % 10;
        if (n == 107)
            shown = 3;
        printf("%03d%d\n", n, shown);
    }
    if (argc > 1)
        puts("the end");
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    let right: String = (0..200).map(|n| format!("{n:03}{}\n", n % 10)).collect();
    std::fs::write(lab.path("right"), &right).unwrap();
    std::fs::write(lab.path("longer"), format!("{}the end\n", right.replace("1077", "1073")))
        .unwrap();
    lab.record(&[], "");
    let found = lab.json(&["critical", "--expect", "right"]);
    assert_eq!(found["failure"], "output is wrong from byte 538 on, in line 108");
    assert_eq!(positions(&found), ["prog.c:6#108"]);
    let missing = lab.json(&["critical", "--expect", "longer"]);
    assert_eq!(missing["failure"], "output breaks off; line 201 is missing");
    assert!(missing["order"].as_str().unwrap().contains("LEFS"));
    assert_eq!(positions(&missing), ["prog.c:10"]);
    let silent =
        Lab::new("int main(int c, char **v) { if (c > 1) puts(\"x\"); return 0; }", &["-O0"]);
    silent.record(&[], "");
    let empty = silent.json(&["critical", "--expect-text", "x\\n"]);
    assert_eq!(empty["failure"], "output breaks off; line 1 is missing");
    assert_eq!(empty["verdicts"]["passed"], 1);
}

// F-003-04: the instruction that crashed, whatever the signal.
#[test]
fn a_crash_is_at_the_instruction_that_could_not_be_executed() {
    let source = r#"
int main(int argc, char **argv) {
    volatile int zero = argc - 1;
    int *nowhere = (int *)(long)zero;
#ifdef DIVIDES
    return 7 / zero;
#else
    return *nowhere;
#endif
}
"#;
    for (flags, signal, line) in [(&["-O0"][..], 11, 8), (&["-O0", "-DDIVIDES"][..], 8, 6)] {
        let lab = Lab::new(source, flags);
        lab.record(&[], "");
        let failure = lab.json(&["critical", "--no-crash"])["failure"].as_str().unwrap().to_owned();
        let start = format!("it crashed with signal {signal} at 0x");
        let address = failure.strip_prefix(&start).unwrap_or_else(|| panic!("{failure}"));
        // Images that can lie anywhere begin there.
        let offset = u64::from_str_radix(address, 16).unwrap() - 0x1000_0000;
        let place = std::process::Command::new("addr2line")
            .args(["-e", "prog", &format!("{offset:#x}")])
            .current_dir(lab.path("."))
            .output()
            .unwrap();
        let place = String::from_utf8(place.stdout).unwrap();
        assert!(place.trim_end().ends_with(&format!("prog.c:{line}")), "{place}");
    }
}

// F-003-05: every conditional branch before the failure, and none behind it.
#[test]
fn candidates_are_the_branches_up_to_the_failure() {
    let source = r#"
#include <stdio.h>
int main(void) {
    int count = 0;
    for (int i = 0; i < 10; i++)
        if (i % 3 == 0)
            count++;
    printf("%d\n", count);
    fflush(stdout);
    for (int i = 0; i < 50; i++)
        count += i;
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let report = lab.json(&["critical", "--expect-text", "5\\n", "--all"]);
    assert_eq!(report["predicates"], 11 + 10);
    // F-003-15: counted from the failure and from the beginning, an instance is the same.
    let all = report["critical"].as_array().unwrap();
    assert!(all.len() >= 6, "each of the six that were not counted helps");
    for branch in all.iter().filter(|b| b["position"].as_str().unwrap().starts_with("prog.c:6")) {
        let position = branch["position"].as_str().unwrap();
        let forward: u64 = position.split('#').nth(1).unwrap().parse().unwrap();
        assert_eq!(forward + branch["backward"].as_u64().unwrap(), 10, "{position}");
    }
}

// F-003-21: a switch that helps by chance comes first; the search goes on behind it.
#[test]
fn a_search_goes_on_after_a_switch_that_helps_by_chance() {
    let source = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    int rate = 10;
    if (argc < 3)
        rate = 20;
    int bill = rate * 3;
    if (bill > 1000)
        bill = 30;
    printf("%d\n", bill);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let first = lab.json(&["critical", "--expect-text", "30\\n", "--order", "lefs"]);
    assert_eq!(positions(&first), ["prog.c:8"]);
    let all = lab.json(&["critical", "--expect-text", "30\\n", "--order", "lefs", "--all"]);
    assert_eq!(positions(&all), ["prog.c:8", "prog.c:5"]);
    assert_eq!(all["critical"][1]["trial"], 2, "one was met before the useful one");
}

// F-003-26: the predicate first, then by distance from it.
#[test]
fn statements_to_look_at_come_by_distance_from_the_predicate() {
    let lab = Lab::new(FIGURE, &["-O0"]);
    lab.record(&["3", "4"], "");
    let report = lab.json(&["critical", "--expect-text", "19\\n"]);
    assert_eq!(positions(&report), ["prog.c:15"]);
    let statements = report["slices"]["statements"].as_array().unwrap();
    assert_eq!(statements[0]["position"], "prog.c:15");
    let distances: Vec<u64> = statements.iter().map(|s| s["distance"].as_u64().unwrap()).collect();
    assert!(distances[1..].is_sorted(), "{distances:?}");
    assert!(statements.len() > 3);
}

// F-003-25: where a fault can lie, seen from the critical predicate; a store through a wrong
// index is in none of these.
#[test]
fn statements_are_before_or_behind_the_predicate_or_are_missed() {
    let source = r#"
#include <stdio.h>
static int table[8];
static int scale(int n) { return n * 2; }
int main(int argc, char **argv) {
    int limit = argc + 4;
    table[3] = 1;
    int shown = 0;
    if (limit > 3)
        shown = scale(7);
    printf("%d\n", shown);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let report = lab.json(&["critical", "--expect-text", "0\\n"]);
    assert_eq!(positions(&report), ["prog.c:9"]);
    let side = |line: u64| {
        let all = report["slices"]["statements"].as_array().unwrap();
        let found = all.iter().find(|s| s["position"] == format!("prog.c:{line}"));
        found.map(|s| s["side"].as_str().unwrap().to_owned())
    };
    assert_eq!(side(9).as_deref(), Some("predicate"));
    assert_eq!(side(6).as_deref(), Some("before"));
    assert_eq!(side(10).as_deref(), Some("behind"));
    assert_eq!(side(4).as_deref(), Some("behind"));
    assert_eq!(side(7), None, "a store elsewhere is missed");
}

// F-004-22: of all that help, the earliest is where the options are read.
#[test]
fn the_earliest_critical_predicate_reads_the_option() {
    let input = "nothing here\ntest1 test test2\nlast line\n";
    let args = ["-w", "test"];
    let right = Lab::of_corpus("wordgrep", &["-O0", "-DFIXED"]).native(&args, input);
    let lab = Lab::of_corpus("wordgrep", &["-O0"]);
    std::fs::write(lab.path("right"), right).unwrap();
    lab.record(&args, input);
    let earliest = lab.json(&["critical", "--expect", "right", "--order", "first"]);
    let nearest = lab.json(&["critical", "--expect", "right"]);
    assert_eq!(earliest["critical"][0]["function"], "read_options");
    assert_ne!(nearest["critical"][0]["function"], "read_options");
}

// F-003-14: behind the switch nothing is watched any more, but the limit holds: also where a
// search does not count instructions.
#[test]
fn the_limit_holds_behind_the_switch_and_nothing_else_stops_the_run() {
    let source = r#"
#include <stdio.h>
int main(void) {
    volatile long n = 0;
    for (long i = 0; i != 300000; i++)
        n += i & 3;
    printf("%ld\n", n);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let args =
        ["critical", "--expect-text", "nothing", "--order", "lefs", "--trials", "3", "--all"];
    let report = lab.json(&args);
    assert_eq!(report["verdicts"]["step-limit"], 1, "{}", report["verdicts"]);
    assert_eq!(verdict(&lab, &["switch", "prog.c:5#300001", "--steps", "3x"]), "step-limit");
    assert_eq!(verdict(&lab, &["switch", "prog.c:5#2", "--expect-text", "0\\n"]), "passed");
}

// A run that comes back to the recorded one is not followed to its end, and fails as that did.
#[test]
fn a_trial_that_comes_back_to_the_recorded_run_ends_there() {
    let source = r#"
#include <stdio.h>
#include <unistd.h>
static int sum(int n) {
    int s = 0;
    for (int i = 0; i != n; i++)
        s += i & 7;
    return s;
}
int main(int argc, char **argv) {
    int unused = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 7)
            unused = 1;
        unused = 2;
        write(1, ".", 1);
    }
    int s = sum(400000);
    printf("%d\n", s + argc);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    // Wrong is what comes behind the dots.
    let right = format!("{}nothing", ".".repeat(20));
    let search = ["critical", "--expect-text", &right, "--order", "first", "--trials", "38"];
    let args = [&search[..], &["--all"]].concat();
    let report = lab.json(&args);
    let rejoined = report["verdicts"]["rejoined"].as_u64().unwrap_or(0);
    assert!(rejoined >= 15, "{}", report["verdicts"]);
    assert_eq!(report["verdicts"]["passed"], Value::Null);
}

// What goes through a pair of sockets of the run itself is known.
#[test]
fn sockets_within_a_run_are_served() {
    let source = r#"
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int pair[2];
    char text[64];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    send(pair[0], "one ", 4, MSG_NOSIGNAL);
    if (argc == 1)
        send(pair[0], "two ", 4, MSG_NOSIGNAL);
    struct pollfd waits = {.fd = pair[1], .events = POLLIN};
    poll(&waits, 1, 0);
    int n = recv(pair[1], text, 60, MSG_PEEK);
    n = recv(pair[1], text, 60, MSG_DONTWAIT);
    printf("%.*s\n", n, text);
    shutdown(pair[0], SHUT_WR);
    printf("%d\n", (int)recv(pair[1], text, 60, 0));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    assert_eq!(verdict(&lab, &["switch", "prog.c:11", "--expect-text", "one \\n0\\n"]), "passed");
}

// F-002-56: as gzip's flag that stays 0 because its branch was not taken. The switch confirms
// the dependence that the slice lacks; all that is confirmed is in the relevant slice.
#[test]
fn what_was_omitted_is_confirmed_by_a_switch() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
static int save_name;
static int flags;
static unsigned char out[16];
int main(int argc, char **argv) {
    save_name = atoi(argv[1]) > 7;
    flags = 0;
    if (save_name)
        flags |= 8;
    if (argc > 6)
        flags |= 0;
    out[1] = (unsigned char)flags;
    printf("%d\n", out[1]);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&["5"], "");
    let report = lab.json(&["omitted", "prog.c:14:flags"]);
    let promise = crate::promises::schema("omitted");
    assert_eq!(crate::promises::complaint(&promise, &report), None);
    let confirmed: Vec<&str> = report["confirmed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["position"].as_str().unwrap())
        .collect();
    assert_eq!(confirmed, ["prog.c:10"]);
    assert_eq!(report["refuted"], 1, "the other branch would have changed nothing");
    let slice = lines(&lab.json(&["slice", "prog.c:14:flags"]));
    let relevant = lines(&lab.json(&["slice", "prog.c:14:flags", "--relevant"]));
    assert!(!slice.contains(&10), "{slice:?}");
    assert!(relevant.contains(&10), "{relevant:?}");
}

// A crash in a thread that is not the first has a way that leads to it too.
#[test]
fn a_crash_in_a_second_thread_is_searched() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
static int cell = 1;
static int *find(int n) {
    if (n == 2)
        return 0;
    return &cell;
}
static void *work(void *arg) {
    int sum = 0;
    for (int n = 0; n < 4; n++)
        sum += *find(n);
    printf("%d\n", sum);
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0", "-pthread"]);
    lab.record(&[], "");
    let found = lab.json(&["critical", "--all"]);
    assert_eq!(positions(&found), ["prog.c:6#3"]);
}
