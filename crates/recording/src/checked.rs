//! Are the captured files still what was captured?
//!
//! A file is named by its contents, so that it can be checked. That takes a moment where
//! there is much of it, so what was found good is remembered with its size and times, and
//! looked at again when those change.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::FILES;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::recording::Recording;
use crate::store::{FileId, hash};

/// Where what was found good is remembered.
const CHECKED: &str = "checked-files";

impl Recording {
    /// Checks the captured files that were not checked before, or have changed since.
    pub fn check_files(&self) -> Result<()> {
        let root = self.root();
        // The first process remembers for all.
        let owner = self.log(Process::FIRST)?;
        let known = fs::read_to_string(owner.derived(CHECKED)).unwrap_or_default();
        let known: HashSet<&str> = known.lines().collect();
        let mut good = Vec::new();
        let mut news = false;
        for (name, metadata) in captured(&root.join(FILES))? {
            let line = line(&name, &metadata);
            if !known.contains(line.as_str()) {
                check(&root.join(FILES).join(&name), &name)?;
                news = true;
            }
            good.push(line);
        }
        if news {
            // Where nothing can be kept, the files are checked again next time.
            let _ = owner.keep_derived(CHECKED, good.join("\n").as_bytes());
        }
        Ok(())
    }
}

/// The captured files, by name; other things that someone put there are ignored.
fn captured(folder: &Path) -> Result<Vec<(String, Metadata)>> {
    let failed = |e| Error::io("list", folder, e);
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.parse::<FileId>().is_ok() {
            let metadata =
                fs::metadata(entry.path()).map_err(|e| Error::io("look at", &entry.path(), e))?;
            found.push((name, metadata));
        }
    }
    Ok(found)
}

fn line(name: &str, m: &Metadata) -> String {
    format!("{name} {} {}.{} {}.{}", m.len(), m.mtime(), m.mtime_nsec(), m.dev(), m.ino())
}

fn check(path: &Path, name: &str) -> Result<()> {
    let failed = |e| Error::io("read", path, e);
    let file = File::open(path).map_err(failed)?;
    let (id, len) = hash(file.as_fd(), |_| Ok(())).map_err(failed)?;
    if id.to_string() == name {
        return Ok(());
    }
    Err(Error::damaged(format!("the captured file {name} is not what was captured"), len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ending, Manifest, Options, Outcome, Store, Writer};

    #[test]
    fn a_captured_file_that_changes_is_noticed_also_when_it_was_good_before() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, source) = (folder.path().join("rec"), folder.path().join("source"));
        let manifest = Manifest::new(vec!["/bin/true".into()]);
        let writer = Writer::create(&dir, &manifest, &Options::default()).unwrap();
        fs::write(&source, "contents").unwrap();
        let store = Store::at(folder.path().join("store"));
        let id = store.capture(File::open(&source).unwrap(), &dir).unwrap().id;
        writer.finish(&Outcome::new(Ending::Exited(0))).unwrap();
        let recording = Recording::open(&dir).unwrap();
        recording.check_files().unwrap();
        recording.check_files().unwrap();
        for bad in ["content", "contentz"] {
            fs::remove_file(recording.file(id)).unwrap();
            fs::write(recording.file(id), bad).unwrap();
            let error = recording.check_files().unwrap_err();
            assert!(error.to_string().contains(&id.to_string()), "{error}");
        }
    }
}
