//! The files whose code ran: where they were mapped and what is in them.

use engine::trace::{Event, Mapped};
use object::read::elf::{FileHeader, ProgramHeader};
use program::debug::{MappedFile, Program, from_disk};
use recording::Recording;
use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that was mapped, with its contents.
#[derive(Clone)]
pub struct Image {
    /// Where and what.
    pub mapped: Mapped,
    /// All of its bytes.
    pub bytes: Arc<[u8]>,
}

/// All of them.
#[derive(Clone, Default)]
pub struct Images {
    list: Vec<Image>,
}

impl Images {
    /// Those that a trace's events name and that are executable somewhere.
    pub fn load(recording: &Recording, events: &[(crate::Time, Event)]) -> Images {
        let mapped = || {
            events.iter().filter_map(|(_, event)| match event {
                Event::Mapped(mapped) => Some(mapped),
                _ => None,
            })
        };
        let mut contents: HashMap<&str, Arc<[u8]>> = HashMap::new();
        for m in mapped().filter(|m| m.executable) {
            if let Some(file) = &m.file
                && let Ok(bytes) = std::fs::read(recording.root().join("files").join(file))
            {
                contents.insert(file, bytes.into());
            }
        }
        let list = mapped().filter_map(|m| {
            let bytes = contents.get(m.file.as_deref()?)?.clone();
            Some(Image { mapped: m.clone(), bytes })
        });
        Images { list: list.collect() }
    }

    /// All maps of such files.
    pub fn iter(&self) -> impl Iterator<Item = &Image> {
        self.list.iter()
    }

    /// The file's bytes at an address. Of several maps the last one counts.
    pub fn bytes(&self, address: u64) -> &[u8] {
        let at = |image: &'_ Image| {
            let m = &image.mapped;
            (m.start..m.end).contains(&address)
        };
        let Some(image) = self.list.iter().rev().find(|i| at(i)) else { return &[] };
        let m = &image.mapped;
        let from = (address - m.start + m.offset) as usize;
        let until = (m.end - m.start + m.offset) as usize;
        image.bytes.get(from..until.min(image.bytes.len())).unwrap_or(&[])
    }
}

/// The program that images make up, the main executable first.
pub fn program(images: &Images) -> Program {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    // Data segments may share a page of the file with others; code does not.
    for image in images.iter().filter(|i| i.mapped.executable) {
        let Some(bias) = bias(image) else { continue };
        if seen.insert((image.mapped.path.clone(), bias)) {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&image.mapped.path));
            files.push(MappedFile { path, data: Arc::new(image.bytes.clone()), bias });
        }
    }
    Program::new(files, from_disk())
}

/// The program that is mapped so, for where there is no trace.
pub fn program_of(recording: &Recording, mapped: &[Mapped]) -> Program {
    let events: Vec<_> =
        mapped.iter().map(|m| (crate::Time(0), Event::Mapped(m.clone()))).collect();
    program(&Images::load(recording, &events))
}

/// What was added to the file's own addresses where it was mapped.
fn bias(image: &Image) -> Option<u64> {
    type Header = object::elf::FileHeader64<object::Endianness>;
    let header = Header::parse(&*image.bytes).ok()?;
    let endian = header.endian().ok()?;
    let m = &image.mapped;
    header.program_headers(endian, &*image.bytes).ok()?.iter().find_map(|segment| {
        let (offset, address) = (segment.p_offset(endian), segment.p_vaddr(endian));
        let page = offset & !4095;
        let fits = segment.p_type(endian) == object::elf::PT_LOAD && page == m.offset;
        fits.then(|| m.start.wrapping_sub(address - (offset - page)))
    })
}
