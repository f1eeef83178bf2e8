//! Rows of the specification that need programs of their own.

use crate::support::{Bench, O0, lines_of};

/// A thread writes what the main thread then uses.
pub const THREADS: &str = r#"#include <pthread.h>
#include <stdio.h>
static volatile int k, done;

static void *work(void *unused) {
    k = 7;
    return unused;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    pthread_join(other, 0);
    int twice = k * 2;
    printf("%d\n", twice);
}
"#;

/// F-002-57, F-001-35: a slice crosses threads.
#[test]
fn a_slice_contains_the_other_threads_write() {
    for level in ["-O0", "-O2"] {
        let bench = Bench::ran("t.c", THREADS, &["-g", level, "-pthread"], &[]);
        let slice = bench.json(&["slice", "output:0", "--data"]);
        let lines = slice["lines"].as_array().unwrap();
        let write = lines.iter().find(|l| l["line"] == 6);
        let write = write.unwrap_or_else(|| panic!("{level}: {slice}"));
        let thread = write["latest"][0]["thread"].as_u64().unwrap();
        let main = slice["lines"][0]["latest"][0]["thread"].as_u64().unwrap();
        assert_ne!(main, thread);
        let own = bench.lines(&["slice", "output:0", "--thread", &main.to_string()]);
        assert!(own.contains(&13) && !own.contains(&6), "only that thread: {own:?}");
        let counted = bench.json(&["slice", &format!("T{thread}/t.c:6#1")]);
        assert!(lines_of(&counted).contains(&6));
    }
}

/// A thread changes what the main thread gave it, and the main thread goes on with that.
const TO_AND_FRO: &str = r#"#include <pthread.h>
#include <stdio.h>
static volatile int k;

static void *work(void *unused) {
    k = k * 2;
    return unused;
}
int main(int argc, char **argv) {
    k = argc + 6;
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    pthread_join(other, 0);
    int twice = k * 2;
    printf("%d\n", twice);
}
"#;

fn to_and_fro() -> Bench {
    Bench::ran("t.c", TO_AND_FRO, &["-g", "-O0", "-pthread"], &[])
}

#[test]
fn a_slice_of_one_thread_has_what_others_led_back_to() {
    let bench = to_and_fro();
    let own = bench.lines(&["slice", "output:0", "--data", "--thread", "1"]);
    assert!(own.contains(&14) && own.contains(&10) && !own.contains(&6), "{own:?}");
    let onward = bench.lines(&["slice", "t.c:10", "--forward", "--data", "--thread", "1"]);
    assert!(onward.contains(&14) && !onward.contains(&6), "{onward:?}");
}

#[test]
fn a_slice_up_to_a_position_has_what_the_criterion_behind_it_depends_on() {
    let bench = to_and_fro();
    let before = bench.lines(&["slice", "output:0", "--data", "--to", "t.c:12"]);
    assert!(before.contains(&10) && !before.contains(&14), "{before:?}");
}

#[test]
fn a_forward_slice_from_a_position_has_what_followed_from_before_it() {
    let bench = to_and_fro();
    let behind = bench.lines(&["slice", "t.c:10", "--forward", "--data", "--from", "t.c:13"]);
    assert!(behind.contains(&14) && !behind.contains(&10), "{behind:?}");
}

#[test]
fn a_thread_that_the_run_has_not_is_refused() {
    let bench = to_and_fro();
    for words in [
        &["slice", "--thread", "7"][..],
        &["chop", "t.c:10", "t.c:14", "--thread", "7"],
        &["path", "--thread", "7"],
        &["deps", "T7/t.c:6"],
    ] {
        let said = bench.refusal(words, 2);
        assert_eq!(said, "the run has no thread 7; it has 1, 2", "{words:?}");
    }
}

/// Copies its argument to a place that is too small.
const SMASH: &str = r#"#include <string.h>

static void copy(const char *from) {
    char room[8];
    strcpy(room, from);
}

int main(int argc, char **argv) {
    copy(argv[1]);
    return 0;
}
"#;

