//! What `why explain` accuses lines of by what the trace alone shows.

use std::process::Command;

use serde_json::Value;

use crate::support::Bench;

/// A line of the story's places to look at: its number, and why it is there.
struct Place {
    line: u64,
    reasons: Vec<String>,
}

/// So often a race is recorded at most, until it fails.
const TRIES: usize = 100;

/// Records until the run fails, explains, and returns the places.
fn places(file: &'static str, source: &str, record: &[&str], explain: &[&str]) -> Vec<Place> {
    let bench = Bench::new(file, source);
    bench.compile(&["-g", "-O0", "-pthread"]);
    let words = [&["record", "-q"], record, &["--", "./prog"]].concat();
    let fails = |_: &usize| {
        let recorded = Command::new(env!("CARGO_BIN_EXE_why"))
            .args(&words)
            .current_dir(bench.folder())
            .env("WHY_DIR", bench.path("home"))
            .output()
            .expect("why runs");
        assert_ne!(recorded.status.code(), Some(125), "{:?}", recorded.stderr);
        recorded.status.code() != Some(0) || explain.contains(&"--expect-text")
    };
    assert!((0..TRIES).any(|n| fails(&n)), "it does not fail");
    let words = [&["explain", "--time", "5s", "--places", "100"], explain].concat();
    let story: Value = bench.json(&words);
    let all = story["suspects"].as_array().expect("places").iter();
    all.map(|place| Place {
        line: place["spot"]["line"].as_u64().unwrap_or(0),
        reasons: serde_json::from_value(place["reasons"].clone()).expect("sentences"),
    })
    .collect()
}

/// Lines that are there for a reason.
fn accused(places: &[Place], reason: &str) -> Vec<u64> {
    let has = |place: &&Place| place.reasons.iter().any(|r| r.contains(reason));
    let mut lines: Vec<u64> = places.iter().filter(has).map(|place| place.line).collect();
    lines.sort_unstable();
    lines
}

/// The sum is not brought up to date when something is taken out.
const STALE: &str = r#"#include <stdio.h>
struct box { int items[4]; int used; int sum; };
static void put(struct box *b, int item) {
    b->items[b->used++] = item;
    b->sum += item;
}
static void take(struct box *b) {
    b->used--;
}
int main(void) {
    static struct box b;
    put(&b, 3);
    put(&b, 4);
    take(&b);
    printf("%d\n", b.sum);
    return 0;
}
"#;

#[test]
fn a_line_that_changed_the_neighbours_of_a_value_that_is_out_of_date_is_named() {
    let places = places("stale.c", STALE, &[], &["--expect-text", "3\\n"]);
    let lines = accused(&places, "it changed the neighbours of a value that was used");
    assert!(lines.contains(&8), "{lines:?}");
    assert!(!lines.contains(&5), "it wrote the value itself: {lines:?}");
}

/// Follows a pointer in a block that was given back.
const USED_AFTERWARDS: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int key; };
int main(void) {
    struct node *kept = malloc(sizeof *kept);
    struct node *first = malloc(sizeof *first);
    struct node *last = calloc(1, sizeof *last);
    free(kept);
    first->next = last;
    first->key = 1;
    free(first);
    for (struct node *n = first; n; n = n->next)
        printf("%d\n", n->key);
    return 0;
}
"#;

#[test]
fn the_line_that_gave_back_what_a_crash_used_is_named() {
    let places = places("used.c", USED_AFTERWARDS, &[], &[]);
    let lines = accused(&places, "it freed memory that used.c:13 used afterwards");
    assert_eq!(lines, [11], "and not the other block");
}

/// Prints what is in a block that was given back.
const PRINTED_AFTERWARDS: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct account { long id; long sum; };
int main(void) {
    struct account *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    a->id = 7;
    b->id = 8;
    free(b);
    free(a);
    printf("%ld\n", a->id);
    return 0;
}
"#;

#[test]
fn the_line_that_gave_back_what_was_printed_is_named() {
    let places = places("printed.c", PRINTED_AFTERWARDS, &[], &["--expect-text", "7\\n"]);
    let lines = accused(&places, "it freed memory that printed.c:10 used afterwards");
    assert_eq!(lines, [9], "and not the other block");
}

