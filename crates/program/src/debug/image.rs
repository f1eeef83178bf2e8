//! What is in one ELF file, and where did a run map it?
//!
//! Everything beyond the program headers is parsed when it is first asked for,
//! because most questions touch few of the files that a process maps.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use object::elf::{PF_X, PT_LOAD, PT_TLS};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{CompressionFormat, LittleEndian, Object, ObjectSection};

use super::cfi::Cfi;
use super::dwarf::{DebugInfo, DebugStatus, Loader};
use super::plt::Plt;
use super::symbols::Symbols;

/// The contents of a file: a vector, an `Arc<[u8]>`, or a memory map.
pub type FileData = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An ELF file as a run mapped it.
#[derive(Clone)]
pub struct MappedFile {
    /// The path by which the guest named the file.
    pub path: PathBuf,
    /// Its contents.
    pub data: FileData,
    /// What was added to the file's own addresses when it was mapped.
    pub bias: u64,
}

/// One mapped ELF file and what has been found out about it so far.
pub struct Image {
    path: PathBuf,
    data: FileData,
    bias: u64,
    segments: Vec<Segment>,
    tls: Option<Tls>,
    pub(super) symbols: OnceLock<Symbols>,
    pub(super) plt: OnceLock<Plt>,
    pub(super) cfi: OnceLock<Cfi>,
    pub(super) debug: OnceLock<Result<DebugInfo, DebugStatus>>,
}

/// A loaded segment, in the file's own addresses.
#[derive(Debug, Clone)]
struct Segment {
    range: Range<u64>,
    executable: bool,
}

/// The template of thread-local variables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tls {
    pub(super) size: u64,
    pub(super) align: u64,
}

pub(super) type Elf<'a> = ElfFile64<'a, LittleEndian, &'a [u8]>;

impl Image {
    /// Reads the program headers of `file`. A file that is no ELF file has no
    /// segments, and so nothing is ever found in it.
    pub(super) fn new(file: MappedFile) -> Self {
        let (segments, tls) = read_segments((*file.data).as_ref()).unwrap_or_default();
        Self {
            path: file.path,
            data: file.data,
            bias: file.bias,
            segments,
            tls,
            symbols: OnceLock::new(),
            plt: OnceLock::new(),
            cfi: OnceLock::new(),
            debug: OnceLock::new(),
        }
    }

    /// The path by which the guest named the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last component of the path.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// What was added to the file's own addresses.
    pub fn bias(&self) -> u64 {
        self.bias
    }

    /// The run-time addresses of executable segments.
    pub fn code(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.segments.iter().filter(|segment| segment.executable).map(|s| self.run_range(&s.range))
    }

    /// The run-time addresses of all loaded segments.
    pub fn extents(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.segments.iter().map(|segment| self.run_range(&segment.range))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        (*self.data).as_ref()
    }

    pub(super) fn tls(&self) -> Option<Tls> {
        self.tls
    }

    pub(super) fn elf(&self) -> Option<Elf<'_>> {
        parse(self.bytes())
    }

    pub(super) fn to_link(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    pub(super) fn to_run(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    pub(super) fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| Symbols::read(self))
    }

    pub(super) fn plt(&self) -> &Plt {
        self.plt.get_or_init(|| Plt::read(self))
    }

    pub(super) fn cfi(&self) -> &Cfi {
        self.cfi.get_or_init(|| Cfi::read(self))
    }

    pub(super) fn debug(&self, loader: &Loader) -> Result<&DebugInfo, &DebugStatus> {
        self.debug.get_or_init(|| DebugInfo::find(self, loader)).as_ref()
    }

    fn run_range(&self, range: &Range<u64>) -> Range<u64> {
        self.to_run(range.start)..self.to_run(range.end)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} at {:#x})", self.path.display(), self.bias)
    }
}

/// Parses an x86-64 ELF file.
pub(super) fn parse(data: &[u8]) -> Option<Elf<'_>> {
    Elf::parse(data).ok().filter(|elf| elf.architecture() == object::Architecture::X86_64)
}

/// The contents of a section, decompressed. `None` if it is absent or damaged.
pub(super) fn section_bytes(elf: &Elf<'_>, name: &str) -> Option<Vec<u8>> {
    let section = elf.section_by_name(name)?;
    let stored = section.compressed_data().ok()?;
    // No compressor does better than about 1100 to 1 on real debug info, so a
    // larger promise is a damaged header and must not become an allocation.
    let believable = (stored.data.len() as u64).saturating_mul(1100);
    if stored.format != CompressionFormat::None && stored.uncompressed_size > believable {
        return None;
    }
    Some(stored.decompress().ok()?.into_owned())
}

fn read_segments(data: &[u8]) -> Option<(Vec<Segment>, Option<Tls>)> {
    let elf = parse(data)?;
    let endian = LittleEndian;
    let headers = elf.elf_header().program_headers(endian, data).ok()?;
    let loaded = headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
    let segments = loaded
        .map(|header| Segment {
            range: span(header.p_vaddr(endian), header.p_memsz(endian)),
            executable: header.p_flags(endian).contains(PF_X),
        })
        .collect();
    let tls = headers.iter().find(|header| header.p_type(endian) == PT_TLS);
    let tls = tls.map(|h| Tls { size: h.p_memsz(endian), align: h.p_align(endian).max(1) });
    Some((segments, tls))
}

fn span(start: u64, len: u64) -> Range<u64> {
    start..start.saturating_add(len)
}
