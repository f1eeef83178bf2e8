//! Reading and applying `fix.patch`: unified diffs as `diff -u` writes them, exact context only.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::manifest::Faulty;

/// The changes of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FilePatch {
    pub file: PathBuf,
    pub hunks: Vec<Hunk>,
}

/// Changes close together: from this line of the old file on.
#[derive(Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first old line that the hunk shows, from 1.
    pub start: usize,
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Kept(String),
    Removed(String),
    Added(String),
}

/// What a patch does to the old file, in terms of its lines.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Touch {
    /// This old line goes.
    Removes(usize),
    /// New lines come after this old line (0: before the first).
    AddsAfter(usize),
}

impl Touch {
    /// Whether it changes `line` itself.
    pub fn removes(self, line: usize) -> bool {
        self == Touch::Removes(line)
    }

    /// Whether it puts something right before or right after `line`.
    pub fn adds_next_to(self, line: usize) -> bool {
        matches!(self, Touch::AddsAfter(before) if before == line || before + 1 == line)
    }
}

/// The fix of a program; empty for one without faults.
pub fn read(program: &Faulty) -> Result<Vec<FilePatch>> {
    if program.manifest.faults.is_empty() {
        return Ok(Vec::new());
    }
    let path = program.folder.join("fix.patch");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text)
}

/// Reads a unified diff; file names lose their first folder (`a/`, `b/`).
pub fn parse(text: &str) -> Result<Vec<FilePatch>> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix("@@ ") {
            let file = files.last_mut().context("a hunk before any file name")?;
            file.hunks.push(hunk(header, &mut lines)?);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            let name = name.split('\t').next().unwrap_or(name);
            let file = name.split_once('/').map_or(name, |(_, rest)| rest).into();
            files.push(FilePatch { file, hunks: Vec::new() });
        } else if !line.starts_with("--- ") {
            bail!("unexpected line in the patch: {line}");
        }
    }
    ensure!(files.iter().any(|file| !file.hunks.is_empty()), "the patch changes nothing");
    Ok(files)
}

fn hunk<'a>(header: &str, lines: &mut impl Iterator<Item = &'a str>) -> Result<Hunk> {
    let wrong = || format!("cannot read hunk header `@@ {header}`");
    let mut ranges = header.split_whitespace();
    let (start, mut old) = range(ranges.next(), '-').with_context(wrong)?;
    let (_, mut new) = range(ranges.next(), '+').with_context(wrong)?;
    let mut hunk = Hunk { start, lines: Vec::new() };
    while old > 0 || new > 0 {
        let line = lines.next().context("the patch ends within a hunk")?;
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        let text = text.to_owned();
        let (line, removes, adds) = match sign {
            " " => (Line::Kept(text), 1, 1),
            "-" => (Line::Removed(text), 1, 0),
            "+" => (Line::Added(text), 0, 1),
            _ => bail!("unexpected line in a hunk: {line}"),
        };
        old = old.checked_sub(removes).with_context(wrong)?;
        new = new.checked_sub(adds).with_context(wrong)?;
        hunk.lines.push(line);
    }
    Ok(hunk)
}

/// `-12,3` is line 12 and a length of 3; without a length it is 1.
fn range(text: Option<&str>, sign: char) -> Option<(usize, usize)> {
    let text = text?.strip_prefix(sign)?;
    let (start, length) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, length.parse().ok()?))
}

impl FilePatch {
    /// The old text with the changes made; every shown old line must be as the patch says.
    pub fn apply(&self, old: &str) -> Result<String> {
        let old: Vec<&str> = old.lines().collect();
        let mut new = Vec::new();
        let mut next = 0;
        for hunk in &self.hunks {
            let start = hunk.start.saturating_sub(1);
            ensure!(start >= next && start <= old.len(), "hunk at {} is out of order", hunk.start);
            new.extend(old[next..start].iter().map(|line| (*line).to_owned()));
            next = start;
            for line in &hunk.lines {
                match line {
                    Line::Added(text) => new.push(text.clone()),
                    Line::Kept(text) | Line::Removed(text) => {
                        let same = old.get(next) == Some(&text.as_str());
                        let file = self.file.display();
                        ensure!(same, "{file}:{} is not what the patch shows", next + 1);
                        if matches!(line, Line::Kept(_)) {
                            new.push(text.clone());
                        }
                        next += 1;
                    }
                }
            }
        }
        new.extend(old[next..].iter().map(|line| (*line).to_owned()));
        Ok(new.join("\n") + "\n")
    }

    /// What it does, in the old file's line numbers.
    pub fn touches(&self) -> Vec<Touch> {
        self.hunks.iter().flat_map(Hunk::touches).collect()
    }
}

impl Hunk {
    /// What it does, in the old file's line numbers.
    pub fn touches(&self) -> Vec<Touch> {
        let mut touches = Vec::new();
        let mut next = self.start;
        for line in &self.lines {
            match line {
                Line::Kept(_) => next += 1,
                Line::Removed(_) => {
                    touches.push(Touch::Removes(next));
                    next += 1;
                }
                Line::Added(_) => touches.push(Touch::AddsAfter(next.saturating_sub(1))),
            }
        }
        touches
    }
}

/// The part of a patch that concerns `file`.
pub fn of<'a>(patches: &'a [FilePatch], file: &Path) -> Option<&'a FilePatch> {
    patches.iter().find(|patch| patch.file == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "one\ntwo\nthree\nfour\nfive\n";
    const PATCH: &str = "--- a/n.c\n+++ b/n.c\n@@ -1,5 +1,5 @@\n one\n-two\n+2\n three\n four\n+four and a half\n-five\n";

    #[test]
    fn a_patch_is_applied() {
        let patches = parse(PATCH).unwrap();
        assert_eq!(patches[0].file, Path::new("n.c"));
        assert_eq!(patches[0].apply(OLD).unwrap(), "one\n2\nthree\nfour\nfour and a half\n");
    }

    #[test]
    fn what_a_patch_touches_is_told_in_old_lines() {
        let touches = parse(PATCH).unwrap()[0].touches();
        assert_eq!(
            touches,
            [Touch::Removes(2), Touch::AddsAfter(2), Touch::AddsAfter(4), Touch::Removes(5)]
        );
        assert!(touches[2].adds_next_to(4) && touches[2].adds_next_to(5));
        assert!(!touches[2].adds_next_to(3) && touches[0].removes(2));
    }

    #[test]
    fn a_patch_whose_context_differs_is_refused() {
        let error = parse(PATCH).unwrap()[0].apply(&OLD.replace("four", "4")).unwrap_err();
        assert!(error.to_string().contains("n.c:4"));
    }

    #[test]
    fn a_patch_that_ends_early_or_changes_nothing_is_refused() {
        assert!(parse("--- a/n.c\n+++ b/n.c\n@@ -1,2 +1,2 @@\n one\n").is_err());
        assert!(parse("").is_err());
    }
}
