//! What does one compilation unit say about code: its lines and its functions?

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{DwLang, UnitHeader, constants};

use super::dwarf::{Attribute, Dwarf, Entry, Reader};
use super::functions::Functions;
use super::globals::Globals;
use super::lines::LineTable;

/// A compilation unit. Lines and functions are read when first asked for.
pub(super) struct Unit {
    raw: gimli::Unit<Reader>,
    pub(super) lines: OnceLock<LineTable>,
    pub(super) functions: OnceLock<Functions>,
    pub(super) globals: OnceLock<Globals>,
    language: OnceLock<Language>,
}

/// How the values of a unit are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// C, and whatever is not known better.
    #[default]
    C,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
    /// Go.
    Go,
}

impl Unit {
    pub(super) fn new(raw: gimli::Unit<Reader>) -> Self {
        Self {
            raw,
            lines: OnceLock::new(),
            functions: OnceLock::new(),
            globals: OnceLock::new(),
            language: OnceLock::new(),
        }
    }

    pub(super) fn raw(&self) -> &gimli::Unit<Reader> {
        &self.raw
    }

    pub(super) fn header(&self) -> &UnitHeader<Reader> {
        &self.raw.header
    }

    /// Whether variables and types of this unit are in another file.
    pub(super) fn is_skeleton(&self) -> bool {
        self.raw.dwo_id.is_some() && matches!(self.raw.dwo_name(), Ok(Some(_)))
    }

    /// The addresses of the unit's code.
    pub(super) fn ranges(&self, dwarf: &Dwarf) -> Vec<Range<u64>> {
        let root = self.raw.entry(self.raw.header.root_offset());
        match root.map(|root| self.ranges_of(dwarf, &root)) {
            Ok(ranges) if !ranges.is_empty() => ranges,
            _ => super::lines::sequences(dwarf, &self.raw),
        }
    }

    /// The addresses of the code that an entry describes.
    pub(super) fn ranges_of(&self, dwarf: &Dwarf, entry: &Entry) -> Vec<Range<u64>> {
        if let Some(list) = entry.attr_value(constants::DW_AT_ranges)
            && let Ok(Some(list)) = dwarf.attr_ranges(&self.raw, list)
        {
            let ranges = list.map_while(Result::ok);
            return ranges.filter_map(|range| live(range.begin, range.end)).collect();
        }
        let address = |value| dwarf.attr_address(&self.raw, value).ok().flatten();
        let start = entry.attr_value(constants::DW_AT_low_pc).and_then(address);
        let end = match entry.attr_value(constants::DW_AT_high_pc) {
            Some(Attribute::Udata(len)) => start.map(|start| start.saturating_add(len)),
            value => value.and_then(address),
        };
        start.zip(end).and_then(|(start, end)| live(start, end)).into_iter().collect()
    }

    pub(super) fn language(&self) -> Language {
        *self.language.get_or_init(|| self.read_language())
    }

    fn read_language(&self) -> Language {
        let root = self.raw.entry(self.raw.header.root_offset()).ok();
        match root.and_then(|root| root.attr_value(constants::DW_AT_language)) {
            Some(Attribute::Language(language)) => Language::of(language),
            _ => Language::C,
        }
    }
}

impl Language {
    fn of(language: DwLang) -> Self {
        match language {
            constants::DW_LANG_C_plus_plus
            | constants::DW_LANG_C_plus_plus_03
            | constants::DW_LANG_C_plus_plus_11
            | constants::DW_LANG_C_plus_plus_14
            | constants::DW_LANG_C_plus_plus_17
            | constants::DW_LANG_C_plus_plus_20 => Self::Cpp,
            constants::DW_LANG_Rust => Self::Rust,
            constants::DW_LANG_Go => Self::Go,
            _ => Self::C,
        }
    }
}

/// Linkers that drop a section leave its addresses at 0 or 1.
pub(super) fn live(start: u64, end: u64) -> Option<Range<u64>> {
    (start > 1 && start < end).then_some(start..end)
}
