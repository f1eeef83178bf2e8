//! Which function of another file does a stub of the procedure linkage table
//! lead to?

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use object::elf::{R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, SHT_RELA};
use object::read::elf::{ElfSection64, Rela, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolIndex};

use super::image::{Elf, Image};

/// The sections that linkers put stubs in.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];

/// The stubs of a file, in its own addresses.
#[derive(Default)]
pub(super) struct Plt {
    sections: Vec<Range<u64>>,
    /// Sorted by start.
    stubs: Vec<Stub>,
}

/// A stub and the name of the function that it jumps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stub {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
}

/// What the dynamic linker fills in.
#[derive(Default)]
struct Slots {
    by_address: HashMap<u64, String>,
    /// In the order of `.rela.plt`, by which lazy stubs name their function.
    lazy: Vec<Option<String>>,
}

impl Plt {
    pub(super) fn read(image: &Image) -> Self {
        let mut plt = Self::default();
        let Some(elf) = image.elf() else { return plt };
        let slots = read_slots(image, &elf);
        for section in SECTIONS.iter().filter_map(|name| elf.section_by_name(name)) {
            let start = section.address();
            plt.sections.push(start..start.saturating_add(section.size()));
            plt.stubs.extend(read_stubs(&section, &slots));
        }
        plt.stubs.sort_by_key(|stub| stub.start);
        plt.stubs.dedup_by_key(|stub| stub.start);
        plt
    }

    pub(super) fn contains(&self, link: u64) -> bool {
        self.sections.iter().any(|section| section.contains(&link))
    }

    pub(super) fn stub(&self, link: u64) -> Option<&Stub> {
        let after = self.stubs.partition_point(|stub| stub.start <= link);
        self.stubs[..after].last().filter(|stub| link < stub.end)
    }

    /// Where the next one behind an address begins.
    pub(super) fn next_start(&self, link: u64) -> Option<u64> {
        let after = self.stubs.partition_point(|stub| stub.start <= link);
        self.stubs.get(after).map(|stub| stub.start)
    }

    pub(super) fn stubs(&self) -> impl Iterator<Item = &Stub> {
        self.stubs.iter()
    }
}

fn read_stubs<'a>(
    section: &ElfSection64<'a, '_, LittleEndian, &'a [u8]>,
    slots: &Slots,
) -> Vec<Stub> {
    let data = section.data().unwrap_or_default();
    // Old linkers leave the entry size 0; their stubs have 16 bytes.
    let size = match section.elf_section_header().sh_entsize(LittleEndian) {
        size @ (8 | 16) => size,
        _ => 16,
    };
    let chunks = data.chunks(size as usize).zip(0u64..);
    chunks
        .filter_map(|(code, index)| {
            let start = section.address().wrapping_add(index.wrapping_mul(size));
            let name = target(code, start, slots)?;
            Some(Stub { start, end: start.saturating_add(code.len() as u64), name })
        })
        .collect()
}

/// The function that a stub leads to: by the slot that it jumps through, or by
/// the number that it pushes for the dynamic linker.
fn target(code: &[u8], start: u64, slots: &Slots) -> Option<String> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.iter().collect();
    let jump =
        instructions.iter().find(|i| i.code() == Code::Jmp_rm64 && i.is_ip_rel_memory_operand());
    if let Some(jump) = jump {
        return slots.by_address.get(&jump.ip_rel_memory_address()).cloned();
    }
    let push = instructions.iter().find(|i| i.code() == Code::Pushq_imm32)?;
    slots.lazy.get(usize::try_from(push.immediate32to64()).ok()?)?.clone()
}

fn read_slots(image: &Image, elf: &Elf<'_>) -> Slots {
    let mut slots = Slots::default();
    for section in elf.sections() {
        let header = section.elf_section_header();
        if header.sh_type(LittleEndian) != SHT_RELA {
            continue;
        }
        let Ok(Some((relocations, _))) = header.rela(LittleEndian, image.bytes()) else { continue };
        let lazy = section.name() == Ok(".rela.plt");
        for relocation in relocations {
            let name = slot_name(image, elf, relocation);
            if lazy {
                slots.lazy.push(name.clone());
            }
            if let Some(name) = name {
                slots.by_address.insert(relocation.r_offset(LittleEndian), name);
            }
        }
    }
    slots
}

fn slot_name(
    image: &Image,
    elf: &Elf<'_>,
    relocation: &impl Rela<Endian = LittleEndian, Word = u64, Sword = i64>,
) -> Option<String> {
    match relocation.r_type(LittleEndian, false) {
        R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT => {
            let index = SymbolIndex(relocation.r_sym(LittleEndian, false) as usize);
            let symbol = elf.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
            symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned)
        }
        R_X86_64_IRELATIVE => {
            let resolver = relocation.r_addend(LittleEndian) as u64;
            image.symbols().at(resolver).map(|symbol| symbol.name.clone())
        }
        _ => None,
    }
}
