//! Names of recordings, and the files that they share.

mod common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::*;
use recording::{Error, FileId, Home, Options, Store};

fn recorded(home: &Home) -> PathBuf {
    let dir = home.create_numbered().unwrap();
    writer(&dir, &Options::default()).finish(&outcome()).unwrap();
    dir
}

fn names(home: &Home) -> Vec<String> {
    let entries = home.list().unwrap().into_iter();
    entries.map(|e| e.name.into_string().unwrap() + if e.latest { "*" } else { "" }).collect()
}

/// Waits until a file just written is old enough to be indexed.
fn let_it_settle() {
    std::thread::sleep(Duration::from_millis(1100));
}

fn objects(home: &Path) -> usize {
    fs::read_dir(home.join("store/objects")).map_or(0, Iterator::count)
}

#[test]
fn recordings_are_numbered_and_the_latest_is_linked() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("deep/home"));
    assert!(matches!(home.resolve(None), Err(Error::NoRecordings)));
    assert_eq!(home.list().unwrap(), []);
    let dirs: Vec<_> = (0..11).map(|_| recorded(&home)).collect();
    assert_eq!(names(&home), ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11*"]);
    assert_eq!(home.resolve(None).unwrap(), dirs[10]);
    assert_eq!(home.resolve(Some(OsStr::new("2"))).unwrap(), dirs[1]);
    assert_eq!(home.resolve(Some(OsStr::new("latest"))).unwrap().canonicalize().unwrap(), dirs[10]);
    assert_eq!(home.resolve(Some(dirs[3].as_os_str())).unwrap(), dirs[3]);
    let root = fs::metadata(folder.path().join("deep/home/recordings")).unwrap();
    assert_eq!(root.permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_is_no_recording_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    recorded(&home);
    for name in ["2", "/", "/etc", "..", "", ".", "1/files", "/no/such"] {
        let result = home.resolve(Some(OsStr::new(name)));
        assert!(matches!(result, Err(Error::NoSuchRecording { .. })), "{name}: {result:?}");
    }
}

#[test]
fn many_at_once_get_different_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let all: BTreeSet<_> = std::thread::scope(|scope| {
        let make = || (0..20).map(|_| recorded(&home)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(all.len(), 160);
    assert_eq!(home.list().unwrap().len(), 160);
    assert!(home.resolve(None).is_ok());
}

#[test]
fn removing_the_latest_makes_the_one_before_it_the_latest() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    (0..3).for_each(|_| drop(recorded(&home)));
    home.remove(OsStr::new("3")).unwrap();
    assert_eq!(names(&home), ["1", "2*"]);
    home.remove(OsStr::new("1")).unwrap();
    assert_eq!(names(&home), ["2*"]);
    home.remove(OsStr::new("2")).unwrap();
    assert!(matches!(home.resolve(None), Err(Error::NoRecordings)));
    assert!(matches!(home.remove(OsStr::new("2")), Err(Error::NoSuchRecording { .. })));
}

#[test]
fn a_discarded_folder_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    recorded(&home);
    let dir = home.create_numbered().unwrap();
    home.discard(&dir).unwrap();
    assert_eq!(names(&home), ["1*"]);
    assert!(!dir.exists());
}

#[test]
fn removing_keeps_files_that_are_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let dir = recorded(&home);
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    let result = home.remove(OsStr::new("1"));
    assert!(matches!(result, Err(Error::OtherFilesLeft { .. })));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn recordings_share_one_copy_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let original = folder.path().join("input");
    fs::write(&original, "contents").unwrap();
    let (a, b) = (recorded(&home), recorded(&home));
    let first = home.store().capture(File::open(&original).unwrap(), &a).unwrap();
    let second = home.store().capture(File::open(&original).unwrap(), &b).unwrap();
    assert_eq!(first.id, second.id);
    assert_eq!((first.added, second.added), (8, 0));
    let path = |dir: &Path| dir.join("files").join(first.id.to_string());
    assert_eq!(fs::read(path(&a)).unwrap(), b"contents");
    assert_eq!(fs::metadata(path(&a)).unwrap().ino(), fs::metadata(path(&b)).unwrap().ino());
    assert_eq!(fs::metadata(path(&a)).unwrap().mode() & 0o777, 0o600);
    assert_ne!(fs::metadata(path(&a)).unwrap().ino(), fs::metadata(&original).unwrap().ino());
    assert_eq!(fs::read_dir(folder.path().join("home/store/copies")).unwrap().count(), 0);
}

#[test]
fn contents_go_when_their_last_recording_goes() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let (a, b) = (recorded(&home), recorded(&home));
    let input = folder.path().join("input");
    for (contents, dirs) in [("both", vec![&a, &b]), ("only the first", vec![&a])] {
        fs::write(&input, contents).unwrap();
        for dir in dirs {
            home.store().capture(File::open(&input).unwrap(), dir).unwrap();
        }
    }
    assert_eq!(objects(&folder.path().join("home")), 2);
    home.remove(OsStr::new("1")).unwrap();
    assert_eq!(objects(&folder.path().join("home")), 1);
    home.remove(OsStr::new("2")).unwrap();
    assert_eq!(objects(&folder.path().join("home")), 0);
}