fn smashed() -> Bench {
    let flags = ["-g", "-O0", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-builtin"];
    let bench = Bench::ran("s.c", SMASH, &flags, &[&"a".repeat(64)]);
    assert_eq!(bench.json(&["info"])["outcome"]["killed"]["signal"], 11);
    bench
}

/// F-001-09: the smashed return leads to the call of strcpy, or into it.
#[test]
fn a_smashed_return_leads_to_the_copy() {
    let bench = smashed();
    let slice = bench.json(&["slice", "crash", "--data"]);
    assert!(lines_of(&slice).contains(&5), "{slice}");
    let inside = |slice: &serde_json::Value| {
        let lines = slice["lines"].as_array().unwrap().iter();
        lines.filter(|l| !l["file"].as_str().is_some_and(|f| f.ends_with("s.c"))).count()
    };
    assert_eq!(inside(&slice), 0, "library code stands for its call");
    let via = bench.json(&["slice", "crash", "--data", "--via-lib"]);
    assert!(inside(&via) > 0, "{via}");
}

#[test]
fn lines_in_libraries_are_among_those_executed_if_they_are_shown() {
    let bench = smashed();
    let slice = bench.json(&["slice", "crash", "--via-lib"]);
    let lines = slice["lines"].as_array().unwrap().len() as u64;
    let executed = slice["executed_lines"].as_u64().unwrap();
    assert!(lines <= executed, "{lines} of {executed}");
}

/// F-002-27: from the argument's bytes forward to the copy in the library.
#[test]
fn the_overlong_argument_is_followed_into_the_copy() {
    let bench = smashed();
    let forward = bench.lines(&["slice", "argv:1:60", "--forward"]);
    assert!(forward.contains(&5), "{forward:?}");
    let via = bench.json(&["slice", "argv:1:60", "--forward", "--via-lib"]);
    let inside = via["lines"].as_array().unwrap().iter();
    let inside = inside.filter(|l| l["function"].as_str().is_some_and(|f| f.contains("strcpy")));
    assert!(inside.count() > 0, "the copy itself is shown: {via}");
}

/// F-002-34: a data slice is part of the full one and has the corrupting store.
#[test]
fn a_data_slice_has_the_corrupting_store() {
    let source = r#"#include <stdio.h>
#include <stdlib.h>
static struct { int list[4]; int *next; } all;
int main(int argc, char **argv) {
    int limit = 4 + argc;
    int here = 3;
    all.next = &here;
    for (int i = 0; i <= limit; i++)
        all.list[i] = i;
    if (argc > 3)
        puts("many");
    return *all.next;
}
"#;
    let bench = Bench::ran("m.c", source, O0, &[]);
    assert_eq!(bench.json(&["info"])["outcome"]["killed"]["signal"], 11);
    let full = bench.lines(&["slice"]);
    let data = bench.lines(&["slice", "--data"]);
    assert!(data.contains(&9) && !data.contains(&10), "{data:?}");
    assert!(data.iter().all(|l| full.contains(l)), "{data:?} of {full:?}");
    assert!(full.contains(&5), "the wrong limit decides: {full:?}");
}

/// F-002-52: a read defines as many bytes as it brings, and depends on where the file's
/// offset was put.
#[test]
fn a_read_defines_what_it_brings() {
    let source = r#"#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char buf[8];
    memset(buf, 'z', sizeof buf);
    int fd = open("data", O_RDONLY);
    long where = atoi(argv[1]);
    lseek(fd, where, SEEK_SET);
    int n = read(fd, buf, 8);
    char first = buf[0];
    char last = buf[7];
    printf("%c%c %d\n", first, last, n);
}
"#;
    let bench = Bench::new("r.c", source);
    std::fs::write(bench.path("data"), "0123456789").unwrap();
    bench.compile(O0);
    bench.record(&["7"], "");
    let first = bench.lines(&["slice", "r.c:13:first"]);
    for line in [9, 10, 11, 12, 13] {
        assert!(first.contains(&line), "{line} in {first:?}");
    }
    assert!(!first.contains(&8), "{first:?}");
    let forward = bench.lines(&["slice", "r.c:10", "--forward"]);
    for line in [11, 12, 13, 15] {
        assert!(forward.contains(&line), "{line} in {forward:?}");
    }
    assert!(!forward.contains(&8) && !forward.contains(&9), "{forward:?}");
    let last = bench.lines(&["slice", "r.c:14:last"]);
    assert!(last.contains(&8), "{last:?}");
    assert!(!last.contains(&11) && !last.contains(&12), "three bytes were read: {last:?}");
}

/// F-002-37: lines where there is debug information, instructions where there is
/// none.
#[test]
fn a_library_is_shown_by_lines_or_by_instructions() {
    for (flags, has_lines) in [(&["-g"][..], true), (&["-s"], false)] {
        let source = "#include <stdio.h>\nint scale(int);\nint main(int argc, char **argv) {\n    \
                      printf(\"%d\\n\", scale(argc));\n}\n";
        let bench = Bench::new("u.c", source);
        let library = "int scale(int n) {\n    int wide = n * 3;\n    return wide + 1;\n}\n";
        std::fs::write(bench.path("scale.c"), library).unwrap();
        bench.tool(
            "gcc",
            &[flags, &["-O0", "-shared", "-fPIC", "-o", "libscale.so", "scale.c"]].concat(),
        );
        let rpath = format!("-Wl,-rpath,{}", bench.folder().display());
        bench.tool("gcc", &["-g", "-O0", "-o", "prog", "u.c", "-L.", "-lscale", &rpath]);
        assert_eq!(bench.record(&[], ""), 0);
        let via = bench.json(&["slice", "output:0", "--data", "--via-lib"]);
        let lines = via["lines"].as_array().unwrap();
        let of_library = |l: &&serde_json::Value| l["function"] == "scale";
        let with_lines = lines.iter().filter(of_library).filter(|l| l["line"].is_u64()).count();
        let without = lines.iter().filter(of_library).filter(|l| l["address"].is_u64()).count();
        assert_eq!(with_lines > 0, has_lines, "{via}");
        assert_eq!(without > 0, !has_lines, "{via}");
        let squashed = bench.lines(&["slice", "output:0", "--data"]);
        assert!(squashed.contains(&4), "{squashed:?}");
    }
}
