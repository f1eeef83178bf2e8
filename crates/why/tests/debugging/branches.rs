//! What-if branches and checkpoints: leaving history and coming back.

use super::*;

// F-001-12 to 14
#[test]
fn rolling_back_brings_back_state_instances_and_files() {
    let source = r#"
#include <stdio.h>
#include <unistd.h>
#include <fcntl.h>
char first[9], second[9];
int main(void)
{
    int fd = open("data", O_RDONLY);
    read(fd, first, 4);
    read(fd, second, 4);
    printf("%s %s\n", first, second);
    return 0;
}
"#;
    let place = Place::new();
    fs::write(place.path("data"), "abcdefgh").expect("writes");
    place.record("reader", source, &["-O0"]);
    fs::remove_file(place.path("data")).expect("removes");
    let said = place.gdb(
        "start",
        &[
            "break reader.c:10",
            "continue",
            "why checkpoint between",
            "next",
            "print second",
            "why instance reader.c:10",
            "why checkpoints",
            "why rollback 1",
            "print second",
            "print first",
            "why instance reader.c:11",
            "next",
            "print second",
            "why checkpoint --remove 1",
            "why checkpoints",
        ],
    );
    in_order(
        &said,
        &[
            "checkpoint 1: between",
            "$1 = \"efgh",
            "reader.c:10#1",
            "1: between (@",
            "$2 = \"\\000",
            "$3 = \"abcd",
            "reader.c:11#0",
            "$4 = \"efgh",
            "checkpoint between is gone",
            "there are no checkpoints",
        ],
    );
}

// F-001-01, 02, 46
#[test]
fn a_changed_state_is_a_branch_and_history_comes_back() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.gdb(
        "tally.c:18",
        &[
            "set var total = 3",
            "print total",
            "stepi",
            "reverse-stepi",
            "reverse-stepi",
            "print total",
            "continue",
            "why where",
            "why rollback",
            "print total",
            "continue",
        ],
    );
    in_order(
        &said,
        &["$1 = 3", "$2 = 50", "it exited with status 0", "back in history", "$3 = 50", "SIGSEGV"],
    );
    for alteration in ["why switch tally.c:18", "why skip tally.c:18", "why set tally.c:18 total=1"]
    {
        let said = place.gdb("start", &[alteration, "continue", "why rollback", "continue"]);
        in_order(&said, &["in a what-if branch", "it exited with status 0", "back in", "SIGSEGV"]);
    }
}

// F-001-46
#[test]
fn a_run_of_threads_can_be_changed_too() {
    let place = Place::new();
    place.record("team", THREADS, &["-O1", "-pthread"]);
    let said = place.gdb(
        "add#300",
        &[
            "set var shared = 1000000",
            "stepi",
            "continue",
            "print shared > 1000000",
            "why rollback",
            "print shared < 2000",
        ],
    );
    in_order(&said, &["it exited with status 0", "$1 = 1", "$2 = 1"]);
}

// F-001-01, F-001-02: all instances.
#[test]
fn all_instances_are_switched_and_skipped_in_a_branch() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    // Without `i % 2`, the even ones are added: 2 * (0 + 2 + 4 + 6 + 8).
    let said = place.told(
        &["debug", "--plain"],
        "why switch tally.c:11#all\nbreak tally.c:17\nc\nprint total\nrc\nc\nprint total\n\
         rollback\nc\nprint total\n",
    );
    in_order(&said, &["whenever it comes by", "what-if", ") 40\n", ") 40\n", "history", ") 50\n"]);
    let said = place.told(
        &["debug", "--plain"],
        "why skip tally.c:10#all\nbreak tally.c:17\nc\nprint other\nprint total\n",
    );
    in_order(&said, &["whenever it comes by", ") 0\n", ") 50\n"]);
    let said = place.gdb(
        "start",
        &["why switch tally.c:11#all", "break tally.c:17", "continue", "print total"],
    );
    in_order(&said, &["whenever it comes by", "$1 = 40"]);
}
