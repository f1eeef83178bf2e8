//! `why deps`, `values`, `path`, `last-write` and `trace`.

use crate::answers::SUM;
use crate::support::{Bench, O0};

fn sum() -> Bench {
    Bench::ran("f.c", SUM, O0, &[])
}

#[test]
fn one_step_back_is_a_sentence() {
    let text = sum().text(&["deps", "f.c:18#2"]);
    let sentence = text.split("\n\n").next().unwrap().replace("\n  ", " ");
    assert_eq!(
        sentence,
        "total = 10 at f.c:18#2 ← i = 2 (f.c:16#3), total (f.c:18#1) and \
         table[i] = 6 (f.c:15#3); runs because f.c:17#3 was true"
    );
}

#[test]
fn one_step_back_from_output_is_the_call_that_made_it() {
    let bench = sum();
    for words in [&["deps", "output:0"][..], &["deps"]] {
        let deps = bench.json(words);
        assert_eq!(deps["position"], "f.c:19", "{deps}");
        let sources: Vec<&str> = deps["dependences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["position"].as_str().unwrap())
            .collect();
        assert!(sources.contains(&"f.c:18#3"), "{deps}");
    }
}

#[test]
fn one_step_back_names_the_other_thread() {
    let bench = Bench::ran("t.c", crate::rows::THREADS, &["-g", "-O0", "-pthread"], &[]);
    let deps = bench.json(&["deps", "t.c:13"]);
    let other = deps["dependences"].as_array().unwrap().iter().find(|d| d["what"] == "k");
    let other = other.unwrap_or_else(|| panic!("{deps}"));
    assert_eq!(other["position"], "t.c:6");
    assert_ne!(other["thread"], deps["thread"]);
    let text = bench.text(&["deps", "t.c:13"]);
    assert!(text.contains("(t.c:6, thread "), "{text}");
}

/// F-000-01: per-instance values equal those that gdb sees.
#[test]
fn values_are_those_that_a_debugger_sees() {
    for flags in [&["-O0", "-gdwarf-4"], &["-O0", "-gdwarf-5"]] {
        let bench = Bench::ran("f.c", SUM, flags, &[]);
        for (line, variable) in [("f.c:8", "doubled"), ("f.c:17", "i"), ("f.c:17", "table[i]")] {
            let shown = bench.json(&["values", line, variable]);
            let ours: Vec<String> = shown["shown"]
                .as_array()
                .unwrap()
                .iter()
                .map(|s| s["values"][0]["value"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ours, debugger(&bench, line, variable), "{line} {variable}");
            assert_eq!(ours.len(), 4);
        }
    }
}

/// The values of an expression each time gdb stops at a line.
fn debugger(bench: &Bench, line: &str, variable: &str) -> Vec<String> {
    let stop = format!("dprintf {line}, \"<%d>\\n\", {variable}");
    let words = ["-batch", "-nx", "-ex", &stop, "-ex", "run", "./prog"];
    let out = bench.tool("gdb", &words);
    let told = out.lines().filter_map(|l| l.strip_prefix('<')?.strip_suffix('>'));
    told.map(str::to_owned).collect()
}

#[test]
fn values_are_shown_for_some_executions() {
    let bench = sum();
    let all = bench.json(&["values", "f.c:18"]);
    assert_eq!(all["executions"], 3);
    let totals = bench.text(&["values", "f.c:18", "total"]);
    let totals: Vec<&str> = totals.lines().map(|l| l.rsplit_once(" = ").unwrap().1).collect();
    assert_eq!(totals, ["4", "10", "18"], "behind the line, which changes it");
    assert_eq!(bench.text(&["values", "f.c:18", "i", "--first", "1"]).lines().count(), 2);
    let last = bench.text(&["values", "f.c:18", "i", "--last", "1"]);
    assert!(last.contains("f.c:18#3") && !last.contains("f.c:18#2"), "{last}");
}

/// A part of what was asked for would be no answer.
#[test]
fn an_expression_that_means_nothing_has_no_value() {
    let bench = sum();
    for (expression, why) in [("table[i", "cannot be read at"), ("total.size", "does not apply")] {
        let said = bench.refusal(&["values", "f.c:18", expression], 2);
        assert!(said.contains(why), "{said}");
    }
}

/// F-004-01: the instance trace of Fig. 1, six tuples: which, what is defined, its
/// value.
#[test]
fn a_path_is_the_trace_of_instances() {
    let source = r#"#include <stdio.h>
int main(int argc, char **argv) {
    int y, t, s;
    int x = argc;
    y = x << 1;
    if (x > 0)
        t = x << 2;
    else
        t = 0;
    s = y << 1;
    printf("%d\n", s + t > 0);
}
"#;
    let bench = Bench::ran("fig.c", source, O0, &[]);
    let path = bench.json(&["path", "--around", "fig.c:4", "--before", "0", "--after", "5"]);
    let steps: Vec<&str> =
        path.as_array().unwrap().iter().map(|s| s["position"].as_str().unwrap()).collect();
    assert_eq!(steps, ["fig.c:4", "fig.c:5", "fig.c:6", "fig.c:7", "fig.c:10", "fig.c:11"]);
    for (line, name, value) in [
        ("fig.c:4", "x", "1"),
        ("fig.c:5", "y", "2"),
        ("fig.c:7", "t", "4"),
        ("fig.c:10", "s", "4"),
    ] {
        let values = bench.json(&["values", line, name]);
        assert_eq!(values["shown"][0]["values"][0]["value"], value, "{line}");
        assert_eq!(values["shown"][0]["values"][0]["assigned"], true, "{line}");
    }
}

#[test]
fn a_path_goes_both_ways_from_a_position() {
    let bench = sum();
    let text = bench.text(&["path", "--around", "f.c:18#1", "--before", "2", "--after", "1"]);
    let code: Vec<&str> = text.lines().collect();
    assert_eq!(code.len(), 5, "{text}");
    assert_eq!(code[0], "main");
    assert!(code[1].contains("f.c:16#2") && code[2].contains("f.c:17#2"), "{text}");
    assert!(code[3].starts_with("> f.c:18#1") && code[4].contains("f.c:16#3"), "{text}");
    let end = bench.json(&["path"]);
    assert_eq!(end.as_array().unwrap().len(), 21);
}

#[test]
fn the_last_write_is_found_backward_and_the_next_forward() {
    let bench = sum();
    let written = |words: &[&str]| {
        let found = bench.json(&[&["last-write"], words].concat());
        found[0]["position"].as_str().unwrap().to_owned()
    };
    assert_eq!(written(&["total", "--before", "f.c:19"]), "f.c:18#3");
    assert_eq!(written(&["total", "--before", "f.c:18#2"]), "f.c:18#1");
    assert_eq!(written(&["total", "--before", "f.c:14#1"]), "f.c:12");
    assert_eq!(written(&["total", "--after", "f.c:16#1"]), "f.c:18#1");
    assert_eq!(written(&["table[2]", "--before", "f.c:19"]), "f.c:15#3");
    let text = bench.text(&["last-write", "total", "--before", "f.c:19"]);
    assert!(text.starts_with("f.c:18#3 in main (@") && text.contains("total = 18"), "{text}");
    let never = bench.ask(&["last-write", "table[3]", "--before", "f.c:12"]);
    assert_eq!(never.status, 1);
    assert!(never.out.contains("nothing wrote table[3] before f.c:12"), "{}", never.out);
}

#[test]
fn what_was_written_on_the_other_side_only_is_said_to_be() {
    let source = "int total;\nint main(void) {\n    int i;\n    for (i = 0; i < 3; i++)\n        \
                  total += i;\n    return 0;\n}\n";
    let bench = Bench::ran("t.c", source, O0, &[]);
    let said = |side: &str, position: &str| {
        let said = bench.ask(&["last-write", "total", side, position]);
        assert_eq!(said.status, 1);
        said.out.replace("\n  ", " ")
    };
    assert_eq!(
        said("--before", "t.c:2"),
        "nothing wrote total before t.c:2; from then on, it was written 3 times, first at t.c:5#1\n"
    );
    assert_eq!(
        said("--after", "t.c:6"),
        "nothing wrote total after t.c:6; before, it was written 3 times, last at t.c:5#3\n"
    );
}

#[test]
fn an_address_has_a_last_write_too() {
    let bench = sum();
    let value = bench.json(&["values", "f.c:19", "&table[1]"]);
    let address = value["shown"][0]["values"][0]["value"].as_str().unwrap();
    let address = address.split_whitespace().next().unwrap();
    let found = bench.json(&["last-write", &format!("{address}+4")]);
    assert_eq!(found[0]["position"], "f.c:15#2");
    let said = bench.ask(&["last-write", "0x10"]);
    let nothing = "nothing wrote it: there is no memory at 0x10";
    assert_eq!((said.status, said.out.trim()), (1, nothing));
}

#[test]
fn a_trace_is_built_and_measured() {
    let bench = sum();
    let text = bench.text(&["trace"]);
    assert!(text.starts_with("instructions "), "{text}");
    let facts = bench.json(&["trace"]);
    assert_eq!(facts["threads"], 1);
    assert_eq!(facts["complete"], true);
    let counted = bench.json(&["info"]);
    assert_eq!(facts["instructions"], counted["instructions"]);
}

#[test]
fn recordings_are_named_first_or_by_option() {
    let bench = sum();
    bench.record(&["again"], "");
    let first = bench.text(&["slice", "1", "f.c:13:unrelated"]);
    assert_eq!(first, bench.text(&["slice", "-r", "1", "f.c:13:unrelated"]));
    let values = |rec: &str| bench.json(&["values", rec, "f.c:13", "unrelated"]);
    assert_eq!(values("1")["shown"][0]["values"][0]["value"], "41");
    assert_eq!(values("2")["shown"][0]["values"][0]["value"], "42");
}

#[test]
fn a_source_that_was_changed_after_the_run_is_named() {
    let bench = sum();
    let before = bench.ask(&["values", "f.c:13"]);
    assert!(!before.err.contains("was changed"), "{}", before.err);
    bench.tool("touch", &["-d", "next hour", "f.c"]);
    let after = bench.ask(&["values", "f.c:13"]);
    assert!(after.err.contains("f.c was changed after the run"), "{}", after.err);
    assert_eq!(before.out, after.out);
}

#[test]
fn a_name_does_not_mean_what_a_library_keeps_to_itself() {
    let source = "#include <stdio.h>\nstatic void one(void) { puts(\"x\"); }\n\
                  int main(void)\n{\n    one();\n    return 0;\n}\n";
    let bench = Bench::ran("f.c", source, &["-g", "-O0"], &[]);
    let said = bench.ask(&["values", "f.c:5", "one"]);
    assert!(!said.out.contains("one = 1"), "{}", said.out);
}

/// The inner loop begins where the outer one is.
const NESTED: &str = r#"int main(void) {
    int table[4] = {3, 1, 2, 0};
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            if (table[j] < table[i]) {
                int kept = table[i];
                table[i] = table[j];
                table[j] = kept;
            }
    return table[0];
}
"#;

#[test]
fn what_a_line_computes_on_its_way_is_not_what_it_came_from() {
    let bench = Bench::ran("n.c", NESTED, O0, &[]);
    let text = bench.text(&["deps", "n.c:4#1"]);
    let sentence = text.split("\n\n").next().unwrap().replace("\n  ", " ");
    assert_eq!(sentence, "j = 1 at n.c:4#1 ← i = 0 (n.c:3#1); runs because n.c:3#1 was true");
}

#[test]
fn a_sentence_names_all_that_its_list_has() {
    let bench = Bench::ran("n.c", NESTED, &["-g", "-O1"], &[]);
    let text = bench.text(&["deps", "n.c:7#1"]);
    let (sentence, list) = text.split_once("\n\n").unwrap();
    let listed: Vec<&str> = list.lines().filter_map(|l| l.trim().strip_prefix("← ")).collect();
    assert!(listed.len() > 1, "{text}");
    for line in listed {
        let position = line.split_whitespace().next().unwrap();
        assert!(sentence.contains(position), "{position}: {text}");
    }
}

/// Lines that have a condition and what it decides about.
const GUARDS: &str = r#"#include <stdio.h>
int main(int argc, char **argv) {
    int x = argc + 6;
    if (x < 0) return 1;
    if (x > 100) { return 2; }
    if (x == 7) x++;
    printf("%d\n", x);
    return 0;
}
"#;

#[test]
fn a_condition_with_its_body_in_one_line_was_what_it_was() {
    let bench = Bench::ran("guard.c", GUARDS, O0, &[]);
    for (line, why) in [
        ("guard.c:5", "guard.c:4 was false"),
        ("guard.c:6", "guard.c:5 was false"),
        ("guard.c:7", "guard.c:5 was false"),
    ] {
        let text = bench.text(&["deps", line]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(why), "{line}: {text}");
    }
}

const LOOPS: &str = r#"#include <stdio.h>
int main(void) {
    const char *s = "abc";
    int n = 0;
    for (int i = 0; s[i]; i++)
        n += s[i];
    printf("%d\n", n);
    return 0;
}
"#;

#[test]
fn the_head_of_a_loop_shows_what_it_tested_also_at_its_end() {
    let bench = Bench::ran("loop.c", LOOPS, O0, &[]);
    for (expression, expected) in
        [("i", ["0", "1", "2", "3"]), ("s[i]", ["97 'a'", "98 'b'", "99 'c'", "0 '\\0'"])]
    {
        let text = bench.text(&["values", "loop.c:5", expression]);
        let seen: Vec<&str> = text.lines().map(|l| l.rsplit_once(" = ").unwrap().1).collect();
        assert_eq!(seen, expected, "{expression}");
    }
}

#[test]
fn a_function_of_one_line_shows_its_parameters_and_variables() {
    let source = "int f(int x) { int y = x * 3; return y + 1; }\nint main(void)\n{\n    \
                  return f(2) + f(4);\n}\n";
    // One finds variables by where the frame was, the other by the frame pointer.
    for compiler in ["gcc", "clang"] {
        let bench = Bench::new("one.c", source);
        bench.tool(compiler, &["-g", "-O0", "-o", "prog", "one.c"]);
        bench.record(&[], "");
        let text = bench.text(&["values", "one.c:1"]);
        let seen: Vec<&str> = text.lines().map(|l| l.split_once("  ").unwrap().1.trim()).collect();
        assert_eq!(seen, ["x = 2, y = 6", "x = 4, y = 12"], "{compiler}");
    }
}

/// The C library has a variable of this name for itself.
#[test]
fn at_the_end_a_name_does_not_mean_what_a_library_keeps_to_itself() {
    let source = r#"
#include <stdio.h>
int main(void) {
    int current = 3;
    printf("%d\n", current);
    return 0;
}
"#;
    let bench = Bench::ran("local.c", source, O0, &[]);
    let said = bench.refusal(&["last-write", "current"], 2);
    assert!(said.contains("no variable `current`"), "{said}");
    let found = bench.text(&["last-write", "current", "--before", "local.c:6"]);
    assert!(found.contains("local.c:4"), "{found}");
}
