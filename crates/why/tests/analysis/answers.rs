//! `why slice` and `why chop` in all their kinds and forms.

use crate::support::{Bench, O0, lines_of};

/// Sums what is above 2 of a table that a function filled.
pub const SUM: &str = r#"#include <stdio.h>
#include <stdlib.h>

static int table[4];

static int weigh(int value) {
    int doubled = value * 2;
    return doubled;
}

int main(int argc, char **argv) {
    int total = 0;
    int unrelated = argc + 40;
    for (int i = 0; i < 4; i++)
        table[i] = weigh(i + 1);
    for (int i = 0; i < 4; i++)
        if (table[i] > 2)
            total += table[i];
    printf("%d\n", total);
    fprintf(stderr, "%d\n", unrelated);
    return 0;
}
"#;

fn sum() -> Bench {
    Bench::ran("f.c", SUM, O0, &["x"])
}

#[test]
fn the_last_output_is_explained_by_default() {
    for flags in [&["-O0", "-gdwarf-4"], &["-O0", "-gdwarf-5"]] {
        let bench = Bench::ran("f.c", SUM, flags, &["x"]);
        let slice = bench.json(&["slice"]);
        assert_eq!(slice["criterion"], "output:1", "the end of a line says nothing");
        assert_eq!(slice["kind"], "backward");
        assert_eq!(lines_of(&slice), [6, 7, 8, 12, 14, 15, 16, 17, 18, 19], "{flags:?}");
    }
}

#[test]
fn optimised_code_is_sliced_by_lines_too() {
    for flags in [&["-O2", "-gdwarf-4"], &["-O2", "-gdwarf-5"]] {
        let bench = Bench::ran("f.c", SUM, flags, &["x"]);
        let lines = bench.lines(&["slice"]);
        assert!(lines.contains(&19), "{flags:?}: {lines:?}");
        assert!(!lines.contains(&13) && !lines.contains(&20), "{flags:?}: {lines:?}");
    }
}

#[test]
fn a_stripped_program_is_sliced_by_instructions() {
    let bench = Bench::ran("f.c", SUM, &["-O0", "-s"], &["x"]);
    let slice = bench.json(&["slice"]);
    let lines = slice["lines"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line["line"].is_null() && line["address"].is_u64(), "{line}");
        assert!(line["code"].as_str().is_some_and(|code| !code.is_empty()), "{line}");
    }
}

#[test]
fn a_crash_is_explained_by_default() {
    let source = "int main(int argc, char **argv) {\n    int *p = 0;\n    if (argc > 1)\n        \
                  p = &argc;\n    return *p;\n}\n";
    let bench = Bench::ran("c.c", source, O0, &[]);
    let slice = bench.json(&["slice"]);
    assert_eq!(slice["criterion"], "crash");
    assert_eq!(lines_of(&slice), [2, 5]);
}

#[test]
fn the_text_has_a_header_code_and_values() {
    let text = sum().text(&["slice", "f.c:18#2:total"]);
    assert!(text.starts_with("What led to f.c:18#2:total (data, addresses, control)\n"), "{text}");
    for part in [" instructions executed, ", " in the slice (", " executed lines (", "\nmain in "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("total += table[i];"), "{text}");
    assert!(text.contains("total = 10"), "{text}");
    assert!(text.contains("\nweigh in "), "{text}");
}

/// F-001-04: one value, or all that an instance uses; the latest instance.
#[test]
fn a_criterion_asks_for_less_than_all_that_is_used() {
    let bench = sum();
    let index = bench.lines(&["slice", "f.c:18:i"]);
    assert_eq!(index, [16]);
    let total = bench.lines(&["slice", "f.c:12:total"]);
    assert_eq!(total, [12]);
    let all = bench.lines(&["slice", "f.c:18"]);
    assert_eq!(all, [6, 7, 8, 12, 14, 15, 16, 17, 18]);
    assert_eq!(bench.lines(&["slice", "f.c:18#last"]), all);
}

#[test]
fn forward_goes_to_what_followed() {
    let bench = sum();
    let forward = bench.json(&["slice", "f.c:7#4", "--forward"]);
    assert_eq!(forward["kind"], "forward");
    let lines = lines_of(&forward);
    for line in [7, 8, 15, 17, 18, 19] {
        assert!(lines.contains(&line), "{line} in {lines:?}");
    }
    assert!(!lines.contains(&12) && !lines.contains(&13), "{lines:?}");
}

#[test]
fn both_is_what_led_there_and_what_followed() {
    let bench = sum();
    let backward = bench.lines(&["slice", "f.c:15#4"]);
    let forward = bench.lines(&["slice", "f.c:15#4", "--forward"]);
    let both = bench.json(&["slice", "f.c:15#4", "--both"]);
    assert_eq!(both["kind"], "both");
    let mut union = [backward, forward].concat();
    union.sort_unstable();
    union.dedup();
    assert_eq!(lines_of(&both), union);
}

