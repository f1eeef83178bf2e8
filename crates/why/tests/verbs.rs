//! The verbs, run as a user runs them, on recordings made for the purpose.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recording::{ByteString, Ending, Home, Manifest, Options, Outcome, Recording, Writer};
use serde_json::{Value, json};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> Home {
        Home::at(self.folder.path())
    }

    fn why(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_why"));
        command.args(words).env("WHY_DIR", self.folder.path()).current_dir("/");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Makes a recording of `command` with everything that `info` shows.
    fn record(&self, command: &[&str], ending: Ending) -> PathBuf {
        let dir = self.home().create_numbered().unwrap();
        self.record_into(&dir, command, ending);
        dir
    }

    fn record_into(&self, dir: &Path, command: &[&str], ending: Ending) {
        let mut manifest = Manifest::new(command.iter().map(ByteString::from).collect());
        manifest.created = 1_767_225_599;
        manifest.directory = "/some/where".into();
        let mut writer = Writer::create(dir, &manifest, &Options::default()).unwrap();
        writer.append(b"an event").unwrap();
        self.home().store().capture(File::open("/proc/version").unwrap(), dir).unwrap();
        let mut outcome = Outcome::new(ending);
        for (name, count) in [("threads", 2), ("syscalls", 30), ("signals", 1), ("switches", 9)] {
            outcome.counters.insert(name.to_owned(), count);
        }
        outcome.unsupported.insert("io_uring_setup".to_owned(), 2);
        writer.finish(&outcome).unwrap();
        Recording::open(dir).unwrap().keep_derived("instructions", b"1000").unwrap();
    }
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json_of(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn list_of_nothing_says_how_to_begin() {
    let place = Place::new();
    let output = place.why(&["list"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ""));
    assert!(stderr(&output).contains("why record PROG"));
    assert_eq!(json_of(&place.why(&["list", "--json"])), json!([]));
    assert_eq!(stderr(&place.why(&["list", "-q"])), "");
}

#[test]
fn list_shows_one_line_for_each_recording() {
    let place = Place::new();
    place.record(&["/bin/echo", "two words"], Ending::Exited(0));
    place.record(&["crash\x1b[31m"], Ending::Killed { signal: 11 });
    let output = place.why(&["list"]);
    assert_eq!(stderr(&output), "");
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("NAME  RECORDED"));
    assert!(lines[1].starts_with("1     2025-12-31 23:59 UTC  exit 0   "), "{}", lines[1]);
    assert!(lines[1].ends_with(" /bin/echo 'two words'"));
    assert!(lines[2].starts_with("2*    2025-12-31 23:59 UTC  SIGSEGV  "), "{}", lines[2]);
    assert!(lines[2].ends_with(r" $'crash\033[31m'"));
}

#[test]
fn list_as_json_has_every_recording() {
    let place = Place::new();
    let dir = place.record(&["a", "b"], Ending::Killed { signal: 6 });
    let list = json_of(&place.why(&["list", "--json"]));
    let size = list[0]["size_bytes"].as_u64().unwrap();
    assert!(size > 0);
    let expected = json!([{
        "name": "1", "path": dir, "latest": true, "created": 1_767_225_599,
        "outcome": {"killed": {"signal": 6}}, "size_bytes": size, "command": ["a", "b"],
    }]);
    assert_eq!(list, expected);
}

#[test]
fn list_shows_what_it_cannot_read() {
    let place = Place::new();
    let dir = place.record(&["a"], Ending::Exited(0));
    std::fs::write(dir.join("manifest.json"), r#"{"format": 99}"#).unwrap();
    let output = place.why(&["list"]);
    assert_eq!(output.status.code(), Some(0));
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("made by a newer why"), "{said}");
    let list = json_of(&place.why(&["list", "--json"]));
    assert!(list[0]["error"].as_str().unwrap().contains("newer"));
}

#[test]
fn info_shows_what_is_in_the_latest_recording() {
    let place = Place::new();
    place.record(&["first"], Ending::Exited(0));
    let dir = place.record(&["prog", "a b"], Ending::Killed { signal: 11 });
    // Quietly: the events of this recording are made up, so its crash cannot be
    // located, which would be said.
    let output = place.why(&["info", "-q"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80));
    // What does not fit goes on below.
    let text = stdout(&output).replace(&format!("\n{:22}", ""), " ");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("size on disk")).collect();
    let expected = format!(
        "\
recording             {}
recorded              2025-12-31 23:59 UTC by why {}
command               prog 'a b'
working directory     /some/where
processor shown       x86-64-v3
outcome               killed by signal 11 (SIGSEGV)
threads               2
instructions          1000
system calls          30
signals               1
thread switches       9
unsupported calls     io_uring_setup (2×)
files captured        1
bits per instruction  ",
        dir.display(),
        env!("CARGO_PKG_VERSION"),
    );
    assert!(lines.join("\n").starts_with(&expected), "{text}");
    assert!(text.contains("shared with other recordings"), "{text}");
}

#[test]
fn info_as_json_has_the_same_facts() {
    let place = Place::new();
    let dir = place.record(&["prog"], Ending::Exited(3));
    let info = json_of(&place.why(&["info", "--json"]));
    let log = std::fs::metadata(dir.join("log")).unwrap().len();
    assert_eq!(info["command"], json!(["prog"]));
    assert_eq!(info["outcome"], json!({"exited": 3}));
    for (key, value) in [("instructions", 1000), ("threads", 2), ("system_calls", 30)] {
        assert_eq!(info[key], json!(value), "{key}");
    }
    for (key, value) in [("signals", 1), ("thread_switches", 9), ("files_captured", 1)] {
        assert_eq!(info[key], json!(value), "{key}");
    }
    assert_eq!(info["unsupported_calls"], json!({"io_uring_setup": 2}));
    assert_eq!(info["log_bytes"], json!(log));
    assert_eq!(info["bits_per_instruction"], json!(log as f64 * 8.0 / 1000.0));
    assert_eq!(info["working_directory"], json!("/some/where"));
    assert_eq!(info["cpu"], json!("x86-64-v3"));
}

