//! The logs of several processes in one recording.

use std::fs;
use std::path::Path;

use recording::{
    Born, Ending, Error, Manifest, Options, Outcome, Process, Recording, Writer, prepare_process,
};

fn write(dir: &Path, process: Process, events: &[&str]) {
    let mut manifest = Manifest::new(vec!["x".into()]);
    manifest.start = match process.born {
        Born::Forked { .. } => serde_json::Value::Null,
        _ => serde_json::json!({ "log": process.log }),
    };
    manifest.process = process;
    let mut writer = Writer::create(dir, &manifest, &Options::default()).unwrap();
    events.iter().for_each(|event| writer.append(event.as_bytes()).unwrap());
    writer.finish(&Outcome::new(Ending::Exited(0))).unwrap();
}

fn events(recording: &Recording) -> Vec<String> {
    let mut reader = recording.reader().unwrap();
    let mut all = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        all.push(String::from_utf8(event.to_vec()).unwrap());
    }
    all
}

/// A first process with a child and a grandchild, which executed a program.
fn family(dir: &Path) {
    write(dir, Process { pid: 10, ..Process::default() }, &["a", "b", "c"]);
    let child = Process { log: 2, pid: 11, born: Born::Forked { from: 1, events: 2 } };
    write(&prepare_process(dir, 2).unwrap(), child, &["d", "e"]);
    let grandchild = Process { log: 3, pid: 12, born: Born::Forked { from: 2, events: 1 } };
    write(&prepare_process(dir, 3).unwrap(), grandchild, &["f"]);
    let executed = Process { log: 4, pid: 12, born: Born::Executed { from: 3 } };
    write(&prepare_process(dir, 4).unwrap(), executed, &["g"]);
}

#[test]
fn a_log_that_begins_with_a_fork_goes_on_from_its_ancestors() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    family(&dir);
    let first = Recording::open(&dir).unwrap();
    let logs = first.logs().unwrap();
    let all: Vec<Vec<String>> = logs.iter().map(events).collect();
    assert_eq!(
        all,
        [vec!["a", "b", "c"], vec!["a", "b", "d", "e"], vec!["a", "b", "d", "f"], vec!["g"]]
    );
    assert_eq!(logs[2].manifest().start["log"], 1, "it starts where its ancestors did");
    assert_eq!(logs[2].inherited_events(), 3);
    assert_eq!(logs[3].manifest().start["log"], 4);
    assert_eq!(logs[3].root().canonicalize().unwrap(), dir.canonicalize().unwrap());
}

#[test]
fn a_position_leads_back_into_an_ancestors_log() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    family(&dir);
    let mut reader = Recording::open(&dir).unwrap().log(3).unwrap().reader().unwrap();
    let mut positions = Vec::new();
    while reader.next().unwrap().is_some() {
        positions.push(reader.position());
    }
    for (n, next) in [(1, "d"), (0, "b"), (2, "f")] {
        reader.seek(positions[n]).unwrap();
        assert_eq!(reader.next().unwrap(), Some(next.as_bytes()));
    }
}

#[test]
fn an_ancestor_that_lacks_events_or_is_its_own_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    write(&dir, Process::default(), &["a"]);
    let child = Process { log: 2, pid: 1, born: Born::Forked { from: 1, events: 5 } };
    write(&prepare_process(&dir, 2).unwrap(), child, &["b"]);
    let mut reader = Recording::open(&dir).unwrap().log(2).unwrap().reader().unwrap();
    assert_eq!(reader.next().unwrap(), Some(&b"a"[..]));
    assert!(matches!(reader.next(), Err(Error::Damaged { .. })));
    let own = Process { log: 3, pid: 1, born: Born::Forked { from: 3, events: 1 } };
    write(&prepare_process(&dir, 3).unwrap(), own, &["c"]);
    assert!(matches!(Recording::open(&dir.join("processes/3")), Err(Error::Damaged { .. })));
    fs::remove_dir_all(dir.join("processes/3")).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().logs().unwrap().len(), 2);
}
