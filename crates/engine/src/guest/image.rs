//! Loading an ELF program and its interpreter, as `execve` does.

use super::memory::{self, Backing, Memory, Region};
use crate::layout::{self, page_ceil, page_floor};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use std::os::fd::RawFd;

type Header = elf::FileHeader64<object::Endianness>;

/// Why a file cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    /// Not an ELF file at all.
    #[error("it is not an ELF program")]
    NotElf,
    /// ELF, but not for this machine.
    #[error("it is not a 64-bit x86 program")]
    WrongMachine,
    /// Damaged, or beyond what we handle.
    #[error("its ELF headers are damaged ({0})")]
    Damaged(&'static str),
    /// The addresses it is linked to are taken by the engine.
    #[error("it is linked to addresses ({0:#x}) that the engine needs for itself")]
    Address(u64),
    /// The host refused a map.
    #[error("the system refused to map it (errno {0})")]
    Map(i32),
}

mishap::mishaps! { ImageError {
    ImageError::NotElf = ImageError::NotElf =>
        "The file is no program of Linux; it may be a script without a `#!` line.",
        "Record its interpreter: `why record -- sh ./script`.";
    ImageError::WrongMachine = ImageError::WrongMachine =>
        "It is a 32-bit program, or one for another processor.",
        "Build it for x86-64.";
    ImageError::Damaged(_) = ImageError::Damaged("WHAT") =>
        "The file was cut short or changed, or the kernel would refuse it too.",
        "Build or copy it again.";
    ImageError::Address(_) = ImageError::Address(0x5000_0000) =>
        "It is linked to a fixed address between 0x50000000 and 0x70000000, where the engine lives.",
        "Link it as usual, without `-Ttext` or the like, or with `-pie`.";
    ImageError::Map(_) = ImageError::Map(12) =>
        "There is not enough memory, or a limit forbids it.",
        "Look at `ulimit -v` and at the memory that is free.";
} }

/// What the headers say.
pub struct Headers {
    entry: u64,
    fixed: bool,
    segments: Vec<Segment>,
    /// Path of the program interpreter.
    pub interpreter: Option<Vec<u8>>,
    /// Protection that the program wants for its stack, beyond the usual.
    pub stack_prot: i32,
    /// The dynamic section: where in the file, and how long.
    dynamic: Option<(u64, u64)>,
    phoff: u64,
    phnum: u16,
}

#[derive(Clone, Copy)]
struct Segment {
    address: u64,
    mem_size: u64,
    file_size: u64,
    offset: u64,
    prot: i32,
    align: u64,
}

/// A loaded image.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// What was added to its addresses.
    pub bias: u64,
    /// First instruction.
    pub entry: u64,
    /// Program headers in memory.
    pub phdr: u64,
    /// How many.
    pub phnum: u16,
}

impl Headers {
    /// So many bytes of a file have all its headers as a rule.
    pub const USUAL: usize = 4096;

    /// Reads the headers of a file.
    pub fn parse(bytes: &[u8]) -> Result<Headers, ImageError> {
        if bytes.get(..4) != Some(&elf::ELFMAG) {
            return Err(ImageError::NotElf);
        }
        if bytes.get(4) != Some(&2) {
            return Err(ImageError::WrongMachine);
        }
        let header = Header::parse(bytes).map_err(|_| ImageError::Damaged("file header"))?;
        let endian = header.endian().map_err(|_| ImageError::Damaged("byte order"))?;
        if header.e_machine(endian) != elf::EM_X86_64 {
            return Err(ImageError::WrongMachine);
        }
        let table =
            header.program_headers(endian, bytes).map_err(|_| ImageError::Damaged("segments"))?;
        let mut segments = Vec::new();
        let mut interpreter = None;
        let mut stack_prot = 0;
        let mut dynamic = None;
        for p in table {
            match p.p_type(endian) {
                elf::PT_LOAD => segments.push(Segment::of(p, endian)?),
                elf::PT_INTERP => {
                    let path = p.data(endian, bytes).map_err(|_| ImageError::Damaged("interp"))?;
                    let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
                    interpreter = Some(path[..end].to_vec());
                }
                elf::PT_DYNAMIC => dynamic = Some((p.p_offset(endian), p.p_filesz(endian))),
                elf::PT_GNU_STACK if p.p_flags(endian).contains(elf::PF_X) => {
                    stack_prot = libc::PROT_EXEC;
                }
                _ => {}
            }
        }
        if segments.is_empty() {
            return Err(ImageError::Damaged("nothing to load"));
        }
        Ok(Headers {
            entry: header.e_entry(endian),
            fixed: header.e_type(endian) == elf::ET_EXEC,
            segments,
            interpreter,
            stack_prot,
            dynamic,
            phoff: header.e_phoff(endian),
            phnum: table.len() as u16,
        })
    }

