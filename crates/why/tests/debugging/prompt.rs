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
