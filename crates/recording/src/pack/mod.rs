//! A recording as one file, to attach to a bug report.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | magic `WyPack01` |
//! | 8..16 | bytes in all its files, unpacked |
//! | 16.. | a zstd stream of a tar archive |
//! | the last 32 | BLAKE3 hash of everything before |
//!
//! What analyses keep for next time stays behind. Contents that several folders share are
//! there once. Unpacking believes nothing: the hash is checked first, then every name, kind and
//! size.

mod streams;
mod unpack;

pub use unpack::{unpack, unpack_while};

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::store::unique_name;
use crate::{DERIVED, MANIFEST, is_recording};
use streams::{Exactly, Hashing, Wanted};

const MAGIC: &[u8; 8] = b"WyPack01";
/// What the magic of every version begins with.
const FAMILY: &[u8] = b"WyPack";
const HEADER: u64 = 16;
const HASH: u64 = 32;
/// Enough to be quick, close to what more effort would give.
const LEVEL: i32 = 6;

/// How large a packed recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The file.
    pub file: u64,
    /// What is in it.
    pub contents: u64,
}

/// Says whether to go on; asked often.
pub type GoesOn = fn() -> bool;

/// Writes the recording in the folder `dir` to the new file `to`.
pub fn pack(dir: &Path, to: &Path) -> Result<Packed> {
    pack_while(dir, to, || true)
}

/// The same as long as it is wanted. Of one that is not, nothing is left.
pub fn pack_while(dir: &Path, to: &Path, goes_on: GoesOn) -> Result<Packed> {
    wanted(pack_all(dir, to, goes_on), goes_on)
}

/// What failed because it was not wanted any more says so.
fn wanted<T>(result: Result<T>, goes_on: GoesOn) -> Result<T> {
    if result.is_err() && !goes_on() { Err(Error::Interrupted) } else { result }
}

