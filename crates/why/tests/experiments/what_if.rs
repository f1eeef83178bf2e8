//! Experiments with recorded runs: what is altered, and what is judged.

use crate::lab::Lab;
use serde_json::Value;

const LOOP: &str = r#"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < 100; i++) {
        if (i % 2 == 0)
            printf("even %d\n", i);
        else
            printf("odd %d\n", i);
    }
    return 0;
}
"#;

/// The lines of output that are changed, on one side.
fn changed(answer: &Value, side: &str) -> Vec<String> {
    let all = answer["output"].as_array().unwrap().iter();
    all.filter(|c| c["side"] == side).map(|c| c["text"].as_str().unwrap().to_owned()).collect()
}

// F-003-13, F-001-01, F-002-28
#[test]
fn a_switch_changes_the_one_instance_that_is_named() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    for (n, old, new) in
        [(1, "even 0", "odd 0"), (51, "even 50", "odd 50"), (100, "odd 99", "even 99")]
    {
        let answer = lab.json(&["what-if", "switch", &format!("prog.c:5#{n}")]);
        assert_eq!(changed(&answer, "-"), [old]);
        assert_eq!(changed(&answer, "+"), [new]);
        assert_eq!(answer["first_difference"], format!("prog.c:5#{n}"));
    }
    let none = lab.why(&["what-if", "switch", "prog.c:5#101"]);
    assert_eq!(none.status.code(), Some(1), "searched, and not found");
    assert!(String::from_utf8_lossy(&none.stderr).contains("100 times"));
}

// F-001-01
#[test]
fn all_and_next_select_instances() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    let all = lab.json(&["what-if", "switch", "prog.c:5#all"]);
    assert_eq!(changed(&all, "+").len(), 100);
    assert_eq!(changed(&all, "+")[..2], ["odd 0", "even 1"]);
    let two = lab.json(&["what-if", "switch", "prog.c:5#10", "switch", "prog.c:5#next"]);
    assert_eq!(changed(&two, "+"), ["even 9", "odd 10"]);
    let far = lab.json(&["what-if", "switch", "prog.c:5#3", "switch", "prog.c:5#5"]);
    assert_eq!(changed(&far, "+"), ["odd 2", "odd 3", "odd 4"]);
}

#[test]
fn values_are_set_and_statements_and_calls_left_out() {
    let source = r#"
#include <stdio.h>
static int total;
static int twice(int x) {
    return 2 * x;
}
int main(void) {
    int n = 3;
    total = 5;
    total += n;
    total = twice(total);
    printf("%d\n", total);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let output =
        |words: &[&str]| changed(&lab.json(&[&["what-if"], words].concat()), "+").join(" ");
    assert_eq!(output(&["set", "prog.c:10", "n=-1"]), "8");
    assert_eq!(output(&["set", "prog.c:10", "total=0x10"]), "38");
    assert_eq!(output(&["skip", "prog.c:10"]), "10");
    assert_eq!(output(&["skip", "prog.c:11", "=7"]), "7");
    assert_eq!(output(&["skip", "twice#1", "=1"]), "1");
    assert_eq!(output(&["skip", "prog.c:10", "set", "prog.c:11", "total=4"]), "8");
}

const CRASHES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int cell = 7;
static int *find(int which) {
    if (which == 3)
        return 0;
    return &cell;
}
static int use(int which, int quiet) {
    int *p = find(which);
    if (quiet)
        return 0;
    return *p;
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 1; i < 5; i++)
        sum += use(i, argc > 5);
    if (argc > 6)
        abort();
    printf("sum %d\n", sum);
    return 0;
}
"#;

