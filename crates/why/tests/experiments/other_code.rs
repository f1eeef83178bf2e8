//! Runs whose code is not one program's from beginning to end, or is stopped in tight loops.

use crate::lab::Lab;

const CHOICE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int n = getenv("GREETING") ? 1 : 2;
    if (argc > 1)
        n = 7;
    printf("%d %s\n", n, getenv("GREETING"));
    return n == 7;
}
"#;

/// `env` executes the program: its code lies where that of `env` lay.
fn by_env() -> Lab {
    let lab = Lab::new(CHOICE, &["-O0"]);
    let recorded = lab.why(&["record", "-q", "--", "env", "GREETING=hello", "./prog", "x"]);
    assert_eq!(recorded.status.code(), Some(1), "{:?}", recorded.stderr);
    assert_eq!(recorded.stdout, b"7 hello\n");
    lab
}

#[test]
fn a_program_that_another_one_executed_can_be_altered() {
    let lab = by_env();
    let answer = lab.json(&["what-if", "switch", "prog.c:6", "--expect-text", "1 hello\\n"]);
    assert_eq!(answer["verdict"]["word"], "passed", "{answer}");
}

#[test]
fn a_critical_branch_is_found_in_a_program_that_another_one_executed() {
    let lab = by_env();
    let found = lab.json(&["critical", "--all", "--expect-text", "1 hello\\n"]);
    assert_eq!(found["critical"][0]["position"], "prog.c:6", "{found}");
    assert_eq!(found["verdicts"]["passed"], 1, "{found}");
}

/// Adds what it finds up to the end of its list, or far behind it. The loop leaves RCX alone,
/// which holds something that is printed.
const TIGHT: &str = r#"
#include <stdio.h>
static int list[1000];
int main(int argc, char **argv) {
    for (int i = 0; i < 1000; i++)
        list[i] = i;
    const int *p = list, *end = list + 1000;
    if (argc > 1) {
        end = list + (1L << 40);
        asm volatile("");
    }
    int total = 0;
    long kept = 42;
    asm volatile("1: lea 4(%0), %0; add -4(%0), %1; cmp %3, %0; jne 1b"
                 : "+r"(p), "+r"(total), "+c"(kept) : "r"(end) : "memory", "cc");
    printf("%d %ld\n", total, kept);
    return 0;
}
"#;

// The crash point is inside the loop, so a trial stops there in every turn of it.
#[test]
fn a_stop_inside_a_tight_loop_leaves_all_registers_as_they_are() {
    let lab = Lab::new(TIGHT, &["-O2"]);
    lab.record(&["x"], "");
    let right = "499500 42\\n";
    let line = lab.line("if (argc > 1)");
    let switch = format!("prog.c:{line}");
    let answer = lab.json(&["what-if", "switch", &switch, "--expect-text", right]);
    assert_eq!(answer["verdict"]["word"], "passed", "{answer}");
}
