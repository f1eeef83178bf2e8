//! What `--json` prints is what `docs/json/` promises.

#[path = "support/promises.rs"]
mod promises;

use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};

use promises::{complaint, schema};
use recording::{ByteString, Ending, Home, Manifest, Options, Outcome, Recording, Writer};
use serde_json::{Value, json};

#[test]
fn info_keeps_its_promise() {
    let schema = schema("info");
    for ending in [Ending::Exited(3), Ending::Killed { signal: 11 }, Ending::Cut, Ending::Unknown] {
        let place = Place::new();
        place.record(&place.home().create_numbered().unwrap(), ending);
        assert_eq!(complaint(&schema, &place.why(&["info", "--json"])), None);
    }
}

#[test]
fn info_of_a_killed_recorder_keeps_its_promise() {
    let place = Place::new();
    let dir = place.home().create_numbered().unwrap();
    let manifest = Manifest::new(vec!["prog".into()]);
    drop(Writer::create(&dir, &manifest, &Options::default()).unwrap());
    let info = place.why(&["info", "--json", "-q"]);
    assert_eq!(info["instructions"], Value::Null);
    assert_eq!(complaint(&schema("info"), &info), None);
}

#[test]
fn list_keeps_its_promise() {
    let place = Place::new();
    let schema = schema("list");
    assert_eq!(complaint(&schema, &place.why(&["list", "--json"])), None);
    place.record(&place.home().create_numbered().unwrap(), Ending::Unknown);
    let damaged = place.home().create_numbered().unwrap();
    std::fs::write(damaged.join("manifest.json"), "{").unwrap();
    let list = place.why(&["list", "--json"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(complaint(&schema, &list), None);
}

#[test]
fn a_broken_promise_is_noticed() {
    let place = Place::new();
    place.record(&place.home().create_numbered().unwrap(), Ending::Exited(0));
    let (schema, info) = (schema("info"), place.why(&["info", "--json"]));
    for (key, value) in [
        ("threads", json!("2")),
        ("threads", json!(-1)),
        ("signals", json!(1.5)),
        ("cpu", json!("i386")),
        ("outcome", json!({"killed": {}})),
        ("outcome", json!("vanished")),
        ("command", json!([7])),
        ("unsupported_calls", json!({"rseq": null})),
        ("nobody_promised_this", json!(1)),
    ] {
        let mut changed = info.clone();
        changed[key] = value;
        assert!(complaint(&schema, &changed).is_some(), "{key}");
    }
    for key in info.as_object().unwrap().keys() {
        let mut changed = info.clone();
        changed.as_object_mut().unwrap().remove(key);
        assert!(complaint(&schema, &changed).is_some(), "{key}");
    }
}

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

    /// A recording with something under every key, a name that is not UTF-8 among it.
    fn record(&self, dir: &Path, ending: Ending) {
        let odd = std::ffi::OsString::from_vec(vec![0xff, b'x']);
        let manifest = Manifest::new(vec!["prog".into(), odd.into()]);
        let mut writer = Writer::create(dir, &manifest, &Options::default()).unwrap();
        writer.append(b"an event").unwrap();
        let mut outcome = Outcome::new(ending);
        outcome.counters.insert("threads".to_owned(), 2);
        outcome.unsupported.insert("rseq".to_owned(), 1);
        outcome.switched_off.insert("leak checking".to_owned());
        outcome.partly_captured.push(ByteString(b"/huge".to_vec()));
        writer.finish(&outcome).unwrap();
        Recording::open(dir).unwrap().keep_derived("instructions", b"1000").unwrap();
    }

    fn why(&self, words: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_why"))
            .args(words)
            .env("WHY_DIR", self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
