//! Slices: nothing but the instructions that matter.

use super::*;

/// One sum that matters, in a sea of work that does not.
const SEA: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned noise[1024];
static long kept;
__attribute__((noinline)) void churn(int n)
{
    for (int i = 0; i < 20000; i++) noise[i & 1023] = noise[(i * 7) & 1023] * 31 + n;
}
__attribute__((noinline)) void keep(int n)
{
    int doubled = n * 2;
    kept += doubled;
}
int main(void)
{
    for (int n = 0; n < 30; n++) {
        churn(n);
        keep(n);
        if (n % 10 == 0) free(malloc(1 << 20));
    }
    printf("%u\n", noise[5]);
    printf("%ld\n", kept);
    return 0;
}
"#;

/// `f.c:15#4` and the like are those of another recording, so values alone are told.
fn values_of(said: &str, name: &str) -> Vec<String> {
    let mark = format!("{name} = ");
    said.lines().filter_map(|l| Some(l.split_once(&mark)?.1.to_owned())).collect()
}

#[test]
fn f_001_38_what_is_left_out_and_the_slice_are_the_whole_run() {
    let place = Place::new();
    place.record("threads", THREADS, &["-pthread"]);
    place.said(&["slice", "whole", "threads.c:14#last:total", "--save", "s"]);
    let cut = ["cut", "whole", "--slice", "s", "-o", "part", "--exclusions", "left-out.json"];
    let said = text(&place.why(&cut).stderr);
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [kept, total] = numbers[..] else { panic!("{said}") };
    let left = fs::read(place.path("left-out.json")).expect("was written");
    let left: serde_json::Value = serde_json::from_slice(&left).expect("JSON");
    let left = left.as_array().expect("a list");
    let sum: u64 = left.iter().map(|l| l["instructions"].as_u64().expect("a number")).sum();
    assert_eq!(kept + sum, total);
    let mut threads: Vec<u64> = left.iter().filter_map(|l| l["thread"].as_u64()).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads, [1, 2, 3, 4]);
}

#[test]
fn f_001_39_a_slice_replays_with_equal_values() {
    for (name, source, flags, line, what) in [
        ("sea", SEA, &[][..], "sea.c:13", "kept"),
        ("threads", THREADS, &["-pthread"][..], "threads.c:13", "total"),
    ] {
        let place = Place::new();
        place.record(name, source, flags);
        let at = format!("{line}#last:{what}");
        place.said(&["slice", "whole", &at, "--save", "s"]);
        place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
        let stops = format!("break {line}\n{}", "c\n".repeat(120));
        let values = |recording: &str| {
            let mut seen = values_of(&place.asked(recording, &stops), what);
            // Several instructions of one execution may be in the slice.
            seen.dedup();
            seen
        };
        let whole = values("whole");
        fs::remove_dir_all(place.path("whole")).expect("removes");
        place.said(&["replay", "part"]);
        let seen = values("part");
        assert!(seen.len() >= 20, "{seen:?}");
        assert_eq!(whole[..seen.len()], seen);
    }
}

#[test]
fn f_001_40_steps_go_from_slice_to_slice_with_live_values() {
    let place = Place::new();
    place.record("sea", SEA, &[]);
    place.said(&["slice", "whole", "sea.c:14#last:kept", "--save", "s"]);
    place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
    let steps = format!("{}print kept\n{}", "step\n".repeat(60), "reverse-step\n".repeat(3));
    let said = place.asked("part", &steps);
    assert!(said.contains("kept += doubled;"), "{said}");
    assert!(!said.contains("noise"), "{said}");
    // The whole state is there, not only what the slice computes.
    let other = place.asked("part", "break keep\nc\nprint noise[5] != 0\nprint n\nbacktrace\n");
    assert!(other.contains("keep") && other.contains("main"), "{other}");
    let refused = place.why(&["slice", "part"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("only a slice"), "{}", text(&refused.stderr));
}

#[test]
fn gdb_goes_along_a_slice_both_ways() {
    let place = Place::new();
    place.record("sea", SEA, &[]);
    place.said(&["slice", "whole", "sea.c:14#last:kept", "--save", "s"]);
    place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
    let mut arguments = vec!["debug", "part", "--", "-batch"];
    for command in [
        "stepi 400",
        "print kept",
        "info line",
        "reverse-stepi 200",
        "print kept",
        "stepi 200",
        "print kept",
    ] {
        arguments.extend(["-ex", command]);
    }
    let said = text(&place.why(&arguments).stdout);
    let printed: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix('$')?.split(" = ").nth(1)).collect();
    let [far, near, again] = printed[..] else { panic!("{said}") };
    assert_eq!(far, again, "{said}");
    let [far, near] = [far, near].map(|n| n.parse::<u64>().expect("a number"));
    assert!(far > near && near > 0, "{said}");
}

