//! What `why explain` says of wrong uses of the heap.

use crate::promises::{complaint, schema};
use crate::stories::why;
use crate::support::Bench;
use crate::suspicions::explained;
use serde_json::Value;

/// What a story says of memory, and all of it.
fn told(file: &'static str, source: &str, expected: &str) -> (Vec<String>, String) {
    let (_, err) = explained(file, source, &["--expect-text", expected, "--", "./prog"]);
    let (_, told) = err.split_once("What was wrong with memory\n").unwrap_or_default();
    let (told, _) = told.split_once("\n\n").unwrap_or_default();
    (told.lines().map(str::to_owned).collect(), err)
}

/// Do some lines have these words, one after the other?
fn have(lines: &[String], words: &[&str]) -> bool {
    let mut lines = lines.iter();
    words.iter().all(|words| lines.any(|line| line.contains(words)))
}

/// Frees a list while it walks through it; tells how long it was.
const FREED: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct node {
    int number, keep;
    struct node *next;
};
static void drop(struct node *node, int keep) {
    if (keep)
        return;
    free(node);
}
int main(int argc, char **argv) {
    struct node *list = NULL;
    for (int i = 0; i < 3 * argc; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){i, 0, list};
        list = node;
    }
    int length = 0;
    for (struct node *node = list; node; node = node->next) {
        drop(node, node->keep);
        length += node->number < 1000;
    }
    printf("%d\n", length);
    return argv == NULL;
}
"#;

#[test]
fn memory_that_is_used_after_it_was_freed_is_told_with_why_it_was_freed() {
    let (lines, err) = told("freed.c", FREED, "none\\n");
    let words = [
        "memory was used after it was freed",
        "at freed.c:22 in main",
        "freed at freed.c:10 in drop",
        "because of freed.c:8 in drop",
    ];
    assert!(have(&lines, &words), "{err}");
}

#[test]
fn a_story_says_it_in_every_form() {
    let bench = Bench::new("freed.c", FREED);
    bench.compile(&["-g", "-O0"]);
    bench.record(&[], "");
    let told = |form: &str| why(&bench, &["explain", "-q", "--no-edits", form]).1;
    let json: Value = serde_json::from_str(&told("--json")).expect("JSON");
    assert_eq!(complaint(&schema("explain"), &json), None);
    let misuse = &json["memory"][0];
    assert_eq!(misuse["kind"], "freed");
    assert_eq!([&misuse["spot"]["line"], &misuse["call"]["line"]], [22, 10]);
    assert!(misuse["path"].as_array().is_some_and(|path| path.len() > 1), "{misuse}");
    let words = "memory was used after it was freed";
    let sarif: Value = serde_json::from_str(&told("--sarif")).expect("JSON");
    let standard = include_str!("../support/sarif.schema.json");
    assert_eq!(complaint(&serde_json::from_str(standard).expect("JSON"), &sarif), None);
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let result = results.iter().find(|r| r["ruleId"] == "why/memory").expect("a result");
    assert_eq!(result["message"]["text"], words);
    assert!(told("--markdown").contains(words));
    assert!(told("--html").contains(words));
}

/// Asks for cells, sets all but the last, and adds them up; the heap was used before.
const UNSET: &str = r#"#include <stdio.h>
#include <stdlib.h>
static int *cells(int count) {
    int *all = malloc(count * sizeof *all);
    for (int i = 0; i + 1 < count; i++)
        all[i] = i;
    return all;
}
int main(int argc, char **argv) {
    int *used = malloc(5 * sizeof *used);
    for (int i = 0; i < 5; i++)
        used[i] = 7;
    free(used);
    int *all = cells(argc + 4), sum = 0;
    for (int i = 0; i < argc + 4; i++)
        sum += all[i];
    printf("%d\n", sum);
    return argv == NULL;
}
"#;

#[test]
fn memory_that_is_used_before_it_was_set_is_told_with_where_it_came_from() {
    let (lines, err) = told("unset.c", UNSET, "6\\n");
    let words = [
        "memory was used before it was set",
        "at unset.c:16#5 in main",
        "← allocated at unset.c:4",
    ];
    assert!(have(&lines, &words), "{err}");
}

