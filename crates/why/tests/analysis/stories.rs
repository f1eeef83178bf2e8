//! `why explain`, `why PROG` and `why demo`.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::promises::{complaint, schema};
use crate::support::Bench;

/// Looks a key up in a list, and dies where it is not there.
const LOOKUP: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct node { int key; struct node *next; };
static struct node *find(struct node *list, int key) {
    while (list && list->key != key)
        list = list->next;
    return list;
}
int main(int argc, char **argv) {
    struct node last = { 30, NULL }, first = { 10, &last };
    int key = atoi(argv[1]);
    struct node *hit = find(&first, key);
    printf("found %d\n", hit->key);
    return argc > 2;
}
"#;

/// Adds one too many.
const SUM: &str = r#"#include <stdio.h>
int list[5] = { 1, 2, 3, 4, 100 };
static int sum(int n) {
    int total = 0;
    for (int i = 0; i <= n; i++)
        total += list[i];
    return total;
}
int main(void) {
    printf("sum %d\n", sum(4));
    return 0;
}
"#;

/// Runs `why` with these words: its status, what it wrote to standard output and to standard
/// error.
pub fn why(bench: &Bench, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(words)
        .current_dir(bench.folder())
        .env("WHY_DIR", bench.path("home"))
        .stdin(Stdio::null())
        .output()
        .expect("why runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_crash_is_explained_and_the_program_keeps_its_status_and_output() {
    let bench = Bench::new("lookup.c", LOOKUP);
    bench.compile(&["-g", "-O0"]);
    let (status, out, err) = why(&bench, &["./prog", "20"]);
    assert_eq!((status, out.as_str()), (139, ""), "{err}");
    assert!(err.contains("a null pointer"), "{err}");
    for part in ["What failed", "How it came about", "Where to look", "lookup.c:13", "hit = NULL"] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(err.lines().all(|line| line.chars().count() <= 80), "{err}");
}

/// Jumps to where its argument says, in the way its other argument says.
const STRAY: &str = r#"#include <immintrin.h>
#include <stdlib.h>
#include <string.h>
__attribute__((target("avx2"))) static int gather(const int *from)
{
    return _mm256_extract_epi32(_mm256_i32gather_epi32(from, _mm256_set1_epi32(4), 4), 0);
}
static unsigned long scan(const char *text)
{
    unsigned long count = -1;
    __asm__ volatile("repne scasb" : "+D"(text), "+c"(count) : "a"(0) : "memory");
    return ~count;
}
static void overwrite(unsigned long target)
{
    volatile unsigned long *frame = __builtin_frame_address(0);
    frame[1] = target;
}
int main(int argc, char **argv)
{
    if (argc < 3) return 0;
    unsigned long target = strtoul(argv[2], NULL, 16);
    if (!strcmp(argv[1], "return")) overwrite(target);
    if (!strcmp(argv[1], "call")) ((void (*)(void))target)();
    if (!strcmp(argv[1], "gather")) return gather((const int *)target);
    if (!strcmp(argv[1], "scan")) return (int)scan((const char *)target);
    if (!strcmp(argv[1], "bytes")) __asm__ volatile(".byte 0x06");
    if (!strcmp(argv[1], "method")) (*(void (**)(void))target)();
    if (!strcmp(argv[1], "read")) return *(volatile char *)target;
    return 0;
}
"#;

#[test]
fn where_a_branch_wanted_to_go_is_told_if_nothing_is_there() {
    let bench = Bench::new("stray.c", STRAY);
    bench.compile(&["-g", "-O0", "-fno-stack-protector"]);
    for (way, target, told) in [
        ("return", "4141414141414141", "returning to 0x4141414141414141, which is no address"),
        ("return", "41414140", "returning to address 0x41414140, where no code is"),
        ("call", "4141414141414141", "calling 0x4141414141414141, which is no address"),
        ("call", "0", "calling address 0x0, a null pointer"),
        ("gather", "41414100", "reading from address 0x41414110, which is not there"),
        ("scan", "0", "reading from address 0x0, a null pointer"),
        ("method", "10", "reading from address 0x10, a null pointer"),
        ("read", "4141414141414141", "reading from 0x4141414141414141, which is no address"),
        ("read", "41414141", "reading from address 0x41414141, which is not there"),
    ] {
        let (status, _, err) = why(&bench, &["./prog", way, target]);
        assert_eq!(status, 139, "{err}");
        assert!(err.contains(&format!("SIGSEGV: {told}")), "{way} {target}: {err}");
    }
    let (status, _, err) = why(&bench, &["./prog", "bytes", "0"]);
    assert_eq!(status, 132, "{err}");
    assert!(err.contains("at stray.c:27 in main"), "{err}");
}

/// Fails in the way its first argument says: what is read is found by an index, a return
/// address is written over, or a constant is written out.
const WAYS: &str = r#"#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int table[16];
static int index_of[8];
__attribute__((target("avx2"))) static int gather(void)
{
    __m256i where = _mm256_loadu_si256((const __m256i *)index_of);
    return _mm256_extract_epi32(_mm256_i32gather_epi32(table, where, 4), 0);
}
static void overwrite(unsigned long target)
{
    volatile unsigned long *frame = __builtin_frame_address(0);
    frame[1] = target;
}
int main(int argc, char **argv)
{
    if (argv[1][0] == '?') argc++;
    if (argc == 2) {
        write(2, "how?\n", 5);
        return 1;
    }
    if (argv[1][0] == 'r') overwrite(0x4141414141414141);
    index_of[3] = atoi(argv[2]);
    return gather();
}
"#;

#[test]
fn an_index_of_a_gather_a_smashed_return_and_a_constant_are_followed() {
    let bench = Bench::new("ways.c", WAYS);
    bench.compile(&["-g", "-O0", "-fno-stack-protector"]);
    for (way, status, told) in [
        (&["gather", "500000000"][..], 139, "index_of[3] = atoi(argv[2]);"),
        (&["return", "1"], 139, "frame[1] = target;"),
        (&["x"], 1, "if (argc == 2) {"),
    ] {
        let (recorded, ..) = why(&bench, &[&["record", "-q", "./prog"], way].concat());
        assert_eq!(recorded, status, "{way:?}");
        let (_, slice, _) = why(&bench, &["slice"]);
        assert!(slice.contains(told), "{way:?}: {slice}");
        if status == 139 {
            // It makes no difference.
            let (_, verdict, _) = why(&bench, &["what-if", "switch ways.c:19"]);
            assert!(verdict.contains("it crashes at the same point again"), "{way:?}: {verdict}");
        }
    }
}

#[test]
fn wrong_output_is_explained_by_the_branch_that_would_have_helped() {
    let bench = Bench::new("sum.c", SUM);
    bench.compile(&["-g", "-O0"]);
    let words = ["-o", "story.json", "--json", "--expect-text", "sum 10\\n", "--", "./prog"];
    let (status, out, err) = why(&bench, &words);
    assert_eq!((status, out.as_str()), (1, "sum 110\n"), "{err}");
    let story = std::fs::read_to_string(bench.path("story.json")).expect("a story");
    let story: serde_json::Value = serde_json::from_str(&story).expect("JSON");
    assert_eq!(story["failure"]["kind"], "wrong-output");
    assert_eq!(story["critical"][0]["spot"]["line"], 5);
    let places = story["suspects"].as_array().expect("places");
    assert!(places.iter().take(2).any(|p| p["spot"]["line"] == 5), "{places:?}");
    let edits = story["edits"].as_array().expect("edits");
    let boundary = "the comparison treats equal values the other way";
    assert!(edits.iter().any(|e| e["spot"]["line"] == 5 && e["change"] == boundary), "{edits:?}");
    assert_eq!(complaint(&schema("explain"), &story), None);
}

#[test]
fn a_run_that_does_what_is_expected_gets_one_line() {
    let bench = Bench::new("sum.c", SUM);
    bench.compile(&["-g", "-O0"]);
    let (status, out, err) = why(&bench, &["--expect-text", "sum 110\\n", "--", "./prog"]);
    assert_eq!((status, out.as_str()), (0, "sum 110\n"));
    assert!(err.contains("the run did what was expected of it"), "{err}");
    let (status, out, _) = why(&bench, &["explain", "-q"]);
    assert_eq!((status, out.lines().count()), (0, 1), "{out}");
}

#[test]
fn a_story_can_be_had_for_editors_and_bug_reports() {
    let bench = Bench::new("lookup.c", LOOKUP);
    bench.compile(&["-g", "-O0"]);
    why(&bench, &["record", "-q", "./prog", "20"]);
    let (status, out, err) = why(&bench, &["explain", "-q", "--sarif"]);
    assert_eq!(status, 0, "{err}");
    let sarif: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let first = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(first["region"]["startLine"], 13);
    let (_, out, _) = why(&bench, &["explain", "-q", "--markdown"]);
    assert!(out.starts_with("## `./prog 20` failed"), "{out}");
    let (_, out, _) = why(&bench, &["explain", "-q", "--html"]);
    assert!(out.starts_with("<!doctype html>") && out.contains("lookup.c:13"));
}

#[test]
fn a_form_that_needs_a_file_asks_for_one() {
    let bench = Bench::new("sum.c", SUM);
    bench.compile(&["-g", "-O0"]);
    let (status, out, err) = why(&bench, &["--json", "--", "./prog"]);
    assert_eq!((status, out.as_str()), (125, ""));
    assert!(err.contains("-o FILE"), "{err}");
}

#[test]
fn the_demonstration_names_the_faulty_line() {
    let bench = Bench::new("sum.c", SUM);
    let (status, out, err) = why(&bench, &["demo"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("switch receipt.c:34#2 in discount"), "{out}");
}

/// Takes an element that is not there. The check is in the library's code, and behind it
/// comes a backtrace, a thousand times as long as the run.
const PANIC: &str = r#"fn place(items: &[u32]) -> usize {
    let total: u32 = items.iter().sum();
    total as usize - 3
}
fn main() {
    let items = vec![1, 2, 4];
    let at = place(&items);
    let taken = items[at];
    println!("{taken}");
}
"#;

#[test]
fn a_panic_is_explained_by_what_was_before_it_and_not_by_its_backtrace() {
    let bench = Bench::new("panic.rs", PANIC);
    bench.compile(&["-g"]);
    let recorded = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(["record", "-q", "./prog"])
        .current_dir(bench.folder())
        .envs([("WHY_DIR", bench.path("home").into_os_string()), ("RUST_BACKTRACE", "1".into())])
        .output()
        .expect("why runs");
    assert_eq!(recorded.status.code(), Some(101));
    let story = why(&bench, &["explain", "--json"]).1;
    let story: serde_json::Value = serde_json::from_str(&story).expect("JSON");
    assert!(story["instructions"].as_u64() > Some(10_000_000), "there is no backtrace");
    let steps = story["path"].as_array().expect("a path").iter();
    let lines: Vec<u64> = steps.filter_map(|step| step["spot"]["line"].as_u64()).collect();
    assert!(lines[0] == 8 && lines.len() > 1, "{lines:?}");
    assert!(story["tried"]["trials"].as_u64() > Some(0), "{}", story["tried"]);
}

/// Never takes the last element, so that it never ends.
const SPIN: &str = r#"#include <stdio.h>
int main(void) {
    volatile int left = 5;
    while (left != 0)
        if (left != 1)
            left--;
    puts("empty");
    return 0;
}
"#;

#[test]
fn a_program_that_spins_is_explained_by_what_it_does_over_and_over() {
    let bench = Bench::new("spin.c", SPIN);
    bench.compile(&["-g", "-O0"]);
    let (_, _, err) = why(&bench, &["--timeout", "1", "--time", "3s", "--", "./prog"]);
    assert!(err.contains("the program had not ended after 1 s"), "{err}");
    assert!(err.contains("spin.c:5"), "{err}");
    assert!(err.contains("only the beginning of the long run was looked at"), "{err}");
    // Other questions about it are answered in time and in memory, too.
    let (status, out, err) = why(&bench, &["values", "spin.c:5", "left", "--first", "2"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("left = "), "{out}");
    assert!(err.contains("the program hung; only its first 300,"), "{err}");
    // A part is not kept as if it were the whole.
    let (_, out, err) = why(&bench, &["trace", "--json"]);
    let traced: serde_json::Value = serde_json::from_str(&out).expect(&err);
    assert_eq!((&traced["complete"], &traced["stored_bytes"]), (&false.into(), &().into()));
}

/// Begins to add with the wrong number, and checks what it has.
const CHECKED: &str = r#"#include <assert.h>
#include <stdio.h>
static int sum(int n) {
    int total = 0;
    for (int i = 2; i <= n; i++)
        total += i;
    return total;
}
int main(void) {
    int total = sum(4);
    assert(total == 10);
    printf("%d\n", total);
    return 0;
}
"#;

#[test]
fn a_failed_assertion_is_told_as_one_and_explained_by_what_would_have_kept_it() {
    let bench = Bench::new("checked.c", CHECKED);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&[], ""), 134);
    let story = bench.json(&["explain", "--time", "10s"]);
    assert_eq!(story["failure"]["kind"], "assertion");
    let sentence = story["failure"]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("Assertion `total == 10' failed"), "{sentence}");
    let edits = story["edits"].as_array().expect("edits");
    assert!(edits.iter().any(|e| e["spot"]["line"] == 5), "{edits:?}");
    let silenced = edits.iter().any(|e| e["change"].as_str().unwrap().contains("not called"));
    assert!(!silenced, "that nobody complains is no cure: {edits:?}");
}

