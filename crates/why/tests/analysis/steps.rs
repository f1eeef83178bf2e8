//! What `why deps` and criteria of variables say where compilers and libraries stand between.

use crate::support::{Bench, O0};

/// The sentence of `why deps`, in one line.
fn sentence(bench: &Bench, position: &str) -> String {
    let text = bench.text(&["deps", position]);
    text.split("\n\n").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

const FILE: &str = r#"#include <stdio.h>
int main(void) {
    int a = 0;
    FILE *f = fopen("kept", "w");
    fputs("15\n", f);
    fclose(f);
    f = fopen("kept", "r");
    fscanf(f, "%d", &a);
    int w = a + 1;
    printf("%d\n", w);
    return 0;
}
"#;

#[test]
fn what_a_library_gave_to_another_line_is_that_line_s() {
    let bench = Bench::ran("file.c", FILE, O0, &[]);
    let said = sentence(&bench, "file.c:9");
    assert_eq!(said, "w = 16 at file.c:9 ← a = 15 (file.c:8)");
}

const MOVED: &str = r#"#include <cstdio>
#include <stdexcept>
struct Square {
    int s;
    __attribute__((noinline)) int area() const {
        if (s < 0)
            throw std::invalid_argument("negative side");
        return s * s;
    }
};
int main(int argc, char **) {
    Square squares[] = {{argc + 1}, {-argc}};
    int sum = 0;
    for (const Square &square : squares) {
        try {
            sum += square.area();
        } catch (const std::exception &) {
            sum += 100;
        }
    }
    std::printf("%d\n", sum);
}
"#;

#[test]
fn a_condition_whose_body_was_moved_away_is_not_said_to_be_what_it_was_not() {
    for level in ["-O0", "-O1", "-O2"] {
        let bench = Bench::ran("moved.cpp", MOVED, &["-g", level], &[]);
        let (right, thrown) = (sentence(&bench, "moved.cpp:8"), sentence(&bench, "moved.cpp:7#1"));
        assert!(right.contains("moved.cpp:6") && !right.contains("was true"), "{level}: {right}");
        assert!(
            thrown.contains("moved.cpp:6") && !thrown.contains("was false"),
            "{level}: {thrown}"
        );
    }
}

const CALLS: &str = r#"#include <stdio.h>
int f(int n) {
    int k = n * 2;
    return k;
}
int main(void) {
    int a = 3, b = 4;
    int t = f(a);
    t += f(b);
    printf("%d\n", t);
    return 0;
}
"#;

#[test]
fn a_parameter_where_a_function_begins_is_what_this_call_gave() {
    for level in ["-O0", "-O1"] {
        let bench = Bench::ran("calls.c", CALLS, &["-g", level, "-fno-inline"], &[]);
        for (position, line, other) in [("f#1:n", 8, 9), ("f#2:n", 9, 8)] {
            let lines = crate::support::lines_of(&bench.json(&["slice", "--data", position]));
            let own = lines.contains(&line) || level != "-O0";
            assert!(own && !lines.contains(&other), "{level} {position}: {lines:?}");
        }
    }
}

const TWICE: &str = r#"#include <stdio.h>
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += i;
    for (int i = 0; i < 2; i++)
        sum += i;
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn the_head_of_a_loop_shows_its_own_variable_when_another_loop_follows() {
    let bench = Bench::ran("twice.c", TWICE, O0, &[]);
    let text = bench.text(&["values", "twice.c:4", "i"]);
    let seen: Vec<&str> = text.lines().map(|l| l.rsplit_once(" = ").unwrap().1).collect();
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5"]);
    assert!(sentence(&bench, "twice.c:4#6").starts_with("i = 5 at twice.c:4#6"));
}

#[test]
fn a_byte_or_line_that_there_cannot_be_is_no_function() {
    let bench = Bench::ran("calls.c", CALLS, O0, &[]);
    for position in ["output:-1", "output:line:0", "stderr:x", "input:-3"] {
        let said = bench.refusal(&["slice", position], 2);
        assert!(said.contains("it names no byte"), "{position}: {said}");
    }
    let said = bench.refusal(&["slice", "calls.c"], 2);
    assert!(said.contains("calls.c:LINE"), "{said}");
}

const ONE_LINE: &str = r#"#include <stdio.h>
int main(void) {
    int j = 0, sum = 0;
    for (int i = 0; i < 3; i++) j = i;
    for (int i = 0; i < 3; i++)
        sum += i;
    printf("%d %d\n", j, sum);
    return 0;
}
"#;

/// A loop's head is entered from above and from below, by instructions of its own each.
#[test]
fn executions_that_have_no_instruction_in_common_are_all_counted() {
    let bench = Bench::ran("one.c", ONE_LINE, O0, &[]);
    for (criterion, number, of, seen) in [
        ("one.c:4#2:i", 4, 4, ["one.c:4#2", "one.c:4#1"]),
        ("one.c:5#2:i", 5, 4, ["one.c:5#2", "one.c:5#1"]),
    ] {
        let slice = bench.json(&["slice", "--data", criterion]);
        let lines = slice["lines"].as_array().unwrap();
        let line = lines.iter().find(|l| l["line"] == number).unwrap_or_else(|| panic!("{slice}"));
        assert_eq!((&line["instances"], &line["executions"]), (&2.into(), &of.into()), "{slice}");
        let latest = line["latest"].as_array().unwrap();
        let positions: Vec<&str> = latest.iter().map(|e| e["position"].as_str().unwrap()).collect();
        assert_eq!(positions, seen, "{slice}");
        assert_eq!(latest[0]["values"][0]["value"], "1", "{slice}");
    }
}

#[test]
fn an_empty_answer_says_so() {
    let bench = Bench::ran("calls.c", CALLS, O0, &[]);
    let said = bench.ask(&["chop", "calls.c:10", "calls.c:3#1"]);
    assert_eq!(said.status, 1);
    assert!(
        said.out.contains("Nothing that followed from the first led to the second."),
        "{}",
        said.out
    );
}

const FOLDED: &str = r#"#include <stdio.h>
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += i;
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn who_answers_for_a_line_without_code_is_said() {
    let bench = Bench::ran("folded.c", FOLDED, &["-g", "-O1"], &[]);
    for words in [["values", "folded.c:5"], ["deps", "folded.c:5"], ["slice", "folded.c:5"]] {
        let said = bench.ask(&words);
        assert!(said.err.contains("folded.c:5 has no code of its own"), "{words:?}: {}", said.err);
        assert!(said.err.contains("to folded.c:7"), "{words:?}: {}", said.err);
    }
    assert_eq!(bench.ask(&["values", "folded.c:7"]).err, "");
}
