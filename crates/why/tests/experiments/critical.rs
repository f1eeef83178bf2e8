//! Searches for critical predicates, on programs with known faults.

use crate::lab::Lab;
use serde_json::Value;

#[path = "../../../../corpus/predicates/cases.rs"]
mod cases;

use cases::Case;

// F-003-28 and 29 in miniature, F-002-31
#[test]
fn each_of_the_papers_faults_has_its_critical_predicate() {
    for case in &Case::all() {
        let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
        for level in ["-O0", "-O2"] {
            let right = Lab::of_corpus(&case.name, &[level, "-DFIXED"]).native(&args, &case.input);
            let lab = Lab::of_corpus(&case.name, &[level]);
            std::fs::write(lab.path("right"), right).unwrap();
            lab.record(&args, &case.input);
            let oracle = case.oracle();
            let all = lab.json(&[&["critical", "--all"], oracle].concat());
            let source = std::fs::read_to_string(lab.path("prog.c")).unwrap();
            let wanted = format!("prog.c:{}", case.line_in(&source));
            let found = positions(&all);
            let there = found
                .iter()
                .any(|p| p.split(['#', '.']).collect::<Vec<_>>()[..2].join(".") == wanted);
            assert!(there, "{} {level}: {wanted} is not in {found:?}", case.name);
            for order in ["prior", "lefs"] {
                let first = lab.json(&[&["critical", "--order", order], oracle].concat());
                assert_eq!(first["critical"].as_array().unwrap().len(), 1);
            }
            let unserved: u64 =
                all["unserved"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            let trials = all["trials"].as_u64().unwrap();
            assert!(unserved * 50 <= trials, "{}: {unserved} of {trials} unserved", case.name);
        }
    }
}

#[test]
fn a_status_that_is_not_0_is_a_failure_if_nothing_else_is_expected() {
    let source = r#"
int main(int argc, char **argv) {
    if (argc < 3)
        return 4;
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let found = lab.json(&["critical"]);
    assert_eq!(positions(&found).len(), 1, "{found}");
}

fn positions(report: &Value) -> Vec<String> {
    let all = report["critical"].as_array().unwrap().iter();
    all.map(|c| c["position"].as_str().unwrap().to_owned()).collect()
}

// F-003-12: the fault is early, and many branches that do not matter come after it.
#[test]
fn prior_needs_few_trials_where_lefs_needs_many() {
    let source = r#"
#include <stdio.h>
static int noise(int n) {
    volatile int s = 0;
    for (int i = 0; i < n; i++)
        if (i % 3)
            s += i;
    return s;
}
int main(int argc, char **argv) {
    int factor = 2;
    if (argc < 5)
        factor = 3;
    noise(3000);
    printf("%d\n", factor * 7);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let prior = lab.json(&["critical", "--expect-text", "14\\n"]);
    let lefs = lab.json(&["critical", "--expect-text", "14\\n", "--order", "lefs"]);
    for report in [&prior, &lefs] {
        assert_eq!(positions(report), ["prog.c:12"]);
    }
    assert!(prior["trials"].as_u64() <= Some(10), "{}", prior["trials"]);
    assert!(lefs["trials"].as_u64() > Some(6000), "{}", lefs["trials"]);
    assert!(prior["order"].as_str().unwrap().contains("backward slice"));
}

// F-003-22
#[test]
fn a_fault_in_computed_data_has_no_critical_predicate() {
    let source = r#"
#include <stdio.h>
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += 10;
    printf("%d\n", sum * 3);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let out = lab.why(&["critical", "--expect-text", "100\\n"]);
    assert_eq!(out.status.code(), Some(1));
    let report = lab.json(&["critical"]);
    assert_eq!(report["trials"], report["predicates"]);
    assert_eq!(positions(&report), [""; 0]);
}

// F-003-33
#[test]
fn two_switches_are_found_when_one_does_not_help() {
    let source = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    int a = 1, b = 1;
    if (argc < 5)
        a = 0;
    if (argc < 6)
        b = 0;
    for (int i = 0; i < 20; i++)
        if (i == 100)
            puts("never");
    printf("%d\n%d\n", a, b);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let report = lab.json(&["critical", "--expect-text", "1\\n1\\n", "--pairs"]);
    assert_eq!(positions(&report), [""; 0]);
    let pair = report["pair"].as_array().unwrap();
    assert_eq!(pair[0]["position"], "prog.c:5");
    assert_eq!(pair[1]["position"], "prog.c:7");
}

// F-003-06
#[test]
fn jumps_through_tables_are_no_candidates() {
    let source = r#"
#include <stdio.h>
static int pick(int x) {
    switch (x) {
    case 0: return 5;
    case 1: return 9;
    case 2: return 2;
    case 3: return 8;
    case 4: return 1;
    case 5: return 7;
    }
    return 0;
}
int main(int argc, char **argv) {
    printf("%d\n", pick(argc + 1));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let report = lab.json(&["critical", "--expect-text", "0\\n", "--all"]);
    assert_eq!(report["predicates"], 1, "the check of the range, not the jump");
    assert_eq!(positions(&report), ["prog.c:4"]);
}

// F-003-30, F-003-32
#[test]
fn a_search_leaves_no_trace_and_its_answer_does_not_depend_on_the_number_of_jobs() {
    let lab = Lab::of_corpus("lister", &["-O0"]);
    lab.record(&["-t"], &Case::all()[5].input);
    let search = ["critical", "--expect-text", "nothing", "--all"];
    let reports: Vec<Value> = ["1", "2", "5"]
        .iter()
        .map(|jobs| {
            let mut report = lab.json(&[&search[..], &["--jobs", jobs]].concat());
            report["seconds"] = Value::Null;
            report
        })
        .collect();
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2]);
}

// F-003-27
#[test]
fn without_debug_information_branches_are_named_by_address() {
    let lab = Lab::of_corpus("lister", &["-O0", "-g0"]);
    let right =
        Lab::of_corpus("lister", &["-O0", "-DFIXED"]).native(&["-t"], &Case::all()[5].input);
    std::fs::write(lab.path("right"), right).unwrap();
    lab.record(&["-t"], &Case::all()[5].input);
    let bare = lab.json(&["critical", "--expect", "right", "--all"]);
    let full = Lab::of_corpus("lister", &["-O0"]);
    std::fs::copy(lab.path("right"), full.path("right")).unwrap();
    full.record(&["-t"], &Case::all()[5].input);
    let full = full.json(&["critical", "--expect", "right", "--all"]);
    assert_eq!(bare["critical"][0]["address"], full["critical"][0]["address"]);
    assert_eq!(bare["critical"][0]["instruction"], full["critical"][0]["instruction"]);
}

#[test]
fn what_json_says_is_what_the_documentation_promises() {
    let lab = Lab::of_corpus("calculator", &["-O0"]);
    lab.record(&[], &Case::all()[4].input);
    let promise = crate::promises::schema("critical");
    let found = lab.json(&["critical", "--no-crash", "--delta", "input:4..6"]);
    assert_eq!(crate::promises::complaint(&promise, &found), None);
    assert!(found["order"].as_str().unwrap().contains("chop"));
    let promise = crate::promises::schema("what-if");
    for words in [["switch", "prog.c:81#9"], ["skip", "prog.c:81"]] {
        let answer = lab.json(&["what-if", words[0], words[1]]);
        assert_eq!(crate::promises::complaint(&promise, &answer), None);
    }
}
