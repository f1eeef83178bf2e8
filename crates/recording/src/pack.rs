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

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::store::unique_name;
use crate::{DERIVED, MANIFEST, is_recording};

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

/// Makes the folder `dir`, which must be new or empty, the recording packed in `file`.
pub fn unpack(file: &Path, dir: &Path) -> Result<()> {
    unpack_while(file, dir, || true)
}

/// The same as long as it is wanted. Of one that is not, nothing is left.
pub fn unpack_while(file: &Path, dir: &Path, goes_on: GoesOn) -> Result<()> {
    let existed = dir.exists();
    let unpacked = unpack_all(file, dir, goes_on);
    if unpacked.is_err() && !existed {
        // Only if it is empty, as it was made.
        let _ = fs::remove_dir(dir);
    }
    wanted(unpacked, goes_on)
}

fn unpack_all(file: &Path, dir: &Path, goes_on: GoesOn) -> Result<()> {
    let contents = check(file, goes_on)?;
    match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) => return Err(Error::io("create", dir, e)),
    }
    let mut entries = fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))?;
    if entries.next().is_some() {
        return Err(Error::FolderInUse { path: dir.to_owned() });
    }
    let Some(aside) = aside(dir) else { return extract_or_clear(file, dir, contents, goes_on) };
    let there = extract_or_clear(file, &aside, contents, goes_on)
        .and_then(|()| fs::rename(&aside, dir).map_err(|e| Error::io("write", dir, e)));
    if there.is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    there
}

/// Where the files go first: beside their folder, so that one which is interrupted leaves that
/// as it was. None if there can be nothing beside it.
fn aside(dir: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(dir.file_name()?);
    name.push(".unpacking");
    let aside = dir.with_file_name(name);
    // What an interrupted one left.
    let _ = fs::remove_dir_all(&aside);
    let linked = fs::symlink_metadata(dir).is_ok_and(|dir| dir.is_symlink());
    let made = !linked && DirBuilder::new().mode(0o700).create(&aside).is_ok();
    made.then_some(aside)
}

fn extract_or_clear(file: &Path, dir: &Path, contents: u64, goes_on: GoesOn) -> Result<()> {
    let extracted = extract(file, dir, contents, goes_on);
    if extracted.is_err() {
        clear(dir);
    }
    extracted
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

/// Gives just so many bytes, or fails.
struct Exactly {
    source: Wanted<File>,
    left: u64,
}

/// Gives bytes as long as they are wanted.
struct Wanted<R> {
    source: R,
    goes_on: GoesOn,
}

impl<R: Read> Read for Wanted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.goes_on)() { self.source.read(buffer) } else { Err(io::Error::other("enough")) }
    }
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let len = self.source.read(&mut buffer[..most])?;
        if len == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= len as u64;
        Ok(len)
    }
}

/// Checks magic and hash; returns how many bytes the files will have.
fn check(path: &Path, goes_on: GoesOn) -> Result<u64> {
    let failed = |e| Error::io("read", path, e);
    let damaged = |what| Error::DamagedPack { path: path.to_owned(), what };
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut header = [0; HEADER as usize];
    let short = reader.read_exact(&mut header).is_err();
    if short || !header.starts_with(FAMILY) {
        return Err(Error::NotAPack { path: path.to_owned() });
    }
    if !header.starts_with(MAGIC) {
        return Err(Error::NewerPack { path: path.to_owned() });
    }
    let body = len.checked_sub(HEADER + HASH).ok_or_else(|| damaged("it ends too early"))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header);
    let body = Wanted { source: reader.by_ref().take(body), goes_on };
    hasher.update_reader(body).map_err(failed)?;
    let mut expected = [0; HASH as usize];
    reader.read_exact(&mut expected).map_err(failed)?;
    if hasher.finalize() != blake3::Hash::from_bytes(expected) {
        return Err(damaged("its checksum is wrong"));
    }
    let contents = header[8..].first_chunk().expect("eight bytes are left");
    Ok(u64::from_le_bytes(*contents))
}

fn extract(file: &Path, dir: &Path, contents: u64, goes_on: GoesOn) -> Result<()> {
    let damaged = |what| Error::DamagedPack { path: file.to_owned(), what };
    let failed = |e| Error::io("read", file, e);
    let mut source = File::open(file).map_err(failed)?;
    let len = source.metadata().map_err(failed)?.len();
    source.seek(SeekFrom::Start(HEADER)).map_err(failed)?;
    let body = source.take(len.saturating_sub(HEADER + HASH));
    let body = Wanted { source: body, goes_on };
    let decoder = zstd::Decoder::new(body).map_err(failed)?;
    let mut archive = tar::Archive::new(decoder);
    let mut left = contents;
    for entry in archive.entries().map_err(|_| damaged("it holds no archive"))? {
        let mut entry = entry.map_err(|_| damaged("its archive breaks off"))?;
        let within = entry.path().ok().and_then(|path| plain(&path));
        let to = dir.join(within.ok_or_else(|| damaged("it names a file outside"))?);
        left =
            left.checked_sub(entry.size()).ok_or_else(|| damaged("it holds more than it says"))?;
        let parent = to.parent().expect("a file within a folder");
        let folders = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        folders.map_err(|e| Error::io("create", parent, e))?;
        match entry.header().entry_type() {
            tar::EntryType::Regular => write_entry(&mut entry, &to)?,
            tar::EntryType::Link => {
                let target = entry.link_name().ok().flatten().and_then(|path| plain(&path));
                let target = dir.join(target.ok_or_else(|| damaged("it links to a file outside"))?);
                fs::hard_link(&target, &to).map_err(|e| Error::io("write", &to, e))?;
            }
            _ => return Err(damaged("it holds more than files")),
        }
    }
    if is_recording(dir) { Ok(()) } else { Err(damaged("it holds no recording")) }
}

fn write_entry(entry: &mut impl Read, to: &Path) -> Result<()> {
    let failed = |e| Error::io("write", to, e);
    let create = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut file = create.map_err(failed)?;
    io::copy(entry, &mut file).map_err(failed)?;
    Ok(())
}

/// The path, if it leads nowhere but down.
fn plain(path: &Path) -> Option<PathBuf> {
    let normal = path.components().all(|c| matches!(c, Component::Normal(_)));
    (normal && path.components().next().is_some()).then(|| path.to_owned())
}

/// Removes what was unpacked so far.
fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let _ = if folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// Hashes what passes to `inner`.
struct Hashing<W> {
    inner: W,
    hasher: blake3::Hasher,
    written: u64,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Hashing<W> {
        Hashing { inner, hasher: blake3::Hasher::new(), written: 0 }
    }

    /// Writes the hash behind it all; returns the length.
    fn finish(mut self) -> io::Result<u64> {
        let hash = self.hasher.finalize();
        self.inner.write_all(hash.as_bytes())?;
        self.inner.flush()?;
        Ok(self.written + HASH)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..len]);
        self.written += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
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
        let mut hashing = Hashing::new(Vec::new());
        hashing.write_all(MAGIC).unwrap();
        hashing.write_all(&100u64.to_le_bytes()).unwrap();
        let mut archive = tar::Builder::new(zstd::Encoder::new(hashing, 1).unwrap());
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..9].copy_from_slice(b"../escape");
        header.set_size(2);
        header.set_cksum();
        archive.append(&header, &b"hi"[..]).unwrap();
        let mut hashing = archive.into_inner().unwrap().finish().unwrap();
        let hash = hashing.hasher.finalize();
        hashing.inner.extend_from_slice(hash.as_bytes());
        let file = folder.path().join("bad.why");
        fs::write(&file, &hashing.inner).unwrap();
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
