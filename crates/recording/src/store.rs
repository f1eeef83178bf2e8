//! The files that recorded programs read, kept once for all recordings.
//!
//! `objects/` holds contents named by their hash; a recording's `files/` holds hard links to them,
//! so a recording moved or copied elsewhere is whole, and an object with a single link is garbage.
//! `index/` remembers which file had which contents: the link `<device>-<inode>` leads nowhere, its
//! text is `<size>-<mtime>-<ctime>-<id>`. A file that has not changed since costs three system calls.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::FILES;
use crate::error::{Error, Result};
use crate::manifest::{from_hex, to_hex};

/// A file's times must be older than this to be trusted: a change within the clock's granularity
/// after our copy would leave them as they are.
const SETTLED: i128 = 1_000_000_000;

/// Unfinished copies older than this were left by a killed recorder.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Names the contents of a file: the first 128 bits of their BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub [u8; 16]);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a file id has 32 hexadecimal digits")]
pub struct NotAFileId;

impl FromStr for FileId {
    type Err = NotAFileId;

    fn from_str(text: &str) -> Result<FileId, NotAFileId> {
        let bytes = from_hex(text).ok_or(NotAFileId)?;
        Ok(FileId(bytes.try_into().map_err(|_| NotAFileId)?))
    }
}

impl Serialize for FileId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FileId, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A file that is now in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// What its contents are called there.
    pub id: FileId,
    /// How many bytes of disk this took: 0 if the store had them.
    pub added: u64,
}

/// The contents that recordings share.
#[derive(Clone, Debug)]
pub struct Store {
    objects: PathBuf,
    index: PathBuf,
    copies: PathBuf,
}

impl Store {
    /// The store in the folder `root`, which need not exist yet.
    pub fn at(root: impl AsRef<Path>) -> Store {
        let root = root.as_ref();
        Store {
            objects: root.join("objects"),
            index: root.join("index"),
            copies: root.join("copies"),
        }
    }

    /// Puts the whole contents of the regular file `file` into the recording in the folder `rec`.
    ///
    /// The descriptor may have been opened in any way; its offset stays as it is.
    pub fn capture(&self, file: impl AsFd, rec: &Path) -> Result<Captured> {
        let file = file.as_fd();
        let stat = rustix::fs::fstat(file).map_err(|e| Error::io("look at", rec, e))?;
        if let Some(id) = self.indexed(&stat)
            && self.link(id, rec)?
        {
            return Ok(Captured { id, added: 0 });
        }
        self.capture_anew(file, &stat, rec)
    }

    /// Removes the contents that no recording has any more; returns how many bytes that freed.
    pub fn collect(&self) -> Result<u64> {
        let mut freed = 0;
        for (path, metadata) in list(&self.objects)? {
            if std::os::unix::fs::MetadataExt::nlink(&metadata) == 1 && remove_if_there(&path)? {
                freed += metadata.len();
            }
        }
        for (path, metadata) in list(&self.copies)? {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED) {
                remove_if_there(&path)?;
            }
        }
        for (path, _) in list(&self.index)? {
            if !self.leads_to_an_object(&path) {
                remove_if_there(&path)?;
            }
        }
        Ok(freed)
    }

    /// Copies, names and links; the slow way.
    fn capture_anew(&self, file: BorrowedFd<'_>, stat: &Stat, rec: &Path) -> Result<Captured> {
        let mut copy = Copy::create(self)?;
        let (id, len) = copy.fill(file)?;
        // The copy's own link keeps the object from being collected until it has its second.
        let added = loop {
            let new = self.adopt(&copy, id)?;
            if self.link(id, rec)? {
                break if new { len } else { 0 };
            }
        };
        let after = rustix::fs::fstat(file).map_err(|e| Error::io("look at", rec, e))?;
        if Key::of(stat) == Key::of(&after) && is_settled(&after, len) {
            self.remember(&after, id)?;
        }
        Ok(Captured { id, added })
    }

    /// Makes the copy an object, unless its contents are one already; returns whether it did.
    fn adopt(&self, copy: &Copy, id: FileId) -> Result<bool> {
        let object = self.object(id);
        match fs::hard_link(&copy.path, &object) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // A file system without hard links: one recording less to share with.
            Err(e) if cannot_link(&e) => {
                copy_into(&copy.path, &object).map_err(|e| Error::io("write", &object, e))?;
                Ok(true)
            }
            Err(e) => Err(Error::io("write", &object, e)),
        }
    }

    /// Gives the recording the object `id`; false if there is no such object.
    fn link(&self, id: FileId, rec: &Path) -> Result<bool> {
        let object = self.object(id);
        let linked = rec.join(FILES).join(id.to_string());
        let result = match fs::hard_link(&object, &linked) {
            Err(e) if cannot_link(&e) => copy_into(&object, &linked),
            other => other,
        };
        match result {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound && rec.join(FILES).is_dir() => Ok(false),
            Err(e) => Err(Error::io("write", &linked, e)),
        }
    }

    /// The contents that the index knows an unchanged file to have.
    fn indexed(&self, stat: &Stat) -> Option<FileId> {
        let text = fs::read_link(self.index_entry(stat)).ok()?;
        let (key, id) = text.to_str()?.rsplit_once('-')?;
        (key == Key::of(stat).to_string()).then(|| id.parse().ok())?
    }

    fn remember(&self, stat: &Stat, id: FileId) -> Result<()> {
        let entry = self.index_entry(stat);
        let new = self.copies.join(unique_name());
        symlink(format!("{}-{id}", Key::of(stat)), &new)
            .and_then(|()| fs::rename(&new, &entry))
            .map_err(|e| Error::io("write", &entry, e))
    }

    fn leads_to_an_object(&self, entry: &Path) -> bool {
        let text = fs::read_link(entry).unwrap_or_default();
        let id = text.to_str().and_then(|text| text.rsplit_once('-')?.1.parse().ok());
        id.is_some_and(|id| self.object(id).exists())
    }

    fn object(&self, id: FileId) -> PathBuf {
        self.objects.join(id.to_string())
    }

    fn index_entry(&self, stat: &Stat) -> PathBuf {
        self.index.join(format!("{:x}-{:x}", stat.st_dev, stat.st_ino))
    }
}

