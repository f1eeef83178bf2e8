//! Slices that are kept.

use std::collections::HashMap;

use position::{PlaceId, Run};
use recording::{Home, Recording};
use report::Question;
use slice::{Options, Slicer, Start};
use trace::{Flow, Instance};

use crate::answers::SUM;
use crate::support::{Bench, O0, lines_of};

/// F-001-05, F-001-41: kept slices are listed, load in another process, and can be
/// removed.
#[test]
fn a_kept_slice_is_listed_shown_and_removed() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    assert_eq!(bench.text(&["slices"]), "");
    let slice = bench.json(&["slice", "f.c:18", "--save", "first"]);
    bench.text(&["slice", "f.c:7", "--forward", "--save", "second"]);
    let list = bench.json(&["slices"]);
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((&list[1]["kind"], &list[1]["criterion"]), (&"forward".into(), &"f.c:7".into()));
    assert!(bench.text(&["slices"]).starts_with("first            f.c:18 "));
    let again = bench.json(&["slices", "--show", "first"]);
    assert_eq!(again, slice);
    assert_eq!(lines_of(&again), [6, 7, 8, 12, 14, 15, 16, 17, 18]);
    assert_eq!(bench.text(&["slices", "--show", "first"]), bench.text(&["slice", "f.c:18"]));
    bench.text(&["slices", "--remove", "first"]);
    assert_eq!(bench.json(&["slices"]).as_array().unwrap().len(), 1);
    assert!(bench.refusal(&["slices", "--show", "first"], 2).contains("no slice called first"));
    assert!(bench.refusal(&["slices", "--remove", "first"], 2).contains("no slice called first"));
    assert!(bench.refusal(&["slice", "exit", "--save", "a/b"], 2).contains("name"));
}

/// What is counted by the path is what is there one by one: how often each line takes part, how
/// near, when last, and by which name.
#[test]
fn lines_are_counted_as_if_every_instance_were_looked_at() {
    let bench = Bench::ran("loops.c", LOOPS, &["-g", "-O1"], &[]);
    let dir = Home::at(bench.path("home")).resolve(None).unwrap();
    let run = Run::open(Recording::open(&dir).unwrap(), &mut |_| ()).unwrap();
    let slicer = Slicer::new(&run.trace);
    let options = Options { from: run.beginning().unwrap(), ..Options::default() };
    let starts = [Start::Instance(run.trace.last_instance())];
    let mut each: HashMap<_, Vec<(Instance, u32)>> = HashMap::new();
    for (at, id, distance) in slicer.instances(&starts, &options).0 {
        each.entry(id).or_default().push((at, distance));
    }
    let question = Question {
        run: &run,
        slicer: &slicer,
        criterion: "exit",
        options: &options,
        via_lib: true,
    };
    let report = question.backward(&starts).unwrap();
    let mut lines: HashMap<PlaceId, (u64, u32)> = HashMap::new();
    for (id, all) in &each {
        let Some(place) = run.places.at(*id).filter(|_| run.is_own(*id)) else { continue };
        let calls = run.trace.code.info(*id).flow == Flow::Call;
        let line = lines.entry(place).or_insert((0, u32::MAX));
        line.0 = line.0.max(all.len() as u64);
        line.1 = if calls { line.1 } else { line.1.min(all.iter().map(|i| i.1).min().unwrap()) };
    }
    let often = lines.values().filter(|line| line.0 > 1000).count();
    assert!(often > 4, "there are lines to be counted: {often}");
    for (place, (instances, distance)) in lines {
        let name = run.place_name(place);
        let line = report.lines.iter().find(|line| {
            line.line.is_some_and(|n| name == format!("loops.c:{n}"))
                && line.function == run.places.get(place).function
        });
        let line = line.unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((line.instances, line.distance.min(distance)), (instances, line.distance));
        for execution in &line.latest {
            let named = position::Position::parse(&execution.position).unwrap();
            let at = position::resolve(&run, &named).unwrap().instance();
            assert_eq!(run.trace.number(at), execution.number, "{}", execution.position);
        }
    }
}

const LOOPS: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static int odd(int n) { return n & 1; }
int main(void) {
    static int numbers[3000];
    unsigned seed = 7;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245 + 12345;
        numbers[i] = seed >> 8 & 0xfff;
        if (odd(numbers[i]))
            numbers[i] += 3;
    }
    qsort(numbers, 3000, sizeof *numbers, compare);
    int sum = 0;
    for (int i = 0; i < 3000; i++)
        sum += numbers[i] * i;
    return sum & 127;
}
"#;

/// Library code stands for the call that led there, once: also if calls of the same line in
/// several threads take turns.
#[test]
fn a_call_is_counted_once_whatever_goes_on_in_it() {
    let bench = Bench::ran("threads.c", THREADS, &["-g", "-O0", "-pthread"], &[]);
    let slice = bench.json(&["slice", "threads.c:20"]);
    let line = |number: u64| {
        let lines = slice["lines"].as_array().unwrap().iter();
        lines.clone().find(|line| line["line"] == number).unwrap_or_else(|| panic!("{slice}"))
    };
    let create = line(15);
    assert_eq!((create["instances"].as_u64(), create["executions"].as_u64()), (Some(3), Some(3)));
}

/// What is asked about both ways is there once, and so is what a line calls.
#[test]
fn both_ways_nothing_is_counted_twice() {
    let bench = Bench::ran("both.c", BOTH, O0, &[]);
    let each = |way: &[&str], number: u64| {
        let slice = bench.json(&[&["slice", "both.c:10#3"], way].concat());
        let lines = slice["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["line"] == number);
        let line = line.unwrap_or_else(|| panic!("{number} is missing: {slice}"));
        (line["instances"].as_u64().unwrap(), line["executions"].as_u64().unwrap())
    };
    let (back, onward, both) = (each(&[], 4), each(&["--forward"], 4), each(&["--both"], 4));
    assert_eq!((back, onward.1), ((12, 20), 20), "what was called until then");
    assert!(onward.0 > 8 && both.0 <= 20, "{onward:?}, {both:?}");
    assert_eq!(each(&["--both"], 10), (5, 5));
}

const BOTH: &str = r#"static int sum;
static int twice(int n) {
    if (n > 0)
        return 2 + twice(n - 1);
    return 0;
}
int main(int argc, char **argv) {
    sum = argc - 1;
    for (int i = 0; i < 5; i++)
        sum += twice(4 + (sum < 0));
    return sum;
}
"#;

const THREADS: &str = r#"#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *add(void *by) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        total += *(int *)by;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
static pthread_t threads[3];
static int by[3] = {1, 2, 3};
static void begin(int n) { pthread_create(&threads[n], 0, add, &by[n]); }
int main(void) {
    for (int n = 0; n < 3; n++) begin(n);
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], 0);
    return total;
}
"#;