/// Counts words, and the last one twice.
const WORDS: &str = r#"#include <stdio.h>
int main(void) {
    int words = 0, c, inside = 0;
    const char *text = "one two three";
    for (int i = 0; (c = text[i]); i++) {
        if (c != ' ' && !inside)
            words++;
        inside = c != ' ';
    }
    if (inside)
        words++;
    printf("words %d\n", words);
    return 0;
}
"#;

#[test]
fn a_command_judges_the_run_and_its_trials() {
    let bench = Bench::new("words.c", WORDS);
    bench.compile(&["-g", "-O0"]);
    let right = "grep -q 'words 4' $WHY_STDOUT";
    let (status, out, err) = why(&bench, &["--oracle", right, "--", "./prog"]);
    assert_eq!((status, out.as_str()), (0, "words 4\n"), "{err}");
    assert!(err.contains("the oracle accepts the run"), "{err}");
    let wrong = "grep -q 'words 3' $WHY_STDOUT";
    let words = ["-o", "story.json", "--json", "--oracle", wrong, "--", "./prog"];
    let (status, _, err) = why(&bench, &words);
    assert_eq!(status, 1, "{err}");
    let story = std::fs::read_to_string(bench.path("story.json")).expect("a story");
    let story: serde_json::Value = serde_json::from_str(&story).expect("JSON");
    assert_eq!(story["failure"]["kind"], "rejected");
    assert_eq!(story["failure"]["spot"]["line"], 12);
    let lines: Vec<_> = story["critical"].as_array().expect("branches").iter().collect();
    assert!(lines.iter().any(|c| c["spot"]["line"] == 10), "{lines:?}");
    let outcomes = story["tried"]["outcomes"].to_string();
    assert!(outcomes.contains("rejected") && !outcomes.contains("unjudged"), "{outcomes}");
    assert_eq!(complaint(&schema("explain"), &story), None);
}