    /// The names of libraries that the program needs and of symbols that it shares with
    /// them, one after the other; `None` if it shares nothing. `part` reads a part of the
    /// file.
    pub fn dynamic_names(&self, part: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let (offset, len) = self.dynamic?;
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        let table = part(offset, len)?;
        let value = |tag: u64| {
            let mut entries = table.chunks_exact(16);
            entries.find(|entry| word(&entry[..8]) == tag).map(|entry| word(&entry[8..]))
        };
        const DT_STRTAB: u64 = 5;
        const DT_STRSZ: u64 = 10;
        let (at, len) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
        let segment = self
            .segments
            .iter()
            .find(|s| at.checked_sub(s.address).is_some_and(|offset| offset < s.file_size))?;
        part(segment.offset.checked_add(at - segment.address)?, len)
    }

    fn span(&self) -> Result<(u64, u64), ImageError> {
        let low = self.segments.iter().map(|s| page_floor(s.address)).min().unwrap_or(0);
        let mut high = 0;
        for s in &self.segments {
            let end = s.address.checked_add(s.mem_size).and_then(page_ceil);
            high = high.max(end.ok_or(ImageError::Damaged("segment size"))?);
        }
        Ok((low, high))
    }

    /// Maps the image from the file `fd`.
    pub fn load(&self, memory: &mut Memory, fd: RawFd, path: &[u8]) -> Result<Image, ImageError> {
        let (low, high) = self.span()?;
        let align = self.segments.iter().map(|s| s.align).max().unwrap_or(0).max(layout::PAGE);
        let bias = if self.fixed {
            if !Memory::is_allowed(low, high - low) || !memory.is_free(low, high - low) {
                return Err(ImageError::Address(low));
            }
            0
        } else {
            let at = memory.find_low(high - low, align).ok_or(ImageError::Address(low))?;
            at - low
        };
        for segment in &self.segments {
            segment.map(memory, bias, fd, path)?;
        }
        let phdr = self.segments.iter().find_map(|s| {
            let inside = (s.offset..s.offset + s.file_size).contains(&self.phoff);
            inside.then(|| s.address + (self.phoff - s.offset) + bias)
        });
        Ok(Image {
            bias,
            entry: self.entry.wrapping_add(bias),
            phdr: phdr.unwrap_or(0),
            phnum: self.phnum,
        })
    }
}

impl Segment {
    fn of(
        p: &elf::ProgramHeader64<object::Endianness>,
        endian: object::Endianness,
    ) -> Result<Segment, ImageError> {
        let flags = p.p_flags(endian);
        let mut prot = 0;
        for (flag, bit) in [
            (elf::PF_R, libc::PROT_READ),
            (elf::PF_W, libc::PROT_WRITE),
            (elf::PF_X, libc::PROT_EXEC),
        ] {
            if (flags & flag).0 != 0 {
                prot |= bit;
            }
        }
        let s = Segment {
            address: p.p_vaddr(endian),
            mem_size: p.p_memsz(endian),
            file_size: p.p_filesz(endian),
            offset: p.p_offset(endian),
            prot,
            align: p.p_align(endian).max(1),
        };
        let congruent = s.address % layout::PAGE == s.offset % layout::PAGE;
        if s.file_size > s.mem_size || !congruent || !s.align.is_power_of_two() {
            return Err(ImageError::Damaged("segment"));
        }
        Ok(s)
    }

    fn map(
        &self,
        memory: &mut Memory,
        bias: u64,
        fd: RawFd,
        path: &[u8],
    ) -> Result<(), ImageError> {
        let start = page_floor(self.address) + bias;
        let file_end = self.address + self.file_size + bias;
        let mem_end = self.address + self.mem_size + bias;
        let file_pages_end = page_ceil(file_end).ok_or(ImageError::Damaged("size"))?;
        let mem_pages_end = page_ceil(mem_end).ok_or(ImageError::Damaged("size"))?;
        if !Memory::is_allowed(start, mem_pages_end - start) {
            return Err(ImageError::Address(start));
        }
        if self.file_size > 0 {
            let offset = page_floor(self.offset);
            let prot = memory::host_prot(self.prot);
            let len = file_pages_end - start;
            memory::host_map(start, len, prot, libc::MAP_PRIVATE, fd, offset)
                .map_err(ImageError::Map)?;
            let backing = Backing::File { path: path.to_vec(), offset };
            let region =
                Region { end: file_pages_end, prot: self.prot, shared: false, file: None, backing };
            memory.insert(start, region);
            if self.prot & libc::PROT_WRITE != 0 && file_pages_end > file_end {
                // ld.so allocates in the rest of the page and expects zeros.
                // SAFETY: the page was just mapped writable.
                unsafe {
                    std::ptr::write_bytes(
                        file_end as *mut u8,
                        0,
                        (file_pages_end - file_end) as usize,
                    );
                }
            }
        }
        let bss = if self.file_size > 0 { file_pages_end } else { start };
        if mem_pages_end > bss {
            memory
                .map_anonymous(bss, mem_pages_end - bss, self.prot, Backing::Anonymous)
                .map_err(ImageError::Map)?;
        }
        Ok(())
    }
}
