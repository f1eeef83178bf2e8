//! `why record` and `why replay` as a user meets them, on programs compiled here.

#[path = "support/place.rs"]
mod place;

use place::Place;
use std::fs;
use std::path::Path;
use std::process::Command;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

const SMASH: &str = r#"
#include <string.h>
__attribute__((noinline)) static void copy(const char *from)
{
    char room[8];
    strcpy(room, from);
    __asm__ volatile("" : : "r"(room) : "memory");
}
int main(void)
{
    copy("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    return 0;
}
"#;

/// Returns to an address that may be one, though nothing is there.
const ASTRAY: &str = r#"
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void stray(void)
{
    volatile unsigned long *frame = __builtin_frame_address(0);
    frame[1] = 0x41414140;
}
int main(void)
{
    stray();
    return 0;
}
"#;

/// F-001-10: the place a smashed return went to says nothing; the `ret` does. It is where the
/// run died if the place cannot be an address, else what was executed last.
#[test]
fn a_smashed_return_is_reported_with_the_return_itself() {
    for (source, spot) in [(SMASH, "at"), (ASTRAY, "last")] {
        let place = Place::new();
        let program = place.compile("smash", source, &["-O1", "-fno-stack-protector", "-no-pie"]);
        let recorded = place.why(&["record", "-q", text(&program)]);
        assert_eq!(recorded.status.code(), Some(128 + 11));
        let info = place.why(&["info", "--json"]);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
        let found = &info["crash"][spot];
        assert!(found["file"].as_str().expect("a file").ends_with("/smash"), "{info}");
        let code = fs::read(&program).expect("reads");
        let offset = found["offset"].as_u64().expect("an offset") as usize;
        assert_eq!(code[offset], 0xc3, "a `ret` instruction: {info}");
        if spot == "last" {
            assert_eq!(info["crash"]["at"]["address"], 0x4141_4140);
        }
    }
}

const READER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int n, char **names)
{
    for (int i = 1; i < n; i++) {
        FILE *file = fopen(names[i], "r");
        if (!file) { perror(names[i]); continue; }
        int c, sum = 0;
        while ((c = getc(file)) != EOF) sum += c;
        printf("%s %d\n", names[i], sum);
        fclose(file);
    }
    fprintf(stderr, "done\n");
    int *nothing = NULL;
    if (getenv("CRASH")) *nothing = 1;
    return 3;
}
"#;

/// F-002-51, F-001-33: nothing but the recording is needed, wherever it is.
#[test]
fn a_moved_recording_replays_without_the_program_and_its_inputs() {
    let place = Place::new();
    let program = place.compile("reader", READER, &["-O2"]);
    fs::write(place.path("input"), "some text").expect("writes");
    let recorded = place.why(&["record", "-q", "-o", "rec", text(&program), "input", "missing"]);
    assert_eq!(recorded.status.code(), Some(3));
    fs::remove_file(&program).expect("removes");
    fs::remove_file(place.path("input")).expect("removes");
    fs::remove_dir_all(place.path("home")).expect("removes the shared store too");
    fs::rename(place.path("rec"), place.path("elsewhere")).expect("moves");
    let replayed = place.why(&["replay", "--verify", "elsewhere"]);
    assert_eq!(replayed.status.code(), Some(3));
    assert_eq!(replayed.stdout, recorded.stdout);
    assert_eq!(replayed.stderr, recorded.stderr);
    assert!(String::from_utf8_lossy(&replayed.stdout).contains("input 921"));
}

#[test]
fn a_copied_recording_is_whole() {
    let place = Place::new();
    let program = place.compile("reader", READER, &["-static"]);
    let recorded = place.why(&["record", "-q", "-o", "rec", text(&program), "reader.c"]);
    let copied =
        Command::new("cp").args(["-r", "rec", "copy"]).current_dir(place.folder()).status();
    assert!(copied.expect("cp runs").success());
    fs::remove_dir_all(place.path("rec")).expect("removes");
    fs::remove_dir_all(place.path("home")).expect("removes");
    let replayed = place.why(&["replay", "copy"]);
    assert_eq!(replayed.stdout, recorded.stdout);
    assert_eq!(replayed.status.code(), Some(3));
}

#[test]
fn statuses_are_those_of_env_and_timeout() {
    let place = Place::new();
    assert_eq!(place.why(&["record", "-q", "/nonexistent/program"]).status.code(), Some(127));
    assert_eq!(place.why(&["record", "-q", "no-such-program"]).status.code(), Some(127));
    fs::write(place.path("plain"), "no program").expect("writes");
    assert_eq!(place.why(&["record", "-q", "./plain"]).status.code(), Some(126));
    assert_eq!(place.why(&["record", "-q", "/"]).status.code(), Some(126));
    assert_eq!(place.why(&["replay", "no-such-recording"]).status.code(), Some(125));
}

#[test]
fn a_recording_stops_at_its_size_limit_and_says_so() {
    let place = Place::new();
    let output = place.why(&[
        "record",
        "-q",
        "--max-size",
        "64K",
        "dd",
        "if=/dev/urandom",
        "of=/dev/null",
        "bs=64k",
        "count=64",
    ]);
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("limit") || said.contains("larger"), "{said}");
}

const SPINNER: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 1000000; i++) {
        char line[32];
        int n = snprintf(line, sizeof line, "%d\n", i);
        if (write(1, line, n) != n) return 1;
        usleep(200);
    }
    return 0;
}
"#;

#[test]
fn a_killed_recorder_leaves_what_it_had() {
    let place = Place::new();
    let program = place.compile("spinner", SPINNER, &["-O1"]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_why"))
        .args(["record", "-q", "-o", "rec", text(&program)])
        .env("WHY_DIR", place.path("home"))
        .current_dir(place.folder())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("why runs");
    std::thread::sleep(std::time::Duration::from_millis(400));
    // The recorded program is the recorder's child: killing it is killing the
    // process that writes the log.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
    let recorder = children.expect("children").trim().to_owned();
    let killed = Command::new("kill").args(["-9", &recorder]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(child.wait().expect("ends").code(), Some(128 + 9));
    let replayed = place.why(&["replay", "rec"]);
    let lines: Vec<u32> = String::from_utf8_lossy(&replayed.stdout)
        .lines()
        .map(|line| line.parse().expect("a whole line"))
        .collect();
    assert!(lines.len() > 100, "{} lines", lines.len());
    assert!(lines.iter().enumerate().all(|(n, line)| n as u32 == *line));
    assert_eq!(replayed.status.code(), Some(128 + 9));
    assert!(String::from_utf8_lossy(&replayed.stderr).contains("breaks off"));
}
