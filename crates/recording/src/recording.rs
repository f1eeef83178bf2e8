//! A recording on disk, opened.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::manifest::{Manifest, REGION_FORMAT};
use crate::outcome::Outcome;
use crate::process::{Born, Process, folder_of, root_of};
use crate::reader::{Part, Reader};
use crate::store::{FileId, unique_name};
use crate::{DERIVED, FILES, LOG, MANIFEST, OUTCOME, PROCESSES, TAIL, json};

/// A recording whose manifest and outcome have been read and understood.
#[derive(Clone, Debug)]
pub struct Recording {
    dir: PathBuf,
    manifest: Manifest,
    outcome: Option<Outcome>,
    /// What comes before the log's own events: parts of the logs of its ancestors.
    before: Vec<Part>,
}

/// A chain of forks that is longer is no recording of ours.
const MOST_FORKS: usize = 100_000;

impl Recording {
    /// Opens the recording in the folder `dir`.
    pub fn open(dir: &Path) -> Result<Recording> {
        let text = json::read_text(&dir.join(MANIFEST))?
            .ok_or_else(|| Error::NotARecording { path: dir.to_owned() })?;
        check_format(dir, &text)?;
        let outcome = json::read_text(&dir.join(OUTCOME))?
            .map(|text| json::parse(OUTCOME, &text))
            .transpose()?;
        let mut manifest: Manifest = json::parse(MANIFEST, &text)?;
        let before = ancestors(dir, &mut manifest)?;
        Ok(Recording { dir: dir.to_owned(), manifest, outcome, before })
    }

    /// The folder of the whole run's recording, which has the captured files.
    pub fn root(&self) -> PathBuf {
        root_of(&self.dir, self.process())
    }

    /// Which process of the run this is the log of.
    pub fn process(&self) -> &Process {
        &self.manifest.process
    }

    /// Log number `log` of the same run.
    pub fn log(&self, log: u64) -> Result<Recording> {
        Recording::open(&folder_of(&self.root(), log))
    }

    /// Is there a log of that number? A process that was killed at once has none.
    pub fn has_log(&self, log: u64) -> bool {
        crate::is_recording(&folder_of(&self.root(), log))
    }

    /// The logs of all processes of the run, in the order they began. One that was only
    /// about to begin when the recorder was killed is left out.
    pub fn logs(&self) -> Result<Vec<Recording>> {
        self.numbers()?.into_iter().map(|log| self.log(log)).collect()
    }