#[test]
fn a_changed_file_is_captured_anew_even_if_its_times_were_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let dir = recorded(&home);
    let path = folder.path().join("input");
    let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let mut seen = BTreeSet::new();
    for contents in ["aaaa", "bbbb", "cccc"] {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&path).unwrap();
        file.write_all(contents.as_bytes()).unwrap();
        file.set_times(old).unwrap();
        let_it_settle();
        for _ in 0..2 {
            let id = home.store().capture(File::open(&path).unwrap(), &dir).unwrap().id;
            let kept = fs::read(dir.join("files").join(id.to_string())).unwrap();
            assert_eq!(kept, contents.as_bytes());
            seen.insert(id);
        }
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn an_unchanged_file_is_found_by_its_index_entry() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let (a, b) = (recorded(&home), recorded(&home));
    let path = folder.path().join("input");
    fs::write(&path, "settled").unwrap();
    let_it_settle();
    let file = File::open(&path).unwrap();
    home.store().capture(&file, &a).unwrap();
    let index = folder.path().join("home/store/index");
    assert_eq!(fs::read_dir(&index).unwrap().count(), 1);
    home.store().capture(&file, &b).unwrap();
    assert_eq!(fs::read_dir(b.join("files")).unwrap().count(), 1);
    // Without its object the entry is worthless, and the file is copied again.
    (1..3).for_each(|n| home.remove(OsStr::new(&n.to_string())).unwrap());
    assert_eq!(fs::read_dir(&index).unwrap().count(), 0);
    let c = recorded(&home);
    assert_eq!(home.store().capture(&file, &c).unwrap().added, 7);
}

#[test]
fn files_that_the_kernel_makes_up_are_never_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let dir = recorded(&home);
    let file = File::open("/proc/self/stat").unwrap();
    let_it_settle();
    home.store().capture(&file, &dir).unwrap();
    assert_eq!(fs::read_dir(folder.path().join("home/store/index")).unwrap().count(), 0);
}

#[test]
fn capturing_leaves_the_descriptor_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("store"));
    let dir = folder.path().join("r");
    writer(&dir, &Options::default());
    let path = folder.path().join("input");
    fs::write(&path, "0123456789").unwrap();
    let mut file = File::open(&path).unwrap();
    file.seek(SeekFrom::Start(4)).unwrap();
    store.capture(&file, &dir).unwrap();
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "456789");
}

#[test]
fn a_file_open_for_writing_only_can_be_captured() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("store"));
    let dir = folder.path().join("r");
    writer(&dir, &Options::default());
    let file = File::create(folder.path().join("output")).unwrap();
    file.write_all_at(b"written", 0).unwrap();
    let id = store.capture(&file, &dir).unwrap().id;
    assert_eq!(fs::read(dir.join("files").join(id.to_string())).unwrap(), b"written");
}

#[test]
fn a_gigabyte_of_zeros_is_captured_whole_and_costs_no_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("store"));
    let dir = folder.path().join("r");
    writer(&dir, &Options::default());
    let file = File::create(folder.path().join("sparse")).unwrap();
    file.write_all_at(b"in the middle", 512 << 20).unwrap();
    file.set_len(1 << 30).unwrap();
    let id = store.capture(&file, &dir).unwrap().id;
    let kept = File::open(dir.join("files").join(id.to_string())).unwrap();
    let metadata = kept.metadata().unwrap();
    assert_eq!(metadata.len(), 1 << 30);
    assert!(metadata.blocks() * 512 < 1 << 20);
    let mut bytes = [1; 15];
    kept.read_exact_at(&mut bytes, (512 << 20) - 1).unwrap();
    assert_eq!(&bytes, b"\0in the middle\0");
}

#[test]
fn capturing_and_collecting_at_once_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().join("home"));
    let input = folder.path().join("input");
    fs::write(&input, "wanted by all").unwrap();
    let_it_settle();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let dir = recorded(&home);
                    let file = File::open(&input).unwrap();
                    let id = home.store().capture(&file, &dir).unwrap().id;
                    let kept = fs::read(dir.join("files").join(id.to_string())).unwrap();
                    assert_eq!(kept, b"wanted by all");
                    home.remove(dir.as_os_str()).unwrap();
                }
            });
        }
    });
    assert_eq!(objects(&folder.path().join("home")), 0);
}

#[test]
fn file_ids_are_read_as_they_are_written() {
    let id = FileId([0xab; 16]);
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{id}\""));
    for wrong in ["", "ab", &"g".repeat(32), &"ab".repeat(17)] {
        assert!(wrong.parse::<FileId>().is_err());
    }
}
