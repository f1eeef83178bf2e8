//! Every kind of criterion, on programs whose answers are known.

use crate::support::{Bench, O0, lines_of};

/// As bc 1.06: a table is allocated by one count and filled by another.
const TABLE: &str = r#"#include <stdio.h>
#include <stdlib.h>
static int a_count = 2, v_count = 40000;
static long **arrays;
int main(int argc, char **argv) {
    int unrelated = argc * 3;
    arrays = malloc(a_count * sizeof *arrays);
    for (int indx = 0; indx < v_count; indx++)
        arrays[indx] = NULL;
    return unrelated;
}
"#;

/// F-002-06: the slice of the address that crashed has the allocation and the loop, and
/// its arrows join lines of its own.
#[test]
fn the_slice_of_a_bad_address_has_allocation_and_loop() {
    let bench = Bench::ran("bc.c", TABLE, O0, &[]);
    assert_eq!(bench.json(&["info"])["outcome"]["killed"]["signal"], 11);
    let slice = bench.json(&["slice"]);
    assert_eq!(slice["criterion"], "crash");
    let lines = lines_of(&slice);
    for line in [7, 8, 9] {
        assert!(lines.contains(&line), "{line} in {lines:?}");
    }
    assert!(!lines.contains(&6), "{lines:?}");
    let dot = bench.text(&["slice", "--dot"]);
    let nodes: Vec<&str> = dot.lines().filter(|l| l.contains("[label=")).collect();
    assert_eq!(nodes.len(), slice["lines"].as_array().unwrap().len());
    for arrow in dot.lines().filter(|l| l.contains(" -> ")) {
        for end in arrow.split(" -> ").map(|e| e.split_whitespace().next().unwrap()) {
            let end = end.trim_end_matches(';');
            let known = |n: &&&str| n.split_whitespace().next() == Some(end);
            assert!(nodes.iter().find(known).is_some(), "{arrow}");
        }
    }
}

/// A switch through a table of jumps, in a loop, in a function that calls itself.
const CASES: &str = r#"#include <stdio.h>
static int weigh(int kind, int depth) {
    int unrelated = depth * 3;
    if (depth > 1)
        return weigh(kind, depth - 1) + 1;
    switch (kind) {
    case 0: return 3;
    case 1: return 5;
    case 2: return 8;
    case 3: return 11;
    case 4: return 2;
    case 5: return 7;
    }
    return unrelated;
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 9; i++) {
        if (i == 4)
            break;
        sum += weigh(i, 2);
    }
    int after = 12;
    printf("%d %d\n", sum, after);
}
"#;

/// F-002-07: a register, memory, a predicate, the address of a crash.
#[test]
fn a_criterion_is_a_register_memory_a_predicate_or_a_crash() {
    let bench = Bench::ran("k.c", CASES, O0, &[]);
    let predicate = bench.lines(&["slice", "k.c:19#2"]);
    assert!(predicate.contains(&18) && !predicate.contains(&21), "{predicate:?}");
    let register = bench.lines(&["slice", "k.c:4#1:$rdi"]);
    assert!(register.contains(&18) && !register.contains(&17), "{register:?}");
    let shown = bench.json(&["values", "k.c:24", "&sum"]);
    let address = shown["shown"][0]["values"][0]["value"].as_str().unwrap();
    let address = address.split_whitespace().next().unwrap();
    let memory = bench.lines(&["slice", &format!("mem:{address}+4@k.c:24")]);
    assert_eq!(memory, bench.lines(&["slice", "k.c:24:sum"]));
    assert!(memory.contains(&21) && !memory.contains(&23), "{memory:?}");
    let crash = Bench::ran("bc.c", TABLE, O0, &[]);
    assert!(crash.lines(&["slice", "crash"]).contains(&9));
}

