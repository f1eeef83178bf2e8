//! Which function does the symbol table name at an address?

use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::SectionHeader;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use super::image::{Elf, Image};

/// How many symbols before an address may be aliases or labels inside of the
/// function that contains it.
const MOST_ALIASES: usize = 16;

/// The functions that `.symtab` and `.dynsym` name, sorted by address.
#[derive(Default)]
pub(super) struct Symbols {
    /// Whether there is a `.symtab`, which names all functions, not only those
    /// that other files may call.
    pub(super) is_complete: bool,
    functions: Vec<Symbol>,
    /// Where they begin: many ask that, and so it lies close together.
    starts: Vec<u64>,
}

/// A function of the symbol table, in the file's own addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
    rank: Rank,
}

/// Which of several names for one address people know: one with a size, one that
/// others can see, one with few leading underscores, a short one. The smallest is
/// the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_sizeless: bool,
    is_local: bool,
    underscores: usize,
    len: usize,
}

impl Symbols {
    pub(super) fn read(image: &Image) -> Self {
        let Some(elf) = image.elf() else { return Self::default() };
        let sections = code_sections(&elf);
        let mut functions: Vec<Symbol> = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter_map(|symbol| function_symbol(&symbol, &sections))
            .collect();
        functions.sort_by_key(|symbol| (symbol.start, symbol.rank));
        close_open_ends(&mut functions, &sections);
        let starts = functions.iter().map(|symbol| symbol.start).collect();
        Self { is_complete: elf.symbol_table().is_some(), functions, starts }
    }

    /// The function whose code contains `link`.
    pub(super) fn at(&self, link: u64) -> Option<&Symbol> {
        let after = self.starts.partition_point(|start| *start <= link);
        let mut near = self.functions[..after].iter().rev().take(MOST_ALIASES);
        let start = near.find(|symbol| link < symbol.end)?.start;
        let later = self.starts[..after].iter().rev().take_while(|other| **other >= start).count();
        self.functions[after - later..after].iter().find(|symbol| link < symbol.end)
    }

    /// Where the next one behind an address begins.
    pub(super) fn next_start(&self, link: u64) -> Option<u64> {
        let after = self.starts.partition_point(|start| *start <= link);
        self.starts.get(after).copied()
    }

    /// All names that start at the address of their function, aliases included.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Symbol> {
        self.functions.iter()
    }
}

struct CodeSection {
    index: usize,
    start: u64,
    end: u64,
}

fn code_sections(elf: &Elf<'_>) -> Vec<CodeSection> {
    elf.sections()
        .filter(|section| {
            let flags = section.elf_section_header().sh_flags(LittleEndian);
            flags.contains(object::elf::SHF_EXECINSTR)
        })
        .map(|section| CodeSection {
            index: section.index().0,
            start: section.address(),
            end: section.address().saturating_add(section.size()),
        })
        .collect()
}

fn function_symbol<'a>(
    symbol: &object::read::elf::ElfSymbol64<'a, '_, LittleEndian, &'a [u8]>,
    sections: &[CodeSection],
) -> Option<Symbol> {
    let kind = symbol.elf_symbol().st_type();
    let is_code = || {
        sections.iter().any(|section| Some(section.index) == symbol.section_index().map(|i| i.0))
    };
    match kind {
        STT_FUNC | STT_GNU_IFUNC if symbol.section_index().is_some() => {}
        STT_NOTYPE if symbol.is_global() && is_code() => {}
        _ => return None,
    }
    let name = symbol.name().ok().filter(|name| !name.is_empty())?;
    let start = symbol.address();
    let rank = Rank {
        is_sizeless: symbol.size() == 0,
        is_local: symbol.is_local(),
        underscores: name.bytes().take_while(|byte| *byte == b'_').count(),
        len: name.len(),
    };
    Some(Symbol { start, end: start.saturating_add(symbol.size()), name: name.to_owned(), rank })
}

/// A function without a size, as assemblers make them, reaches to the next one or
/// to the end of its section.
fn close_open_ends(functions: &mut [Symbol], sections: &[CodeSection]) {
    let (mut here, mut next) = (u64::MAX, u64::MAX);
    for symbol in functions.iter_mut().rev() {
        if symbol.start != here {
            next = here;
            here = symbol.start;
        }
        if symbol.end == symbol.start {
            let section = sections.iter().find(|s| s.start <= symbol.start && symbol.start < s.end);
            symbol.end = section.map_or(symbol.start, |section| section.end).min(next);
        }
    }
}
