//! Who wrote what, and when: `why last-write`, and what other questions owe to it.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Bench, O0};

/// A thread waits for four bytes; meanwhile the other one goes on, and sends them.
const WAITS: &str = include_str!("../support/waits.c");

#[test]
fn a_call_that_waits_writes_when_it_returns() {
    let bench = Bench::ran("w.c", WAITS, &["-g", "-O0", "-pthread"], &[]);
    let said = |side: &str, position: &str| said_of(&bench, "buf", side, position);
    let before = said("--before", "w.c:17");
    let once = "nothing wrote buf before w.c:17; from then on, it was written once, at w.c:8";
    assert_eq!(before, once);
    assert!(said("--after", "w.c:17").starts_with("w.c:8, thread 2 in reader"));
    assert!(said("--before", "w.c:20").starts_with("w.c:8, thread 2 in reader"));
    let after = said("--after", "w.c:20");
    let once = "nothing wrote buf after w.c:20; before, it was written once, at w.c:8";
    assert_eq!(after, once);
}

/// The same with what comes to standard input, later.
const COMES: &str = r#"#include <pthread.h>
#include <unistd.h>
static char buf[8];
static volatile int ready, count;
static void *reader(void *unused) {
    ready = 1;
    read(0, buf, 4);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, reader, 0);
    while (!ready) usleep(1000);
    count = 1;
    pthread_join(thread, 0);
    return buf[0] - 'a';
}
"#;

#[test]
fn what_was_waited_for_is_followed_from_when_it_comes() {
    let bench = Bench::new("c.c", COMES);
    bench.compile(&["-g", "-O0", "-pthread"]);
    let mut why = bench.command(&["record", "-q", "./prog"]);
    let mut why = why.stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    why.stdin.take().unwrap().write_all(b"abcd").unwrap();
    assert!(why.wait().unwrap().success());
    assert!(bench.lines(&["slice", "input:0", "--forward"]).contains(&16));
}

/// Functions that use the same part of the stack, one after the other.
const REUSED: &str = r#"#include <string.h>
static int some(int n) {
    char a[4096];
    if (n > 5) a[500] = 1;
    return n > 5 ? a[500] : n;
}
static int all(int n) {
    char b[4096];
    memset(b, n, sizeof b);
    return b[77];
}
static int set(int *to) {
    *to += 7;
    return *to;
}
int main(int argc, char **argv) {
    int x = argc, r = all(argc);
    r += some(argc);
    r += all(r) + set(&x);
    return argv == 0;
}
"#;

/// What is said of a variable, without the values.
fn said_of(bench: &Bench, what: &str, side: &str, position: &str) -> String {
    let said = bench.ask(&["last-write", what, side, position]);
    let said = said.out.replace("\n  ", " ");
    said.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_others_write_to_a_variables_memory_is_not_the_variables() {
    let bench = Bench::ran("r.c", REUSED, O0, &[]);
    let nothing = "nothing wrote a[500] in this call of some; its memory is as some found it";
    assert_eq!(said_of(&bench, "a[500]", "--before", "r.c:5"), nothing);
    assert_eq!(said_of(&bench, "a[500]", "--after", "r.c:4"), nothing);
    let said = said_of(&bench, "b[77]", "--after", "r.c:10#1");
    assert_eq!(said, "nothing wrote b[77] after r.c:10#1; before, it was written once, at r.c:9#1");
    let said = said_of(&bench, "b[77]", "--before", "r.c:9#2");
    let behind =
        "nothing wrote b[77] before r.c:9#2; from then on, it was written once, at r.c:9#2";
    assert_eq!(said, behind);
    assert!(said_of(&bench, "b[77]", "--before", "r.c:10#2").starts_with("r.c:9#2 in all"));
}

#[test]
fn a_variable_of_a_caller_is_the_callers() {
    let bench = Bench::ran("r.c", REUSED, O0, &[]);
    assert!(said_of(&bench, "*to", "--before", "r.c:13").starts_with("r.c:17 in main"));
    assert!(said_of(&bench, "x", "--after", "r.c:18").starts_with("r.c:13 in set"));
}

#[test]
fn an_address_is_the_same_whoever_uses_it() {
    let bench = Bench::ran("r.c", REUSED, O0, &[]);
    let value = bench.json(&["values", "r.c:5", "&a[500]"]);
    let address = value["shown"][0]["values"][0]["value"].as_str().unwrap();
    let address = address.split_whitespace().next().unwrap();
    assert!(said_of(&bench, address, "--before", "r.c:5").contains("r.c:9#1 in all"));
}