/// F-001-16, F-001-36: recursion and `break` keep their branches apart, a case depends
/// on its switch.
#[test]
fn a_case_depends_on_its_switch_and_what_follows_a_loop_does_not() {
    let bench = Bench::ran("k.c", CASES, &["-g", "-O0", "-fjump-tables"], &[]);
    let case = bench.lines(&["slice", "k.c:9"]);
    for line in [4, 5, 6, 18, 19, 21] {
        assert!(case.contains(&line), "{line} in {case:?}");
    }
    assert!(!case.contains(&3) && !case.contains(&23), "{case:?}");
    let after = bench.lines(&["slice", "k.c:23"]);
    assert_eq!(after, [23]);
    let sum = bench.lines(&["slice", "k.c:24:sum"]);
    assert!(sum.contains(&19) && sum.contains(&6) && !sum.contains(&3), "{sum:?}");
}

/// F-001-37, as Fig. 5.7: a register that a callee saves and restores does not bring
/// what decided the call.
#[test]
fn a_saved_register_brings_nothing_of_its_saver() {
    let source = r#"#include <stdio.h>
__attribute__((noinline)) static long busy(long n) {
    register long own __asm__("rbx") = n * 3;
    __asm__ volatile("" : "+r"(own) : : "memory");
    return own + 1;
}
__attribute__((noinline)) static long run(long seed, int loud) {
    register long kept __asm__("rbx") = seed + 2;
    __asm__ volatile("" : "+r"(kept));
    if (loud)
        busy(seed);
    __asm__ volatile("" : "+r"(kept));
    return kept * 5;
}
int main(int argc, char **argv) {
    printf("%ld\n", run(argc, argc < 9));
}
"#;
    let bench = Bench::ran("s.c", source, &["-g", "-O1"], &[]);
    let lines = bench.lines(&["slice", "s.c:13"]);
    assert!(lines.contains(&8), "{lines:?}");
    assert!(!lines.contains(&10) && !lines.contains(&11) && !lines.contains(&3), "{lines:?}");
    let all = bench.lines(&["slice", "s.c:13", "--all-deps"]);
    assert!(all.contains(&10), "with bookkeeping: {all:?}");
}

/// F-002-44: the size of a trace is told, in memory, on disk, and for each instruction.
#[test]
fn a_trace_tells_its_size() {
    let bench = Bench::ran("k.c", CASES, O0, &[]);
    let facts = bench.json(&["trace"]);
    let number = |name: &str| facts[name].as_f64().unwrap_or_else(|| panic!("{name} in {facts}"));
    let bits = number("stored_bytes") * 8.0 / number("instructions");
    assert!((bits - number("bits_per_instruction")).abs() < 0.01, "{facts}");
    assert!(number("size_bytes") > number("records") * 4.0, "{facts}");
    assert!(number("records") < number("instructions"), "{facts}");
}

/// A file of the program is meant, though a library with debug information has one of
/// the same name.
#[test]
fn a_file_whose_code_ran_is_meant() {
    let bench = Bench::new("u.c", "int scale(int);\nint main(void) {\n    return scale(2);\n}\n");
    std::fs::create_dir(bench.path("lib")).unwrap();
    std::fs::write(bench.path("lib/u.c"), "int unused(int n) {\n    return n;\n}\n").unwrap();
    std::fs::write(bench.path("scale.c"), "int scale(int n) {\n    return n * 3;\n}\n").unwrap();
    bench.tool("gcc", &["-g", "-O0", "-shared", "-fPIC", "-o", "libs.so", "scale.c", "lib/u.c"]);
    let rpath = format!("-Wl,-rpath,{}", bench.folder().display());
    bench.tool("gcc", &["-g", "-O0", "-o", "prog", "u.c", "-L.", "-ls", &rpath]);
    assert_eq!(bench.record(&[], ""), 6);
    assert_eq!(bench.lines(&["slice", "u.c:3"]), [3]);
    assert!(bench.refusal(&["slice", "lib/u.c:2"], 1).contains("never"));
}
