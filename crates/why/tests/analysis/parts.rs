//! What is said of a part of a slice, or of a run: it has gaps, and what leads through them counts.

use position::{Position, Run};
use recording::{Home, Recording};

use crate::support::{Bench, O0};

/// Is there an arrow from one line to another, as a reason or for a value?
fn leads(dot: &str, source: &str, user: &str, control: bool) -> bool {
    let node = |place: &str| {
        let label = format!("[label=\"{place}\\n");
        let line = dot.lines().find(|line| line.contains(&label));
        let line = line.unwrap_or_else(|| panic!("{place} is missing:\n{dot}"));
        line.split_whitespace().next().unwrap().to_owned()
    };
    let style = if control { " [style=dashed]" } else { "" };
    dot.contains(&format!("  {} -> {}{style};", node(source), node(user)))
}

/// The second thread makes what the first one goes on with.
const TWICE: &str = r#"#include <pthread.h>
static int shared;
static void *twice(void *unused) {
    shared = shared * 2;
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    shared = argc + 1;
    pthread_create(&thread, 0, twice, 0);
    pthread_join(thread, 0);
    int more = shared + 1;
    return more;
}
"#;

#[test]
fn values_pass_through_lines_that_a_part_leaves_out() {
    let bench = Bench::ran("t.c", TWICE, &["-g", "-O0", "-pthread"], &[]);
    let dot = bench.text(&["slice", "t.c:13", "--thread", "1", "--dot"]);
    assert!(!dot.contains("t.c:4"), "{dot}");
    assert!(leads(&dot, "t.c:9", "t.c:12", false), "{dot}");
    let whole = bench.text(&["slice", "t.c:13", "--dot"]);
    assert!(leads(&whole, "t.c:9", "t.c:4", false), "{whole}");
    assert!(!leads(&whole, "t.c:9", "t.c:12", false), "{whole}");
}

/// One dependence away from its end are an outer condition and what the inner one guards.
const INNER: &str = r#"int main(int argc, char **argv) {
    int n, k = 0;
    if ((n = argc) > 0)
        if (argv)
            k = 1;
    return n + k;
}
"#;

#[test]
fn reasons_are_those_that_are_shown() {
    let bench = Bench::ran("i.c", INNER, O0, &[]);
    let dot = bench.text(&["slice", "i.c:6", "--depth", "1", "--dot"]);
    assert!(!dot.contains("i.c:4"), "{dot}");
    assert!(leads(&dot, "i.c:3", "i.c:5", true), "{dot}");
    let data = bench.text(&["slice", "i.c:6", "--data", "--dot"]);
    assert!(!leads(&data, "i.c:3", "i.c:5", true), "{data}");
}

/// What goes into the pipe, the program makes.
const PIPE: &str = r#"#include <unistd.h>
int main(void) {
    int fds[2];
    char given = 0, taken = 0, other = 0;
    read(0, &given, 1);
    pipe(fds);
    given += 1;
    write(fds[1], &given, 1);
    read(0, &other, 1);
    read(fds[0], &taken, 1);
    return taken + other;
}
"#;

#[test]
fn what_comes_from_outside_of_a_part_comes_from_outside_of_the_run() {
    let bench = Bench::new("p.c", PIPE);
    bench.compile(O0);
    bench.record(&[], "ab");
    let origins = |from: &[&str]| {
        let slice = bench.json(&[&["slice", "p.c:11"], from].concat());
        let origins = slice["origins"].as_array().unwrap().iter();
        let told = origins.map(|o| format!("{} {}-{}", o["from"], o["start"], o["end"]));
        told.collect::<Vec<_>>()
    };
    assert_eq!(origins(&[]), ["\"standard input\" 0-2"]);
    assert_eq!(origins(&["--from", "p.c:9"]), ["\"standard input\" 1-2"]);
    assert_eq!(origins(&["--from", "p.c:11"]), [""; 0]);
}

#[test]
fn of_a_thread_outside_of_the_traced_part_nothing_is_said() {
    let bench = Bench::ran("t.c", TWICE, &["-g", "-O0", "-pthread"], &[]);
    let open = || Recording::open(&Home::at(bench.path("home")).resolve(None).unwrap()).unwrap();
    let whole = Run::open(open(), &mut |_| ()).unwrap();
    assert_eq!(position::thread(&whole, 2).unwrap(), 2);
    let said = |run: &Run, n| position::thread(run, n).unwrap_err().to_string();
    assert_eq!(said(&whole, 3), "the run has no thread 3; it has 1, 2");
    // The second thread has ended by then.
    let joined = Position::parse("t.c:12").unwrap();
    let joined = position::resolve(&whole, &joined).unwrap().instance();
    let part = whole.trace.number(joined)..whole.trace.records.instructions();
    let part = Run::open_part(open(), part, &mut |_| ()).unwrap();
    assert_eq!(said(&part, 2), "the traced part of the run has no thread 2; its only one is 1");
}