/// Leaves a wrong number in a file.
const FILE: &str = r#"#include <stdio.h>
int main(void) {
    FILE *f = fopen("out.txt", "w");
    int n = 3;
    if (n > 3)
        n = 10;
    fprintf(f, "numbers\nn %d\n", n);
    fclose(f);
    fprintf(stderr, "done\n");
    return 0;
}
"#;

#[test]
fn a_wrong_file_is_named_with_its_first_wrong_line() {
    let bench = Bench::new("file.c", FILE);
    bench.compile(&["-g", "-O0"]);
    std::fs::write(bench.path("want.txt"), "numbers\nn 10\n").expect("written");
    let (status, _, err) = why(&bench, &["--expect-file", "out.txt=want.txt", "--", "./prog"]);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains(r#"line 2 of out.txt is "n 3", expected "n 10""#), "{err}");
    assert!(err.contains("at file.c:7 in main"), "{err}");
    assert!(err.contains("switch file.c:5 in main"), "{err}");
    std::fs::write(bench.path("want.txt"), "numbers\nn 3\n").expect("written");
    let (status, _, err) = why(&bench, &["--expect-file", "out.txt=want.txt", "--", "./prog"]);
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("the run did what was expected of it"), "{err}");
}

#[test]
fn what_is_expected_is_read_before_the_program_runs() {
    let bench = Bench::new("sum.c", SUM);
    bench.compile(&["-g", "-O0"]);
    let (status, out, err) = why(&bench, &["--expect", "nosuch.txt", "--", "./prog"]);
    assert_eq!((status, out.as_str(), err.lines().count()), (125, "", 1), "{err}");
    assert!(err.contains("nosuch.txt"), "{err}");
}