/// What changes whenever a file's contents do.
#[derive(PartialEq, Eq)]
struct Key {
    size: i64,
    modified: i128,
    changed: i128,
}

impl Key {
    fn of(stat: &Stat) -> Key {
        let nanoseconds = |s, ns| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Key {
            size: stat.st_size,
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.size, self.modified, self.changed)
    }
}

/// Whether the file's times will tell of its next change.
///
/// Not so for files that the kernel makes up when they are read: /proc and /sys have no blocks.
fn is_settled(stat: &Stat, copied: u64) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let old = |time: i128| now.as_nanos() as i128 - time > SETTLED;
    let key = Key::of(stat);
    let real = stat.st_blocks > 0 && u64::try_from(stat.st_size) == Ok(copied);
    real && old(key.modified) && old(key.changed)
}

/// A copy being made, in the store but not yet of it; removed when dropped.
struct Copy {
    path: PathBuf,
    file: File,
}

impl Copy {
    fn create(store: &Store) -> Result<Copy> {
        let path = store.copies.join(unique_name());
        let create =
            || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = create().or_else(|e| {
            if e.kind() != io::ErrorKind::NotFound {
                return Err(e);
            }
            for dir in [&store.objects, &store.index, &store.copies] {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            }
            create()
        });
        let file = file.map_err(|e| Error::io("create", &path, e))?;
        Ok(Copy { path, file })
    }

    /// Takes over all of `source`; returns what the contents are called and their length.
    fn fill(&mut self, source: BorrowedFd<'_>) -> Result<(FileId, u64)> {
        match self.clone_or_copy(source) {
            // Opened for writing only, or for direct access: open it once more, for reading.
            Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::BADF | Errno::INVAL)) => {
                let again = format!("/proc/self/fd/{}", source.as_raw_fd());
                File::open(again).and_then(|file| self.clone_or_copy(file.as_fd()))
            }
            other => other,
        }
        .map_err(|e| Error::io("copy a file to", &self.path, e))
    }

    fn clone_or_copy(&mut self, source: BorrowedFd<'_>) -> io::Result<(FileId, u64)> {
        // `copy_file_range` is no help where cloning fails: it copies as we do, only without hashing.
        match rustix::fs::ioctl_ficlone(&self.file, source) {
            Ok(()) => hash(self.file.as_fd(), |_| Ok(())),
            Err(_) => self.copy(source),
        }
    }

    /// Copies piece by piece; pieces of zeros stay holes, so that memory that a program
    /// reserved as a file, gigabytes of it, costs no disk.
    fn copy(&mut self, source: BorrowedFd<'_>) -> io::Result<(FileId, u64)> {
        let mut at = 0;
        let copied = hash(source, |bytes| {
            if bytes.iter().any(|byte| *byte != 0) {
                self.file.write_all_at(bytes, at)?;
            }
            at += bytes.len() as u64;
            Ok(())
        })?;
        self.file.set_len(at)?;
        Ok(copied)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads `file` to its end without moving its offset, giving each piece to `each` as well.
pub(crate) fn hash(
    file: BorrowedFd<'_>,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(FileId, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut at = 0;
    loop {
        let len = match rustix::io::pread(file, &mut buffer[..], at) {
            Ok(0) => break,
            Ok(len) => len,
            Err(Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        };
        hasher.update(&buffer[..len]);
        each(&buffer[..len])?;
        at += len as u64;
    }
    let id = *hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes");
    Ok((FileId(id), at))
}

/// Copies an object to where it cannot be linked, in one step as far as others can see.
fn copy_into(object: &Path, target: &Path) -> io::Result<()> {
    let new = target.with_file_name(unique_name());
    let copied = fs::copy(object, &new).and_then(|_| fs::rename(&new, target));
    if copied.is_err() {
        let _ = fs::remove_file(&new);
    }
    copied
}

/// Another file system, one without hard links, a file that is not ours, or too many links.
fn cannot_link(e: &io::Error) -> bool {
    let errno = Errno::from_io_error(e);
    matches!(errno, Some(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP))
}

/// A hidden name that nobody else on this machine will choose.
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{}-{count}", std::process::id(), now.as_nanos())
}

fn list(dir: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list", dir, e)),
    };
    // An entry that vanishes meanwhile was removed by someone with the same aim.
    Ok(entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect())
}

fn remove_if_there(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("remove", path, e)),
    }
}