// F-003-17, F-003-18, F-003-19
#[test]
fn the_three_cases_of_a_crash_stay_apart() {
    let lab = Lab::new(CRASHES, &["-O0"]);
    lab.record(&[], "");
    let verdict = |words: &[&str]| {
        let answer = lab.json(&[&["what-if"], words].concat());
        answer["verdict"]["word"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(&["switch", "prog.c:6#3"]), "passed", "reached, and unharmed");
    assert_eq!(verdict(&["switch", "prog.c:12#1"]), "crashed-again");
    assert_eq!(verdict(&["switch", "prog.c:12#3"]), "avoided", "never reached");
    assert_eq!(verdict(&["switch", "prog.c:6#1"]), "crashed-elsewhere", "an earlier instance");
    let found = lab.json(&["critical", "--all", "--order", "first"]);
    assert_eq!(found["verdicts"]["passed"], 1);
    assert_eq!(found["critical"][0]["position"], "prog.c:6#3");
}

// F-003-20: a loop whose exit is switched never ends.
#[test]
fn a_run_that_does_not_end_is_given_up_and_the_search_goes_on() {
    let source = r#"
#include <stdio.h>
int main(void) {
    int i = 0;
    while (i != 1000)
        i = i + 1;
    int wrong = 1;
    if (wrong)
        i = 7;
    printf("%d\n", i);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let answer = lab.json(&["what-if", "switch", "prog.c:5#1001"]);
    assert_eq!(answer["verdict"]["word"], "step-limit");
    let found = lab.json(&["critical", "--expect-text", "1000\\n", "--order", "lefs", "--all"]);
    assert_eq!(found["verdicts"]["step-limit"], 1);
    assert_eq!(found["verdicts"]["passed"], 1);
    assert_eq!(found["critical"][0]["position"], "prog.c:8");
}

// F-003-16
#[test]
fn outputs_are_compared_in_lines_and_the_first_wrong_one_is_named() {
    let source = r#"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < 10; i++)
        printf("%c\n", i == 1 || i == 8 ? 'x' : 'a' + i);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    std::fs::write(lab.path("want"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n").unwrap();
    let answer = lab.json(&["what-if", "switch", "prog.c:5#2.1", "--expect", "want"]);
    let text = answer["verdict"]["text"].as_str().unwrap();
    assert_eq!(
        text, "output is wrong from line 9 on",
        "the first one is right now, another is not"
    );
}

#[test]
fn a_command_can_judge_and_is_remembered() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    let command = "grep -q '^even 1$' $WHY_STDOUT";
    let args = ["what-if", "switch", "prog.c:5#2", "--oracle", command];
    assert_eq!(lab.json(&args)["verdict"]["word"], "passed");
    let again = lab.json(&["what-if", "switch", "prog.c:5#4"]);
    assert_eq!(again["verdict"]["word"], "rejected");
    assert_eq!(again["judged_by"], "remembered");
    let said = lab.why(&["what-if", "switch", "prog.c:5#4"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("expected of this recording before"));
}

#[test]
fn a_command_that_cannot_judge_is_no_verdict() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    for command in ["no-such-command-anywhere", "kill -9 $$"] {
        for verb in [&["what-if", "switch", "prog.c:5#2"][..], &["critical"]] {
            let ended = lab.why(&[verb, &["--oracle", command]].concat());
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(2), "{said}");
            assert!(said.contains("cannot judge"), "{said}");
        }
    }
}

#[test]
fn without_an_oracle_nothing_is_judged() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    let answer = lab.json(&["what-if", "switch", "prog.c:5#2"]);
    assert_eq!(answer["verdict"]["word"], "unjudged");
    assert_eq!(answer["judged_by"], "nowhere");
}

#[test]
fn limits_and_files_that_mean_nothing_are_refused() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    for wrong in [
        &["critical", "--expect-text", "x", "--steps", "0"][..],
        &["critical", "--expect-text", "x", "--jobs", "0"],
        &["critical", "--expect", "nowhere.txt"],
        &["what-if", "switch", "prog.c:5#2", "--expect-file", "out"],
        &["what-if", "set", "prog.c:5#2", "i=4294967296"],
    ] {
        let ended = lab.why(wrong);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}: {said}");
    }
}