/// Two threads take two locks, each in its own order.
const LOCKS: &str = r#"#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *work(void *p) {
    pthread_mutex_t *first = p ? &a : &b, *second = p ? &b : &a;
    pthread_mutex_lock(first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(second);
    return p;
}
int main(void) {
    pthread_t one, other;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&one, 0, work, 0);
    pthread_create(&other, 0, work, &both);
    pthread_join(one, 0);
    return 0;
}
"#;

#[test]
fn a_recording_remembers_that_its_run_hung() {
    let bench = Bench::new("locks.c", LOCKS);
    bench.compile(&["-g", "-O0", "-pthread"]);
    let (status, _, err) = why(&bench, &["record", "-q", "--timeout", "1", "./prog"]);
    assert_eq!(status, 143, "{err}");
    let (_, out, err) = why(&bench, &["explain", "-q"]);
    assert!(out.contains("had not ended after 1 s: a deadlock, all its 3 threads"), "{out}{err}");
}

#[test]
fn who_only_passes_on_a_failure_names_the_one_that_failed() {
    let bench = Bench::new("sum.c", SUM);
    let (status, _, err) = why(&bench, &["record", "-q", "sh", "-c", "ls /nosuch; exit 3"]);
    assert_eq!(status, 3, "{err}");
    let (_, _, err) = why(&bench, &["explain", "--time", "5s"]);
    assert!(err.contains("(ls /nosuch) failed by itself"), "{err}");
    let (_, out, err) = why(&bench, &["explain", "-q", "--time", "5s"]);
    assert!(!err.contains("by itself"), "{err}");
    assert!(out.contains("has no debug information") && !out.contains("lines executed"), "{out}");
}

