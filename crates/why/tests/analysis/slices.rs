//! Slices that are kept, and how what is in a slice is counted.

use std::collections::{BTreeMap, HashMap};

use position::{At, Criterion, Position, Run};
use recording::{Home, Recording};
use slice::{Instances, Options, Slicer};

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
/// near, when last, and by which name. Where distance has a bound, all is looked at one by one.
#[test]
fn lines_are_counted_as_if_every_instance_were_looked_at() {
    let threads = &["-g", "-O0", "-pthread"];
    for (file, source, flags, criterion) in [
        ("loops.c", LOOPS, &["-g", "-O1"][..], "exit"),
        ("threads.c", THREADS, threads, "threads.c:20"),
        ("both.c", BOTH, O0, "both.c:10#3"),
    ] {
        let bench = Bench::ran(file, source, flags, &[]);
        for way in [&[][..], &["--data"], &["--thin"], &["--via-lib"], &["--both"]] {
            let asked = [&["slice", criterion], way].concat();
            let counted = bench.json(&asked);
            let each = bench.json(&[&asked[..], &["--depth", "4000000000"]].concat());
            assert_eq!(counted, each, "{asked:?}");
        }
    }
}

#[test]
fn executions_have_the_names_that_lead_to_them() {
    let bench = Bench::ran("loops.c", LOOPS, &["-g", "-O1"], &[]);
    let run = opened(&bench);
    let slice = bench.json(&["slice", "exit"]);
    let lines = slice["lines"].as_array().unwrap();
    let often = lines.iter().filter(|line| line["instances"].as_u64() > Some(1000));
    assert!(often.count() > 4, "there are lines to be counted: {slice}");
    for execution in lines.iter().flat_map(|line| line["latest"].as_array().unwrap()) {
        let named = Position::parse(execution["position"].as_str().unwrap()).unwrap();
        let at = position::resolve(&run, &named).unwrap().instance();
        assert_eq!(execution["number"], run.trace.number(at), "{execution}");
    }
}

fn opened(bench: &Bench) -> Run {
    let dir = Home::at(bench.path("home")).resolve(None).unwrap();
    Run::open(Recording::open(&dir).unwrap(), &mut |_| ()).unwrap()
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

/// What is asked about both ways is there once, as near as it is on the nearer way; and so is what
/// a line calls.
#[test]
fn both_ways_nothing_is_counted_twice() {
    let bench = Bench::ran("both.c", BOTH, O0, &[]);
    let run = opened(&bench);
    for criterion in ["both.c:10#3", "both.c:4#5"] {
        let (union, shared) = both_ways(&run, criterion);
        assert!(shared > 0, "{criterion}: some is on both ways");
        let both = bench.json(&["slice", criterion, "--both"]);
        let told = both["lines"].as_array().unwrap().iter().map(|line| {
            let told = (line["instances"].as_u64().unwrap(), line["distance"].as_u64().unwrap());
            (line["line"].as_u64().unwrap(), told)
        });
        assert_eq!(told.collect::<BTreeMap<_, _>>(), union, "{criterion}");
        let distances: Vec<u64> = both["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|l| l["distance"].as_u64())
            .collect();
        assert!(distances.is_sorted(), "nearest first: {distances:?}");
    }
}

/// The union of what a criterion depended on and of what depended on it: of each line, how many
/// instances of one of its instructions, and the nearest one's distance. And how many instances
/// are on both ways.
fn both_ways(run: &Run, criterion: &str) -> (BTreeMap<u64, (u64, u64)>, usize) {
    let meant = position::meant(run, &Criterion::parse(criterion).unwrap()).unwrap();
    let options = Options { from: run.beginning().unwrap(), ..Options::default() };
    let slicer = Slicer::new(&run.trace);
    let back = slicer.instances(&meant.starts, &options).0;
    let onward = slicer.forward(&meant.onward, &options, Instances::default()).0;
    let mut nearest = HashMap::new();
    for (at, id, distance) in back.iter().chain(&onward).filter(|(_, id, _)| run.is_own(*id)) {
        let known = nearest.entry(*at).or_insert((*id, *distance));
        known.1 = known.1.min(*distance);
    }
    let mut instructions: HashMap<_, (u64, u64)> = HashMap::new();
    for (id, distance) in nearest.values() {
        let all = instructions.entry(*id).or_insert((0, u64::MAX));
        *all = (all.0 + 1, all.1.min((*distance).into()));
    }
    let mut lines = BTreeMap::new();
    for (id, (instances, distance)) in instructions {
        let Some(place) = run.places.at(id) else { continue };
        let At::Line(_, line) = run.places.get(place).at else { continue };
        let all = lines.entry(u64::from(line)).or_insert((0, u64::MAX));
        *all = (instances.max(all.0), distance.min(all.1));
    }
    let is_own = |(_, id, _): &&(_, _, _)| run.is_own(*id);
    let told = back.iter().filter(is_own).count() + onward.iter().filter(is_own).count();
    (lines, told - nearest.len())
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
