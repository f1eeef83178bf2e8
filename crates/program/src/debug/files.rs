//! Which source files are there, and what do they contain?

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, RwLock};

/// A source file of a program. Equal for equal paths, and cheap to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// The text of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    text: String,
    starts: Vec<usize>,
}

/// All paths seen so far, each with its id.
#[derive(Default)]
pub(super) struct Files {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    ids: HashMap<Arc<Path>, FileId>,
    paths: Vec<Arc<Path>>,
}

impl Files {
    /// The id of a path, made when it is first seen.
    pub(super) fn id(&self, path: &Path) -> FileId {
        let mut known = self.known.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(id) = known.ids.get(path) {
            return *id;
        }
        let id = FileId(known.paths.len() as u32);
        let path: Arc<Path> = path.into();
        known.paths.push(path.clone());
        known.ids.insert(path, id);
        id
    }

    /// The path of an id. Ids are only made here, so there always is one.
    pub(super) fn path(&self, id: FileId) -> Arc<Path> {
        let known = self.known.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        known.paths.get(id.0 as usize).cloned().unwrap_or_else(|| Path::new("??").into())
    }
}

impl Source {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(breaks).filter(|start| *start < text.len()).collect();
        Self { text, starts }
    }

    /// A line, counted from 1, without its end.
    pub fn line(&self, number: u32) -> Option<&str> {
        let index = (number as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// Whether `path` ends in the components of `suffix`.
pub(super) fn ends_with(path: &Path, suffix: &Path) -> bool {
    path.ends_with(suffix)
}

/// Removes `.` and, where it is safe, `..` from a path, so that one file has one
/// name however the compiler was called.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_and_have_no_end() {
        let source = Source::new(b"a\r\nb\n\nd");
        let lines: Vec<_> = (0..6).map(|number| source.line(number)).collect();
        assert_eq!(lines, [None, Some("a"), Some("b"), Some(""), Some("d"), None]);
        assert_eq!(source.len(), 4);
    }

    #[test]
    fn a_path_is_the_same_however_the_compiler_was_called() {
        assert_eq!(tidy(Path::new("/a/./b/../c.c")), Path::new("/a/c.c"));
        assert_eq!(tidy(Path::new("../c.c")), Path::new("../c.c"));
    }

    #[test]
    fn equal_paths_have_equal_ids() {
        let files = Files::default();
        let id = files.id(Path::new("/a.c"));
        assert_eq!(id, files.id(Path::new("/a.c")));
        assert_ne!(id, files.id(Path::new("/b.c")));
        assert_eq!(&*files.path(id), Path::new("/a.c"));
    }
}
