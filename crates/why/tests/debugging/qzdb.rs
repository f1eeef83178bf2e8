//! Each command of Qzdb (Wang, table 2.1) has its counterpart.

use super::*;

/// The run, at the plain prompt.
fn asked(commands: &[&str], wanted: &[&str]) {
    let place = Place::new();
    place.record("tally", SUMS, &["-O0"]);
    let said = place.told(&["debug", "--plain"], &commands.join("\n"));
    in_order(&said, wanted);
}

#[test]
fn switch_all_once_and_n() {
    let to_the_end = ["break tally.c:17", "c", "print total", "rollback"];
    // Without the odd ones, all even ones are added; without the second, 2 is missing.
    asked(&[&["switch tally.c:11#all"][..], &to_the_end].concat(), &[") 40\n", "history"]);
    asked(&[&["switch tally.c:11#2"][..], &to_the_end].concat(), &[") 48\n", "history"]);
    // Here: i is 3.
    let here = ["goto tally.c:11#4", "switch"];
    asked(&[&here[..], &to_the_end].concat(), &["what-if", "tally.c:17\n", ") 44\n", "history"]);
}

#[test]
fn suppress_all_once_and_n() {
    let to_the_end = ["break tally.c:17", "c", "print other", "rollback"];
    asked(&[&["skip tally.c:10#all"][..], &to_the_end].concat(), &[") 0\n", "history"]);
    asked(&[&["skip tally.c:10#3"][..], &to_the_end].concat(), &[") 27\n", "history"]);
    asked(&[&["goto tally.c:10#3", "skip"][..], &to_the_end].concat(), &[") 27\n", "history"]);
    // A call, with what it returns.
    let call = ["skip twice#1 =100", "break tally.c:17", "c", "print total"];
    asked(&call, &[") 148\n"]);
}

#[test]
fn record_on_and_off() {
    asked(
        &[
            "slice tally.c:18:total",
            "region on tally.c:12#4",
            "slice tally.c:18:total",
            "region all",
            "region off tally.c:12#4",
            "slice tally.c:18:total",
        ],
        &["slice 1 of", "25 executions", "from @", "slice 2 of", "7 executions", "slice 3 of"],
    );
}

#[test]
fn slice_prune_sbreak_and_sdelete() {
    asked(
        &[
            "slice tally.c:12#4:total",
            "slice tally.c:12#4:$rax",
            "goto tally.c:12#4",
            "slice",
            "slices",
            "prune 1 total",
            "sbreak 1 tally.c:12",
            "sbreak all 1",
            "slices --remove 2",
            "sdelete 3",
            "slices",
            "sbreak all 2",
        ],
        &[
            "slice 1 of tally.c:12#4:total",
            "slice 2 of tally.c:12#4:$rax",
            "slice 3 of",
            "slice 1 of",
            "slice 3 of",
            "without total",
            "slice 1: stops at",
            "slice 1: stops at",
            "slice 2 is gone",
            "slice 3 is gone",
            "slice 1 of",
            "no slice",
        ],
    );
}

#[test]
fn instance() {
    asked(
        &["goto tally.c:12#4", "instance tally.c:12", "instance tally.c:10", "instance"],
        &["tally.c:12#4\n", "tally.c:12#4\n", "tally.c:10#8\n", "tally.c:12#4\n"],
    );
    asked(&["switch tally.c:11#2", "instance tally.c:12"], &["not counted in a what-if branch"]);
}

#[test]
fn breakpoints_in_libraries() {
    asked(
        &[
            "goto tally.c:14#2",
            "lbreak memset if write p 4",
            "lbreak free if arg1 == p",
            "lbreak malloc if ret == p",
            "lbreak",
            "c",
            "where",
            "lbreak --remove 1",
            "c",
            "lbreak --remove 2",
            "c",
            "lbreak --remove 9",
        ],
        &[
            "library breakpoint 3: malloc",
            "1: memset if write p 4",
            "2: free if arg1",
            "3: malloc if ret",
            "library breakpoint 1: memset",
            "T1 (tid",
            "no stop at memset",
            "library breakpoint 2: free",
            "no stop at free",
            "library breakpoint 3: malloc",
            "no such library breakpoint",
        ],
    );
    for kind in ["read", "access"] {
        let stop = format!("lbreak free if {kind} p 8");
        asked(&["goto tally.c:15#2", &stop, "c"], &["library breakpoint 1: free if"]);
    }
}

#[test]
fn checkpoint_rollback_and_cdelete() {
    asked(
        &[
            "goto tally.c:12#2",
            "checkpoint two",
            "goto tally.c:12#4",
            "checkpoint",
            "checkpoints",
            "rollback 1",
            "print i",
            "checkpoint --remove 1",
            "checkpoints",
            "rollback 1",
            "rollback 2",
            "print i",
        ],
        &[
            "checkpoint 1: two",
            "checkpoint 2: tally.c:12#4",
            "1: two (@",
            "2: tally.c:12#4 (@",
            "at tally.c:12#2",
            ") 3\n",
            "checkpoint two is gone",
            "2: tally.c:12#4 (@",
            "no such checkpoint",
            "at tally.c:12#4",
            ") 7\n",
        ],
    );
}
