//! Regions: from one instruction to another.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A file, a pipe and the heap, used in every round.
const ROUNDS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int sum;
static int ends[2];
static FILE *source;
__attribute__((noinline)) void round_of(int n)
{
    char line[64], *copy;
    char byte = (char)n, back = 0;
    if (!fgets(line, sizeof line, source)) exit(9);
    copy = strdup(line);
    if (write(ends[1], &byte, 1) != 1 || read(ends[0], &back, 1) != 1) exit(8);
    sum += atoi(copy) + back;
    free(copy);
    printf("%d: %d\n", n, sum);
    fflush(stdout);
}
int main(void)
{
    source = fopen("numbers", "r");
    if (!source || pipe(ends)) return 7;
    for (int n = 0; n < 6; n++) round_of(n);
    return sum & 63;
}
"#;

fn rounds() -> (Place, Output) {
    let place = Place::new();
    fs::write(place.path("numbers"), "10\n20\n30\n40\n50\n60\n").expect("writes");
    let recorded = place.record("rounds", ROUNDS, &[]);
    fs::remove_file(place.path("numbers")).expect("removes");
    (place, recorded)
}

#[test]
fn f_001_31_a_region_starts_at_its_entry_and_needs_no_original() {
    let (place, recorded) = rounds();
    place.said(&["cut", "whole", "--from", "round_of#4", "-o", "part"]);
    let slice = place.said(&["slice", "whole", "rounds.c:18#last:sum", "--from", "round_of#4"]);
    fs::remove_dir_all(place.path("whole")).expect("removes");
    fs::remove_file(place.path("rounds")).expect("removes");

    let replayed = place.why(&["replay", "--verify", "part"]);
    let all = text(&recorded.stdout);
    let rest: String = all.lines().skip(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(text(&replayed.stdout), rest, "{}", text(&replayed.stderr));
    assert_eq!(replayed.status.code(), recorded.status.code());

    let seen = place.said(&["values", "part", "rounds.c:18", "sum"]);
    assert_eq!(seen.lines().count(), 3, "{seen}");
    assert!(seen.contains("sum = 106"), "{seen}");
    let again = place.said(&["slice", "part", "rounds.c:18#last:sum"]);
    let lines = |text: &str| -> Vec<String> {
        let numbers = text.lines().filter_map(|line| line.split_whitespace().next());
        numbers.filter(|word| word.parse::<u32>().is_ok()).map(str::to_owned).collect()
    };
    for line in lines(&again) {
        assert!(lines(&slice).contains(&line), "{line} of\n{again}\nis not in\n{slice}");
    }
    assert!(again.contains("sum += atoi(copy) + back;"), "{again}");

    let prompt = place.asked("part", "where\nprint n\nprint sum\nprint source != 0\n");
    assert!(prompt.contains("@0\n"), "{prompt}");
    assert!(prompt.contains("round_of#1"), "{prompt}");
    assert!(prompt.contains("\n63\n") || prompt.contains(") 63\n"), "{prompt}");
}

#[test]
fn f_001_31_a_region_may_begin_and_end_anywhere() {
    let (place, recorded) = rounds();
    let info = place.said(&["info", "whole"]);
    let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
    let counted = info.lines().find(|line| line.contains("instructions")).map(digits);
    let total: u64 = counted.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{info}"));
    let all = text(&recorded.stdout);
    for n in 1..12 {
        let (from, to) = (total * n / 13, total * (n + 1) / 13);
        let name = format!("part-{n}");
        let span = [format!("@{from}"), format!("@{to}")];
        place.said(&["cut", "whole", "--from", &span[0], "--to", &span[1], "-o", &name]);
        let replayed = place.why(&["replay", "--verify", &name]);
        assert_eq!(replayed.status.code(), Some(0), "{span:?}: {}", text(&replayed.stderr));
        assert!(all.contains(&text(&replayed.stdout)), "{span:?}");
        let inner = format!("{name}-inner");
        place.said(&["cut", &name, "--from", "@100", "-o", &inner]);
        let again = place.why(&["replay", "--verify", &inner]);
        assert_eq!(again.status.code(), Some(0), "{span:?}: {}", text(&again.stderr));
        place.said(&["trace", &inner]);
    }
}

#[test]
fn f_001_31_threads_go_on_where_they_were() {
    let place = Place::new();
    let recorded = place.record("threads", THREADS, &["-pthread"]);
    assert_eq!(recorded.status.code(), Some(5));
    place.said(&["cut", "whole", "--from", "threads.c:13#4000", "-o", "part"]);
    let replayed = place.why(&["replay", "--verify", "part"]);
    assert_eq!(replayed.status.code(), Some(5), "{}", text(&replayed.stderr));
    assert_eq!(text(&replayed.stdout), text(&recorded.stdout));
    let whole = place.said(&["values", "whole", "threads.c:13", "total", "--last", "50"]);
    let part = place.said(&["values", "part", "threads.c:13", "total", "--last", "50"]);
    let values = |text: &str| -> Vec<String> {
        text.lines().filter_map(|l| Some(l.split_once("total")?.1.to_owned())).collect()
    };
    assert_eq!(values(&whole).len(), 50, "{whole}");
    assert_eq!(values(&part), values(&whole));
}

#[test]
fn a_region_can_be_altered() {
    let (place, _) = rounds();
    place.said(&["cut", "whole", "--from", "round_of#3", "-o", "part"]);
    let said = place.why(&["what-if", "part", "set", "rounds.c:18#first", "sum=1000"]);
    let said = text(&said.stdout) + &text(&said.stderr);
    assert!(said.contains("+    3  2: 1000") && said.contains("3: 1043"), "{said}");
    let prompt = place
        .asked("part", "why set rounds.c:18#first sum=1000\nbreak rounds.c:19\nc\nprint sum\n");
    assert!(prompt.contains("sum = 1000"), "{prompt}");
}

#[test]
fn regions_of_real_programs_replay() {
    let place = Place::new();
    let sql = "create table t(x); with recursive n(i) as (select 1 union all select i+1 from n \
               where i < 400) insert into t select i*i from n; select x from t where x % 7 = 0; \
               select sum(x) from t;";
    let python = "import json\nfor i in range(40): print(i, json.dumps({'a': [i] * i})[:60])";
    for (name, command) in
        [("sqlite", vec!["sqlite3", ":memory:", sql]), ("python", vec!["python3", "-c", python])]
    {
        let recorded = place.why(&[&["record", "-o", name, "--"], &command[..]].concat());
        assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
        let part = format!("{name}-part");
        for (n, from) in ["@900001", "@2000000"].iter().enumerate() {
            let part = format!("{part}-{n}");
            place.said(&["cut", name, "--from", from, "-o", &part]);
            let replayed = place.why(&["replay", "--verify", &part]);
            assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stderr));
            let all = text(&recorded.stdout);
            assert!(all.ends_with(&text(&replayed.stdout)), "{name} from {from}");
        }
    }
}

