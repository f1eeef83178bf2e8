//! Which function, inlined copy and block of a unit contains an address?

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{DwAt, UnitOffset, constants};

use super::dwarf::{Attribute, DebugInfo, Entry};

/// How many references from entry to entry are followed. Real chains have two or
/// three; damaged ones may be circular.
const LONGEST_CHAIN: usize = 8;

/// The functions of a unit that have code.
#[derive(Default)]
pub(super) struct Functions {
    list: Vec<FunctionEntry>,
    /// Sorted by start; the index is into `list`.
    ranges: Vec<(Range<u64>, usize)>,
}

/// A function of a unit.
pub(super) struct FunctionEntry {
    pub(super) offset: UnitOffset,
    pub(super) ranges: Vec<Range<u64>>,
    scopes: OnceLock<Vec<Scope>>,
}

/// A function, an inlined copy of one, or a block of statements.
pub(super) struct Scope {
    pub(super) offset: UnitOffset,
    pub(super) kind: ScopeKind,
    parent: Option<usize>,
    ranges: Vec<Range<u64>>,
    /// Parameters and local variables, in the order of the source.
    pub(super) variables: Vec<UnitOffset>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    Function,
    /// Where the inlined call stands in the enclosing function.
    Inlined {
        file: u64,
        line: u32,
        column: u32,
    },
    Block,
}

impl Functions {
    /// Finds all functions of a unit. What follows damage is missing.
    pub(super) fn read(info: &DebugInfo, unit: usize) -> Self {
        let mut functions = Self::default();
        let _ = functions.collect(info, unit);
        functions.ranges.sort_by_key(|(range, _)| range.start);
        functions
    }

    fn collect(&mut self, info: &DebugInfo, unit: usize) -> gimli::Result<()> {
        let unit = &info.units[unit];
        let mut entries = unit.raw().entries_raw(None)?;
        let mut entry = Entry::null();
        while !entries.is_empty() {
            if !entries.read_entry(&mut entry)? || entry.tag() != constants::DW_TAG_subprogram {
                continue;
            }
            let ranges = unit.ranges_of(&info.dwarf, &entry);
            let index = self.list.len();
            if !ranges.is_empty() {
                self.ranges.extend(ranges.iter().map(|range| (range.clone(), index)));
                let offset = entry.offset();
                self.list.push(FunctionEntry { offset, ranges, scopes: OnceLock::new() });
            }
        }
        Ok(())
    }

    /// The function that contains `link`.
    pub(super) fn at(&self, link: u64) -> Option<&FunctionEntry> {
        let after = self.ranges.partition_point(|(range, _)| range.start <= link);
        let (range, index) = self.ranges[..after].last()?;
        (link < range.end).then(|| &self.list[*index])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FunctionEntry> {
        self.list.iter()
    }
}

impl FunctionEntry {
    fn scopes(&self, info: &DebugInfo, unit: usize) -> &[Scope] {
        self.scopes.get_or_init(|| read_scopes(info, unit, self.offset))
    }

    /// The code of functions that were inlined into this one and that `is_meant` accepts.
    pub(super) fn inlined(
        &self,
        info: &DebugInfo,
        unit: usize,
        is_meant: impl Fn(UnitOffset) -> bool,
    ) -> Vec<Vec<Range<u64>>> {
        let inlined = |scope: &&Scope| matches!(scope.kind, ScopeKind::Inlined { .. });
        let meant = self.scopes(info, unit).iter().filter(inlined).filter(|s| is_meant(s.offset));
        let mut copies: Vec<_> = meant.map(|scope| scope.ranges.clone()).collect();
        copies.iter_mut().for_each(|copy| copy.sort_unstable_by_key(|range| range.start));
        copies.retain(|copy| !copy.is_empty());
        copies
    }

    /// Where the innermost function around `link` begins, inlined or not.
    pub(super) fn innermost(&self, info: &DebugInfo, unit: usize, link: u64) -> Option<u64> {
        let scopes = self.scopes_at(info, unit, link);
        let scope = scopes.into_iter().find(|scope| scope.kind != ScopeKind::Block)?;
        scope.ranges.iter().map(|range| range.start).min()
    }

