//! Which source line belongs to an address, and which addresses to a line?

use std::ops::Range;
use std::path::{Path, PathBuf};

use gimli::{ColumnType, LineProgramHeader, LineRow};

use super::dwarf::{Attribute, Dwarf, Reader};
use super::files::{FileId, Files, tidy};
use super::own::is_library_source;
use super::unit::live;

type RawUnit = gimli::Unit<Reader>;

/// The lines of one unit, in the file's own addresses.
#[derive(Default)]
pub(super) struct LineTable {
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
    /// Statements that begin where the code of another one begins, and have none of
    /// their own: by address.
    shared: Vec<Row>,
    /// Is some of its code from a file that is no library's?
    pub(super) has_own: bool,
    /// By the index that entries of the unit use for `DW_AT_call_file`.
    files: Vec<Option<FileId>>,
}

struct Sequence {
    start: u64,
    end: u64,
    rows: Range<usize>,
}

/// The place in the source of the code from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) file: FileId,
    /// 0 if the compiler names no line.
    pub(super) line: u32,
    /// 0 if the compiler names no column.
    pub(super) column: u32,
    pub(super) is_stmt: bool,
}

/// Code of one line without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineRange {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Whether the compiler recommends the start as a place to stop.
    pub is_stmt: bool,
}

impl LineTable {
    /// Runs the unit's line program. What follows damage is missing.
    pub(super) fn read(dwarf: &Dwarf, unit: &RawUnit, files: &Files) -> Self {
        let mut table = Self::default();
        let Some(program) = unit.line_program.clone() else { return table };
        table.files = file_ids(dwarf, unit, program.header(), files);
        let mut rows = program.rows();
        let (mut first, mut first_shared) = (0, 0);
        while let Ok(Some((_, row))) = rows.next_row() {
            if row.end_sequence() {
                if !table.end_sequence(first, row.address()) {
                    table.shared.truncate(first_shared);
                }
                (first, first_shared) = (table.rows.len(), table.shared.len());
            } else {
                table.push(first, row);
            }
        }
        table.rows.truncate(first);
        table.shared.truncate(first_shared);
        table.shared.sort_by_key(|row| row.start);
        table.sequences.sort_by_key(|sequence| sequence.start);
        let mut of: Vec<FileId> = table.files_with_code().collect();
        of.sort_unstable();
        of.dedup();
        table.has_own = of.iter().any(|file| !is_library_source(&files.path(*file)));
        table
    }