/// Leaves a function with a lock held if there is nothing to do.
const HELD: &str = r#"#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static int work[3] = { 1, 0, 2 }, done;
static int one(int n) {
    pthread_mutex_lock(&lock);
    if (work[n] == 0)
        return 0;
    done += work[n];
    pthread_mutex_unlock(&lock);
    return 1;
}
int main(void) {
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    for (int n = 0; n < 3; n++)
        one(n);
    printf("%d\n", done);
    return 0;
}
"#;

#[test]
fn who_held_what_a_sleeping_thread_waits_for_is_named() {
    let hang = ["--timeout", "1"];
    let places = places("held.c", HELD, &hang, &hang);
    assert_eq!(accused(&places, "a thread waits here, for ever"), [7]);
    assert_eq!(accused(&places, "it was the last to change what held.c:7 waits for"), [7]);
    let next = accused(&places, "it ran after held.c:7, and held.c:7 still waits");
    assert!(next.contains(&9), "it returned without giving the lock back: {next:?}");
    let first: Vec<u64> = places.iter().take(5).map(|place| place.line).collect();
    assert!(first.contains(&9) || first.contains(&8), "{first:?}");
}

/// One thread is over, and another waits for what never comes.
const OUTLIVED: &str = r#"#include <pthread.h>
#include <stddef.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int ready;
static void *worker(void *last) {
    pthread_mutex_lock(&lock);
    while (!ready && last)
        pthread_cond_wait(&more, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}
int main(void) {
    pthread_t first, second;
    pthread_create(&first, NULL, worker, NULL);
    pthread_join(first, NULL);
    pthread_create(&second, NULL, worker, &lock);
    pthread_join(second, NULL);
    return 0;
}
"#;

#[test]
fn threads_that_are_over_do_not_keep_a_hang_from_being_explained() {
    let hang = ["--timeout", "1"];
    let places = places("outlived.c", OUTLIVED, &hang, &hang);
    assert_eq!(accused(&places, "a thread waits here, for ever"), [9]);
}

/// Threads count without a lock, and one of them alone before.
const UNORDERED: &str = r#"#include <pthread.h>
#include <stdio.h>
static int counter, own;
static void *count(void *arg) {
    for (int i = 0; i < 100; i++) {
        int seen = counter;
        counter = seen + 1;
    }
    return arg;
}
int main(void) {
    pthread_t threads[3];
    own = 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    own += counter;
    return own != 301;
}
"#;

#[test]
fn accesses_of_two_threads_that_nothing_orders_are_named() {
    let places = places("unordered.c", UNORDERED, &["--chaos"], &[]);
    let lines = accused(&places, "nothing orders it and unordered.c:7, of another thread");
    assert!(lines.contains(&6) || lines.contains(&7), "{lines:?}");
    let lines = accused(&places, "nothing orders it");
    assert!(!lines.contains(&18), "the threads have ended before: {lines:?}");
}

/// Looks under a lock, and takes under the lock, but not under the same hold of it.
const TORN: &str = r#"#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stock = 40;
static int left(void) {
    pthread_mutex_lock(&lock);
    int n = stock;
    pthread_mutex_unlock(&lock);
    return n;
}
static void take(void) {
    pthread_mutex_lock(&lock);
    stock--;
    pthread_mutex_unlock(&lock);
}
static void *sell(void *arg) {
    for (int i = 0; i < 60; i++) {
        if (left() > 0)
            take();
    }
    return arg;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sell, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return stock != 0;
}
"#;

#[test]
fn what_another_thread_changed_between_two_uses_is_named_where_both_were_asked_for() {
    // In one of twenty schedules that fail, the change comes between two rounds of the loop: then
    // only the condition is asked twice. A second schedule may be needed, hardly a fourth.
    let both = (0..4).any(|_| {
        let places = places("torn.c", TORN, &["--chaos"], &[]);
        let lines = accused(&places, "another thread changed, at torn.c:12, what it used twice");
        assert!(lines == [17, 18] || lines == [17], "{lines:?}");
        let unordered = accused(&places, "nothing orders it");
        assert!(unordered.is_empty(), "every access is under the lock: {unordered:?}");
        lines.len() == 2
    });
    assert!(both, "the condition and what it guards were never named together");
}
