//! The plain prompt.

use super::*;

#[test]
fn the_plain_prompt_needs_no_gdb() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let commands = "break twice\nc\nbt\nwatch total\ndelete\nc\nrsi\nwhy where\nslice :total\nsprev\n\
                    goto tally.c:12#3\nprint i\nstep\nreverse-step\nthreads\nhelp\nquit\n";
    let said = place.told(&["debug", "--plain"], commands);
    in_order(
        &said,
        &[
            "breakpoint at 0x",
            "breakpoint\n",
            "#0 0x",
            "twice",
            "#1 0x",
            "main",
            "signal 11",
            "tally.c:18",
            "slice 1 of",
            "slice 1,",
            "at tally.c:12#3",
            "5",
            "T1 (tid",
            "why goto POS",
        ],
    );
}

#[test]
fn critical_branches_are_searched_for_at_the_prompt() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(&["debug", "--plain"], "why critical\n");
    assert!(said.contains("tally.c:18"), "{said}");
    let said = place.gdb("start", &["why critical"]);
    assert!(said.contains("tally.c:18"), "{said}");
}

#[test]
fn a_backward_search_for_writes_stops_the_same_with_a_trace() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let commands = "goto exit\nwatch total\nrc\nwhere\nrc\nwhere\nrc\nwhere\n";
    // The prompt has a trace, which gdb has not until something asks for one.
    let plain = place.told(&["debug", "--plain"], commands);
    let at = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.split_once(") @").map_or(line.strip_prefix('@'), |w| Some(w.1)))
            .map(str::to_owned)
            .collect()
    };
    let moves = [
        "watch total",
        "reverse-continue",
        "why where",
        "reverse-continue",
        "why where",
        "reverse-continue",
        "why where",
    ];
    let gdb = place.gdb("exit", &moves);
    assert_eq!(at(&plain).len(), 3, "{plain}");
    assert_eq!(at(&plain), at(&gdb), "{plain}\n{gdb}");
}

#[test]
fn a_position_that_is_not_there_has_its_status_with_and_without_gdb() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    for (at, status) in [("nowhere", 2), ("tally.c:12#99", 1), ("tally.c:12", 0)] {
        for how in [&["debug", "--plain", "--at", at][..], &["debug", "--at", at, "--", "-batch"]] {
            let ended = place.why(how);
            let said = place::text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(status), "{how:?}: {said}");
        }
    }
}

#[test]
fn the_prompt_fits_a_terminal_and_repeats_itself() {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(&["debug", "--plain"], "help\n");
    let wide: Vec<&str> = said.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let said = place.told(
        &["debug", "--plain"],
        "\nbreak tally.c:12\nc\n\n\ndelete\nset var total=6\nc\nrollback\nc\n",
    );
    in_order(
        &said,
        &[
            "tally.c:12#1",
            "tally.c:12#2",
            "tally.c:12#3",
            "what-if",
            "it was killed",
            "history",
            "signal 11",
        ],
    );
}
