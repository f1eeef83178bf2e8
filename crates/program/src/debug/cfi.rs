//! What does the call frame information of a file say about an address: the
//! extent of its function, and how to find the caller's registers?

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection,
};
use object::{Object, ObjectSection};

use super::image::{Elf, Image, section_bytes};
use super::state::Register;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The frame descriptions of a file, in its own addresses.
#[derive(Default)]
pub(super) struct Cfi {
    tables: Vec<Table>,
}

struct Table {
    kind: Kind,
    section: Vec<u8>,
    bases: BaseAddresses,
    /// Sorted by start.
    entries: Vec<Described>,
}

#[derive(Clone, Copy)]
enum Kind {
    EhFrame,
    DebugFrame,
}

struct Described {
    range: Range<u64>,
    offset: usize,
}

/// How to find the frame of the caller at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrameRules {
    pub(super) cfa: Rule,
    pub(super) registers: Vec<(Register, Rule)>,
    pub(super) return_address: Register,
    /// The frame was interrupted by a signal: its address is exact.
    pub(super) is_signal: bool,
}

/// Where a value is found. The canonical frame address is "the frame".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nowhere.
    Lost,
    /// It did not change.
    Same,
    /// In memory at this distance from the frame.
    Saved(i64),
    /// The frame plus this.
    Frame(i64),
    /// Another register plus this.
    Register(Register, i64),
    /// In memory, at the address that the expression yields.
    SavedAt(Vec<u8>),
    /// The value of an expression.
    Computed(Vec<u8>),
}

impl Cfi {
    pub(super) fn read(image: &Image) -> Self {
        let Some(elf) = image.elf() else { return Self::default() };
        let bases = base_addresses(&elf);
        let kinds = [(Kind::EhFrame, ".eh_frame"), (Kind::DebugFrame, ".debug_frame")];
        let tables = kinds.into_iter().filter_map(|(kind, name)| {
            let section = section_bytes(&elf, name)?;
            Some(Table::new(kind, section, bases.clone()))
        });
        Self { tables: tables.collect() }
    }

    /// The extent of the function, or the part of one, that contains `link`.
    pub(super) fn extent(&self, link: u64) -> Option<Range<u64>> {
        self.tables.iter().find_map(|table| Some(table.at(link)?.range.clone()))
    }

    /// The extent that begins at `link`, as far as nothing else is described within it; `None` if
    /// none does, or if there is more than one description.
    pub(super) fn undivided(&self, link: u64) -> Option<Range<u64>> {
        let [table] = &self.tables[..] else { return None };
        let own = table.at(link).filter(|entry| entry.range.start == link)?;
        let after = table.entries.partition_point(|entry| entry.range.start <= link);
        let next = table.entries.get(after).map_or(u64::MAX, |entry| entry.range.start);
        Some(link..own.range.end.min(next))
    }

    /// All extents.
    pub(super) fn extents(&self) -> impl Iterator<Item = &Range<u64>> {
        self.tables.iter().flat_map(|table| table.entries.iter().map(|entry| &entry.range))
    }

    /// How to find the caller from `link`.
    pub(super) fn rules(&self, link: u64) -> Option<FrameRules> {
        self.tables.iter().find_map(|table| table.rules(link))
    }
}

impl Table {
    fn new(kind: Kind, section: Vec<u8>, bases: BaseAddresses) -> Self {
        let slice = Slice::new(&section, LittleEndian);
        let mut entries = match kind {
            Kind::EhFrame => collect(&EhFrame::from(slice), &bases),
            Kind::DebugFrame => collect(&DebugFrame::from(slice), &bases),
        };
        entries.sort_by_key(|entry| entry.range.start);
        Self { kind, section, bases, entries }
    }

    fn at(&self, link: u64) -> Option<&Described> {
        let after = self.entries.partition_point(|entry| entry.range.start <= link);
        self.entries[..after].last().filter(|entry| link < entry.range.end)
    }

    fn rules(&self, link: u64) -> Option<FrameRules> {
        let offset = self.at(link)?.offset;
        let slice = Slice::new(&self.section, LittleEndian);
        match self.kind {
            Kind::EhFrame => rules(&EhFrame::from(slice), &self.bases, offset.into(), link),
            Kind::DebugFrame => rules(&DebugFrame::from(slice), &self.bases, offset.into(), link),
        }
    }
}

/// The ranges of all frame descriptions. What follows damage is missing.
fn collect<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Vec<Described> {
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) =
            partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))
        else {
            continue;
        };
        let start = entry.initial_address();
        let end = start.saturating_add(entry.len());
        if start != 0 && start < end {
            found.push(Described { range: start..end, offset: entry.offset() });
        }
    }
    found
}

fn rules<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    offset: S::Offset,
    link: u64,
) -> Option<FrameRules> {
    let entry = section.fde_from_offset(bases, offset, S::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let row = entry.unwind_info_for_address(section, bases, &mut context, link).ok()?;
    let expression = |expression: &UnwindExpression<usize>| -> Option<Vec<u8>> {
        Some(expression.get(section).ok()?.0.slice().to_vec())
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            Rule::Register(Register(register.0), *offset)
        }
        CfaRule::Expression(bytes) => Rule::Computed(expression(bytes)?),
    };
    let mut registers = Vec::new();
    for (register, rule) in row.registers() {
        let rule = match rule {
            RegisterRule::Undefined => Rule::Lost,
            RegisterRule::SameValue => Rule::Same,
            RegisterRule::Offset(offset) => Rule::Saved(*offset),
            RegisterRule::ValOffset(offset) => Rule::Frame(*offset),
            RegisterRule::Register(other) => Rule::Register(Register(other.0), 0),
            RegisterRule::Expression(bytes) => Rule::SavedAt(expression(bytes)?),
            RegisterRule::ValExpression(bytes) => Rule::Computed(expression(bytes)?),
            RegisterRule::Architectural | RegisterRule::Constant(_) => Rule::Lost,
        };
        registers.push((Register(register.0), rule));
    }
    Some(FrameRules {
        cfa,
        registers,
        return_address: Register(entry.cie().return_address_register().0),
        is_signal: entry.is_signal_trampoline(),
    })
}

fn base_addresses(elf: &Elf<'_>) -> BaseAddresses {
    let address = |name| elf.section_by_name(name).map(|section| section.address());
    let mut bases = BaseAddresses::default();
    if let Some(address) = address(".eh_frame") {
        bases = bases.set_eh_frame(address);
    }
    if let Some(address) = address(".eh_frame_hdr") {
        bases = bases.set_eh_frame_hdr(address);
    }
    if let Some(address) = address(".text") {
        bases = bases.set_text(address);
    }
    if let Some(address) = address(".got") {
        bases = bases.set_got(address);
    }
    bases
}
