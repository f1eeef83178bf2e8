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
    pub bytes: Arc<Vec<u8>>,
}

/// All of them.
#[derive(Clone, Default)]
pub struct Images {
    list: Vec<Image>,
    /// Which of them is where, in order. Of several maps of one place the last one counts.
    extents: Vec<Extent>,
}

/// Addresses at which a map is seen, and its number.
#[derive(Clone)]
struct Extent {
    start: u64,
    end: u64,
    image: usize,
}

/// What is in the files that were mapped. They may be read as soon as a trace names them: whoever
/// reads it waits for the replay at first.
pub(crate) struct Contents {
    folder: PathBuf,
    known: HashMap<String, Option<Arc<Vec<u8>>>>,
}

impl Contents {
    /// Of a recording's files.
    pub fn of(recording: &Recording) -> Contents {
        Contents { folder: recording.root().join("files"), known: HashMap::new() }
    }

    /// Of no files.
    #[cfg(test)]
    pub fn none() -> Contents {
        Contents { folder: PathBuf::new(), known: HashMap::new() }
    }

    /// A file is mapped.
    pub fn note(&mut self, mapped: &Mapped) {
        if let Some(file) = mapped.file.as_ref().filter(|_| mapped.executable)
            && !self.known.contains_key(file)
        {
            let bytes = std::fs::read(self.folder.join(file));
            self.known.insert(file.clone(), bytes.ok().map(Arc::new));
        }
    }
}

impl Images {
    /// Those that a trace's events name and that are executable somewhere.
    pub fn load(recording: &Recording, events: &[(crate::Time, Event)]) -> Images {
        Images::of(Contents::of(recording), events)
    }

    /// The same, given what is known of their contents.
    pub(crate) fn of(mut contents: Contents, events: &[(crate::Time, Event)]) -> Images {
        let mapped = || {
            events.iter().filter_map(|(_, event)| match event {
                Event::Mapped(mapped) => Some(mapped),
                _ => None,
            })
        };
        mapped().for_each(|mapped| contents.note(mapped));
        let list = mapped().filter_map(|m| {
            let bytes = contents.known.get(m.file.as_ref()?)?.clone()?;
            Some(Image { mapped: m.clone(), bytes })
        });
        let list: Vec<Image> = list.collect();
        let extents = extents(&list);
        Images { list, extents }
    }

    /// All maps of such files.
    pub fn iter(&self) -> impl Iterator<Item = &Image> {
        self.list.iter()
    }

    /// The file's bytes at an address, as far as its map goes.
    pub fn bytes(&self, address: u64) -> &[u8] {
        let behind = self.extents.partition_point(|extent| extent.start <= address);
        let near = self.extents[..behind].last().filter(|extent| address < extent.end);
        let Some(extent) = near else { return &[] };
        let Image { mapped, bytes } = &self.list[extent.image];
        let in_file = |at: u64| (at - mapped.start + mapped.offset) as usize;
        let end = in_file(extent.end).min(bytes.len());
        bytes.get(in_file(address)..end).unwrap_or(&[])
    }
}

fn extents(list: &[Image]) -> Vec<Extent> {
    let mut seen: Vec<Extent> = Vec::new();
    for (image, Image { mapped, .. }) in list.iter().enumerate() {
        let (start, end) = (mapped.start, mapped.end);
        let rest = seen.iter().flat_map(|old| {
            let before = Extent { end: old.end.min(start), ..*old };
            let behind = Extent { start: old.start.max(end), ..*old };
            [before, behind]
        });
        seen = rest.filter(|extent| extent.start < extent.end).collect();
        seen.push(Extent { start, end, image });
    }
    seen.sort_by_key(|extent| extent.start);
    seen
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
            files.push(MappedFile { path, data: image.bytes.clone(), bias });
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
    let header = Header::parse(&image.bytes[..]).ok()?;
    let endian = header.endian().ok()?;
    let m = &image.mapped;
    header.program_headers(endian, &image.bytes[..]).ok()?.iter().find_map(|segment| {
        let (offset, address) = (segment.p_offset(endian), segment.p_vaddr(endian));
        let page = offset & !4095;
        let fits = segment.p_type(endian) == object::elf::PT_LOAD && page == m.offset;
        fits.then(|| m.start.wrapping_sub(address - (offset - page)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(start: u64, end: u64, offset: u64, first: u8) -> Image {
        let bytes: Vec<u8> = (first..first + 100).collect();
        let mapped = Mapped { start, end, offset, executable: true, path: Vec::new(), file: None };
        Image { mapped, bytes: Arc::new(bytes) }
    }

    #[test]
    fn of_several_maps_of_one_place_the_last_one_counts() {
        let list =
            vec![image(1000, 1040, 0, 0), image(1010, 1020, 50, 100), image(1030, 1080, 90, 0)];
        let images = Images { extents: extents(&list), list };
        let at = |address| (images.bytes(address).first().copied(), images.bytes(address).len());
        assert_eq!(at(999), (None, 0));
        assert_eq!(at(1000), (Some(0), 10), "as far as what lies over it");
        assert_eq!(at(1012), (Some(152), 8));
        assert_eq!(at(1020), (Some(20), 10), "what is behind that is seen again");
        assert_eq!(at(1030), (Some(90), 10), "as far as the file");
        assert_eq!(at(1045), (None, 0));
    }
}