fn pack_all(dir: &Path, to: &Path, goes_on: GoesOn) -> Result<Packed> {
    if !is_recording(dir) {
        return Err(Error::NotARecording { path: dir.to_owned() });
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(Error::io("write", to, io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    let files = files_of(dir)?;
    let new = NewFile::beside(to)?;
    let packed = write_pack(dir, &files, &new.file, to, goes_on)?;
    new.name(to)?;
    Ok(packed)
}

/// A file that has its name only once it is whole: half a pack is never mistaken for one, and
/// nothing is left of one whose making was interrupted.
struct NewFile {
    file: File,
    /// Its name until then, where files cannot be without.
    hidden: Option<PathBuf>,
}

impl NewFile {
    fn beside(to: &Path) -> Result<NewFile> {
        let failed = |e: io::Error| Error::io("write", to, e);
        let folder =
            to.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(NewFile { file: file.into(), hidden: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
                let hidden = to.with_file_name(unique_name());
                let create =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden);
                Ok(NewFile { file: create.map_err(failed)?, hidden: Some(hidden) })
            }
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Gives it its name, which nothing else may have.
    fn name(self, to: &Path) -> Result<()> {
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let from = self.hidden.as_ref().unwrap_or(&open);
        rustix::fs::linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW)
            .map_err(|e| Error::io("write", to, e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = fs::remove_file(hidden);
        }
    }
}

/// One file of a recording: its path within, and what the system says of it.
struct Found {
    path: PathBuf,
    metadata: fs::Metadata,
}

/// All files of a recording but the derived ones, the manifest last.
fn files_of(dir: &Path) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = dir.join(&folder);
        for entry in fs::read_dir(&path).map_err(|e| Error::io("list", &path, e))? {
            let entry = entry.map_err(|e| Error::io("list", &path, e))?;
            let metadata = entry.metadata().map_err(|e| Error::io("look at", &entry.path(), e))?;
            let within = folder.join(entry.file_name());
            if metadata.is_dir() && entry.file_name() != DERIVED {
                folders.push(within);
            } else if metadata.is_file() {
                found.push(Found { path: within, metadata });
            }
        }
    }
    found.sort_by(|a, b| {
        let last = |f: &Found| f.path == Path::new(MANIFEST);
        last(a).cmp(&last(b)).then_with(|| a.path.cmp(&b.path))
    });
    Ok(found)
}

fn write_pack(
    dir: &Path,
    files: &[Found],
    file: &File,
    to: &Path,
    goes_on: GoesOn,
) -> Result<Packed> {
    let failed = |e| Error::io("write", to, e);
    let mut hashing = Hashing::new(BufWriter::new(file));
    let contents = files.iter().map(|f| f.metadata.len()).sum::<u64>();
    hashing.write_all(MAGIC).map_err(failed)?;
    hashing.write_all(&contents.to_le_bytes()).map_err(failed)?;
    let encoder = zstd::Encoder::new(hashing, LEVEL).map_err(failed)?;
    let mut archive = tar::Builder::new(encoder);
    let mut seen = HashMap::new();
    for file in files {
        append(&mut archive, dir, file, &mut seen, goes_on)?;
    }
    let finished = archive.into_inner().and_then(zstd::Encoder::finish).map_err(failed)?;
    let size = finished.finish().map_err(failed)?;
    Ok(Packed { file: size, contents })
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    dir: &Path,
    file: &Found,
    seen: &mut HashMap<(u64, u64), PathBuf>,
    goes_on: GoesOn,
) -> Result<()> {
    let path = dir.join(&file.path);
    let failed = |e| Error::io("pack", &path, e);
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o600);
    let key = (file.metadata.dev(), file.metadata.ino());
    if let Some(first) = seen.get(&key) {
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        return archive.append_link(&mut header, &file.path, first).map_err(failed);
    }
    seen.insert(key, file.path.clone());
    let len = file.metadata.len();
    header.set_size(len);
    let source = File::open(&path).map_err(failed)?;
    // A file that another process cuts meanwhile must not shift what follows it.
    let exactly = Exactly { source: Wanted { source, goes_on }, left: len };
    archive.append_data(&mut header, &file.path, exactly).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ending, Manifest, Options, Outcome, Recording, Writer};

    fn recording(dir: &Path) {
        let manifest = Manifest::new(vec!["/bin/true".into()]);
        let mut writer = Writer::create(dir, &manifest, &Options::default()).unwrap();
        writer.append(b"an event").unwrap();
        writer.finish(&Outcome::new(Ending::Exited(0))).unwrap();
        fs::create_dir_all(dir.join("files")).unwrap();
        fs::write(dir.join("files/aa"), vec![7; 100_000]).unwrap();
        fs::create_dir_all(dir.join("derived")).unwrap();
        fs::write(dir.join("derived/trace"), b"big").unwrap();
    }

    fn packed() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        recording(&folder.path().join("rec"));
        let file = folder.path().join("rec.why");
        pack(&folder.path().join("rec"), &file).unwrap();
        (folder, file)
    }

    #[test]
    fn a_recording_comes_back_whole_and_private() {
        let (folder, file) = packed();
        let to = folder.path().join("new");
        unpack(&file, &to).unwrap();
        let again = Recording::open(&to).unwrap();
        assert_eq!(again.reader().unwrap().next().unwrap(), Some(&b"an event"[..]));
        assert_eq!(fs::read(to.join("files/aa")).unwrap(), vec![7; 100_000]);
        assert!(!to.join("derived").exists());
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("rec.why");
        drop(NewFile::beside(&to).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&to, "another's").unwrap();
        assert!(NewFile::beside(&to).unwrap().name(&to).is_err());
        assert_eq!(fs::read(&to).unwrap(), b"another's");
    }

    #[test]
    fn contents_with_two_names_are_packed_once() {
        let folder = tempfile::tempdir().unwrap();
        let rec = folder.path().join("rec");
        recording(&rec);
        fs::create_dir_all(rec.join("other/files")).unwrap();
        let noise: Vec<u8> =
            (0..3_000_000u32).map(|n| (n.wrapping_mul(2654435761) >> 13) as u8).collect();
        fs::write(rec.join("files/bb"), &noise).unwrap();
        let one = pack(&rec, &folder.path().join("one")).unwrap();
        fs::hard_link(rec.join("files/bb"), rec.join("other/files/bb")).unwrap();
        let two = pack(&rec, &folder.path().join("two")).unwrap();
        assert!(two.file < one.file + 1000, "{one:?} {two:?}");
        unpack(&folder.path().join("two"), &folder.path().join("new")).unwrap();
        assert_eq!(fs::read(folder.path().join("new/other/files/bb")).unwrap(), noise);
    }

    #[test]
    fn any_changed_byte_is_noticed_and_leaves_nothing_behind() {
        let (folder, file) = packed();
        let good = fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(37) {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            fs::write(&file, &bad).unwrap();
            let to = folder.path().join("new");
            let error = unpack(&file, &to).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::DamagedPack { .. } | Error::NotAPack { .. } | Error::NewerPack { .. }
                ),
                "{error}"
            );
            assert!(fs::read_dir(&to).map_or(true, |mut d| d.next().is_none()));
        }
        for len in [0, 5, 16, 40, good.len() - 1] {
            fs::write(&file, &good[..len]).unwrap();
            assert!(unpack(&file, &folder.path().join("new")).is_err());
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.why");
        let mut hashing = Hashing::new(File::create(&file).unwrap());
        hashing.write_all(MAGIC).unwrap();
        hashing.write_all(&100u64.to_le_bytes()).unwrap();
        let mut archive = tar::Builder::new(zstd::Encoder::new(hashing, 1).unwrap());
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..9].copy_from_slice(b"../escape");
        header.set_size(2);
        header.set_cksum();
        archive.append(&header, &b"hi"[..]).unwrap();
        archive.into_inner().unwrap().finish().unwrap().finish().unwrap();
        let error = unpack(&file, &folder.path().join("new")).unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
        assert!(!folder.path().join("escape").exists());
    }

    #[test]
    fn nothing_is_overwritten() {
        let (folder, file) = packed();
        assert!(pack(&folder.path().join("rec"), &file).is_err());
        let error = unpack(&file, &folder.path().join("rec")).unwrap_err();
        assert!(matches!(error, Error::FolderInUse { .. }));
    }
}
