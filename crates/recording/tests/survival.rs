//! A recorder may be killed at any instant, and bytes on disk may change.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::*;
use recording::{Error, Recording, finalise};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["manifest.json", "log", "tail", "outcome.json"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_killed_recorder_loses_no_event() {
    for count in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let events = events(count);
        let dir = killed(&folder.path().join("r"), &events);
        assert_eq!(read_all(&dir), events);
        finalise(&dir, &outcome()).unwrap();
        assert_eq!(read_all(&dir), events);
        assert!(!dir.join("tail").exists());
    }
}

#[test]
fn finalising_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = killed(&folder.path().join("r"), &events(30));
    finalise(&dir, &outcome()).unwrap();
    let before = fs::read(dir.join("log")).unwrap();
    finalise(&dir, &recording::Outcome::default()).unwrap();
    assert_eq!(fs::read(dir.join("log")).unwrap(), before);
    assert_eq!(Recording::open(&dir).unwrap().outcome(), Some(&outcome()));
}

#[test]
fn finalising_a_finished_recording_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let mut writer = writer(&dir, &small_frames());
    writer.append(b"only").unwrap();
    writer.finish(&outcome()).unwrap();
    finalise(&dir, &recording::Outcome::default()).unwrap();
    assert_eq!(read_all(&dir), [b"only"]);
    assert_eq!(Recording::open(&dir).unwrap().outcome(), Some(&outcome()));
}

/// The recorder dies while it appends the frame that its full tail becomes.
#[test]
fn a_frame_torn_at_any_byte_is_still_in_the_tail() {
    let folder = tempfile::tempdir().unwrap();
    let events = events(12);
    let dir = killed(&folder.path().join("r"), &events);
    let whole_log = fs::metadata(dir.join("log")).unwrap().len();
    let closed = folder.path().join("closed");
    copy(&dir, &closed);
    finalise(&closed, &outcome()).unwrap();
    let next_frame = fs::read(closed.join("log")).unwrap()[whole_log as usize..].to_vec();
    let frame_len = next_frame.len() - 32;
    for len in 0..=frame_len {
        let torn = folder.path().join(format!("torn-{len}"));
        copy(&dir, &torn);
        let log = OpenOptions::new().write(true).open(torn.join("log")).unwrap();
        log.write_all_at(&next_frame[..len], whole_log).unwrap();
        // At the full length the frame is there and the tail was not emptied: no duplicates.
        assert_eq!(read_all(&torn), events, "{len} bytes of the frame");
        finalise(&torn, &outcome()).unwrap();
        assert_eq!(read_all(&torn), events, "{len} bytes of the frame, finalised");
        assert_eq!(fs::read(torn.join("log")).unwrap(), fs::read(closed.join("log")).unwrap());
    }
}

/// The recorder dies after storing any part of an event and before the mark covers it.
#[test]
fn a_torn_event_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let mut writer = writer(&dir, &recording::Options::default());
    writer.append(b"whole").unwrap();
    let marked = fs::read(dir.join("tail")).unwrap();
    writer.append(b"torn").unwrap();
    let tail = OpenOptions::new().write(true).open(dir.join("tail")).unwrap();
    tail.write_all_at(&marked[..64], 0).unwrap();
    assert_eq!(read_all(&dir), [b"whole"]);
}

#[test]
fn a_log_cut_at_any_byte_gives_its_whole_frames_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let events = events(40);
    let dir = killed(&folder.path().join("r"), &events);
    finalise(&dir, &outcome()).unwrap();
    let len = fs::metadata(dir.join("log")).unwrap().len();
    let scratch = folder.path().join("cut");
    copy(&dir, &scratch);
    let mut fewest = events.len();
    for cut in (0..len).rev() {
        let log = OpenOptions::new().write(true).open(scratch.join("log")).unwrap();
        log.set_len(cut).unwrap();
        let (found, error) = read(&scratch);
        assert_eq!(found, events[..found.len()]);
        assert!(found.len() <= fewest, "a shorter log has no more events");
        fewest = found.len();
        assert!(matches!(error, Some(Error::Damaged { .. })), "cut at {cut}: {error:?}");
    }
    assert_eq!(fewest, 0);
}

#[test]
fn a_log_that_lost_frames_before_its_tail_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let events = events(12);
    let dir = killed(&folder.path().join("r"), &events);
    OpenOptions::new().write(true).open(dir.join("log")).unwrap().set_len(0).unwrap();
    let (found, error) = read(&dir);
    assert_eq!(found, Vec::<Vec<u8>>::new());
    assert!(matches!(error, Some(Error::Damaged { .. })));
    assert!(finalise(&dir, &outcome()).is_err());
    assert!(dir.join("tail").exists(), "what is left is kept");
}

