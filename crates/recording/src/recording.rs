//! A recording on disk, opened.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::manifest::{FORMAT, Manifest};
use crate::outcome::Outcome;
use crate::reader::Reader;
use crate::store::{FileId, unique_name};
use crate::{DERIVED, FILES, LOG, MANIFEST, OUTCOME, TAIL, json};

/// A recording whose manifest and outcome have been read and understood.
#[derive(Clone, Debug)]
pub struct Recording {
    dir: PathBuf,
    manifest: Manifest,
    outcome: Option<Outcome>,
}

impl Recording {
    /// Opens the recording in the folder `dir`.
    pub fn open(dir: &Path) -> Result<Recording> {
        let text = json::read_text(&dir.join(MANIFEST))?
            .ok_or_else(|| Error::NotARecording { path: dir.to_owned() })?;
        check_format(dir, &text)?;
        let outcome = json::read_text(&dir.join(OUTCOME))?
            .map(|text| json::parse(OUTCOME, &text))
            .transpose()?;
        Ok(Recording { dir: dir.to_owned(), manifest: json::parse(MANIFEST, &text)?, outcome })
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
        self.dir.join(FILES).join(id.to_string())
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
        Reader::open(&self.dir)
    }

    /// How much disk space it takes.
    pub fn usage(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        for name in [LOG, TAIL] {
            let path = self.dir.join(name);
            match fs::metadata(&path) {
                Ok(metadata) => usage.log += metadata.len(),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("look at", &path, e)),
            }
        }
        for file in files_in(&self.dir.join(FILES))? {
            usage.files += 1;
            usage.file_bytes += file.len();
            // One link is the store's own.
            if file.nlink() > 2 {
                usage.shared_bytes += file.len();
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

/// Refuses formats that this build does not know, before looking at anything else.
fn check_format(dir: &Path, manifest: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }
    let Versioned { format: found } = json::parse(MANIFEST, manifest)?;
    match found {
        0 => Err(Error::damaged("manifest.json states format 0", 0)),
        1..=FORMAT => Ok(()),
        _ => Err(Error::NewerFormat { path: dir.to_owned(), found, known: FORMAT }),
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
