//! Small JSON files, replaced in one piece.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// No file read here is larger; an environment and an argument list are a few megabytes at most.
const MAX_LEN: u64 = 64 << 20;

/// Writes `value` to `path`; whoever reads sees all of it or the file that was there before.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    write_over(&path.with_extension(format!("new-{}", std::process::id())), path, value)
}

/// The same in place of the file `new`, which nobody needs any more and which becomes `path`.
pub(crate) fn write_over(new: &Path, path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::io("write", path, e))?;
    text.push(b'\n');
    // Not emptied first: ext4 then writes to the disk at once when the file is closed.
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(new)
        .and_then(|mut file| {
            file.write_all(&text)?;
            let len = text.len() as u64;
            if file.metadata()?.len() > len { file.set_len(len) } else { Ok(()) }
        })
        .and_then(|()| fs::rename(new, path));
    written.map_err(|e| {
        let _ = fs::remove_file(new);
        Error::io("write", path, e)
    })
}

/// The bytes of `path`, or `None` if there is no such file.
pub(crate) fn read_text(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let read = fs::File::open(path).and_then(|file| {
        text.reserve(file.metadata()?.len().min(MAX_LEN) as usize + 1);
        file.take(MAX_LEN).read_to_end(&mut text)
    });
    match read {
        Ok(_) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(e) => Err(Error::io("read", path, e)),
    }
}

/// What `text`, read from the file `name`, says.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text)
        .map_err(|e| Error::damaged(format!("{name}, line {} ({e})", e.line()), e.column() as u64))
}
