//! Every way to write a position or a criterion.

use crate::answers::SUM;
use crate::support::{Bench, O0};

/// Takes a byte from its input, a file, an argument and the environment, and
/// writes them to stdout, stderr and a file.
const BYTES: &str = r#"#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char in[4] = {0}, file[4] = {0};
    read(0, in, 3);
    int fd = open("data", O_RDONLY);
    read(fd, file, 3);
    char sum = in[1];
    char from_file = file[2];
    char argument = argv[1][1];
    char variable = getenv("COLOUR")[2];
    printf("%c%c\nx%c%c\n", sum, from_file, argument, variable);
    int to = open("result", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char both[2] = {sum, argument};
    write(to, both, 2);
    fprintf(stderr, "%c\n", variable);
    return 0;
}
"#;

fn bytes() -> Bench {
    let bench = Bench::new("b.c", BYTES);
    std::fs::write(bench.path("data"), "pqr").unwrap();
    bench.compile(O0);
    assert_eq!(bench.record(&["xyz"], "abc"), 0);
    bench
}

#[test]
fn output_is_what_defined_the_byte() {
    let bench = bytes();
    let first = bench.lines(&["slice", "output:0"]);
    assert!(first.contains(&11) && !first.contains(&12) && !first.contains(&13), "{first:?}");
    let second = bench.lines(&["slice", "output:1"]);
    assert!(second.contains(&12) && !second.contains(&13), "{second:?}");
    let in_line = bench.lines(&["slice", "output:line:2", "--thin"]);
    assert!(!in_line.contains(&11) && !in_line.contains(&13), "an x of the format: {in_line:?}");
    let err = bench.lines(&["slice", "stderr:0"]);
    assert!(err.contains(&14) && err.contains(&19) && !err.contains(&11), "{err:?}");
    assert_eq!(bench.lines(&["slice", "file:result:1", "--data"]), [6, 13, 17]);
}

#[test]
fn what_came_from_outside_is_named() {
    let bench = bytes();
    let slice = bench.json(&["slice", "output:1"]);
    let origins = slice["origins"].as_array().unwrap();
    let file = origins.iter().find(|o| o["from"].as_str().unwrap().ends_with("data"));
    let file = file.unwrap_or_else(|| panic!("{origins:?}"));
    assert_eq!((&file["start"], &file["end"]), (&2.into(), &3.into()));
}

/// F-002-27: forward from a byte of input, a file, an argument, the environment.
#[test]
fn input_is_followed_forward() {
    let bench = bytes();
    for (position, line, others) in [
        ("input:1", 11, [12, 13, 14]),
        ("input:data:2", 12, [11, 13, 14]),
        ("argv:1:1", 13, [11, 12, 14]),
        ("env:COLOUR:2", 14, [11, 12, 13]),
    ] {
        let lines = bench.lines(&["slice", position, "--forward", "--data"]);
        assert!(lines.contains(&line), "{position}: {lines:?}");
        assert!(others.iter().all(|o| !lines.contains(o)), "{position}: {lines:?}");
    }
}

/// The number of instructions before a position.
fn number(bench: &Bench, position: &str) -> u64 {
    let path = bench.json(&["path", "--around", position]);
    let steps = path.as_array().unwrap();
    let here = steps.iter().find(|s| s["here"] == true);
    here.unwrap_or_else(|| panic!("{position}: {steps:?}"))["number"].as_u64().unwrap()
}

#[test]
fn executions_are_counted_from_both_ends() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    let at = |position: &str| number(&bench, position);
    assert_eq!(at("f.c:18"), at("f.c:18#3"));
    assert_eq!(at("f.c:18#last"), at("f.c:18#-1"));
    assert_eq!(at("f.c:18#first"), at("f.c:18#1"));
    assert_eq!(at("f.c:18#-3"), at("f.c:18#1"));
    assert!(at("f.c:18#1") < at("f.c:18#2") && at("f.c:18#2") < at("f.c:18#3"));
    assert_eq!(at("f.c:18#2"), at("f.c:18#2.1"));
    assert_eq!(at(&format!("@{}", at("f.c:18#2"))), at("f.c:18#2"));
    assert_eq!(at("weigh#2"), at("f.c:6#2"));
    assert!(at("f.c:20") < at("exit"));
    let steps = bench.json(&["path", "--around", "start", "--before", "0", "--after", "1"]);
    assert_eq!(steps[0]["position"], "f.c:11", "what follows the start");
}

#[test]
fn an_instruction_is_named_by_its_address() {
    let bench = Bench::ran("f.c", SUM, &["-O0", "-s"], &[]);
    let slice = bench.json(&["slice"]);
    let line = &slice["lines"][0];
    let position = line["latest"][0]["position"].as_str().unwrap();
    assert!(position.starts_with("0x"), "{position}");
    let again = bench.json(&["slice", position]);
    assert_eq!(again["lines"][0]["address"], line["address"]);
}

/// F-001-04: a variable, an element, what a pointer leads to, a register, memory.
#[test]
fn a_criterion_names_what_is_meant() {
    let source = "#include <stdio.h>\n\nstruct pair { int a, b; };\n\nint main(void) {\n    \
                  struct pair two;\n    two.a = 5;\n    two.b = 6;\n    struct pair *p = &two;\n    \
                  printf(\"%d %p\\n\", p->b, (void *)p);\n    return 0;\n}\n";
    let bench = Bench::ran("p.c", source, O0, &[]);
    assert_eq!(bench.lines(&["slice", "p.c:10:two.a"]), [7]);
    assert_eq!(bench.lines(&["slice", "p.c:10:p->b"]), [8]);
    assert_eq!(bench.lines(&["slice", "p.c:10:*p"]), [7, 8]);
    assert_eq!(bench.lines(&["slice", "p.c:10:p"]), [9]);
    let values = bench.json(&["values", "p.c:10", "p"]);
    let address = values["shown"][0]["values"][0]["value"].as_str().unwrap();
    let address = address.split_whitespace().next().unwrap();
    let memory = format!("mem:{address}+4@p.c:10");
    assert_eq!(bench.lines(&["slice", &memory]), [7]);
    let register = bench.json(&["slice", "p.c:10#1.2:$rax"]);
    assert!(!register["lines"].as_array().unwrap().is_empty());
}
