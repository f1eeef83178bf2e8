//! Translations kept from run to run, in a folder of the user's.
//!
//! Most of what a short run costs is translation of code that the run before
//! translated too: the dynamic linker, the C library. A cache's contents mean the same
//! in every process, because guest, cache and context are at the same addresses
//! everywhere. So they are kept, one file for each program and kind of code, and put back as
//! they were. Code that writes a trace has what its records mean with it.
//!
//! What is put back sleeps. Only when the guest comes to code of a map for the first
//! time is all that was translated from that map woken, and only if the bytes it was
//! translated from are there, byte for byte as far as a hash can tell. A file that is
//! damaged, or was made by another version of the engine, is not used; without any of
//! it a run goes the same way, but slower.

mod image;
mod meanings;

pub use image::{Group, Image, Loaded, raw};
pub use meanings::Meanings;

use super::Profile;
use recording::FileId;
use std::ffi::CString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The translator's version: of all its sources.
const VERSION: &str = env!("TRANSLATOR");

/// Most bytes that all files together may take.
const MOST: u64 = 256 << 20;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps translations in a folder from now on, and uses those that are there. The
/// folder need not exist yet.
pub fn keep_in(folder: PathBuf) {
    // Whoever says it first decides: a process serves one user.
    let _ = FOLDER.set(folder);
}

/// Where the translations of a program are, if they are kept.
pub fn path_of(program: FileId, profile: Profile, traced: bool) -> Option<PathBuf> {
    if profile.stop_at_blocks || profile.stop_at_instructions || super::dense::is_dense() {
        return None;
    }
    let kind = match (profile.count, traced) {
        (false, false) => "plain",
        (true, false) => "counted",
        (false, true) => "traced",
        (true, true) => return None,
    };
    Some(FOLDER.get()?.join(format!("{program}-{kind}-{VERSION}")))
}

/// What a file holds, if it is whole and nobody else can have written it.
pub fn read(path: &Path) -> Option<Loaded> {
    let file = fs::File::open(path).ok()?;
    let about = file.metadata().ok()?;
    // SAFETY: asks only.
    let own = about.uid() == unsafe { libc::geteuid() };
    if !own || about.permissions().mode() & 0o077 != 0 {
        return None;
    }
    let loaded = Loaded::map(&file, about.len())?;
    // What is used is not what is removed first.
    let _ = file.set_modified(SystemTime::now());
    Some(loaded)
}

/// Replaces the file in one piece. What cannot be kept is not: the next run is slower.
pub fn write(path: &Path, image: &Image) {
    let Some(folder) = path.parent() else { return };
    let _ = DirBuilder::new().mode(0o700).create(folder);
    let bytes = image.bytes();
    if !has_room(folder, bytes.len() as u64) {
        return;
    }
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = open.and_then(|mut file| file.write_all(&bytes));
    if written.and_then(|()| fs::rename(&new, path)).is_err() {
        let _ = fs::remove_file(&new);
        return;
    }
    make_room(folder);
}

/// Is there so much left on the disk that recordings will not miss it?
fn has_room(folder: &Path, bytes: u64) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    let mut about = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a string that ends, and room for the answer, which is there if all went well.
    let left = unsafe {
        if libc::statvfs(path.as_ptr(), about.as_mut_ptr()) != 0 {
            return false;
        }
        let about = about.assume_init();
        about.f_bavail.saturating_mul(about.f_frsize)
    };
    left / 16 > bytes && crate::sys::limit(libc::RLIMIT_FSIZE).0 > bytes
}

/// Removes the files that were not used for longest until the rest is small enough.
fn make_room(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
    for (_, len, path) in files {
        if total <= MOST {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= len;
        }
    }
}
