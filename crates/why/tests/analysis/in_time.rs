//! `why explain` keeps to its time, and says what it left out.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Bench;

/// Works for long, all of it part of what fails.
const LONG: &str = r#"#include <stdio.h>
#include <stdlib.h>
static unsigned cells[64] = { 1 };
static unsigned next(unsigned n) {
    unsigned at = n % 64;
    cells[at] = cells[(at + 63) % 64] * 1664525u + n;
    return cells[at];
}
int main(int argc, char **argv) {
    unsigned sum = 0, turns = strtoul(argv[1], NULL, 10);
    for (unsigned n = 0; n < turns; n++)
        sum ^= next(n);
    if (sum != 1)
        abort();
    return argc;
}
"#;

fn explained(bench: &Bench, words: &[&str]) -> (Value, Duration) {
    let begun = Instant::now();
    let story = bench.json(&[&["explain", "-q"], words].concat());
    (story, begun.elapsed())
}

#[test]
fn a_long_run_is_explained_in_time_from_its_end() {
    let bench = Bench::new("long.c", LONG);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&["12000000"], ""), 134);
    let (story, took) = explained(&bench, &["--time", "4s"]);
    assert!(story["instructions"].as_u64() > Some(250_000_000), "{}", story["instructions"]);
    // Twice as long on a busy machine; without a bound it takes minutes.
    assert!(took < Duration::from_secs(12), "{took:?}");
    let doubts = story["doubts"].to_string();
    assert!(doubts.contains("the run is long: only its last"), "{doubts}");
    assert_eq!(story["failure"]["spot"]["line"], 14);
    let places = story["suspects"].as_array().expect("places");
    assert!(places.iter().any(|p| p["spot"]["line"] == 6), "{places:?}");
    // What is executed last has no number; else it is counted from the end.
    let positions = story["path"].as_array().expect("a path").iter();
    let positions = positions.map(|step| step["spot"]["position"].as_str().expect("a position"));
    for position in positions {
        assert!(position.split_once('#').is_none_or(|(_, n)| n.starts_with('-')), "{position}");
    }
}

#[test]
fn positions_in_a_long_run_are_those_of_the_whole_run() {
    let bench = Bench::new("long.c", LONG);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&["2000"], ""), 134);
    // So little time that only an end of the run is traced.
    let (late, _) = explained(&bench, &["--time", "2ms"]);
    assert!(late["doubts"].to_string().contains("only its last"), "{}", late["doubts"]);
    let spots = late["suspects"].as_array().expect("places").iter().map(|place| &place["spot"]);
    let seen = spots.filter(|spot| spot["values"].as_array().is_some_and(|v| !v.is_empty()));
    let seen: Vec<&Value> = seen.collect();
    assert!(!seen.is_empty(), "{}", late["suspects"]);
    for spot in seen {
        let position = spot["position"].as_str().expect("a position");
        let whole = bench.json(&["deps", position]);
        assert_eq!(whole["values"], spot["values"], "{position}");
    }
}

#[test]
fn a_run_that_fits_is_looked_at_as_a_whole() {
    let bench = Bench::new("long.c", LONG);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&["2000"], ""), 134);
    let (story, _) = explained(&bench, &["--time", "10s"]);
    assert_eq!(story["doubts"].as_array().map(Vec::len), Some(0), "{}", story["doubts"]);
}

/// Says something wrong early, and works for long.
const EARLY: &str = r#"#include <stdio.h>
static unsigned work(unsigned turns) {
    volatile unsigned sum = 0;
    for (unsigned n = 0; n < turns; n++)
        sum += n;
    return sum;
}
int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("%d\n", work(100000) != 0);
    int width = 3;
    printf("%d\n", width * 4);
    printf("%d\n", work(20000000) != 0);
    return 0;
}
"#;

#[test]
fn what_a_long_run_wrote_wrongly_is_explained_from_where_it_wrote_it() {
    let bench = Bench::new("early.c", EARLY);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&[], ""), 0);
    let (story, _) = explained(&bench, &["--time", "100ms", "--expect-text", "1\\n15\\n1\\n"]);
    assert!(story["instructions"].as_u64() > Some(100_000_000), "{}", story["instructions"]);
    let doubts = story["doubts"].to_string();
    assert!(doubts.contains("those before the failure showed"), "{doubts}");
    assert_eq!(story["failure"]["spot"]["line"], 12, "{}", story["failure"]);
    let path = story["path"].as_array().expect("a path").iter();
    let lines: Vec<u64> = path.filter_map(|step| step["spot"]["line"].as_u64()).collect();
    assert!(lines.contains(&11), "{lines:?}");
    // Nothing else names an execution whose number is not known.
    let position = story["path"][0]["spot"]["position"].as_str().expect("a position");
    let again = bench.json(&["deps", position]);
    assert!(again["code"].as_str().expect("code").contains("width * 4"), "{again}");
}

/// The processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
        // The name in parentheses may have spaces.
        let rest = stat.ok().and_then(|s| Some(s.rsplit_once(") ")?.1.to_owned()));
        let of = rest.and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        of == Some(parent)
    };
    numbers.filter(is_child).collect()
}

/// The process that forks trials: a grandchild that has children.
fn walker(why: u32) -> Option<u32> {
    let grandchildren = children(why).into_iter().flat_map(children);
    grandchildren.into_iter().find(|pid| !children(*pid).is_empty())
}

#[test]
fn a_story_is_told_if_the_process_that_makes_experiments_is_killed() {
    let bench = Bench::new("long.c", LONG);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&["200000"], ""), 134);
    let why = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(["explain", "--json", "--time", "60s"])
        .current_dir(bench.folder())
        .env("WHY_DIR", bench.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("why runs");
    let begun = Instant::now();
    let walker = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody makes experiments");
        if let Some(walker) = walker(why.id()) {
            break walker;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let killed = Command::new("kill").args(["-9", &walker.to_string()]).status().expect("kill");
    assert!(killed.success());
    let output = why.wait_with_output().expect("it ends");
    assert!(begun.elapsed() < Duration::from_secs(100), "it waited for nobody");
    let story: Value = serde_json::from_slice(&output.stdout).expect("a story");
    let doubts = story["doubts"].to_string();
    assert!(doubts.contains("experiments broke off"), "{doubts}");
    assert!(!story["suspects"].as_array().expect("places").is_empty());
}

/// Four threads add to one number, which the failure depends on all along.
const ADDING: &str = r#"#include <pthread.h>
static long counter;
static void *work(void *p) {
    for (int i = 0; i < 200000; i++)
        counter++;
    return p;
}
int main(void) {
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    return counter != 1;
}
"#;

#[test]
fn a_word_that_threads_used_a_million_times_is_looked_at_in_time() {
    let bench = Bench::new("adding.c", ADDING);
    bench.compile(&["-g", "-O0", "-pthread"]);
    assert_eq!(bench.record(&[], ""), 1);
    let (story, took) = explained(&bench, &["--time", "30s", "--trials", "50"]);
    // Twice as long on a busy machine; it took minutes.
    assert!(took < Duration::from_secs(75), "{took:?}");
    let suspects = story["suspects"].to_string();
    assert!(suspects.contains("nothing orders it and adding.c:5"), "{suspects}");
}