    /// Those of them that nobody has closed.
    pub fn unfinished(&self) -> Result<Vec<Recording>> {
        let open = |log: &u64| !folder_of(&self.root(), *log).join(OUTCOME).exists();
        self.numbers()?.into_iter().filter(open).map(|log| self.log(log)).collect()
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        let folder = self.root().join(PROCESSES);
        let mut numbers = vec![Process::FIRST];
        match fs::read_dir(&folder) {
            Ok(entries) => {
                for entry in entries {
                    let name = entry.map_err(|e| Error::io("list", &folder, e))?.file_name();
                    let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
                    numbers.extend(number.filter(|_| crate::is_recording(&folder.join(&name))));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("list", &folder, e)),
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Does the run have other processes?
    pub fn has_processes(&self) -> bool {
        self.root().join(PROCESSES).is_dir()
    }

    /// How many events of its ancestors come before the log's own.
    pub fn inherited_events(&self) -> u64 {
        self.before.iter().map(|part| part.events).sum()
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How it ended; `None` if the recorder was killed, and nobody called [`crate::finalise`].
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Where the contents of the captured file `id` are.
    pub fn file(&self, id: FileId) -> PathBuf {
        self.root().join(FILES).join(id.to_string())
    }

    /// Gives all captured files of the run to the recording in the folder `dir`, as hard
    /// links where that is possible.
    pub fn share_files(&self, dir: &Path) -> Result<()> {
        let (from, to) = (self.root().join(FILES), dir.join(FILES));
        let entries = match fs::read_dir(&from) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|e| Error::io("list", &from, e))?,
        };
        for entry in entries {
            let old = entry.map_err(|e| Error::io("list", &from, e))?;
            let new = to.join(old.file_name());
            fs::hard_link(old.path(), &new)
                .or_else(|_| fs::copy(old.path(), &new).map(drop))
                .map_err(|e| Error::io("write", &new, e))?;
        }
        Ok(())
    }

    /// Where an analysis finds what it once kept under `name`, if it did.
    pub fn derived(&self, name: &str) -> PathBuf {
        self.dir.join(DERIVED).join(name)
    }

    /// Keeps `contents` under `name` for next time, in one step as far as readers can see.
    pub fn keep_derived(&self, name: &str, contents: &[u8]) -> Result<()> {
        let folder = self.dir.join(DERIVED);
        let (path, new) = (folder.join(name), folder.join(unique_name()));
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        created
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new))
            .and_then(|mut file| file.write_all(contents))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|e| {
                let _ = fs::remove_file(&new);
                Error::io("write", &path, e)
            })
    }

    /// Reads the events from the first one on.
    pub fn reader(&self) -> Result<Reader> {
        Reader::open(&self.dir, &self.before)
    }

    /// Reads the log's own events, without those of its ancestors.
    pub fn own_reader(&self) -> Result<Reader> {
        Reader::open(&self.dir, &[])
    }

    /// How much disk space it takes.
    pub fn usage(&self) -> Result<Usage> {
        let mut usage = self.own_usage()?;
        if self.process().log == Process::FIRST {
            for log in self.logs()?.iter().skip(1) {
                let own = log.own_usage()?;
                usage.log += own.log;
                usage.derived += own.derived;
            }
        }
        for file in files_in(&self.root().join(FILES))? {
            usage.files += 1;
            usage.file_bytes += file.len();
            // One link is the store's own.
            if file.nlink() > 2 {
                usage.shared_bytes += file.len();
            }
        }
        Ok(usage)
    }

    /// What this log takes by itself.
    fn own_usage(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        for name in [LOG, TAIL] {
            let path = self.dir.join(name);
            match fs::metadata(&path) {
                Ok(metadata) => usage.log += metadata.len(),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("look at", &path, e)),
            }
        }
        usage.derived = files_in(&self.dir.join(DERIVED))?.iter().map(fs::Metadata::len).sum();
        Ok(usage)
    }
}

/// How much disk space a recording takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The log of events.
    pub log: u64,
    /// How many files were captured.
    pub files: u64,
    /// Their contents together.
    pub file_bytes: u64,
    /// The part of `file_bytes` that other recordings share.
    pub shared_bytes: u64,
    /// What analyses have kept.
    pub derived: u64,
}

impl Usage {
    /// Everything together.
    pub fn total(&self) -> u64 {
        self.log + self.file_bytes + self.derived
    }
}

/// The parts of other logs that a log goes on from, eldest first. The manifest gets the
/// start of the eldest.
fn ancestors(dir: &Path, manifest: &mut Manifest) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let root = root_of(dir, &manifest.process);
    let mut process = manifest.process.clone();
    while let Born::Forked { from, events } = process.born {
        if from >= process.log || parts.len() == MOST_FORKS {
            return Err(Error::damaged("a process began before its parent", 0));
        }
        let folder = folder_of(&root, from);
        let text = json::read_text(&folder.join(MANIFEST))?
            .ok_or_else(|| Error::NotARecording { path: folder.clone() })?;
        let parent: Manifest = json::parse(MANIFEST, &text)?;
        if parent.process.log != from {
            return Err(Error::damaged("a log has the number of another", 0));
        }
        parts.push(Part { dir: folder, events });
        manifest.start = parent.start;
        process = parent.process;
    }
    parts.reverse();
    Ok(parts)
}

/// Refuses formats that this build does not know, before looking at anything else.
fn check_format(dir: &Path, manifest: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let Versioned { format: found } = json::parse(MANIFEST, manifest)?;
    match found {
        0 => Err(Error::damaged("manifest.json states format 0", 0)),
        1..=REGION_FORMAT => Ok(()),
        _ => Err(Error::NewerFormat { path: dir.to_owned(), found, known: REGION_FORMAT }),
    }
}

/// The regular files directly in `dir`; none if it does not exist.
fn files_in(dir: &Path) -> Result<Vec<fs::Metadata>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list", dir, e)),
    };
    let all: io::Result<Vec<_>> = entries.map(|entry| entry?.metadata()).collect();
    let mut all = all.map_err(|e| Error::io("list", dir, e))?;
    all.retain(fs::Metadata::is_file);
    Ok(all)
}
