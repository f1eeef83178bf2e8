//! Who wrote what, and when: `why last-write`, and what other questions owe to it.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::support::Bench;

/// A thread waits for four bytes; meanwhile the other one goes on, and sends them.
const WAITS: &str = r#"#include <pthread.h>
#include <unistd.h>
static char buf[8];
static int fds[2];
static volatile int ready, count;
static void *reader(void *unused) {
    ready = 1;
    read(fds[0], buf, 4);
    return unused;
}
int main(void) {
    pthread_t thread;
    pipe(fds);
    pthread_create(&thread, 0, reader, 0);
    while (!ready) usleep(1000);
    usleep(50000);
    count = 1;
    write(fds[1], "abcd", 4);
    pthread_join(thread, 0);
    return buf[0] == 'a' ? 0 : count;
}
"#;

#[test]
fn a_call_that_waits_writes_when_it_returns() {
    let bench = Bench::ran("w.c", WAITS, &["-g", "-O0", "-pthread"], &[]);
    let said = |side: &str, position: &str| {
        let said = bench.ask(&["last-write", "buf", side, position]);
        said.out.replace("\n  ", " ").lines().next().unwrap_or_default().to_owned()
    };
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
