//! Unpacking, which believes nothing.

use super::streams::Wanted;
use super::{FAMILY, GoesOn, HASH, HEADER, MAGIC, wanted};
use crate::error::{Error, Result};
use crate::is_recording;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

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
