//! What can happen to a recording.

use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recording::{Ending, Options, Outcome, Recording, Writer};

use crate::compat::Random;

/// A recording as it was made.
pub struct Base {
    dir: PathBuf,
    /// Its files but for the captured ones, by name within it.
    files: Vec<(PathBuf, Vec<u8>)>,
    events: Vec<Vec<u8>>,
    /// Names of captured files.
    captured: Vec<String>,
    /// With what `why replay` would end.
    pub status: Option<i32>,
}

impl Base {
    /// Reads it all: it is small.
    pub fn read(dir: &Path) -> Result<Base> {
        let recording = Recording::open(dir)?;
        let mut reader = recording.reader()?;
        let mut events = Vec::new();
        while let Some(event) = reader.next()? {
            events.push(event.to_vec());
        }
        let mut files = Vec::new();
        for log in recording.logs()? {
            let place = log.dir().strip_prefix(dir).unwrap_or(Path::new(""));
            for name in ["manifest.json", "log", "outcome.json"] {
                let name = place.join(name);
                files.push((name.clone(), fs::read(dir.join(&name))?));
            }
        }
        let captured = fs::read_dir(dir.join("files"))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>>>()?;
        let status = recording.outcome().map(|outcome| i32::from(outcome.ending.status()));
        Ok(Base { dir: dir.to_owned(), files, events, captured, status })
    }
}

/// One way to damage one file, or the events behind all checksums.
#[derive(Debug)]
pub enum Damage {
    /// Bytes of a manifest, a log or an outcome change.
    File { index: usize, change: Change },
    /// An event changes, and the log is made anew around it.
    Event { index: usize, change: Change },
    /// Events leave the log, or stand in it twice.
    Moved { index: usize, twice: bool },
    /// A captured file changes.
    Captured { index: usize, change: Change },
    /// A file is not there.
    Missing { index: usize },
}

/// How bytes change.
#[derive(Debug)]
pub enum Change {
    Flip { at: usize, mask: u8 },
    Set { at: usize, bytes: [u8; 4] },
    Cut { len: usize },
    Doubled { from: usize, len: usize },
}

impl Change {
    fn choose(len: usize, random: &mut Random) -> Change {
        let mut below = |n: usize| random.next() as usize % n.max(1);
        match below(8) {
            0..=3 => Change::Flip { at: below(len), mask: 1 << below(8) },
            4 | 5 => {
                let edge = [0u32, u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x0100_0000];
                Change::Set { at: below(len), bytes: edge[below(edge.len())].to_le_bytes() }
            }
            6 => Change::Cut { len: below(len) },
            _ => Change::Doubled { from: below(len), len: 1 + below(64) },
        }
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len();
        match *self {
            Change::Flip { at, mask } => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= mask;
                }
            }
            Change::Set { at, bytes: new } => {
                for (byte, new) in bytes[at.min(end)..].iter_mut().zip(new) {
                    *byte = new;
                }
            }
            Change::Cut { len } => bytes.truncate(len),
            Change::Doubled { from, len } => {
                let piece = bytes[from.min(end)..(from + len).min(end)].to_vec();
                bytes.splice(from.min(end)..from.min(end), piece);
            }
        }
    }
}

impl Damage {
    /// Chooses one.
    pub fn choose(base: &Base, random: &mut Random) -> Damage {
        match random.next() % 16 {
            0..=4 => {
                let index = random.next() as usize % base.files.len();
                Damage::File { index, change: Change::choose(base.files[index].1.len(), random) }
            }
            5..=11 => {
                let index = random.next() as usize % base.events.len();
                Damage::Event { index, change: Change::choose(base.events[index].len(), random) }
            }
            12 | 13 => Damage::Moved {
                index: random.next() as usize % base.events.len(),
                twice: random.next().is_multiple_of(2),
            },
            14 => {
                let index = random.next() as usize % base.captured.len();
                Damage::Captured { index, change: Change::choose(8192, random) }
            }
            _ => Damage::Missing { index: random.next() as usize % base.files.len() },
        }
    }

    /// Makes the damaged recording in `folder`.
    pub fn apply(&self, base: &Base, folder: &Path) -> Result<()> {
        match self {
            Damage::Event { .. } | Damage::Moved { .. } => self.write_anew(base, folder)?,
            _ => self.write_files(base, folder)?,
        }
        let files = folder.join("files");
        let Damage::Captured { index, change } = self else {
            let _ = fs::remove_dir_all(&files); // the writer may have made it
            return symlink(base.dir.join("files"), &files).context("files");
        };
        fs::create_dir_all(&files)?;
        for (n, name) in base.captured.iter().enumerate() {
            let from = base.dir.join("files").join(name);
            if n == *index {
                let mut bytes = fs::read(&from)?;
                change.apply(&mut bytes);
                fs::write(files.join(name), bytes)?;
            } else {
                symlink(&from, files.join(name))?;
            }
        }
        Ok(())
    }

    fn write_files(&self, base: &Base, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        for (n, (name, bytes)) in base.files.iter().enumerate() {
            let mut bytes = bytes.clone();
            match self {
                Damage::File { index, change } if *index == n => change.apply(&mut bytes),
                Damage::Missing { index } if *index == n => continue,
                _ => {}
            }
            write(&folder.join(name), &bytes)?;
        }
        Ok(())
    }

    fn write_anew(&self, base: &Base, folder: &Path) -> Result<()> {
        let original = Recording::open(&base.dir)?;
        let mut writer = Writer::create(folder, original.manifest(), &Options::default())?;
        for (n, event) in base.events.iter().enumerate() {
            let mut event = event.clone();
            match self {
                Damage::Event { index, change } if *index == n => change.apply(&mut event),
                Damage::Moved { index, twice } if *index == n => {
                    if !twice {
                        continue;
                    }
                    writer.append(&event)?;
                }
                _ => {}
            }
            writer.append(&event)?;
        }
        for (name, bytes) in base.files.iter().filter(|(name, _)| name.starts_with("processes")) {
            write(&folder.join(name), bytes)?;
        }
        let ending = original.outcome().map_or(Ending::Exited(0), |outcome| outcome.ending);
        Ok(writer.finish(&Outcome::new(ending))?)
    }
}

/// Writes a file in a folder that may not be there yet.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, bytes)?)
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}
