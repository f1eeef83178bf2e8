//! Small recordings to test with.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use recording::{Ending, Error, Manifest, Options, Outcome, Recording, Writer};

/// Few bytes per frame, so that a few events make several.
pub fn small_frames() -> Options {
    Options { frame_bytes: 64, ..Options::default() }
}

pub fn outcome() -> Outcome {
    Outcome::new(Ending::Exited(0))
}

pub fn writer(dir: &Path, options: &Options) -> Writer {
    Writer::create(dir, &Manifest::new(vec!["prog".into()]), options).unwrap()
}

/// Events of many lengths, each different from all others.
pub fn events(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| (0..(i * 7) % 31).map(|j| (i * 37 + j * 11) as u8).collect()).collect()
}

/// A recording with these events whose writer was killed.
pub fn killed(dir: &Path, events: &[Vec<u8>]) -> PathBuf {
    let mut writer = writer(dir, &small_frames());
    events.iter().for_each(|event| writer.append(event).unwrap());
    dir.to_owned()
}

/// All events up to the end or the first error.
pub fn read(dir: &Path) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut found = Vec::new();
    let mut reader = match Recording::open(dir).and_then(|recording| recording.reader()) {
        Ok(reader) => reader,
        Err(e) => return (found, Some(e)),
    };
    loop {
        match reader.next() {
            Ok(Some(event)) => found.push(event.to_vec()),
            Ok(None) => return (found, None),
            Err(e) => return (found, Some(e)),
        }
    }
}

/// All events of a recording that must be good.
pub fn read_all(dir: &Path) -> Vec<Vec<u8>> {
    let (events, error) = read(dir);
    assert!(error.is_none(), "{error:?}");
    events
}