#[test]
fn info_of_a_killed_recorder_says_so() {
    let place = Place::new();
    let dir = place.home().create_numbered().unwrap();
    let manifest = Manifest::new(vec!["prog".into()]);
    drop(Writer::create(&dir, &manifest, &Options::default()).unwrap());
    Recording::open(&dir).unwrap().keep_derived("instructions", b"5").unwrap();
    let output = place.why(&["info"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("outcome               unknown: the recorder was stopped"));
    assert_eq!(json_of(&place.why(&["info", "--json"]))["threads"], Value::Null);
}

#[test]
fn a_recording_is_named_in_every_way() {
    let place = Place::new();
    place.record(&["numbered"], Ending::Exited(0));
    place.record(&["latest"], Ending::Exited(0));
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().join("my-run");
    place.record_into(&folder, &["elsewhere"], Ending::Exited(0));
    let folder = folder.to_str().unwrap();
    for (words, command) in [
        (&["info", "--json"][..], "latest"),
        (&["info", "--json", "1"], "numbered"),
        (&["info", "1", "--json"], "numbered"),
        (&["info", "--json", "-r", "1"], "numbered"),
        (&["info", "--json", "latest"], "latest"),
        (&["info", "--json", folder], "elsewhere"),
    ] {
        assert_eq!(json_of(&place.why(words))["command"], json!([command]), "{words:?}");
    }
}

#[test]
fn an_unknown_recording_is_our_failure_with_advice() {
    let place = Place::new();
    for words in [&["info", "77"][..], &["replay", "77"], &["info"], &["replay"]] {
        let output = place.why(words);
        assert_eq!((output.status.code(), stdout(&output)), (Some(125), ""), "{words:?}");
        assert!(stderr(&output).starts_with("why: there is no recording"), "{}", stderr(&output));
    }
}

#[test]
fn remove_removes_what_is_named_and_goes_on_after_a_mistake() {
    let place = Place::new();
    (0..3).for_each(|_| drop(place.record(&["x"], Ending::Exited(0))));
    let output = place.why(&["remove", "1", "nonsense", "3"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("no recording \"nonsense\""), "{}", stderr(&output));
    assert!(stderr(&output).contains("why: removed 3\n"));
    let left = json_of(&place.why(&["list", "--json"]));
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!((&left[0]["name"], &left[0]["latest"]), (&json!("2"), &json!(true)));
    let output = place.why(&["remove", "-q", "2"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let objects = std::fs::read_dir(place.folder.path().join("store/objects")).unwrap();
    assert_eq!(objects.count(), 0);
}

#[test]
fn remove_without_a_name_removes_nothing() {
    let place = Place::new();
    place.record(&["x"], Ending::Exited(0));
    assert_eq!(place.why(&["remove"]).status.code(), Some(2));
    assert_eq!(place.home().list().unwrap().len(), 1);
}

#[test]
fn record_never_overwrites_a_recording() {
    let place = Place::new();
    let dir = place.record(&["precious"], Ending::Exited(0));
    let output = place.why(&["record", "-o", dir.to_str().unwrap(), "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("name a new or an empty folder"), "{}", stderr(&output));
    assert_eq!(json_of(&place.why(&["info", "--json"]))["command"], json!(["precious"]));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    place.record(&["x"], Ending::Exited(0));
    for words in [&["list"][..], &["list", "--json"], &["info"], &["info", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_why"))
            .args(words)
            .env("WHY_DIR", place.folder.path())
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn nothing_at_all_gives_the_help() {
    let place = Place::new();
    let output = place.why(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Examples:"), "{}", stderr(&output));
    let output = place.why(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Examples:"));
}

#[test]
fn a_packed_recording_replays_where_it_is_unpacked() {
    let here = Place::new();
    let recorded = here.why(&["record", "-q", "/bin/echo", "one file"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let file = here.folder.path().join("echo.why");
    let name = file.to_str().unwrap();
    let packed = here.why(&["pack", "-o", name]);
    assert_eq!(packed.status.code(), Some(0), "{}", stderr(&packed));
    assert!(stderr(&packed).contains("echo.why: "), "{}", stderr(&packed));
    let there = Place::new();
    let unpacked = there.why(&["unpack", name]);
    assert_eq!(unpacked.status.code(), Some(0), "{}", stderr(&unpacked));
    let replayed = there.why(&["replay", "--verify", "-q"]);
    assert_eq!((replayed.status.code(), stdout(&replayed)), (Some(0), "one file\n"));
}

#[test]
fn what_the_system_said_is_told_once() {
    let place = Place::new();
    let output = place.why(&["unpack", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(stderr(&output).matches("No such file").count(), 1, "{}", stderr(&output));
    place.record(&["a"], Ending::Exited(0));
    let output = place.why(&["pack", "-o", "/no/such/folder/a.why"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("/no/such/folder/a.why"), "{}", stderr(&output));
}

#[test]
fn what_is_no_packed_recording_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let output = place.why(&["unpack", "/bin/true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("`why pack` makes one"), "{}", stderr(&output));
    assert_eq!(json_of(&place.why(&["list", "--json"])), json!([]));
}
