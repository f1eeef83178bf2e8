//! Where recordings live, how they are named, found and removed.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::{Store, unique_name};
use crate::{DERIVED, FILES, LOG, MANIFEST, OUTCOME, PROCESSES, TAIL, is_recording};

const LATEST: &str = "latest";

/// The folder that holds a user's recordings and the files that they share.
///
/// `recordings/` has one folder per recording and the link `latest`; `store/` the shared files;
/// `code/` what makes the next run quicker.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// One recording of a [`Home`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, which `Home::resolve` understands.
    pub name: OsString,
    /// Its folder.
    pub path: PathBuf,
    /// Whether it is the one that is meant when none is named.
    pub latest: bool,
}

impl Home {
    /// `$WHY_DIR`, else `$XDG_DATA_HOME/whydunit`, else `~/.local/share/whydunit`.
    pub fn from_env() -> Result<Home> {
        let set =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // The XDG specification has relative paths ignored.
        let xdg = || set("XDG_DATA_HOME").filter(|path| path.is_absolute());
        set("WHY_DIR")
            .or_else(|| Some(xdg()?.join("whydunit")))
            .or_else(|| Some(set("HOME")?.join(".local/share/whydunit")))
            .map(Home::at)
            .ok_or(Error::NoHome)
    }

    /// The home in the folder `root`, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Home {
        let root = root.into();
        // A recorded program may change its working directory.
        Home { root: std::path::absolute(&root).unwrap_or(root) }
    }

    /// The files that recordings share.
    pub fn store(&self) -> Store {
        Store::at(self.root.join("store"))
    }

    /// The folder for translated code, which may be removed at any time.
    pub fn code(&self) -> PathBuf {
        self.root.join("code")
    }

    /// Makes the folder of a new recording, named by the next free number, and links `latest` to it.
    ///
    /// If nothing gets recorded into it, call [`Home::discard`].
    pub fn create_numbered(&self) -> Result<PathBuf> {
        let recordings = self.recordings();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&recordings)
            .map_err(|e| Error::io("create", &recordings, e))?;
        let _lock = self.lock()?;
        let mut number = self.greatest_number()? + 1;
        loop {
            let path = recordings.join(number.to_string());
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    self.link_latest(OsStr::new(&number.to_string()))?;
                    return Ok(path);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(Error::io("create", &path, e)),
            }
        }
    }

    /// All recordings here, by number, then by name.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let latest = fs::read_link(self.recordings().join(LATEST)).unwrap_or_default();
        let mut entries: Vec<Entry> = self
            .names()?
            .into_iter()
            .map(|name| {
                let path = self.recordings().join(&name);
                Entry { latest: latest.as_os_str() == name, name, path }
            })
            .filter(|entry| is_recording(&entry.path))
            .collect();
        entries.sort_by_cached_key(|entry| sort_key(&entry.name));
        Ok(entries)
    }

    /// The folder of the recording called `name`, a folder or a name from `list`; else the latest.
    pub fn resolve(&self, name: Option<&OsStr>) -> Result<PathBuf> {
        match name {
            Some(name) => {
                self.find(name).ok_or_else(|| Error::NoSuchRecording { name: PathBuf::from(name) })
            }
            None => self.latest(),
        }
    }

    /// The folder of the recording called `name`, if there is one.
    pub fn find(&self, name: &OsStr) -> Option<PathBuf> {
        let here = PathBuf::from(name);
        let bare = here.components().count() == 1 && here.file_name() == Some(name);
        let listed = bare.then(|| self.recordings().join(name));
        [Some(here), listed].into_iter().flatten().find(|path| is_recording(path))
    }

    /// Removes the recording called `name`, and the shared files that only it used.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        let found = self.resolve(Some(name))?;
        let path = fs::canonicalize(&found).map_err(|e| Error::io("find", &found, e))?;
        let removed = remove_recording(&path);
        self.relink_latest()?;
        self.store().collect()?;
        removed
    }

    /// Removes a folder made by [`Home::create_numbered`] that did not become a useful recording.
    pub fn discard(&self, path: &Path) -> Result<()> {
        let removed = remove_recording(path);
        self.relink_latest()?;
        removed
    }

    fn recordings(&self) -> PathBuf {
        self.root.join("recordings")
    }

    fn latest(&self) -> Result<PathBuf> {
        let linked = self.recordings().join(LATEST);
        if let Ok(name) = fs::read_link(&linked) {
            let path = self.recordings().join(name);
            if is_recording(&path) {
                return Ok(path);
            }
        }
        // The link is gone or leads nowhere: someone removed the folder by hand.
        let newest = self.list()?.pop().ok_or(Error::NoRecordings)?;
        Ok(newest.path)
    }

    /// Lets `latest` lead to the newest recording that is left.
    fn relink_latest(&self) -> Result<()> {
        let link = self.recordings().join(LATEST);
        if fs::symlink_metadata(&link).is_err() {
            return Ok(());
        }
        let _lock = self.lock()?;
        if link.exists() {
            return Ok(());
        }
        match self.list()?.pop() {
            Some(newest) => self.link_latest(&newest.name),
            None => {
                absent_is_fine(fs::remove_file(&link)).map_err(|e| Error::io("remove", &link, e))
            }
        }
    }

    /// Replaces the link in one step, so that it always leads somewhere.
    fn link_latest(&self, name: &OsStr) -> Result<()> {
        let link = self.recordings().join(LATEST);
        let new = self.recordings().join(unique_name());
        symlink(name, &new)
            .and_then(|()| fs::rename(&new, &link))
            .map_err(|e| Error::io("link", &link, e))
    }

    /// Keeps others from moving `latest` until the result is dropped.
    fn lock(&self) -> Result<File> {
        let path = self.recordings().join(".lock");
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let file = open().map_err(|e| Error::io("open", &path, e))?;
        file.lock().map_err(|e| Error::io("lock", &path, e))?;
        Ok(file)
    }

    fn greatest_number(&self) -> Result<u64> {
        let numbers = self.names()?.into_iter().filter_map(|name| number(&name));
        Ok(numbers.max().unwrap_or(0))
    }

    /// The names in `recordings/` that can be recordings.
    fn names(&self) -> Result<Vec<OsString>> {
        let recordings = self.recordings();
        let entries = match fs::read_dir(&recordings) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list", &recordings, e)),
        };
        let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
        let mut names = names.map_err(|e| Error::io("list", &recordings, e))?;
        names.retain(|name| name != LATEST && !name.as_encoded_bytes().starts_with(b"."));
        Ok(names)
    }
}

fn number(name: &OsStr) -> Option<u64> {
    name.to_str()?.parse().ok()
}

/// Names before numbers, so that the newest numbered recording comes last.
fn sort_key(name: &OsStr) -> (Reverse<bool>, u64, OsString) {
    let number = number(name);
    (Reverse(number.is_none()), number.unwrap_or(0), name.to_owned())
}

/// Removes a recording's own files, then its folder if that is all it held.
fn remove_recording(dir: &Path) -> Result<()> {
    for name in [PROCESSES, FILES, DERIVED] {
        let path = dir.join(name);
        absent_is_fine(fs::remove_dir_all(&path)).map_err(|e| Error::io("remove", &path, e))?;
    }
    // The manifest last: until then it is still a recording that can be removed again.
    for name in [TAIL, LOG, OUTCOME, MANIFEST] {
        let path = dir.join(name);
        absent_is_fine(fs::remove_file(&path)).map_err(|e| Error::io("remove", &path, e))?;
    }
    match fs::remove_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(Error::OtherFilesLeft { path: dir.to_owned() })
        }
        other => absent_is_fine(other).map_err(|e| Error::io("remove", dir, e)),
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