    fn push(&mut self, first: usize, row: &LineRow) {
        let Some(Some(file)) = self.files.get(row.file_index() as usize).copied() else { return };
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
        };
        let row = Row { start: row.address(), file, line, column, is_stmt: row.is_stmt() };
        // Of several rows for one address, the last one describes its code.
        match self.rows[first..].last_mut() {
            Some(last) if last.start == row.start => {
                let before = std::mem::replace(last, row);
                let other = (before.file, before.line) != (row.file, row.line);
                if other && before.is_stmt && before.line != 0 {
                    self.shared.push(before);
                }
            }
            _ => self.rows.push(row),
        }
    }

    /// Keeps a sequence, unless it is of code that the linker left out.
    fn end_sequence(&mut self, first: usize, end: u64) -> bool {
        let rows = &self.rows[first..];
        let sorted = rows.is_sorted_by_key(|row| row.start);
        match rows.first().and_then(|row| live(row.start, end)) {
            Some(Range { start, end }) if sorted => {
                self.sequences.push(Sequence { start, end, rows: first..self.rows.len() });
                true
            }
            _ => {
                self.rows.truncate(first);
                false
            }
        }
    }

    /// The row whose code contains `link`.
    pub(super) fn row(&self, link: u64) -> Option<&Row> {
        let after = self.sequences.partition_point(|sequence| sequence.start <= link);
        let sequence = self.sequences[..after].iter().rev().find(|s| link < s.end)?;
        let rows = &self.rows[sequence.rows.clone()];
        rows[..rows.partition_point(|row| row.start <= link)].last()
    }

    /// Statements without code of their own that begin at `link`.
    pub(super) fn shared(&self, link: u64) -> impl Iterator<Item = &Row> {
        let from = self.shared.partition_point(|row| row.start < link);
        self.shared[from..].iter().take_while(move |row| row.start == link)
    }

    /// Where a statement begins that has no code of its own.
    pub(super) fn shared_by(&self, file: FileId, line: u32) -> impl Iterator<Item = u64> + '_ {
        let rows = self.shared.iter().filter(move |row| (row.file, row.line) == (file, line));
        rows.map(|row| row.start)
    }

    /// Where the first statement begins behind `link`, in the same stretch of code.
    pub(super) fn statement_after(&self, link: u64) -> Option<u64> {
        let sequence = self.sequences.iter().find(|s| (s.start..s.end).contains(&link))?;
        let rows = &self.rows[sequence.rows.clone()];
        rows.iter()
            .find(|row| row.start > link && row.is_stmt && row.line != 0)
            .map(|row| row.start)
    }

    /// The file that an entry of the unit names by index.
    pub(super) fn file(&self, index: u64) -> Option<FileId> {
        *self.files.get(usize::try_from(index).ok()?)?
    }

    /// The files that have code in this unit.
    pub(super) fn files_with_code(&self) -> impl Iterator<Item = FileId> + '_ {
        self.rows.iter().map(|row| row.file)
    }

    /// The lines of `file` that have code.
    pub(super) fn lines_of(&self, file: FileId) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().filter(move |row| row.file == file && row.line != 0).map(|row| row.line)
    }

    /// The code of a line. Neighbouring rows of the line are one range, unless a
    /// recommended place to stop begins in the middle.
    pub(super) fn ranges_of(&self, file: FileId, line: u32) -> Vec<LineRange> {
        let mut ranges: Vec<LineRange> = Vec::new();
        for sequence in &self.sequences {
            let rows = &self.rows[sequence.rows.clone()];
            for (index, row) in rows.iter().enumerate() {
                if row.file != file || row.line != line {
                    continue;
                }
                let end = rows.get(index + 1).map_or(sequence.end, |next| next.start);
                match ranges.last_mut() {
                    Some(last) if last.end == row.start && (last.is_stmt || !row.is_stmt) => {
                        last.end = end;
                    }
                    _ => ranges.push(LineRange { start: row.start, end, is_stmt: row.is_stmt }),
                }
            }
        }
        ranges
    }
}

/// The code that a line program covers, for units that do not say it themselves.
pub(super) fn sequences(dwarf: &Dwarf, unit: &RawUnit) -> Vec<Range<u64>> {
    let table = LineTable::read(dwarf, unit, &Files::default());
    table.sequences.iter().map(|sequence| sequence.start..sequence.end).collect()
}

/// Whether the header of the unit's line program names a file that `wanted`
/// accepts. This is cheap: the program itself does not run.
pub(super) fn mentions(dwarf: &Dwarf, unit: &RawUnit, wanted: impl Fn(&Path) -> bool) -> bool {
    let Some(program) = &unit.line_program else { return false };
    let header = program.header();
    (0..=header.file_names().len() as u64)
        .filter_map(|index| file_path(dwarf, unit, header, index))
        .any(|path| wanted(&path))
}

fn file_ids(
    dwarf: &Dwarf,
    unit: &RawUnit,
    header: &LineProgramHeader<Reader>,
    files: &Files,
) -> Vec<Option<FileId>> {
    (0..=header.file_names().len() as u64)
        .map(|index| file_path(dwarf, unit, header, index).map(|path| files.id(&path)))
        .collect()
}

/// The path of a file of a line program, as absolute as the compiler made it.
fn file_path(
    dwarf: &Dwarf,
    unit: &RawUnit,
    header: &LineProgramHeader<Reader>,
    index: u64,
) -> Option<PathBuf> {
    let file = header.file(index)?;
    let text = |value: Attribute| -> Option<PathBuf> {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(PathBuf::from(String::from_utf8_lossy(text.bytes()).into_owned()))
    };
    let mut path = match &unit.comp_dir {
        Some(folder) => PathBuf::from(String::from_utf8_lossy(folder.bytes()).into_owned()),
        None => PathBuf::new(),
    };
    // Folder 0 is the compiler's own, which the path begins with already.
    if file.directory_index() != 0
        && let Some(folder) = file.directory(header).and_then(text)
    {
        path.push(folder);
    }
    path.push(text(file.path_name())?);
    Some(tidy(&path))
}