#[test]
fn a_story_about_an_interpreter_says_that_it_is_not_about_the_script() {
    let bench = Bench::new("none.c", "");
    let (status, _, err) = why(&bench, &["--time", "5s", "--", "/usr/bin/perl", "-e", "exit 3"]);
    assert_eq!(status, 3, "{err}");
    let said = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("perl is an interpreter: this is about its own code"), "{err}");
}

#[test]
fn branches_alone_are_switched_where_nothing_else_is_wanted() {
    let bench = Bench::ran("sum.c", SUM, &["-g", "-O0"], &[]);
    let words = ["explain", "--expect-text", "sum 10\\n"];
    let all = bench.json(&words);
    assert!(all["tried"]["edits"].as_u64() > Some(0), "{}", all["tried"]);
    let branches = bench.json(&[&words[..], &["--no-edits"]].concat());
    assert_eq!(branches["tried"]["edits"], 0);
    assert_eq!(branches["edits"].as_array().map(Vec::len), Some(0));
    assert_eq!(branches["critical"], all["critical"]);
}

/// What a comparison says is wrong more than once, and no branch decides by it at once.
const DESCENDING: &str = r#"#include <stdio.h>
static int goes_first(int a, int b) {
    return a > b;
}
int main(void) {
    int list[] = { 3, 1, 2 };
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (goes_first(list[j], list[i])) {
                int kept = list[i];
                list[i] = list[j];
                list[j] = kept;
            }
    printf("%d %d %d\n", list[0], list[1], list[2]);
    return 0;
}
"#;

#[test]
fn a_condition_that_is_wrong_each_time_is_switched_in_all_its_executions() {
    let bench = Bench::ran("descending.c", DESCENDING, &["-g", "-O0"], &[]);
    let story = bench.json(&["explain", "--no-edits", "--expect-text", "1 2 3\\n"]);
    let critical = story["critical"].as_array().expect("a list");
    let throughout = critical.iter().filter(|c| c["throughout"].is_string());
    let lines: Vec<u64> = throughout.filter_map(|c| c["spot"]["line"].as_u64()).collect();
    assert!(lines.contains(&3), "{critical:?}");
    assert!(story["tried"]["throughout"].as_u64() > Some(0), "{}", story["tried"]);
    assert_eq!(story["edits"].as_array().map(Vec::len), Some(0));
}

/// A number is printed: its digits are looked up in a table of the library.
const PRINTED: &str = r#"#include <stdio.h>
static int weight(int grams) {
    int kilos = grams / 100;
    return kilos;
}
int main(void) {
    int all = weight(4000) + 1;
    printf("%d kg\n", all);
    return 0;
}
"#;

