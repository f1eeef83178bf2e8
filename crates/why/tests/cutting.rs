//! Regions of recordings as recordings of their own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a program, and records it as `whole`.
    fn record(&self, name: &str, source: &str, flags: &[&str]) -> Output {
        let file = self.path(&format!("{name}.c"));
        fs::write(&file, source).expect("writes");
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O0"]).args(flags).arg("-o").args([&self.path(name), &file]);
        assert!(gcc.status().expect("gcc is installed (cargo xtask setup)").success());
        self.why(&["record", "-o", "whole", "--", self.path(name).to_str().expect("UTF-8")])
    }

    fn why(&self, arguments: &[&str]) -> Output {
        let output = Command::new("timeout")
            .args(["-k", "1", "300", env!("CARGO_BIN_EXE_why")])
            .args(arguments)
            .env("WHY_DIR", self.path("home"))
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("why runs");
        assert_ne!(output.status.code(), Some(124), "{arguments:?} took too long");
        output
    }

    /// What a verb that must succeed says.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.why(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the plain prompt answers.
    fn asked(&self, recording: &str, lines: &str) -> String {
        let input = self.path("asked");
        fs::write(&input, lines).expect("writes");
        let mut why = Command::new("timeout");
        why.args(["300", env!("CARGO_BIN_EXE_why"), "debug", "--plain", recording]);
        why.env("WHY_DIR", self.path("home")).current_dir(self.0.path());
        why.stdin(fs::File::open(&input).expect("opens"));
        let output = why.output().expect("why runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

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

/// Two threads that add in turns, and one that waits in a call when the cut is made.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static int ends[2];
static __thread long own;
static void *adds(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&lock);
        total += (long)arg;
        own++;
        pthread_mutex_unlock(&lock);
    }
    printf("own %ld\n", own);
    return arg;
}
static void *waits(void *arg)
{
    char c = 0;
    if (read(ends[0], &c, 1) == 1) printf("got %c\n", c);
    return arg;
}
int main(void)
{
    pthread_t a, b, c;
    if (pipe(ends)) return 1;
    pthread_create(&c, 0, waits, 0);
    pthread_create(&a, 0, adds, (void *)1);
    pthread_create(&b, 0, adds, (void *)3);
    pthread_join(a, 0);
    pthread_join(b, 0);
    if (write(ends[1], "x", 1) != 1) return 2;
    pthread_join(c, 0);
    printf("%ld\n", total);
    return 5;
}
"#;

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
