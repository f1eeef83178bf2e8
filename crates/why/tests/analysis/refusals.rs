//! What cannot be answered is refused in one sentence, with a status that tells
//! wrong words (2) from nothing found (1) and our own failure (125).

use crate::answers::SUM;
use crate::support::{Bench, O0};

#[test]
fn words_that_are_no_position_are_usage() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    for verb in ["slice", "deps"] {
        for word in ["f.c:1x", "f.c:15#", "f.c:15#0", "@x", "output:", "mem:12"] {
            let said = bench.refusal(&[verb, word], 2);
            assert!(said.contains("is not a position"), "{word}: {said}");
        }
    }
    assert!(bench.refusal(&["path", "--around", "f.c:#"], 2).contains("is not a position"));
    assert!(bench.refusal(&["slice", "--from", "@", "exit"], 2).contains("`@` needs a number"));
    assert!(bench.refusal(&["values", "weigh"], 2).contains("FILE:LINE"));
    assert!(bench.refusal(&["slice", "f.c:18:$nosuch"], 2).contains("register"));
    assert!(bench.refusal(&["slice", "f.c:18:nosuch"], 2).contains("nosuch"));
    assert!(bench.refusal(&["slice", "f.c:18:total +"], 2).contains("total"));
    assert!(bench.refusal(&["slice", "nosuch"], 2).contains("nosuch"));
    assert!(bench.refusal(&["slice", "nosuch", "exit"], 2).contains("recording"));
    assert!(bench.refusal(&["slice", "other.c:3"], 2).contains("other.c"));
}

#[test]
fn options_that_are_not_understood_are_usage() {
    let bench = Bench::new("f.c", SUM);
    for words in [
        &["slice", "--forward", "--both"][..],
        &["slice", "--relevant", "--forward"],
        &["slice", "--depth", "x"],
        &["chop", "exit"],
        &["values"],
        &["last-write"],
    ] {
        assert_eq!(bench.ask(words).status, 2, "{words:?}");
    }
}

#[test]
fn what_never_happened_is_nothing_found() {
    let source = "#include <stdio.h>\nint main(int argc, char **argv) {\n    if (argc > 5)\n        \
                  puts(\"many\");\n    puts(\"few\");\n    return 0;\n}\n";
    let bench = Bench::ran("n.c", source, O0, &[]);
    let said = bench.refusal(&["slice", "n.c:4"], 1);
    assert_eq!(said, "n.c:4 was executed never; nearby, lines 2, 3, 5, 6 were");
    assert_eq!(bench.refusal(&["values", "n.c:4"], 1), said);
    assert!(bench.refusal(&["slice", "n.c:5#2"], 1).contains("once"));
    assert!(bench.refusal(&["slice", "crash"], 1).contains("did not crash"));
    assert!(bench.refusal(&["slice", "@999999999"], 1).contains("past the end"));
    assert!(bench.refusal(&["slice", "output:99"], 1).contains("4 bytes"));
    assert!(bench.refusal(&["slice", "output:line:9"], 1).contains("1 line"));
    assert!(bench.refusal(&["slice", "input:0"], 1).contains("did not read"));
    assert!(bench.refusal(&["slice", "argv:7:0"], 1).contains("argument 7"));
    assert!(bench.refusal(&["slice", "file:nosuch:0"], 1).contains("nosuch"));
    assert!(bench.refusal(&["slice", "n.c:5#1.99"], 1).contains("part 99"));
}

#[test]
fn a_line_without_code_says_which_have_some() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    let said = bench.refusal(&["slice", "f.c:3"], 2);
    assert!(said.contains("no code") && said.contains('6'), "{said}");
}

#[test]
fn a_missing_recording_is_said_to_be_missing() {
    let bench = Bench::new("f.c", SUM);
    for verb in ["slice", "deps", "path", "trace", "slices"] {
        let said = bench.refusal(&[verb], 125);
        assert!(said.contains("there is no recording yet"), "{said}");
        let said = bench.refusal(&[verb, "-r", "nosuch"], 125);
        assert!(said.contains("there is no recording \"nosuch\""), "{said}");
    }
}

#[test]
fn a_path_that_leads_to_no_recording_is_said_to_lead_to_none() {
    let bench = Bench::new("f.c", SUM);
    for words in [&["slice", "some/where"][..], &["values", "some/where", "f.c:8"]] {
        let said = bench.refusal(words, 125);
        assert!(said.starts_with("there is no recording \"some/where\""), "{said}");
    }
    bench.compile(O0);
    bench.record(&[], "");
    let said = bench.refusal(&["slice", "some/where"], 2);
    assert_eq!(said, "some/where is neither a recording nor a function of the program");
}

#[test]
fn a_stripped_program_is_said_to_have_no_lines() {
    let bench = Bench::ran("f.c", SUM, &["-O0", "-s"], &[]);
    let said = bench.refusal(&["slice", "f.c:18"], 2);
    assert!(said.contains("prog") && said.contains("compile it with -g"), "{said}");
    let said = bench.refusal(&["values", "f.c:18"], 2);
    assert!(said.contains("no debug information"), "{said}");
}

#[test]
fn an_ambiguous_file_lists_the_candidates() {
    let bench = Bench::new(
        "main.c",
        "int one(void);\nint two(void);\nint main(void) {\n    return one() + two();\n}\n",
    );
    for (folder, name) in [("a", "one"), ("b", "two")] {
        std::fs::create_dir(bench.path(folder)).unwrap();
        let source = format!("int {name}(void) {{\n    return 1;\n}}\n");
        std::fs::write(bench.path(folder).join("same.c"), source).unwrap();
    }
    bench.tool("gcc", &["-g", "-O0", "-o", "prog", "main.c", "a/same.c", "b/same.c"]);
    assert_eq!(bench.record(&[], ""), 2);
    let said = bench.refusal(&["slice", "same.c:2"], 2);
    assert!(said.contains("a/same.c") && said.contains("b/same.c"), "{said}");
    let slice = bench.json(&["slice", "b/same.c:2"]);
    assert_eq!(slice["lines"][0]["function"], "two");
}

#[test]
fn what_is_in_the_way_and_what_is_no_recording_is_named() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    let taken = bench.path("taken.why");
    std::fs::write(&taken, "mine").expect("written");
    let said = bench.refusal(&["pack", "-o", &taken.to_string_lossy()], 125);
    assert!(said.contains("exists already") && said.contains("name another file"), "{said}");
    assert_eq!(std::fs::read(&taken).expect("still there"), b"mine");
    let folder = bench.folder().join("empty");
    std::fs::create_dir(&folder).expect("a folder");
    let name = folder.to_string_lossy().into_owned();
    for (words, status) in [(["replay", &name], 125), (["explain", &name], 2)] {
        let said = bench.refusal(&words, status);
        assert!(said.contains("is not a recording"), "{said}");
    }
}
