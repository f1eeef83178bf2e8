//! What differs between two runs: output, status, files written. Also copying input trees with
//! fixed times, so that listings and archives of them never differ by themselves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::process::Outcome;

/// The first difference between two outcomes, in words.
pub fn outcomes(expected: &Outcome, found: &Outcome) -> Option<String> {
    bytes("stdout", &expected.stdout, &found.stdout)
        .or_else(|| bytes("stderr", &expected.stderr, &found.stderr))
        .or_else(|| {
            let (left, right) = (expected.status.as_shell(), found.status.as_shell());
            (left != right).then(|| {
                format!(
                    "{} instead of {}: {}",
                    found.status,
                    expected.status,
                    first_line(&found.stderr)
                )
            })
        })
}

/// The first difference between two byte strings, in words.
fn bytes(what: &str, expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let at = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    let line = expected[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    Some(format!(
        "{what} differs at byte {at} (line {line}): {} instead of {}",
        excerpt(found, at),
        excerpt(expected, at)
    ))
}

/// The text around a position, short enough for one line.
fn excerpt(bytes: &[u8], at: usize) -> String {
    let start = bytes[..at.min(bytes.len())]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let start = start.max(at.saturating_sub(20)).min(bytes.len());
    let rest = &bytes[start..];
    let end =
        rest.iter().skip(1).position(|byte| *byte == b'\n').map_or(rest.len(), |n| n + 1).min(60);
    format!("{:?}", String::from_utf8_lossy(&rest[..end]))
}

/// The first line of some output that is not empty.
pub fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(160).collect()
}

/// The last line of some output that is not empty: where a guest says what failed.
pub fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("").chars().take(160).collect()
}

/// The first difference between two folders: names, kinds, permissions, contents.
pub fn files(expected: &Path, found: &Path) -> Result<Option<String>> {
    let (left, right) = (listing(expected)?, listing(found)?);
    for (name, entry) in &left {
        match right.get(name) {
            None => return Ok(Some(format!("file {} is missing", name.display()))),
            Some(other) if other != entry => {
                return Ok(Some(format!("file {} differs", name.display())));
            }
            Some(_) => {}
        }
    }
    let added = right.keys().find(|name| !left.contains_key(*name));
    Ok(added.map(|name| format!("file {} should not be there", name.display())))
}

/// What counts of a file when runs are compared.
#[derive(PartialEq, Eq)]
enum Entry {
    Folder { mode: u32 },
    File { mode: u32, contents: Vec<u8> },
    Link(PathBuf),
    Other { mode: u32 },
}

fn listing(root: &Path) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut entries = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder)? {
            let path = item?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let mode = metadata.mode();
            let entry = if metadata.is_dir() {
                folders.push(path.clone());
                Entry::Folder { mode }
            } else if metadata.is_symlink() {
                Entry::Link(fs::read_link(&path)?)
            } else if metadata.is_file() {
                Entry::File { mode, contents: fs::read(&path)? }
            } else {
                Entry::Other { mode }
            };
            entries.insert(path.strip_prefix(root)?.to_path_buf(), entry);
        }
    }
    Ok(entries)
}

/// Copies a file, link or folder with all it holds, keeping permissions.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(from).with_context(|| format!("no {}", from.display()))?;
    if metadata.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if metadata.is_dir() {
        fs::create_dir(to)?;
        for item in fs::read_dir(from)? {
            let item = item?;
            copy_tree(&item.path(), &to.join(item.file_name()))?;
        }
    } else {
        fs::copy(from, to)?;
    }
    Ok(())
}

/// Sets all times below and including `path` to one second of 2001.
pub fn fix_times(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for item in fs::read_dir(path)? {
            fix_times(&item?.path())?;
        }
    }
    let then = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    let times = Timestamps { last_access: then, last_modification: then };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_no_difference() {
        assert_eq!(bytes("stdout", b"same\n", b"same\n"), None);
    }

    #[test]
    fn a_difference_names_its_place_and_both_texts() {
        let said = bytes("stdout", b"one\ntwo\nthree\n", b"one\ntwx\n").unwrap();
        assert_eq!(said, r#"stdout differs at byte 6 (line 2): "twx" instead of "two""#);
    }

    #[test]
    fn a_missing_end_is_a_difference() {
        assert_eq!(
            bytes("stderr", b"ab\n", b"").unwrap(),
            r#"stderr differs at byte 0 (line 1): "" instead of "ab""#
        );
    }

    #[test]
    fn folders_differ_by_contents_and_names() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(one.path().join("f"), "1").unwrap();
        assert_eq!(files(one.path(), two.path()).unwrap().unwrap(), "file f is missing");
        fs::write(two.path().join("f"), "2").unwrap();
        assert_eq!(files(one.path(), two.path()).unwrap().unwrap(), "file f differs");
        fs::write(two.path().join("f"), "1").unwrap();
        assert_eq!(files(one.path(), two.path()).unwrap(), None);
    }
}