/// Changes these bytes of the file `name`, one at a time, and reads.
fn damage_each(name: &str, dir: &Path, events: &[Vec<u8>], bytes: impl Iterator<Item = usize>) {
    let good = fs::read(dir.join(name)).unwrap();
    for at in bytes {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            fs::write(dir.join(name), bad).unwrap();
            let (found, error) = read(dir);
            assert_eq!(found, events[..found.len()], "{name}: byte {at} ^ {flip:#x}");
            let noticed = matches!(error, Some(Error::Damaged { .. }));
            assert!(noticed, "{name}: byte {at} ^ {flip:#x}: {error:?}");
        }
    }
}

#[test]
fn a_damaged_byte_in_the_log_is_noticed_and_never_gives_a_wrong_event() {
    let folder = tempfile::tempdir().unwrap();
    let events = events(30);
    let dir = killed(&folder.path().join("r"), &events);
    finalise(&dir, &outcome()).unwrap();
    let len = fs::metadata(dir.join("log")).unwrap().len() as usize;
    damage_each("log", &dir, &events, 0..len);
}

#[test]
fn a_damaged_byte_in_the_tail_is_noticed_and_never_gives_a_wrong_event() {
    let folder = tempfile::tempdir().unwrap();
    let events = events(12);
    let dir = killed(&folder.path().join("r"), &events);
    let tail = fs::read(dir.join("tail")).unwrap();
    let used = u32::from_le_bytes(tail[16..20].try_into().unwrap()) as usize;
    assert!(used > 0);
    // Bytes 24 to 63 and those behind the events mean nothing.
    damage_each("tail", &dir, &events, (0..24).chain(64..64 + used));
}

#[test]
fn hostile_bytes_never_panic() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    let folder = tempfile::tempdir().unwrap();
    let dir = killed(&folder.path().join("r"), &[]);
    let strategy = prop::collection::vec(any::<u8>(), 0..300);
    let mut runner = TestRunner::new(Config::with_cases(300));
    let read_with = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).unwrap();
        let (found, _) = read(&dir);
        assert!(found.is_empty());
        let _ = finalise(&dir, &outcome());
    };
    runner
        .run(&strategy, |bytes| {
            read_with("tail", &[b"WyTail01", &bytes[..]].concat());
            read_with("log", &[b"WyF1", &bytes[..]].concat());
            read_with("log", &[]);
            read_with("tail", &bytes);
            Ok(())
        })
        .unwrap();
    fs::write(dir.join("manifest.json"), b"{\"format\": 1}").unwrap();
    assert!(matches!(read(&dir).1, Some(Error::Damaged { .. })));
}

/// A frame may be well formed and its contents nonsense: lengths that lead outside.
#[test]
fn a_frame_with_false_contents_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    for (raw, events) in [(&b"\x05abc"[..], 1u32), (b"\x01a", 2), (b"\xff\xff\xff\xff\xff", 1)] {
        let dir = killed(&folder.path().join(format!("r{}", raw.len())), &[]);
        let data = zstd::bulk::compress(raw, 1).unwrap();
        let mut frame = Vec::from(*b"WyF1");
        frame.extend(0u64.to_le_bytes());
        frame.extend((raw.len() as u32).to_le_bytes());
        frame.extend((data.len() as u32).to_le_bytes());
        frame.extend(events.to_le_bytes());
        frame.extend(crc32fast::hash(&data).to_le_bytes());
        frame.extend(crc32fast::hash(&frame).to_le_bytes());
        frame.extend(data);
        fs::write(dir.join("log"), frame).unwrap();
        let (found, error) = read(&dir);
        assert_eq!(found, Vec::<Vec<u8>>::new());
        assert!(matches!(error, Some(Error::Damaged { .. })), "{error:?}");
    }
}

/// The real thing: a process that appends without end is killed by SIGKILL.
#[test]
fn a_recorder_killed_by_sigkill_keeps_every_event_it_told_of() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    const FOLDER: &str = "WHY_TEST_RECORD_INTO";
    if let Some(dir) = std::env::var_os(FOLDER) {
        let mut writer = writer(Path::new(&dir), &recording::Options::default());
        for number in 0u64.. {
            writer.append(&number.to_le_bytes().repeat(1 + number as usize % 9)).unwrap();
            if number.is_multiple_of(50_000) {
                println!("\n{number}");
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("r");
    let name = "a_recorder_killed_by_sigkill_keeps_every_event_it_told_of";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(FOLDER, &dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.parse::<usize>().ok())
        .nth(6)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let events = read_all(&dir);
    assert!(events.len() > told, "{} of at least {told}", events.len());
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event, &(number as u64).to_le_bytes().repeat(1 + number % 9));
    }
    finalise(&dir, &outcome()).unwrap();
    assert_eq!(read_all(&dir).len(), events.len());
}
