//! Runs of several processes as a user meets them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_why"));
        command.args(arguments).env("WHY_DIR", self.path("home")).current_dir(self.0.path());
        command
    }

    fn why(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("why runs")
    }

    fn info(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.why(&[&["info", "--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The process with such a last word in its command.
fn process<'a>(info: &'a serde_json::Value, word: &str) -> &'a serde_json::Value {
    let all = info["processes"].as_array().expect("processes");
    let last = |p: &serde_json::Value| p["command"].as_array()?.last()?.as_str().map(str::to_owned);
    all.iter().find(|p| last(p).as_deref() == Some(word)).expect("such a process")
}

#[test]
fn every_process_is_in_the_tree_and_replays_alone_or_with_the_others() {
    let place = Place::new();
    let script = "/bin/echo one; (/bin/echo two; exit 7); /bin/echo $?; exit 3";
    let recorded = place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    assert_eq!(recorded.status.code(), Some(3));
    assert_eq!(text(&recorded.stdout), "one\ntwo\n7\n");
    fs::rename(place.path("rec"), place.path("moved")).expect("moves");
    let replayed = place.why(&["replay", "moved", "--verify"]);
    assert_eq!(replayed.status.code(), Some(3), "{}", text(&replayed.stderr));
    assert_eq!(replayed.stdout, recorded.stdout);

    let info = place.info(&["moved"]);
    let root = info["process"].as_i64().expect("a process");
    let two = process(&info, "two");
    assert_eq!(two["outcome"]["exited"], 0);
    assert!(two["instructions"].as_u64().expect("counted") > 1000);
    let one = process(&info, "one");
    assert_eq!(one["parent"].as_i64(), Some(root));
    let pid = one["pid"].to_string();
    let alone = place.why(&["replay", "moved", "-p", &pid]);
    assert_eq!((text(&alone.stdout).as_str(), alone.status.code()), ("one\n", Some(0)));
    let alone = place.why(&["replay", "moved", "-p", &root.to_string()]);
    assert_eq!((text(&alone.stdout).as_str(), alone.status.code()), ("", Some(3)));
    assert_eq!(place.info(&["moved", "-p", &pid])["process"], one["pid"]);
    let missing = place.why(&["replay", "moved", "-p", "1"]);
    assert!(text(&missing.stderr).contains("no process 1"), "{}", text(&missing.stderr));
}

#[test]
fn a_child_that_forks_without_executing_replays_from_its_parents_beginning() {
    let place = Place::new();
    let script = "x=before; echo parent; (echo $x; x=inside; echo $x); echo $x";
    place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    let info = place.info(&["rec"]);
    let child = &info["processes"][1];
    let alone = place.why(&["replay", "rec", "--verify", "-p", &child["pid"].to_string()]);
    assert_eq!(text(&alone.stdout), "before\ninside\n");
    let own = child["instructions"].as_u64().expect("counted");
    assert!(own < info["instructions"].as_u64().expect("counted"), "the parent's are not its own");
}

#[test]
fn a_question_is_about_the_process_that_crashed() {
    let place = Place::new();
    let script = "/bin/echo fine; /bin/sh -c 'kill -SEGV $$'; echo $?";
    place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    let info = place.info(&["rec"]);
    let crashed = process(&info, "kill -SEGV $$");
    assert_eq!(crashed["outcome"]["killed"]["signal"], 11);
    let traced = place.why(&["trace", "-r", "rec"]);
    let said = text(&traced.stderr);
    assert!(said.contains(&format!("about process {}", crashed["pid"])), "{said}");
}

#[test]
fn a_killed_process_replays_as_far_as_it_went() {
    let place = Place::new();
    let script = "sleep 30 & sleep 0.5; kill -9 $!; wait $! 2>/dev/null; echo $?";
    let recorded = place.why(&["record", "-q", "-o", "rec", "/bin/bash", "-c", script]);
    assert_eq!(text(&recorded.stdout), "137\n");
    let info = place.info(&["rec"]);
    assert_eq!(process(&info, "30")["outcome"]["killed"]["signal"], 9);
    let replayed = place.why(&["replay", "rec"]);
    assert_eq!((text(&replayed.stdout).as_str(), replayed.status.code()), ("137\n", Some(0)));
}

#[test]
fn recording_ends_with_the_first_process_and_a_daemon_goes_on_being_recorded() {
    let place = Place::new();
    let script = "(sleep 2; echo late > late) > /dev/null 2>&1 & echo started";
    let begin = Instant::now();
    let recorded = place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    assert_eq!(text(&recorded.stdout), "started\n");
    assert!(!place.path("late").exists(), "it took {:?}", begin.elapsed());
    let unfinished = |info: &serde_json::Value| {
        let all = info["processes"].as_array().expect("processes");
        all.iter().any(|p| p["outcome"] == "unknown")
    };
    while unfinished(&place.info(&["rec", "-q"])) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the daemon never ended");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(fs::read_to_string(place.path("late")).expect("was written"), "late\n");
    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!(text(&replayed.stdout), "started\n");
}

#[test]
fn an_interrupt_reaches_all_processes_and_the_recording_is_whole() {
    let place = Place::new();
    let script = "trap 'echo interrupted; exit 9' INT; echo ready; sleep 30";
    let mut recorder = place
        .command(&["record", "-q", "-o", "rec", "/bin/bash", "-c", script])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("why runs");
    let second = place.path("rec/processes/2/manifest.json");
    let begin = std::time::Instant::now();
    while !second.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "there is no second process");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let group = format!("-{}", recorder.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status().expect("kill runs");
    assert!(sent.success());
    let status = recorder.wait().expect("it ends");
    assert_eq!(status.code(), Some(9));
    let replayed = place.why(&["replay", "rec", "--verify"]);
    let output = text(&replayed.stdout);
    assert_eq!((output.as_str(), replayed.status.code()), ("ready\ninterrupted\n", Some(9)));
}

#[test]
fn a_run_that_hangs_is_ended_in_time_and_its_recording_is_whole() {
    let place = Place::new();
    let script = "echo begun; sleep 100 & while :; do :; done";
    let begin = Instant::now();
    let arguments = ["record", "-q", "--timeout", "1", "-o", "rec", "/bin/sh", "-c", script];
    let recorded = place.command(&arguments).stdout(Stdio::piped()).output().expect("why runs");
    assert_eq!(recorded.status.code(), Some(128 + 15));
    assert!(begin.elapsed() < Duration::from_secs(60));
    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!((text(&replayed.stdout).as_str(), replayed.status.code()), ("begun\n", Some(143)));
    let info = place.info(&["rec"]);
    assert_eq!(process(&info, "100")["outcome"]["killed"]["signal"], 15);
}

/// A packed recording has all its processes.
#[test]
fn all_processes_are_packed() {
    let place = Place::new();
    let script = "/bin/echo one | cat; (echo two)";
    place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    assert!(place.why(&["pack", "rec", "-o", "packed"]).status.success());
    assert!(place.why(&["unpack", "packed", "-o", "unpacked"]).status.success());
    fs::remove_dir_all(place.path("rec")).expect("removes");
    let replayed = place.why(&["replay", "unpacked", "--verify"]);
    assert_eq!(text(&replayed.stdout), "one\ntwo\n", "{}", text(&replayed.stderr));
}

#[test]
fn the_largest_size_counts_all_processes_together() {
    let place = Place::new();
    // Each of them alone stays far below.
    let script = "for i in 1 2 3 4 5 6 7 8; do head -c 600000 /dev/urandom | wc -c; done";
    let run = |size: &str, name: &str| {
        place.why(&["record", "-q", "-o", name, "--max-size", size, "/bin/sh", "-c", script])
    };
    let enough = run("100M", "whole");
    assert_eq!(enough.status.code(), Some(0), "{}", text(&enough.stderr));
    let captured = place.info(&["whole"])["file_bytes"].as_u64().expect("bytes");
    let stopped = run(&format!("{}", captured + 2_000_000), "cut");
    assert_eq!(stopped.status.code(), Some(125), "{}", text(&stopped.stderr));
    let said = text(&stopped.stderr);
    assert_eq!(said.matches("reached its limit").count(), 1, "said once, not by each: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let replayed = place.why(&["replay", "cut"]);
    assert!(text(&replayed.stdout).starts_with("600000\n"), "what came before replays");
}

#[test]
fn memory_of_system_v_is_not_offered_and_the_program_is_told() {
    let place = Place::new();
    let asked = place.why(&["record", "-q", "-o", "rec", "ipcmk", "-M", "4096"]);
    assert!(text(&asked.stderr).contains("not implemented"), "{}", text(&asked.stderr));
    assert_eq!(place.info(&["rec"])["unsupported_calls"]["shmget"], 1);
}

/// A Python program that maps a file of one page shared, says so, and waits for a line.
const MAPS: &str = "import mmap, sys; f = open(sys.argv[1], 'r+b'); \
    m = mmap.mmap(f.fileno(), 4096); print('mapped', flush=True); m[0] = 65; sys.stdin.readline()";

/// The same for reading only.
const LOOKS: &str = "import mmap, sys; f = open(sys.argv[1], 'rb'); \
    m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ); print(m[0], flush=True)";

/// A process that is not recorded and has a file mapped, until it is dropped.
struct Outsider(std::process::Child);

impl Outsider {
    fn with(file: &str) -> Outsider {
        use std::io::{BufRead, BufReader};
        let mut python = Command::new("python3");
        python.args(["-c", MAPS, file]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut outside = python.spawn().expect("python3 runs");
        let mut line = String::new();
        let said = outside.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut line).expect("a line");
        assert_eq!(line, "mapped\n");
        Outsider(outside)
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn memory_shared_with_a_process_that_is_not_recorded_is_refused_by_name() {
    let place = Place::new();
    let file = place.path("shared").display().to_string();
    fs::write(&file, [0; 4096]).expect("a file");
    let alone = place.why(&["record", "-q", "-o", "alone", "python3", "-c", MAPS, &file]);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));

    let outside = Outsider::with(&file);
    for (name, program) in [("writes", MAPS), ("reads", LOOKS)] {
        let refused = place.why(&["record", "-q", "-o", name, "python3", "-c", program, &file]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(125), "{said}");
        let who = format!("and so does process {}, which is not recorded", outside.0.id());
        assert!(said.contains(&who) && said.contains("/shared"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let replayed = place.why(&["replay", name]);
        assert!(text(&replayed.stderr).contains("breaks off"), "{}", text(&replayed.stderr));
    }
}

#[test]
fn a_process_that_comes_to_share_memory_later_is_refused_too() {
    let place = Place::new();
    let file = place.path("shared").display().to_string();
    fs::write(&file, [0; 4096]).expect("a file");
    let looks = "import mmap, sys, time; f = open(sys.argv[1], 'r+b'); \
        m = mmap.mmap(f.fileno(), 4096); print('mapped', flush=True); \
        [time.sleep(0.1) for i in range(600)]";
    let mut record = place.command(&["record", "-q", "-o", "rec", "python3", "-c", looks, &file]);
    let mut record = record.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let mut line = [0; 7];
    use std::io::Read;
    record.stdout.as_mut().expect("its output").read_exact(&mut line).expect("a line");
    let outside = Outsider::with(&file);
    let output = record.wait_with_output().expect("ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains(&format!("process {}, which is not", outside.0.id())), "{said}");
}

#[test]
fn memory_shared_by_recorded_processes_only_is_not_refused() {
    let place = Place::new();
    let file = place.path("shared").display().to_string();
    fs::write(&file, [0; 4096]).expect("a file");
    // Both have it mapped for a second; whichever comes second sees the other.
    let maps = MAPS.replace("sys.stdin.readline()", "import time; time.sleep(1)");
    let script = format!("python3 -c \"{maps}\" \"$0\" & python3 -c \"{maps}\" \"$0\"; wait");
    let recorded = place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", &script, &file]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!(text(&replayed.stdout), "mapped\nmapped\n", "{}", text(&replayed.stderr));
}

#[test]
fn who_kills_the_recorder_kills_the_program() {
    let place = Place::new();
    let script = "echo before; echo $$ > pid; exec sleep 60";
    let mut recorder = place
        .command(&["record", "-q", "-o", "rec", "/bin/sh", "-c", script])
        .stdout(Stdio::null())
        .spawn()
        .expect("why runs");
    let begin = Instant::now();
    let program = loop {
        match fs::read_to_string(place.path("pid")) {
            Ok(pid) if pid.ends_with('\n') => break PathBuf::from("/proc").join(pid.trim()),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the program does not begin");
    };
    assert!(program.exists());
    recorder.kill().expect("it can be killed");
    recorder.wait().expect("it ends");
    let begin = Instant::now();
    while program.join("exe").read_link().is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(20), "the program goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let replayed = place.why(&["replay", "rec"]);
    assert_eq!(text(&replayed.stdout), "before\n", "{}", text(&replayed.stderr));
}

/// What is to happen when the recorder dies is no business of the program's.
#[test]
fn a_program_sees_its_own_signal_for_the_death_of_its_parent() {
    let place = Place::new();
    let source = r#"
#include <stdio.h>
#include <signal.h>
#include <sys/prctl.h>
int main(void) {
    int first = -1, second = -1;
    prctl(PR_GET_PDEATHSIG, &first);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    prctl(PR_GET_PDEATHSIG, &second);
    printf("%d %d\n", first, second == SIGUSR1);
}
"#;
    fs::write(place.path("p.c"), source).expect("writes");
    let gcc = Command::new("gcc").args(["-o", "p", "p.c"]).current_dir(place.0.path()).status();
    assert!(gcc.expect("gcc is installed (cargo xtask setup)").success());
    let recorded = place.why(&["record", "-q", "-o", "rec", "./p"]);
    assert_eq!(text(&recorded.stdout), "0 1\n", "{}", text(&recorded.stderr));
    let replayed = place.why(&["replay", "rec", "--verify"]);
    assert_eq!(text(&replayed.stdout), "0 1\n", "{}", text(&replayed.stderr));
}