    /// The scopes around `link`, innermost first; the last is the function.
    pub(super) fn scopes_at(&self, info: &DebugInfo, unit: usize, link: u64) -> Vec<&Scope> {
        let scopes = self.scopes(info, unit);
        let inside = |scope: &Scope| scope.ranges.iter().any(|range| range.contains(&link));
        // Parents come before their children, and siblings do not overlap, so the
        // last scope that contains the address is the innermost.
        let innermost = scopes.iter().rposition(inside);
        std::iter::successors(innermost, |index| scopes[*index].parent)
            .map(|index| &scopes[index])
            .collect()
    }
}

/// The scopes of a function in the order of the entries.
fn read_scopes(info: &DebugInfo, unit: usize, function: UnitOffset) -> Vec<Scope> {
    let mut scopes = Vec::new();
    let _ = collect_scopes(info, unit, function, &mut scopes);
    scopes
}

fn collect_scopes(
    info: &DebugInfo,
    unit: usize,
    function: UnitOffset,
    scopes: &mut Vec<Scope>,
) -> gimli::Result<()> {
    let unit = &info.units[unit];
    let mut entries = unit.raw().entries_raw(Some(function))?;
    let mut entry = Entry::null();
    // The scope at each depth; `None` below an entry whose children do not count.
    let mut open: Vec<Option<usize>> = Vec::new();
    while !entries.is_empty() {
        let known = entries.read_entry(&mut entry)?;
        let depth = usize::try_from(entry.depth()).unwrap_or(0);
        if depth == 0 && !scopes.is_empty() {
            break;
        }
        if !known {
            continue;
        }
        open.truncate(depth);
        let parent = open.last().copied().flatten();
        let mut scope = None;
        if let Some(kind) = scope_kind(&entry, depth).filter(|_| parent.is_some() || depth == 0) {
            scope = Some(scopes.len());
            let ranges = unit.ranges_of(&info.dwarf, &entry);
            let offset = entry.offset();
            scopes.push(Scope { offset, kind, parent, ranges, variables: Vec::new() });
        } else if let Some(parent) = parent.filter(|_| is_variable(&entry)) {
            scopes[parent].variables.push(entry.offset());
        }
        open.resize(depth, None);
        open.push(scope);
    }
    Ok(())
}

fn is_variable(entry: &Entry) -> bool {
    matches!(entry.tag(), constants::DW_TAG_variable | constants::DW_TAG_formal_parameter)
}

fn scope_kind(entry: &Entry, depth: usize) -> Option<ScopeKind> {
    let number = |at| entry.attr(at).and_then(|attribute| attribute.udata_value()).unwrap_or(0);
    let file = match entry.attr_value(constants::DW_AT_call_file) {
        Some(Attribute::FileIndex(index)) => index,
        _ => 0,
    };
    match entry.tag() {
        constants::DW_TAG_subprogram if depth == 0 => Some(ScopeKind::Function),
        constants::DW_TAG_inlined_subroutine => Some(ScopeKind::Inlined {
            file,
            line: u32::try_from(number(constants::DW_AT_call_line)).unwrap_or(0),
            column: u32::try_from(number(constants::DW_AT_call_column)).unwrap_or(0),
        }),
        constants::DW_TAG_lexical_block => Some(ScopeKind::Block),
        _ => None,
    }
}

/// The names of a function: as the linker knows it, and as the source writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names {
    pub(super) linkage: Option<String>,
    pub(super) plain: Option<String>,
}

impl DebugInfo {
    /// The names of a function or of an inlined copy.
    pub(super) fn names(&self, unit: usize, offset: UnitOffset) -> Names {
        let text = |at| {
            let (unit, value) = self.inherited(unit, offset, at)?;
            self.string(unit, value)
        };
        let linkage = text(constants::DW_AT_linkage_name);
        Names {
            linkage: linkage.or_else(|| text(constants::DW_AT_MIPS_linkage_name)),
            plain: text(constants::DW_AT_name),
        }
    }

    /// An attribute of an entry, or of the entry that it is an instance of.
    pub(super) fn inherited(
        &self,
        unit: usize,
        offset: UnitOffset,
        at: DwAt,
    ) -> Option<(usize, Attribute)> {
        let mut place = (unit, offset);
        for _ in 0..LONGEST_CHAIN {
            let entry = self.entry(place.0, place.1)?;
            if let Some(value) = entry.attr_value(at) {
                return Some((place.0, value));
            }
            let origin = entry.attr_value(constants::DW_AT_abstract_origin);
            let origin = origin.or_else(|| entry.attr_value(constants::DW_AT_specification))?;
            place = self.follow(place.0, &origin)?;
        }
        None
    }
}
