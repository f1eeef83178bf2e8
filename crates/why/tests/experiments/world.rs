//! What a trial sees of the world, and what a search promises besides its answer.

use crate::lab::Lab;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// What the altered run writes, as one text.
fn output(lab: &Lab, words: &[&str]) -> String {
    let answer = lab.json(&[&["what-if"], words].concat());
    let changes = answer["output"].as_array().unwrap().iter().filter(|c| c["side"] == "+");
    let lines = changes.map(|c| c["text"].as_str().unwrap().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn standard_input_goes_on_as_recorded() {
    let source = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    char line[64];
    setvbuf(stdin, NULL, _IONBF, 0);
    fgets(line, sizeof line, stdin);
    if (argc > 1)
        printf("then %s", fgets(line, sizeof line, stdin));
    while (fgets(line, sizeof line, stdin))
        printf("left %s", line);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "one\ntwo\nthree\n");
    assert_eq!(output(&lab, &["switch", "prog.c:7"]), "then two");
}

#[test]
fn time_is_virtual() {
    let source = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    time_t before = time(NULL);
    if (argc > 1)
        sleep(100000);
    printf("%d\n", time(NULL) - before >= 100000);
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let begin = Instant::now();
    assert_eq!(output(&lab, &["switch", "prog.c:7"]), "1");
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn threads_that_all_wait_are_a_deadlock() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int swapped;
static void *work(void *argument) {
    pthread_mutex_t *a = &first, *b = &second;
    if (swapped)
        a = &second, b = &first;
    pthread_mutex_lock(a);
    pthread_mutex_lock(b);
    pthread_mutex_unlock(b);
    pthread_mutex_unlock(a);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_mutex_lock(&first);
    if (argc > 1)
        pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0", "-pthread"]);
    lab.record(&[], "");
    let answer = lab.json(&["what-if", "switch", "prog.c:19"]);
    assert_eq!(answer["verdict"]["word"], "deadlock");
}

/// The only branches that matter are a library's: its loop over digits.
#[test]
fn branches_of_libraries_are_candidates_on_demand() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    printf("%ld\n", strtol("12x", NULL, 10));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let own = lab.json(&["critical", "--expect-text", "1\\n"]);
    let all = lab.json(&["critical", "--expect-text", "1\\n", "--via-lib"]);
    let count = |report: &serde_json::Value| report["predicates"].as_u64().unwrap();
    assert_eq!((count(&own), own["critical"].as_array().unwrap().len()), (0, 0));
    assert!(count(&all) > 100, "{}", count(&all));
    assert!(!all["critical"].as_array().unwrap().is_empty(), "the loop over digits can end sooner");
}

const LONG: &str = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    volatile int seen = 0;
    for (int i = 0; i < 3000; i++)
        if (i % 3 == 0)
            seen++;
    if (argc < 2)
        puts("wrong");
    else
        puts("right");
    return 0;
}
"#;

/// ^C, after a while, and passed on twice as `timeout` does.
fn interrupt(child: &Child, after: Duration) {
    std::thread::sleep(after);
    for _ in 0..2 {
        let id = child.id().to_string();
        let _ =
            std::process::Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
    }
}

/// A search that ^C ended when it had tried something. When that is depends on the machine.
fn interrupted(lab: &Lab, words: &[&str]) -> serde_json::Value {
    for tenths in [3, 5, 8, 12, 18, 27, 40, 60, 100] {
        let child = lab.command_of_why(words).stdout(Stdio::piped()).spawn().unwrap();
        interrupt(&child, Duration::from_millis(100 * tenths));
        let ended = child.wait_with_output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
        if report["trials"].as_u64() > Some(0) {
            assert_eq!((ended.status.code(), ended.status.signal()), (Some(130), None));
            assert_eq!(report["interrupted"], true, "it is over in {tenths} tenths of a second");
            return report;
        }
    }
    panic!("no ^C came in the middle of the search");
}

// The last branch of all is the one that matters, and it is tried last.
#[test]
fn a_search_that_was_interrupted_goes_on_where_it_was() {
    let lab = Lab::new(LONG, &["-O0"]);
    lab.record(&[], "");
    let words =
        ["critical", "--expect-text", "right\\n", "--order", "first", "--jobs", "1", "--json"];
    interrupted(&lab, &words);
    let goes_on = lab.why(&[&words[..], &["--resume"]].concat());
    let said = String::from_utf8_lossy(&goes_on.stderr);
    assert!(!said.contains("this is a new one"), "{said}");
    let rest: serde_json::Value = serde_json::from_slice(&goes_on.stdout).unwrap();
    assert_eq!(rest["critical"][0]["position"], "prog.c:8");
    let whole = lab.json(&words[..words.len() - 1]);
    assert_eq!((&rest["critical"], &rest["trials"]), (&whole["critical"], &whole["trials"]));
}
