//! What counts for and against lines in `why explain`.

use crate::stories::why;
use crate::support::Bench;

/// Compiles a program, and has its run explained by what it did and what it would have done
/// with conditions switched: its status, and the story.
pub fn explained(file: &'static str, source: &str, words: &[&str]) -> (i32, String) {
    let bench = Bench::new(file, source);
    bench.compile(&["-g", "-O0"]);
    let (status, _, story) = why(&bench, &[&["--no-edits"], words].concat());
    (status, story)
}

/// Gets room for as many cells as it has arguments, and fills four.
const OVERRUN: &str = r#"#include <stdio.h>
#include <stdlib.h>
static long *make(int room) {
    return malloc(room * sizeof(long));
}
static void fill(long *cells) {
    for (int i = 0; i < 4; i++)
        cells[i] = 0x4141414141414141;
}
int main(int argc, char **argv) {
    long *cells = make(argc), *others = make(argc);
    fill(cells);
    puts("filled");
    free(others);
    free(cells);
    return argv == NULL;
}
"#;

#[test]
fn what_wrote_over_the_allocator_s_own_is_named_though_the_allocator_gave_up_later() {
    let (status, err) = explained("overrun.c", OVERRUN, &["./prog"]);
    assert_eq!(status, 134, "{err}");
    let (_, path) = err.split_once("How it came about").expect(&err);
    let first = path.lines().nth(1).unwrap_or_default();
    assert!(first.contains("overrun.c:8#2 in fill"), "{err}");
    let (_, places) = path.split_once("Where to look").expect(&err);
    assert!(places.contains("overrun.c:4 "), "{err}");
    assert!(places.contains("it used memory behind the block that overrun.c:4 allocated"), "{err}");
}

#[test]
fn a_run_that_died_before_its_output_was_complete_is_explained_by_its_death() {
    let expects = ["--expect-text", "filled\\n"];
    let told = |more: &[&str]| {
        let words = [&expects[..], more, &["--", "./prog"]].concat();
        explained("overrun.c", OVERRUN, &words).1
    };
    let died = told(&[]);
    assert!(died.contains("SIGABRT: the program gave up"), "{died}");
    // One branch of the loop, taken once less, and all is written.
    assert!(died.contains("switch overrun.c:7#"), "{died}");
    let wanted = told(&["--expect-exit", "134"]);
    assert!(wanted.contains("line 1 of standard output is missing"), "{wanted}");
}

/// Gives back what is no block: it has skipped the spaces before a word.
const NO_BLOCK: &str = r#"#include <stdlib.h>
#include <string.h>
int main(void) {
    char *word = strdup("                x");
    while (*word == ' ')
        word++;
    free(word);
    return 0;
}
"#;

#[test]
fn what_is_given_back_and_no_block_is_not_taken_for_one_that_was_overrun() {
    let (status, err) = explained("no_block.c", NO_BLOCK, &["./prog"]);
    assert_eq!(status, 134, "{err}");
    assert!(err.contains("a pointer into the middle of a block was freed"), "{err}");
    assert!(!err.contains("behind the end"), "{err}");
    let (_, places) = err.split_once("Where to look").expect(&err);
    assert!(places.contains("no_block.c:6 "), "{err}");
}

/// Two numbers: one is shown and right, their sum is wrong.
const WORKED: &str = r#"#include <stdio.h>
static int scaled(int n) {
    return n * 10;
}
static int shifted(int n) {
    return n + 2;
}
int main(int argc, char **argv) {
    int shift = shifted(argc);
    int base = scaled(argc);
    printf("%d\n", base);
    printf("%d\n", base + shift);
    return argv == NULL;
}
"#;

#[test]
fn what_was_good_for_right_output_is_less_suspect() {
    // The first digit of the wrong sum is right.
    let words = ["--expect-text", "10\\n12\\n", "--", "./prog"];
    let (_, err) = explained("worked.c", WORKED, &words);
    let (_, places) = err.split_once("Where to look").expect(&err);
    let found = |line: &str| places.find(line).unwrap_or_else(|| panic!("{err}"));
    assert!(found("worked.c:6 ") < found("worked.c:3 "), "{err}");
}

/// Counts in steps of two to ten, and refuses numbers below zero.
const STEPS: &str = r#"#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    if (n < 0)
        return 3;
    while (n != 10)
        n += 2;
    printf("%d\n", argc);
    return 0;
}
"#;

#[test]
fn giving_up_is_no_better_than_hanging() {
    let (_, err) = explained("steps.c", STEPS, &["--timeout", "1s", "./prog", "1"]);
    let (_, helped) = err.split_once("What would have helped").expect(&err);
    let (helped, _) = helped.split_once("Where to look").expect(&err);
    assert!(helped.contains("switch steps.c:7#"), "{err}");
    assert!(!helped.contains("switch steps.c:5"), "{err}");
}