#[test]
fn what_cannot_be_cut_is_said() {
    let (place, _) = rounds();
    let status = |arguments: &[&str]| place.why(arguments).status.code();
    assert_eq!(status(&["cut", "whole", "--from", "@90", "--to", "@10", "-o", "x"]), Some(2));
    assert_eq!(status(&["cut", "whole", "--from", "@99999999999", "-o", "y"]), Some(125));
    assert_eq!(status(&["cut", "whole", "--from", "nowhere.c:4", "-o", "z"]), Some(2));
    assert_eq!(status(&["cut", "whole", "--from", "round_of#99", "-o", "z"]), Some(1));
    assert_eq!(status(&["cut", "whole", "-o", "whole"]), Some(125));
    for name in ["x", "y", "z"] {
        assert!(!place.path(name).join("manifest.json").exists(), "{name} was made");
    }
}

#[test]
fn a_missing_recording_has_the_documented_status() {
    let place = Place::new();
    for verb in ["debug", "info", "replay"] {
        assert_eq!(place.why(&[verb, "none"]).status.code(), Some(125), "{verb}");
    }
    assert_eq!(place.why(&["debug", "--plain", "none"]).status.code(), Some(125));
    assert_eq!(place.why(&["serve-gdb", "none", "--port", "0"]).status.code(), Some(125));
    assert_eq!(place.why(&["cut", "-r", "none", "-o", "new"]).status.code(), Some(125));
    assert_eq!(place.why(&["cut", "-o", "new"]).status.code(), Some(125));
}

/// So long that somebody has the time to press ^C.
const LONG: &str = r#"
int main(void)
{
    for (volatile long i = 0; i < 300000000; i++) ;
    return 0;
}
"#;

#[test]
fn nothing_is_left_of_a_cut_that_was_interrupted() {
    let place = Place::new();
    place.record("long", LONG, &[]);
    is_interrupted(&place, &["cut", "whole", "--from", "@1000"]);
}

/// Of a slice, too: while its instructions are found, and while they are written.
#[test]
fn nothing_is_left_of_the_cut_of_a_slice_that_was_interrupted() {
    let place = Place::new();
    place.record("busy", BUSY, &[]);
    place.said(&["slice", "whole", "busy.c:10:sum", "--save", "s"]);
    is_interrupted(&place, &["cut", "whole", "--slice", "s"]);
    let mut why = place.command(&["cut", "whole", "--slice", "s", "-o", "early"]);
    let child = why.stderr(Stdio::piped()).spawn().expect("why runs");
    std::thread::sleep(Duration::from_millis(100));
    // Before there is anything to tidy up, ^C ends it as it ends any program.
    let status = interrupted(child).status;
    assert!(status.code() == Some(130) || status.signal() == Some(2), "{status}");
    assert!(!place.path("early").exists());
    // What was kept of the recording itself is as good as before.
    place.said(&["cut", "whole", "--slice", "s", "-o", "part"]);
    place.said(&["replay", "part"]);
}

/// A long slice of many stretches.
const BUSY: &str = r#"
static volatile unsigned noise;
int main(void)
{
    unsigned sum = 1;
    for (unsigned i = 0; i < 1500; i++) {
        for (volatile int n = 0; n < 1500; n++) noise += n;
        for (int n = 0; n < 500; n++) sum = sum * 31 + i;
    }
    return sum & 63;
}
"#;

/// ^C, once something has been written: status 130, and nothing is left.
fn is_interrupted(place: &Place, cut: &[&str]) {
    fs::create_dir(place.path("empty")).expect("makes");
    for (output, is_there) in [("gone", false), ("empty", true)] {
        let mut why = place.command(&[cut, &["-o", output]].concat());
        let mut child = why.stderr(Stdio::piped()).spawn().expect("why runs");
        while !place.path(output).join("manifest.json").exists() {
            assert!(child.try_wait().expect("waits").is_none(), "it ended too early");
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = interrupted(child);
        assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
        assert_eq!(text(&ended.stderr), "why: interrupted; nothing was kept\n");
        assert_eq!(place.path(output).exists(), is_there);
        if is_there {
            assert_eq!(fs::read_dir(place.path(output)).expect("a folder").count(), 0);
        }
    }
}

/// ^C, and how it ended.
fn interrupted(child: std::process::Child) -> Output {
    // `timeout` passes it on.
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill runs").success());
    child.wait_with_output().expect("ends")
}
