//! Where in the source is an address, and where in the program is a line?

use std::path::{Path, PathBuf};

use super::demangle::demangle;
use super::error::Error;
use super::files::{FileId, ends_with, tidy};
use super::function::functions;
use super::functions::ScopeKind;
use super::lines::{LineRange, Row, mentions};
use super::program::{Place, Program, distinct};

/// How many lines are offered in place of one that has no code.
const NEARBY: usize = 4;

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file.
    pub file: FileId,
    /// The line, counted from 1.
    pub line: u32,
}

/// A function at work, as the source sees it: inlined calls count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function.
    pub function: Option<String>,
    /// The line, if the compiler names one.
    pub line: Option<SourceLine>,
    /// The column, if the compiler names one.
    pub column: Option<u32>,
    /// Whether this function was inlined into the next frame's.
    pub inlined: bool,
}

impl Program {
    /// The line of the instruction at an address, innermost if it was inlined.
    pub fn line(&self, address: u64) -> Option<SourceLine> {
        let place = self.place(address).ok()?;
        source_line(self.row(&place)?)
    }

    /// Other lines that begin at an address, and have no code of their own there: an
    /// optimising compiler gave it to its neighbours.
    pub fn shared_lines(&self, address: u64) -> Vec<SourceLine> {
        let Ok(place) = self.place(address) else { return Vec::new() };
        let table = self.line_table(place.info, place.unit);
        table.shared(place.link).filter_map(|row| source_line(*row)).collect()
    }

    /// The source around an address, innermost first: the inlined functions, then
    /// the function that really is there.
    pub fn lines(&self, address: u64) -> Vec<Frame> {
        let function = self.function(address).map(|function| function.name);
        let Ok(place) = self.place(address) else {
            let frame = Frame { function, line: None, column: None, inlined: false };
            return frame.function.is_some().then_some(frame).into_iter().collect();
        };
        let row = self.row(&place);
        let mut line = row.and_then(source_line);
        let mut column = row.and_then(|row| known(row.column));
        let table = self.line_table(place.info, place.unit);
        let mut frames = Vec::new();
        let entry = functions(place.info, place.unit_index).at(place.link);
        let scopes = entry.map(|entry| entry.scopes_at(place.info, place.unit_index, place.link));
        for scope in scopes.into_iter().flatten() {
            let name = || {
                let names = place.info.names(place.unit_index, scope.offset);
                names.linkage.as_deref().map(demangle).or(names.plain)
            };
            match scope.kind {
                ScopeKind::Block => {}
                ScopeKind::Function => {
                    let function = name().or_else(|| function.clone());
                    frames.push(Frame { function, line, column, inlined: false });
                }
                ScopeKind::Inlined { file, line: call_line, column: call_column } => {
                    frames.push(Frame { function: name(), line, column, inlined: true });
                    let file = table.file(file);
                    line = file.zip(known(call_line)).map(|(file, line)| SourceLine { file, line });
                    column = known(call_column);
                }
            }
        }
        if frames.is_empty() {
            frames.push(Frame { function, line, column, inlined: false });
        }
        frames
    }

    /// The code of a line: every range of instructions, in all files, inlined
    /// copies included. The source file is given by the end of its path.
    pub fn addresses(&self, suffix: &str, line: u32) -> Result<Vec<LineRange>, Error> {
        let file = self.source_file(suffix)?;
        let mut ranges = Vec::new();
        for (_, image, info) in self.infos() {
            for unit in &info.units {
                if let Some(table) = unit.lines.get() {
                    ranges.extend(table.ranges_of(file, line).into_iter().map(|range| LineRange {
                        start: image.to_run(range.start),
                        end: image.to_run(range.end),
                        ..range
                    }));
                }
            }
        }
        if ranges.is_empty() {
            ranges = self.shared_addresses(file, line);
        }
        if ranges.is_empty() {
            let nearby = self.nearby(file, line);
            return Err(Error::NoCodeOnLine { file: self.path(file).to_path_buf(), line, nearby });
        }
        Ok(distinct(ranges))
    }

