//! Faults that the usual schedule never shows are found when it varies, and replay (F-001-42).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Bench {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    fn with(name: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chaos").join(name);
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O0", "-pthread", "-o"]).arg(&program);
        assert!(gcc.arg(source.with_extension("c")).status().unwrap().success());
        Bench { folder, program }
    }

    fn why(&self, words: &[&str]) -> Output {
        let mut why = Command::new(env!("CARGO_BIN_EXE_why"));
        why.args(words).env("WHY_DIR", self.folder.path().join("home")).stdin(Stdio::null());
        why.output().unwrap()
    }

    /// The plain schedule does not show it; a varied one does, and what it shows replays.
    fn is_found(&self, status: i32) {
        let program = self.program.to_str().unwrap();
        let limits = ["--timeout", "5", "--until-failure"];
        let plain = [&["record"][..], &limits, &["10", program]].concat();
        let plain = self.why(&plain);
        assert_eq!(plain.status.code(), Some(0), "{}", String::from_utf8_lossy(&plain.stderr));
        let varied = [&["record", "--chaos=1"][..], &limits, &["200", program]].concat();
        let varied = self.why(&varied);
        let said = String::from_utf8_lossy(&varied.stderr);
        assert_eq!(varied.status.code(), Some(status), "{said}");
        assert!(said.contains("chaos seed"), "{said}");
        for _ in 0..3 {
            let again = self.why(&["replay", "-q", "--verify"]);
            assert_eq!(
                again.status.code(),
                Some(status),
                "{}",
                String::from_utf8_lossy(&again.stderr)
            );
        }
    }
}

#[test]
fn a_lost_update_is_found() {
    Bench::with("lost_update").is_found(1);
}

#[test]
fn a_check_apart_from_its_act_is_found() {
    Bench::with("check_then_act").is_found(134);
}

#[test]
fn a_deadlock_is_found_and_its_recording_is_whole() {
    Bench::with("deadlock").is_found(143);
}

#[test]
fn a_lost_wake_up_is_found() {
    Bench::with("lost_wakeup").is_found(143);
}

#[test]
fn money_on_its_way_is_missed_by_who_counts_it() {
    Bench::with("transfer").is_found(134);
}

#[test]
fn what_is_used_before_it_is_set_is_found() {
    Bench::with("used_before_set").is_found(139);
}

#[test]
fn a_stack_that_takes_its_old_top_for_its_top_is_found() {
    Bench::with("aba").is_found(134);
}

#[test]
fn what_a_varied_run_did_can_be_traced_and_explained() {
    let bench = Bench::with("lost_update");
    let program = bench.program.to_str().unwrap();
    bench.why(&["record", "-q", "--chaos=1", "--until-failure", "200", program]);
    let slice = bench.why(&["slice", "-q"]);
    let text = String::from_utf8_lossy(&slice.stdout);
    assert_eq!(slice.status.code(), Some(0), "{}", String::from_utf8_lossy(&slice.stderr));
    assert!(text.contains("counter = seen + 1"), "{text}");
}

#[test]
fn each_run_reads_the_same_input() {
    let bench = Bench::with("lost_update");
    let mut why = Command::new("sh");
    let line = format!(
        "printf 'abc' | {} record --until-failure 3 sh -c 'read x; echo got $x; test $x = abc'",
        env!("CARGO_BIN_EXE_why")
    );
    why.args(["-c", &line]).env("WHY_DIR", bench.folder.path().join("home"));
    let output = why.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "got abc\n".repeat(3));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_interrupted_search_says_so_and_claims_no_failure() {
    use std::os::unix::process::CommandExt;
    let bench = Bench::with("lost_update");
    let mut why = Command::new(env!("CARGO_BIN_EXE_why"));
    why.args(["record", "--until-failure", "1000", "sleep", "5"]);
    why.env("WHY_DIR", bench.folder.path().join("home")).process_group(0);
    let search = why.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let first = bench.folder.path().join("home/recordings/1/manifest.json");
    let begin = std::time::Instant::now();
    while !first.exists() {
        assert!(begin.elapsed().as_secs() < 60, "nothing is recorded");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let group = format!("-{}", search.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let output = search.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted in run 1 of 1000") && !said.contains("failed"), "{said}");
}
