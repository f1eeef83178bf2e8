//! What is in a recording, and who can read it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recording::Recording;

const SECRET: &str = "correct-horse-battery-staple";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Records a shell that shows its environment in every way, and so does its child.
    fn record(&self, name: &str, options: &[&str]) -> Output {
        let script = "env; cat /proc/self/environ /proc/$PPID/environ; sh -c 'env; echo $MY_TOKEN'";
        let mut why = Command::new(env!("CARGO_BIN_EXE_why"));
        why.args(["record", "-q", "-o", name]).args(options).args(["sh", "-c", script]);
        why.env("WHY_DIR", self.path("home")).current_dir(self.0.path());
        why.env("MY_TOKEN", SECRET).env("PASSWORD", SECRET).env("HARMLESS", "plain");
        why.output().expect("why runs")
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// Is the text in any file, or in any event behind the compression?
fn holds(folder: &Path, text: &str) -> bool {
    let within = |bytes: &[u8]| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    let plain = files(folder).iter().any(|file| within(&fs::read(file).expect("a file")));
    let recording = Recording::open(folder).expect("a recording");
    let mut logs = recording.logs().expect("logs");
    assert!(logs.len() > 2, "the shell's children have logs");
    let packed = logs.iter_mut().any(|log| {
        let mut reader = log.reader().expect("a reader");
        let mut found = false;
        while let Some(event) = reader.next().expect("an event") {
            found |= within(event);
        }
        found
    });
    plain || packed
}

#[test]
fn a_redacted_value_is_nowhere_in_the_recording() {
    let place = Place::new();
    let plain = place.record("plain", &[]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains(SECRET));
    assert!(holds(&place.path("plain"), SECRET), "this test can fail");

    let options = ["--redact-env", "*_TOKEN,UNSET", "--redact-env", "PASSWORD"];
    let redacted = place.record("redacted", &options);
    assert_eq!(redacted.status.code(), Some(0), "{redacted:?}");
    let shown = String::from_utf8_lossy(&redacted.stdout);
    assert!(shown.contains("MY_TOKEN=redacted") && shown.contains("PASSWORD=redacted"), "{shown}");
    assert!(shown.contains("HARMLESS=plain") && !shown.contains(SECRET), "{shown}");
    assert!(!holds(&place.path("redacted"), SECRET));
    assert!(holds(&place.path("redacted"), "HARMLESS=plain"), "the search finds what is there");
}

#[test]
fn only_its_owner_can_read_a_recording_of_several_processes() {
    let place = Place::new();
    let line = format!(
        "umask 0; exec {} record -q -o rec sh -c '/bin/echo a; (echo b); sh -c \"echo c\"'",
        env!("CARGO_BIN_EXE_why")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("WHY_DIR", place.path("home")).current_dir(place.0.path());
    assert_eq!(shell.output().expect("sh runs").status.code(), Some(0));
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let mut folders = vec![place.path("rec"), place.path("home/store")];
    for entry in fs::read_dir(place.path("rec/processes")).expect("processes") {
        folders.push(entry.expect("an entry").path());
    }
    assert!(folders.len() > 3, "{folders:?}");
    for folder in folders {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
}
