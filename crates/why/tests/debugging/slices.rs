//! Slices at the prompt: made, pruned, stopped at, stepped along.

use super::*;

// F-001-03 to 08, 40, 41
#[test]
fn slices_are_made_pruned_stopped_at_and_stepped_along() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.gdb(
        "crash",
        &[
            "why instance tally.c:12",
            "why slice tally.c:18:total --save sum",
            "why slices",
            "why sbreak 1 tally.c:12",
            "reverse-continue",
            "why instance tally.c:12",
            "reverse-continue",
            "why instance tally.c:12",
            "continue",
            "why instance tally.c:12",
            "delete",
            "why sprev",
            "why snext",
            "why deps tally.c:12#5",
            "why prune 1 total",
            "why region on tally.c:12#4",
            "why slice tally.c:18:total",
            "why slices --remove 2",
            "why slices",
            "why chop tally.c:12#1 tally.c:18",
        ],
    );
    in_order(
        &said,
        &[
            "tally.c:12#5",
            "slice 1 of tally.c:18:total",
            "tally.c:12",
            "saved as sum",
            "slice 1: stops at 5 executions",
            "Breakpoint",
            "tally.c:12#5",
            "tally.c:12#4",
            "tally.c:12#5",
            "slice 1, 23 of 25: tally.c:11#10",
            "i = 9",
            "slice 1, 24 of 25: tally.c:12#5",
            "total = 32",
            "without total",
            "slices see what happened from @",
            "slice 2 of",
            "slice 2 is gone",
            "slice 1 of",
        ],
    );
    assert!(!said.contains("tally.c:10\n"), "`other` is in no slice of `total`:\n{said}");
    let again = place.gdb("start", &["why slices", "why snext 1", "why snext sum"]);
    in_order(&again, &["saved as sum", "slice 1, 1 of", "slice 1, 2 of"]);
}

/// What the plain prompt says to lines of commands, without its prompts.
fn answers(place: &Place, commands: &str) -> Vec<String> {
    let said = place.told(&["debug", "--plain"], commands);
    let without = |line: &str| match line.strip_prefix("(why ") {
        Some(rest) => rest.split_once(") ").map_or("", |(_, answer)| answer).to_owned(),
        None => line.to_owned(),
    };
    said.lines().map(without).collect()
}

// F-001-07
#[test]
fn breakpoints_of_a_slice_stop_at_all_of_its_executions_and_no_others() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let make = "slice tally.c:18:total\n";
    let stops = |commands: &str| -> Vec<String> {
        let is_place = |line: &String| line.starts_with("tally.c:") && line.contains('#');
        answers(&place, commands).into_iter().filter(is_place).collect()
    };
    let met = stops(&format!("{make}goto start\nsbreak all 1\n{}", "c\n".repeat(40)));
    let along: Vec<String> =
        answers(&place, &format!("{make}goto start\n{}", "snext\n".repeat(40)))
            .iter()
            .filter_map(|line| Some(line.strip_prefix("slice 1, ")?.split_once(": ")?.1.to_owned()))
            .collect();
    assert!(along.len() >= 20, "{along:?}");
    assert_eq!(met[..along.len()], along);
    assert!(met[along.len()..].iter().all(|at| at.starts_with("tally.c:18#1")), "{met:?}");
    let chosen = stops(&format!("{make}goto start\nsbreak 1 tally.c:12\n{}", "c\n".repeat(5)));
    let wanted: Vec<String> = (1..=5).map(|n| format!("tally.c:12#{n}")).collect();
    assert_eq!(chosen, wanted);
}

// F-001-08
#[test]
fn an_instance_is_the_loop_counter() {
    let source = r#"
#include <stdio.h>
int main(void)
{
    for (int i = 1; i <= 7; i++) {
        printf("%d\n", i);
    }
    return 0;
}
"#;
    let place = Place::new();
    place.record("count", source, &["-O0"]);
    let said =
        answers(&place, &format!("break count.c:6\n{}", "c\ninstance count.c:6\np i\n".repeat(7)));
    let counted: Vec<&str> = said.iter().filter_map(|l| l.strip_prefix("count.c:6#")).collect();
    let once: Vec<String> = (1..=7).map(|n: u32| n.to_string()).collect();
    // Shown at the stop, and asked for.
    let twice: Vec<&str> = once.iter().flat_map(|n| [n.as_str(), n.as_str()]).collect();
    assert_eq!(counted, twice, "{said:?}");
    let printed: Vec<&String> = said.iter().filter(|l| l.parse::<u32>().is_ok()).collect();
    assert_eq!(printed, once.iter().collect::<Vec<_>>(), "{said:?}");
}

// F-001-13
#[test]
fn a_slice_after_a_rollback_is_that_of_a_fresh_run() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let ask = "slice tally.c:18:total\n";
    let fresh = answers(&place, ask);
    assert!(fresh.len() > 5, "{fresh:?}");
    let wandered = answers(
        &place,
        &format!(
            "goto tally.c:12#2\ncheckpoint two\nbreak tally.c:12\nc\nc\n\
             set tally.c:12#4 total=1000\nc\nc\nrollback\ndelete\nrollback 1\n\
             instance tally.c:12\n{ask}"
        ),
    );
    let at = wandered.iter().position(|l| l == "tally.c:12#2").expect("the instance is back");
    assert!(wandered[..at].iter().any(|l| l.contains("what-if branch")), "{wandered:?}");
    assert_eq!(wandered[wandered.len() - fresh.len()..], fresh);
}