#[test]
fn kinds_follow_fewer_dependences() {
    let bench = sum();
    let full = bench.lines(&["slice", "f.c:18#2"]);
    let data = bench.lines(&["slice", "f.c:18#2", "--data"]);
    let thin = bench.lines(&["slice", "f.c:18#2:total", "--thin"]);
    assert_eq!(full, [6, 7, 8, 12, 14, 15, 16, 17, 18]);
    assert_eq!(data, [6, 7, 8, 12, 14, 15, 16, 18], "no branch: {data:?}");
    assert_eq!(thin, [6, 7, 8, 12, 14, 15, 18], "no index of an element that is used: {thin:?}");
}

#[test]
fn depth_ends_a_slice_early() {
    let bench = sum();
    let all = bench.json(&["slice", "f.c:19"]);
    let near = bench.json(&["slice", "f.c:19", "--depth", "2"]);
    let most = near["lines"].as_array().unwrap().iter().map(|l| l["distance"].as_u64().unwrap());
    assert_eq!(most.max(), Some(2));
    assert!(near["instances"].as_u64() < all["instances"].as_u64());
}

/// F-001-03: the slice contains nothing outside of the region.
#[test]
fn a_region_bounds_what_is_seen() {
    let bench = sum();
    let slice = bench.json(&["slice", "f.c:18", "--from", "f.c:16#2"]);
    let from = bench.json(&["path", "--around", "f.c:16#2"]);
    let here = from.as_array().unwrap().iter().find(|s| s["here"] == true).unwrap();
    let first = here["number"].as_u64().unwrap();
    assert_eq!(lines_of(&slice), [16, 17, 18]);
    for line in slice["lines"].as_array().unwrap() {
        for execution in line["latest"].as_array().unwrap() {
            assert!(execution["number"].as_u64().unwrap() >= first, "{line}");
        }
    }
    let until = bench.lines(&["slice", "f.c:7#4", "--forward", "--to", "f.c:16#1"]);
    assert!(until.contains(&15) && !until.contains(&18), "{until:?}");
}

/// F-001-06: dependences on the variable are gone, and with them what only they
/// led to.
#[test]
fn what_is_pruned_is_not_followed() {
    let bench = sum();
    let pruned = bench.lines(&["slice", "f.c:18", "--prune", "table"]);
    assert_eq!(pruned, [12, 16, 17, 18]);
    let index = bench.lines(&["slice", "f.c:18:i", "--prune", "rax"]);
    assert_eq!(index, [16], "a register may be named");
    assert!(bench.refusal(&["slice", "f.c:18", "--prune", "nosuch"], 2).contains("nosuch"));
}

#[test]
fn bookkeeping_is_left_out_unless_asked_for() {
    let bench = sum();
    let plain = bench.json(&["slice", "f.c:18"]);
    let all = bench.json(&["slice", "f.c:18", "--all-deps"]);
    assert!(all["instances"].as_u64() > plain["instances"].as_u64());
    assert!(all["followed"].as_str().unwrap().contains("bookkeeping"));
    let lines = lines_of(&all);
    assert!(lines_of(&plain).iter().all(|l| lines.contains(l)));
}

#[test]
fn a_chop_lies_between() {
    let bench = sum();
    let chop = bench.json(&["chop", "f.c:7#4", "f.c:19"]);
    assert_eq!(chop["kind"], "chop");
    assert_eq!(lines_of(&chop), [7, 8, 15, 17, 18, 19]);
    let none = bench.ask(&["chop", "f.c:13", "f.c:19"]);
    assert_eq!(none.status, 1, "nothing lies between: {}", none.out);
}

#[test]
fn a_graph_has_a_node_for_each_line_and_an_arrow_for_each_dependence() {
    let bench = sum();
    let dot = bench.text(&["slice", "f.c:18#1", "--dot"]);
    assert!(dot.starts_with("digraph slice {\n") && dot.ends_with("}\n"), "{dot}");
    let nodes = dot.lines().filter(|l| l.contains("[label=")).count();
    assert_eq!(nodes, bench.lines(&["slice", "f.c:18#1"]).len());
    assert!(dot.contains(" -> ") && dot.contains("[style=dashed]"), "{dot}");
}

/// F-002-36: lines are ranked by their distance from the criterion.
#[test]
fn lines_come_in_the_order_of_their_distance() {
    let slice = sum().json(&["slice", "f.c:19"]);
    let lines = slice["lines"].as_array().unwrap();
    let distances: Vec<u64> = lines.iter().map(|l| l["distance"].as_u64().unwrap()).collect();
    assert!(distances.is_sorted(), "{distances:?}");
    let rank = |line: u64| lines.iter().position(|l| l["line"] == line).unwrap();
    assert_eq!(rank(19), 0);
    assert!(rank(18) < rank(15) && rank(15) < rank(7), "{distances:?}");
}