/// Copies a word into room that has none for its end; frees another block twice.
const MORE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    char *word = malloc(strlen(argv[0]));
    strcpy(word, argv[0]);
    int *big = malloc(5000 * argc), *other = malloc(5000);
    free(big);
    free(other);
    if (argc == 1)
        free(big);
    puts(word);
    return 0;
}
"#;

#[test]
fn what_is_behind_a_block_and_what_is_freed_twice_are_told() {
    let (lines, err) = told("more.c", MORE, "./prog\\n");
    let words = [
        "memory behind the end of a block was used",
        "at more.c:6",
        "allocated at more.c:5",
        "memory was freed twice",
        "at more.c:11",
        "freed before at more.c:8",
    ];
    assert!(have(&lines, &words), "{err}");
}

/// Threads that use the heap all the time, and rightly.
const RIGHT: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *number) {
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        char *text = strdup("some text");
        int *cells = malloc((i % 50 + 1) * sizeof *cells);
        cells[0] = (int)strlen(text);
        cells = realloc(cells, 2000);
        sum += cells[0];
        free(text);
        free(cells);
    }
    return (void *)(sum + (long)number);
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 1;
}
"#;

#[test]
fn nothing_is_wrong_with_memory_that_is_used_rightly() {
    let bench = Bench::new("right.c", RIGHT);
    bench.compile(&["-g", "-O0", "-pthread"]);
    let (status, _, story) = why(&bench, &["--no-edits", "--trials", "5", "./prog"]);
    assert_eq!(status, 1, "{story}");
    assert!(!story.contains("wrong with memory"), "{story}");
    assert!(!story.contains("uses of the heap"), "{story}");
}

/// Uses the heap in ways that look wrong and are not.
const ODD: &str = r#"#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
struct flags {
    unsigned first : 3, second : 5;
};
static void *work(void *number) {
    return number;
}
int main(int argc, char **argv) {
    struct flags *flags = malloc(sizeof *flags);
    flags->first = argc;
    flags->second = argc + 1;
    free(malloc(9 << 20));
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    free(malloc(1 << 18));
    char *pages = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 18; i += 512)
        pages[i] = 1;
    void *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = malloc(4000);
    for (int i = 0; i < 64; i += 2)
        free(blocks[i]);
    malloc_trim(0);
    char *whole = pvalloc(100);
    whole[4000] = 2;
    printf("%d %d\n", flags->first + flags->second, whole[4000] + pages[512]);
    return argv == NULL;
}
"#;

#[test]
fn what_only_looks_wrong_is_not_told() {
    let bench = Bench::new("odd.c", ODD);
    bench.compile(&["-g", "-O0", "-pthread"]);
    let words = ["--no-edits", "--trials", "5", "--expect-text", "3 4\\n", "--", "./prog"];
    let (_, _, story) = why(&bench, &words);
    assert!(story.contains("line 1 of standard output is \"3 3\""), "{story}");
    assert!(!story.contains("wrong with memory"), "{story}");
    assert!(!story.contains("uses of the heap"), "{story}");
}

/// A class whose method has the allocator's name.
const METHOD: &str = r#"#include <cstdio>
#include <cstdlib>
struct Pool {
    char room[64];
    void *malloc(size_t) { return room; }
};
int main(int argc, char **argv) {
    Pool pool;
    int *first = (int *)calloc(1, 16);
    free(first);
    int *second = (int *)malloc(16);
    second[0] = argc;
    printf("%d\n", second[0] + (pool.malloc(8) == nullptr));
    free(second);
    return argv == nullptr;
}
"#;

#[test]
fn a_method_with_the_name_of_the_allocator_is_not_taken_for_it() {
    let bench = Bench::new("method.cpp", METHOD);
    bench.compile(&["-g", "-O0"]);
    let words = ["--no-edits", "--trials", "5", "--expect-text", "2\\n", "--", "./prog"];
    let (_, _, story) = why(&bench, &words);
    assert!(story.contains("line 1 of standard output is \"1\""), "{story}");
    assert!(!story.contains("wrong with memory"), "{story}");
    assert!(!story.contains("uses of the heap"), "{story}");
}