// F-001-01
#[test]
fn next_may_be_where_only_the_altered_run_comes() {
    let source = r#"
#include <stdio.h>
static int check(int n) {
    if (n > 3)
        return 1;
    return 0;
}
int main(int argc, char **argv) {
    check(1);
    if (argc > 5) {
        if (argc > 6)
            puts("many");
        else
            puts("some");
        printf("%d\n", check(1));
    }
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let output = |words: &[&str]| changed(&lab.json(&[&["what-if"], words].concat()), "+");
    assert_eq!(output(&["switch", "prog.c:10"]), ["some", "0"]);
    let never = output(&["switch", "prog.c:10", "switch", "prog.c:11#next"]);
    assert_eq!(never, ["many", "0"], "a line that the recorded run never executes");
    let earlier = output(&["switch", "prog.c:10", "switch", "prog.c:4#next"]);
    assert_eq!(earlier, ["some", "1"], "a line that it executes only before");
    let chain = ["switch", "prog.c:10", "switch", "prog.c:11#next", "switch", "prog.c:4#next"];
    assert_eq!(output(&chain), ["many", "1"]);
    let set = lab.why(&["what-if", "switch", "prog.c:10", "set", "prog.c:4#next", "n=9"]);
    let said = String::from_utf8_lossy(&set.stderr).into_owned();
    assert_eq!(set.status.code(), Some(2), "{said}");
    assert!(said.contains("not executed again"), "{said}");
}

/// A function that the altered run calls from a deeper frame than the recorded one.
const DEEPER: &str = r#"
#include <stdio.h>
static int check(int n) {
    return n > 3;
}
static int deep(int n) {
    int more[8] = {n};
    return check(more[0]);
}
int main(int argc, char **argv) {
    if (argc > 5)
        printf("deep %d\n", deep(1));
    for (int i = 0; i < 3; i++)
        printf("check %d\n", check(i));
    return 0;
}
"#;

// F-001-01
#[test]
fn next_is_the_next_execution_whatever_frame_and_call_it_has() {
    let lab = Lab::new(DEEPER, &["-O0"]);
    lab.record(&[], "");
    let output = |words: &[&str]| changed(&lab.json(&[&["what-if"], words].concat()), "+");
    let deep = ["switch", "prog.c:11"];
    assert_eq!(output(&deep), ["deep 0"]);
    let set = output(&[&deep[..], &["set", "prog.c:4#next", "n=9"]].concat());
    assert_eq!(set, ["deep 1"], "a local variable is where its own frame is");
    let skipped = output(&[&deep[..], &["skip", "check#next", "=7"]].concat());
    assert_eq!(skipped, ["deep 7"], "whoever calls it");
    let all = output(&["switch", "prog.c:11#all", "set", "prog.c:4#next", "n=9"]);
    assert_eq!(all, ["deep 1"], "also behind all executions of something");
    let late =
        output(&["set", "prog.c:4#3", "n=5", "switch", "prog.c:11", "set", "prog.c:4#next", "n=9"]);
    assert_eq!(late[0], "deep 1", "and whatever else is altered later");
    let every = output(&["set", "prog.c:4#all", "n=9"]);
    assert_eq!(every, ["check 1", "check 1", "check 1"]);
    let left = output(&["skip", "check#all", "=7"]);
    assert_eq!(left, ["check 7", "check 7", "check 7"]);
}

#[test]
fn values_are_set_as_numbers_of_their_kind() {
    let source = r#"
#include <stdio.h>
static double d = 1;
static float f = 1;
static struct { int a, b; } both;
static volatile long n = 1;
int main(void) {
    both.a = 1;
    printf("%g %g %d %ld\n", d, f, both.a, n);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    for (set, line) in [
        ("d=3", "3 1 1 1"),
        ("f=-2.5", "1 -2.5 1 1"),
        ("both.a=7", "1 1 7 1"),
        ("n=-1", "1 1 1 -1"),
    ] {
        let answer = lab.json(&["what-if", "set", "prog.c:9", set]);
        assert_eq!(changed(&answer, "+"), [line], "{set}");
    }
    for wrong in ["both=5", "both.a=2.5", "f=1e39", "n=-18446744073709551615"] {
        let ended = lab.why(&["what-if", "set", "prog.c:9", wrong]);
        assert_eq!(ended.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn an_oracle_that_accepts_the_run_has_nothing_to_search_and_is_known_by_its_words() {
    let lab = Lab::new(LOOP, &["-O0"]);
    lab.record(&[], "");
    let content = lab.why(&["critical", "--oracle", "true"]);
    assert_eq!(content.status.code(), Some(1));
    assert_eq!(lab.json(&["critical", "--oracle", "false"])["critical"], serde_json::json!([]));
    let other = ["critical", "--oracle", "grep -q '^even 1$' $WHY_STDOUT", "--resume", "--order"];
    let found = lab.json(&[&other[..], &["prior"]].concat());
    assert_eq!(found["critical"][0]["position"], "prog.c:5#2", "another oracle judges anew");
}

const HOSTILE: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static volatile int never;
int main(void) {
    int fd = open("kept", O_RDONLY);
    char byte;
    read(fd, &byte, 1);
    if (never == 1)
        unlink("kept");
    if (never == 2) {
        int w = open("kept", O_WRONLY | O_TRUNC);
        write(w, "gone", 4);
    }
    if (never == 3)
        rename("kept", "moved");
    if (never == 4)
        kill(getppid(), SIGKILL);
    if (never == 5) {
        struct sockaddr_in to = {AF_INET, htons(9), {htonl(0x7f000001)}};
        int s = socket(AF_INET, SOCK_STREAM, 0);
        connect(s, (struct sockaddr *)&to, sizeof to);
    }
    if (never == 6)
        fork();
    if (never == 7)
        for (;;)
            memset(malloc(1 << 24), 1, 1 << 24);
    if (never == 8)
        for (;;)
            never = 8;
    if (never == 9)
        creat("new", 0644);
    if (never == 10)
        chmod("kept", 0);
    if (never == 11)
        execl("/bin/rm", "rm", "kept", (char *)0);
    if (never == 12)
        kill(-1, SIGTERM);
    if (never == 13)
        mkdir("folder", 0755);
    if (never == 14)
        *(volatile char *)0x51000000 = 1;
    if (never == 15)
        kill(getpid(), SIGSTOP);
    if (never == 16)
        symlink("kept", "link");
    printf("%c\n", byte);
    return 0;
}
"#;

// Nothing leaves a trial, whatever the program tries.
#[test]
fn a_hostile_program_changes_nothing_outside() {
    let lab = Lab::new(HOSTILE, &["-O0"]);
    std::fs::write(lab.path("kept"), "k").unwrap();
    lab.record(&[], "");
    let before = listing(&lab);
    let expected = [
        (1, "passed"),
        (2, "passed"),
        (3, "passed"),
        (4, "unserved"),
        (5, "unserved"),
        (6, "needs-child"),
        (7, "memory-limit"),
        (8, "step-limit"),
        (9, "passed"),
        (10, "passed"),
        (11, "needs-child"),
        (12, "unserved"),
        (13, "unserved"),
        (14, "crashed-elsewhere"),
        (15, "unserved"),
        (16, "unserved"),
    ];
    for (n, word) in expected {
        let line = lab.line(&format!("(never == {n})"));
        let position = format!("prog.c:{line}");
        let args = ["what-if", "switch", &position, "--expect-text", "k\\n", "--steps", "30000000"];
        let answer = lab.json(&args);
        assert_eq!(answer["verdict"]["word"], word, "{n}: {}", answer["verdict"]["text"]);
        assert_eq!(listing(&lab), before, "{n}");
    }
}

/// Everything in the folder that a program could have changed.
fn listing(lab: &Lab) -> Vec<(String, u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut all: Vec<_> = std::fs::read_dir(lab.path("."))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode();
            let contents = std::fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), mode, contents)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn files_of_a_trial_are_its_own_and_can_be_expected() {
    let source = r#"
#include <stdio.h>
#include <string.h>
int main(void) {
    char line[64] = "";
    FILE *f = fopen("data", "r+");
    fgets(line, sizeof line, f);
    int again = strcmp(line, "old\n") != 0;
    rewind(f);
    fputs("new\n", f);
    if (again)
        fputs("again\n", f);
    fclose(f);
    f = fopen("data", "r");
    while (fgets(line, sizeof line, f))
        fputs(line, stdout);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    std::fs::write(lab.path("data"), "old\n").unwrap();
    lab.record(&[], "");
    std::fs::write(lab.path("want"), "new\nagain\n").unwrap();
    let args = ["what-if", "switch", "prog.c:11", "--expect", "want", "--expect-file", "data=want"];
    assert_eq!(lab.json(&args)["verdict"]["word"], "passed");
    assert_eq!(std::fs::read(lab.path("data")).unwrap(), b"new\n");
}

const EMPTIED: &str = r#"
#include <stdio.h>
int main(int argc, char **argv)
{
    if (argc > 1) {
        char line[80] = "";
        FILE *old = fopen("log", "r");
        if (old && fgets(line, sizeof line, old)) printf("it held %s", line);
    }
    FILE *log = fopen("log", "w");
    fputs("new\n", log);
    fclose(log);
    puts("done");
    return 0;
}
"#;

/// Of every regular file the program opened the whole contents are kept, also of those that
/// it emptied by opening them.
#[test]
fn what_a_run_emptied_can_be_read_by_an_altered_one() {
    let lab = Lab::new(EMPTIED, &["-O0"]);
    std::fs::write(lab.path("log"), "the old text\n").expect("a file");
    lab.record(&[], "");
    let place = format!("prog.c:{}", lab.line("if (argc > 1)"));
    let answer = lab.json(&["what-if", "switch", &place]);
    assert_eq!(changed(&answer, "+"), ["it held the old text"]);
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static long sum;
static int ready;
static void *work(void *arg) {
    long id = (long)arg;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        if (id == 3 && i == 100)
            sum += 1000000;
        sum += id;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    ready++;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
    return 0;
}
int main(void) {
    pthread_t t[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], 0, work, (void *)i);
    pthread_mutex_lock(&lock);
    while (ready < 4)
        pthread_cond_wait(&more, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    printf("%ld\n", sum);
    return 0;
}
"#;

// F-001-46
#[test]
fn a_switch_in_a_run_of_threads_works_and_repeats() {
    let lab = Lab::new(THREADS, &["-O0", "-pthread"]);
    lab.record(&[], "");
    let search = ["critical", "--expect-text", "1200\\n", "--order", "lefs", "--all"];
    let found = lab.json(&search);
    let places: Vec<&str> = found["critical"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["position"].as_str().unwrap().split('#').next().unwrap())
        .collect();
    assert!(places.contains(&"prog.c:12"), "{places:?}");
    let mut again = lab.json(&[&search[..], &["--jobs", "1"]].concat());
    again["seconds"] = found["seconds"].clone();
    assert_eq!(found, again, "the same for one job and for several");
}