    /// Where a line begins that has no code of its own: an optimising compiler gave its
    /// first instruction to a neighbour.
    fn shared_addresses(&self, file: FileId, line: u32) -> Vec<LineRange> {
        let mut found = Vec::new();
        for (_, image, info) in self.infos() {
            for table in info.units.iter().filter_map(|unit| unit.lines.get()) {
                found.extend(table.shared_by(file, line).map(|start| {
                    let start = image.to_run(start);
                    LineRange { start, end: start + 1, is_stmt: true }
                }));
            }
        }
        found
    }

    /// Where the next statement begins behind the one at an address.
    pub fn statement_after(&self, address: u64) -> Option<u64> {
        let place = self.place(address).ok()?;
        let after = self.line_table(place.info, place.unit).statement_after(place.link)?;
        Some(address + (after - place.link))
    }

    /// The source file whose path ends in `suffix`. The line tables of all units
    /// that mention it have then been read.
    pub fn source_file(&self, suffix: &str) -> Result<FileId, Error> {
        let wanted = tidy(Path::new(suffix));
        let found = self.files_where(|path| ends_with(path, &wanted));
        let exact = found.iter().find(|file| *self.path(**file) == *wanted);
        match (found.as_slice(), exact) {
            ([file], _) | (_, Some(file)) => Ok(*file),
            ([], _) => Err(Error::NoSuchFile {
                suffix: suffix.to_owned(),
                similar: self.similar_files(&wanted),
            }),
            (several, _) => Err(Error::AmbiguousFile {
                suffix: suffix.to_owned(),
                candidates: several.iter().map(|file| self.path(*file).to_path_buf()).collect(),
            }),
        }
    }

    /// The source files that have code and a path that `wanted` accepts.
    fn files_where(&self, wanted: impl Fn(&Path) -> bool) -> Vec<FileId> {
        let mut files = Vec::new();
        for (_, _, info) in self.infos() {
            for unit in &info.units {
                if mentions(&info.dwarf, unit.raw(), &wanted) {
                    let table = self.line_table(info, unit);
                    let with_code = distinct(table.files_with_code());
                    files.extend(with_code.into_iter().filter(|file| wanted(&self.path(*file))));
                }
            }
        }
        distinct(files)
    }

    fn similar_files(&self, wanted: &Path) -> Vec<PathBuf> {
        let name = |path: &Path| path.file_name().map(|name| name.to_ascii_lowercase());
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_ascii_lowercase());
        let close = |path: &Path| name(path) == name(wanted) || stem(path) == stem(wanted);
        let files = self.files_where(close);
        files.into_iter().take(NEARBY).map(|file| self.path(file).to_path_buf()).collect()
    }

    /// The lines of a file that have code, as far as the line tables that mention it
    /// have been read.
    pub fn lines_of(&self, file: FileId) -> Vec<u32> {
        let tables = self.infos().flat_map(|(_, _, info)| info.units.iter());
        let tables = tables.filter_map(|unit| unit.lines.get());
        distinct(tables.flat_map(|table| table.lines_of(file)))
    }

    fn nearby(&self, file: FileId, line: u32) -> Vec<u32> {
        let mut lines = self.lines_of(file);
        lines.sort_by_key(|candidate| candidate.abs_diff(line));
        lines.truncate(NEARBY);
        lines.sort_unstable();
        lines
    }

    pub(super) fn row(&self, place: &Place<'_>) -> Option<Row> {
        self.line_table(place.info, place.unit).row(place.link).copied()
    }
}

fn source_line(row: Row) -> Option<SourceLine> {
    Some(SourceLine { file: row.file, line: known(row.line)? })
}

/// Compilers write 0 for a line or a column that they do not know.
fn known(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}
