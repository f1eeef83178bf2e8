//! Relevant slices: what might have changed a value, had a branch gone the other
//! way.

use crate::support::{Bench, O0, lines_of};

/// As gzip's: a flag stays 0 because its branch was not taken.
const OMITTED: &str = r#"#include <stdio.h>
#include <stdlib.h>

static int save_orig_name;
static int flags;
static unsigned char out[16];

static void set_flag(void) {
    flags |= 16;
}

int main(int argc, char **argv) {
    int unrelated = argc * 3;
    int local = 1;
    save_orig_name = atoi(argv[1]) > 7;
    int loud = argc > 5;
    int deep = argc > 6;
    flags = 0;
    if (save_orig_name)
        flags |= 8;
    if (loud)
        local = 2;
    if (deep)
        set_flag();
    out[0] = 31;
    out[1] = (unsigned char) flags;
    if (unrelated > 100)
        out[2] = 1;
    printf("%d %d\n", out[1], local);
    return 0;
}
"#;

/// F-002-35: the backward slice misses what was omitted, the relevant one has it.
#[test]
fn a_branch_not_taken_is_relevant() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let bench = Bench::ran("g.c", OMITTED, &["-O0", version], &["5"]);
        let full = bench.lines(&["slice", "output:0"]);
        assert!(!full.contains(&15) && !full.contains(&19), "{full:?}");
        let relevant = bench.json(&["slice", "output:0", "--relevant"]);
        let lines = lines_of(&relevant);
        assert!(lines.contains(&15) && lines.contains(&19), "{lines:?}");
        assert!(full.iter().all(|l| lines.contains(l)), "{full:?} in {lines:?}");
        // What follows cannot have made it another.
        assert!(!lines.contains(&13) && !lines.contains(&27), "{lines:?}");
        let of_flags = bench.lines(&["slice", "g.c:26:flags", "--relevant"]);
        assert!(of_flags.contains(&19), "{of_flags:?}");
        assert!(!of_flags.contains(&21), "writes another variable: {of_flags:?}");
        let marked = |line: u64| {
            let all = relevant["lines"].as_array().unwrap();
            all.iter().find(|l| l["line"] == line).unwrap()["potential"].as_u64().unwrap()
        };
        assert_eq!((marked(19), marked(15), marked(18)), (1, 0, 0));
    }
}

#[test]
fn a_call_that_was_not_made_is_relevant_for_what_it_writes() {
    let bench = Bench::ran("g.c", OMITTED, O0, &["5"]);
    let lines = bench.lines(&["slice", "output:0", "--relevant"]);
    assert!(lines.contains(&17) && lines.contains(&23), "{lines:?}");
}

#[test]
fn a_place_in_the_frame_is_relevant_in_its_own_activation() {
    let bench = Bench::ran("g.c", OMITTED, O0, &["5"]);
    assert_eq!(bench.lines(&["slice", "g.c:29:local"]), [14]);
    let lines = bench.lines(&["slice", "g.c:29:local", "--relevant"]);
    assert!(lines.contains(&16) && lines.contains(&21), "{lines:?}");
    assert!(!lines.contains(&19) && !lines.contains(&23), "{lines:?}");
}

#[test]
fn a_register_is_relevant_too() {
    let source = r#"#include <stdio.h>
__attribute__((noinline)) static int choose(int first, int on) {
    int found = first * 3;
    if (on)
        __asm__ volatile("movl $7, %0" : "=r"(found));
    __asm__ volatile("" : "+r"(found));
    return found;
}
int main(int argc, char **argv) {
    printf("%d\n", choose(argc, argc > 4));
}
"#;
    let bench = Bench::ran("o.c", source, &["-g", "-O2"], &[]);
    let full = bench.lines(&["slice", "output:0"]);
    let lines = bench.lines(&["slice", "output:0", "--relevant"]);
    assert!(!full.contains(&4) && lines.contains(&4), "{full:?} {lines:?}");
}

#[test]
fn the_text_marks_what_is_only_relevant() {
    let bench = Bench::ran("g.c", OMITTED, O0, &["5"]);
    let text = bench.text(&["slice", "output:0", "--relevant"]);
    assert!(text.contains("(data, addresses, control, potential)"), "{text}");
    assert!(text.contains("? marks branches"), "{text}");
    let branch = text.lines().find(|l| l.ends_with("if (save_orig_name)")).unwrap();
    assert!(branch.contains("?     19"), "{branch}");
    let plain = bench.text(&["slice", "output:0"]);
    assert!(!plain.contains('?'), "{plain}");
}

/// A relevant slice contains the full one, instance by instance.
#[test]
fn a_relevant_slice_contains_the_full_one() {
    for (file, source) in [("g.c", OMITTED), ("f.c", crate::answers::SUM)] {
        for level in ["-O0", "-O2"] {
            let bench = Bench::ran(file, source, &["-g", level], &["5"]);
            crate::duality::compare(&bench, 12, |slicer, at, from| {
                let options = slice::Options { from, ..slice::Options::default() };
                let full = slicer.instances(at, &options);
                let options = slice::Options { relevant: true, ..options };
                let relevant = slicer.instances(at, &options);
                let has: std::collections::HashSet<_> = relevant.0.iter().map(|i| i.0).collect();
                assert!(full.0.iter().all(|i| has.contains(&i.0)), "{file} {level} {at:?}");
            });
        }
    }
}

/// Whether a branch would have stored through a pointer is not known without running it.
const THROUGH_POINTERS: &str = r#"#include <stdio.h>
#include <string.h>

static int table[4];
static int other;
static int *cursor = &other;
static void store(int *to) { *to = 3; }
static void (*far)(int *) = store;

int main(int argc, char **argv) {
    int plain = 0;
    table[0] = 1;
    if (argc > 3)
        *cursor = 2;
    if (argc > 4)
        store(table);
    if (argc > 5)
        far(table);
    if (argc > 6)
        table[argc] = 4;
    if (argc > 7)
        memset(table, 0, sizeof table);
    if (argc > 8)
        other = 5;
    if (argc > 9)
        plain = 6;
    switch (argc) {
    case 11: *cursor = 1; break;
    case 12: other = 1; break;
    case 13: other = 2; break;
    case 14: other = 4; break;
    case 15: other = 8; break;
    case 16: other = 6; break;
    }
    return table[0] + plain;
}
"#;

/// F-002-35: an arm that stores through a pointer might have hit anything, as might what it
/// calls; one that names what it stores to might not.
#[test]
fn a_store_through_a_pointer_that_was_not_made_is_relevant() {
    let bench = Bench::ran("p.c", THROUGH_POINTERS, O0, &[]);
    let full = bench.lines(&["slice", "p.c:35:table[0]"]);
    let lines = bench.lines(&["slice", "p.c:35:table[0]", "--relevant"]);
    for line in [13, 15, 17, 19, 21, 27] {
        assert!(!full.contains(&line), "{line}: {full:?}");
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    for line in [23, 25] {
        assert!(!lines.contains(&line), "{line}: {lines:?}");
    }
}