/// The breakpoint that gdb sets behind a function's prologue is in no slice.
#[test]
fn gdb_stops_in_a_function_whose_first_instructions_are_not_in_the_slice() {
    let place = Place::new();
    place.record("sea", SEA, &[]);
    place.said(&["slice", "whole", "sea.c:14#last:kept", "--save", "s", "--data"]);
    place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
    let mut arguments = vec!["debug", "part", "--", "-batch"];
    for command in ["break *keep", "break churn", "continue", "print n", "continue", "print n"] {
        arguments.extend(["-ex", command]);
    }
    arguments.extend(["-ex", "delete 1", "-ex", "continue"]);
    let said = text(&place.why(&arguments).stdout);
    assert!(said.contains("in keep, which is not in the slice; this is the next"), "{said}");
    assert!(said.contains("$1 = 0") && said.contains("$2 = 1"), "{said}");
    assert!(said.contains("in churn was not met: nothing of that function is in"), "{said}");
    let said = place.asked("part", "break churn\nbreak keep\nc\n");
    assert!(said.contains("nothing of the slice is there"), "{said}");
    assert!(said.contains("stops at all instructions of the slice there"), "{said}");
}

/// Nearly all of it matters.
const DENSE: &str = r#"
#include <stdio.h>
static unsigned table[256], state = 1;
int main(void)
{
    for (int i = 0; i < 1000000; i++) {
        state = state * 1103515245 + 12345;
        table[i & 255] += state ^ table[(state >> 8) & 255];
    }
    printf("%u\n", table[7]);
    return 0;
}
"#;

/// Took minutes when every instruction was looked up and executed by itself.
#[test]
fn a_slice_of_nearly_the_whole_run_is_cut_and_replayed_in_seconds() {
    let place = Place::new();
    place.record("dense", DENSE, &["-O1"]);
    place.said(&["slice", "whole", "dense.c:10:table[7]", "--save", "s"]);
    let begin = std::time::Instant::now();
    let cut = place.why(&["cut", "whole", "--slice", "s", "-o", "part"]);
    let took = begin.elapsed();
    // Nobody looks at a terminal, so there is one line and no bar.
    let said = text(&cut.stderr);
    assert_eq!(cut.status.code(), Some(0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [kept, total] = numbers[..] else { panic!("{said}") };
    assert!(kept > 5_000_000 && kept > total / 2, "{said}");
    assert!(took.as_secs() < 60, "{took:?}");
    place.said(&["replay", "part"]);
    // Where the slice stands, the run has the same values.
    let looked = "print state\nprint table[7]\nprint table[100]\n";
    let part = place.asked("part", &format!("goto @4000000\n{looked}"));
    let at = part.lines().next().and_then(|l| l.rsplit_once("at @")).expect("a position").1;
    let whole = place.asked("whole", &format!("goto @{at}\n{looked}"));
    let values = |text: &str| -> Vec<u32> {
        text.lines().filter_map(|l| l.rsplit_once(") ")?.1.parse().ok()).collect()
    };
    assert_eq!(values(&part).len(), 3, "{part}");
    assert_eq!(values(&part), values(&whole), "{part}\n{whole}");
}

/// The value comes by way of the handler of an exception.
const FAULTS: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf back;
static volatile int sum, noise;
static void caught(int signal)
{
    sum += signal;
    siglongjmp(back, 1);
}
int main(void)
{
    signal(SIGSEGV, caught);
    for (volatile int i = 0; i < 5; i++) {
        noise += 7;
        if (sigsetjmp(back, 1) == 0) *(volatile int *)8 = sum;
        sum += 100;
    }
    printf("%d\n", sum);
    return 0;
}
"#;

#[test]
fn a_slice_goes_through_the_handler_of_an_exception() {
    let place = Place::new();
    place.record("faults", FAULTS, &[]);
    place.said(&["slice", "whole", "faults.c:20:sum", "--save", "s"]);
    place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
    place.said(&["replay", "part"]);
    let said = place.asked("part", &format!("break faults.c:9\n{}", "c\n".repeat(60)));
    let mut sums = values_of(&said, "sum");
    sums.dedup();
    assert_eq!(sums[..5], ["0", "111", "222", "333", "444"], "{said}");
}

#[test]
fn slices_of_real_programs_replay() {
    let place = Place::new();
    let sql = "create table t(x); with recursive n(i) as (select 1 union all select i+1 from n \
               where i < 300) insert into t select i*i from n; select sum(x) from t;";
    let python = "print(sum(i * i for i in range(2000)))";
    for (name, command) in [
        ("sqlite", vec!["/usr/bin/sqlite3", ":memory:", sql]),
        ("python", vec!["/usr/bin/python3", "-c", python]),
    ] {
        place.why(&[&["record", "-o", name, "--"], &command[..]].concat());
        place.said(&["slice", name, "output:1", "--data", "--save", "s"]);
        let part = format!("{name}-part");
        place.said(&["cut", name, "--slice", "s", "-o", &part]);
        place.said(&["replay", &part]);
    }
}