#[test]
fn digits_lead_back_to_the_number_that_they_stand_for() {
    let bench = Bench::ran("printed.c", PRINTED, &["-g", "-O0"], &[]);
    let story = bench.json(&["explain", "--no-edits", "--expect-text", "5 kg\\n"]);
    let suspects = story["suspects"].as_array().expect("a list");
    let by_values = |s: &&serde_json::Value| {
        let reasons = s["reasons"].as_array().expect("a list").iter();
        reasons.filter_map(|r| r.as_str()).any(|r| r.ends_with("by values"))
    };
    let lines: Vec<u64> =
        suspects.iter().filter(by_values).filter_map(|s| s["spot"]["line"].as_u64()).collect();
    assert!(lines.contains(&3), "{suspects:?}");
}

/// It complains, tidies up and ends.
const COMPLAINS: &str = r#"#include <stdio.h>
static int tidy(int n) {
    int left = 0;
    for (int i = 0; i < n; i++)
        if (i % 2)
            left++;
    return left;
}
int main(int argc, char **argv) {
    int limit = argc + 1;
    int asked = 7;
    if (asked > limit)
        fprintf(stderr, "too many: %d\n", asked);
    int left = tidy(20);
    return asked > limit ? 1 : left * 0;
}
"#;

#[test]
fn a_run_that_complains_is_looked_at_from_its_complaint() {
    let bench = Bench::ran("complains.c", COMPLAINS, &["-g", "-O0"], &[]);
    let story = bench.json(&["explain", "--no-edits"]);
    let suspects = story["suspects"].as_array().expect("a list");
    let lines: Vec<u64> =
        suspects.iter().take(5).filter_map(|s| s["spot"]["line"].as_u64()).collect();
    assert!(lines.contains(&11) && lines.contains(&12), "{lines:?}");
    assert!(!lines.contains(&4), "tidying up came after: {lines:?}");
    let reasons = |line: u64| {
        let found = suspects.iter().find(|s| s["spot"]["line"] == line).expect("a suspect");
        found["reasons"].to_string()
    };
    assert!(reasons(13).contains("it is where the failure shows"), "{}", reasons(13));
    let story = story.to_string();
    assert!(!story.contains("goes right for longer"), "it ends as wrongly as before: {story}");
}

/// One thread waits for ever, and another one ends after that.
const LEFT_ALONE: &str = r#"#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void *waits(void *p) {
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&never, &lock);
    return p;
}
static void *ends(void *p) {
    usleep(200000);
    return p;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, waits, 0);
    pthread_create(&other, 0, ends, 0);
    pthread_join(one, 0);
    return 0;
}
"#;

#[test]
fn a_hang_is_shown_where_a_thread_waits_and_not_where_one_ended() {
    let bench = Bench::new("alone.c", LEFT_ALONE);
    bench.compile(&["-g", "-O0", "-pthread"]);
    why(&bench, &["record", "-q", "--timeout", "1", "./prog"]);
    let story = bench.json(&["explain"]);
    assert_eq!(story["failure"]["spot"]["line"], 18, "{}", story["failure"]);
}

#[test]
fn a_program_that_somebody_ended_because_it_hung_is_explained_as_one_that_hangs() {
    let bench = Bench::new("spin.c", SPIN);
    bench.compile(&["-g", "-O0"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(["--time", "3s", "--", "./prog"])
        .current_dir(bench.folder())
        .env("WHY_DIR", bench.path("home"))
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("why runs");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status().expect("kill runs");
    assert!(sent.success());
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("reads");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{err}");
    assert!(err.contains("the program had not ended after "), "{err}");
    assert!(err.contains("spin.c:5"), "{err}");
}

#[test]
fn each_of_two_that_run_at_once_tells_its_own_story() {
    let source = "#include <stdio.h>\nint main(int c, char **v) { puts(v[c - 1]); return 0; }\n";
    let bench = Bench::new("at_once.c", source);
    bench.compile(&["-g", "-O0"]);
    let story = |word: &str| {
        let words = ["--no-edits", "--trials", "1", "--expect-text", "x", "--", "./prog", word];
        why(&bench, &words).2
    };
    for _ in 0..3 {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| story("two"));
            let one = story("one");
            let two = other.join().expect("it does not panic");
            assert!(one.contains("standard output is \"one\""), "{one}");
            assert!(two.contains("standard output is \"two\""), "{two}");
        });
    }
}
