//! What goes in comes out.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::*;
use proptest::prelude::*;
use recording::{Ending, Error, Manifest, Options, Recording, Writer, finalise};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_events_come_back_in_order(
        events in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..60),
        frame_bytes in 1usize..2000,
        finished: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("r");
        let mut writer = writer(&dir, &Options { frame_bytes, ..Options::default() });
        for event in &events {
            let (a, b) = event.split_at(event.len() / 2);
            writer.append_parts(&[a, b]).unwrap();
        }
        if finished {
            writer.finish(&outcome()).unwrap();
        }
        prop_assert_eq!(read_all(&dir), events);
    }

    #[test]
    fn a_position_leads_back_to_its_event(count in 1usize..80, pick: prop::sample::Index) {
        let folder = tempfile::tempdir().unwrap();
        let events = events(count);
        let dir = killed(&folder.path().join("r"), &events);
        let recording = Recording::open(&dir).unwrap();
        let mut reader = recording.reader().unwrap();
        let mut positions = vec![reader.position()];
        while reader.next().unwrap().is_some() {
            positions.push(reader.position());
        }
        let number = pick.index(positions.len());
        for closed in [false, true] {
            if closed {
                finalise(&dir, &outcome()).unwrap();
            }
            let mut other = recording.reader().unwrap();
            for reader in [&mut reader, &mut other] {
                reader.seek(positions[number]).unwrap();
                prop_assert_eq!(reader.position().event(), number as u64);
                let event = reader.next().unwrap().map(<[u8]>::to_vec);
                prop_assert_eq!(event.as_ref(), events.get(number));
            }
        }
    }
}

#[test]
fn manifest_and_outcome_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let mut manifest = Manifest::new(vec!["a".into(), "b c".into()]);
    manifest.environment = vec![recording::ByteString(b"X=\xff\xfe".to_vec())];
    manifest.start = serde_json::json!({"entry": 4096});
    let writer = Writer::create(&dir, &manifest, &Options::default()).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().outcome(), None);
    let mut outcome = outcome();
    outcome.ending = Ending::Killed { signal: 11 };
    outcome.counters.insert("threads".into(), 3);
    writer.finish(&outcome).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.manifest(), &manifest);
    assert_eq!(recording.outcome(), Some(&outcome));
}

#[test]
fn what_an_analysis_keeps_is_there_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let dir = killed(&folder.path().join("r"), &[]);
    let recording = Recording::open(&dir).unwrap();
    assert!(!recording.derived("answer").exists());
    for answer in ["41", "42"] {
        recording.keep_derived("answer", answer.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(recording.derived("answer")).unwrap(), answer);
    }
    assert_eq!(recording.usage().unwrap().derived, 2);
}

#[test]
fn an_event_larger_than_the_tail_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let events = vec![vec![1; 10], vec![2; 5_000_000], vec![3; 10], vec![4; 100], vec![5; 3]];
    let mut writer = writer(&dir, &small_frames());
    events.iter().for_each(|event| writer.append(event).unwrap());
    assert_eq!(read_all(&dir), events);
    writer.finish(&outcome()).unwrap();
    assert_eq!(read_all(&dir), events);
}

#[test]
fn only_the_owner_may_look_inside() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    writer(&dir, &Options::default()).finish(&outcome()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&dir), 0o700);
    for entry in fs::read_dir(&dir).unwrap().flatten() {
        let expected = if entry.file_type().unwrap().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&entry.path()), expected, "{entry:?}");
    }
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "").unwrap();
    let manifest = Manifest::new(Vec::new());
    let result = Writer::create(folder.path(), &manifest, &Options::default());
    assert!(matches!(result, Err(Error::FolderInUse { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_size_limit_holds_and_what_fitted_is_kept() {
    for frame_bytes in [64, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("r");
        let options = Options { frame_bytes, max_bytes: Some(1000), ..Options::default() };
        let mut writer = writer(&dir, &options);
        let mut accepted = Vec::new();
        let error = loop {
            let event = blake3::hash(&[accepted.len() as u8]).as_bytes().to_vec();
            match writer.append(&event) {
                Ok(()) => accepted.push(event),
                Err(e) => break e,
            }
            assert!(accepted.len() < 100);
        };
        assert!(matches!(error, Error::LimitReached { limit: 1000 }));
        assert!(accepted.len() > 8, "only {}", accepted.len());
        assert!(writer.append(b"").is_err(), "nothing may follow a refused event");
        assert!(writer.bytes_written() <= 1100);
        writer.finish(&outcome()).unwrap();
        assert_eq!(read_all(&dir), accepted);
    }
}

#[test]
fn captured_files_count_towards_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: Some(1000), ..Options::default() };
    let mut writer = writer(&folder.path().join("r"), &options);
    writer.charge(900).unwrap();
    writer.append(&[0; 50]).unwrap();
    assert!(matches!(writer.charge(200), Err(Error::LimitReached { .. })));
    assert!(matches!(writer.append(b""), Err(Error::LimitReached { .. })));
}

#[test]
fn a_recording_of_the_future_says_who_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifest.json"), r#"{"format": 99, "all": "new"}"#).unwrap();
    let message = Recording::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains("made by a newer why (format 99"), "{message}");
}

#[test]
fn the_writer_keeps_its_descriptor_out_of_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let _writer = writer(&dir, &Options { lowest_fd: 500, ..Options::default() });
    let log = dir.canonicalize().unwrap().join("log");
    let mut numbers = fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|entry| {
        let leads_there = fs::read_link(entry.path()).is_ok_and(|target| target == log);
        leads_there.then(|| entry.file_name().to_str().unwrap().parse::<u32>().unwrap())
    });
    assert!(numbers.next().unwrap() >= 500);
    assert_eq!(numbers.next(), None);
}
