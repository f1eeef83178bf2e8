//! Where is the debug information of a file, and which unit describes an
//! address?

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{DebugInfoOffset, EndianArcSlice, LittleEndian, SectionId, UnitOffset, UnitType};
use object::Object;

use super::image::{Elf, Image, parse, section_bytes};
use super::unit::Unit;

pub(super) type Reader = EndianArcSlice<LittleEndian>;
pub(super) type Dwarf = gimli::Dwarf<Reader>;
pub(super) type Entry = gimli::DebuggingInformationEntry<Reader>;
pub(super) type Attribute = gimli::AttributeValue<Reader>;

/// Reads a file that the run itself may not have mapped: source text and
/// separate debug information.
pub type Loader = Box<dyn Fn(&Path) -> Option<Vec<u8>> + Send + Sync>;

/// A loader that reads from the file system of this machine.
pub fn from_disk() -> Loader {
    Box::new(|path| std::fs::read(path).ok())
}

/// How much a file says about its source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DebugStatus {
    /// Lines and variables are known.
    #[error("it has debug information")]
    Present,
    /// There is none, neither in the file nor beside it.
    #[error("it has no debug information; compile it with -g, or name functions and addresses")]
    Missing,
    /// The compiler left variables and types in `.dwo` files, which are not read.
    #[error("its variables are in split debug information; compile it without -gsplit-dwarf")]
    Split,
    /// There is some, but it cannot be read.
    #[error("its debug information cannot be read ({0})")]
    Broken(String),
}

/// The debug information of one image. Addresses are the file's own.
pub(super) struct DebugInfo {
    pub(super) dwarf: Dwarf,
    pub(super) units: Vec<Unit>,
    pub(super) status: DebugStatus,
    ranges: Vec<UnitRange>,
    signatures: HashMap<u64, (usize, UnitOffset)>,
}

struct UnitRange {
    start: u64,
    end: u64,
    unit: usize,
    /// The largest `end` of this range and all before it, so that a search may
    /// stop early although ranges overlap.
    reach: u64,
}

impl DebugInfo {
    /// Finds debug information in the image, or in a separate file of the same
    /// build.
    pub(super) fn find(image: &Image, loader: &Loader) -> Result<Self, DebugStatus> {
        let elf = image.elf().ok_or(DebugStatus::Missing)?;
        if elf.section_by_name(".debug_info").is_some() {
            return Self::read(&elf);
        }
        let same_build = |other: &Elf<'_>| match (elf.build_id(), other.build_id()) {
            (Ok(Some(ours)), Ok(Some(theirs))) => ours == theirs,
            _ => true,
        };
        for path in separate_files(&elf, image.path()) {
            let Some(data) = loader(&path) else { continue };
            let Some(separate) = parse(&data).filter(same_build) else { continue };
            if separate.section_by_name(".debug_info").is_some() {
                return Self::read(&separate);
            }
        }
        Err(DebugStatus::Missing)
    }

    fn read(elf: &Elf<'_>) -> Result<Self, DebugStatus> {
        let dwarf = load(elf);
        let mut info = Self {
            dwarf,
            units: Vec::new(),
            status: DebugStatus::Present,
            ranges: Vec::new(),
            signatures: HashMap::new(),
        };
        info.read_units().map_err(|error| DebugStatus::Broken(error.to_string()))?;
        info.index_ranges();
        Ok(info)
    }

    fn read_units(&mut self) -> gimli::Result<()> {
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = Unit::new(self.dwarf.unit(header)?);
            if unit.is_skeleton() {
                self.status = DebugStatus::Split;
            }
            if let UnitType::Type { type_signature, type_offset } = unit.header().type_() {
                self.signatures.insert(type_signature.0, (self.units.len(), type_offset));
            }
            self.units.push(unit);
        }
        Ok(())
    }

    fn index_ranges(&mut self) {
        let mut ranges = Vec::new();
        for (index, unit) in self.units.iter().enumerate() {
            for range in unit.ranges(&self.dwarf) {
                ranges.push(UnitRange {
                    start: range.start,
                    end: range.end,
                    unit: index,
                    reach: 0,
                });
            }
        }
        ranges.sort_by_key(|range| range.start);
        let mut reach = 0;
        for range in &mut ranges {
            reach = reach.max(range.end);
            range.reach = reach;
        }
        self.ranges = ranges;
    }

    /// The unit that describes the code at `link`.
    pub(super) fn unit_at(&self, link: u64) -> Option<usize> {
        let after = self.ranges.partition_point(|range| range.start <= link);
        let candidates = self.ranges[..after].iter().rev();
        let mut reachable = candidates.take_while(|range| range.reach > link);
        reachable.find(|range| link < range.end).map(|range| range.unit)
    }

    /// The unit that contains an offset of `.debug_info`.
    pub(super) fn unit_of(&self, offset: DebugInfoOffset) -> Option<(usize, UnitOffset)> {
        let start = |unit: &Unit| unit.header().debug_info_offset().map_or(0, |offset| offset.0);
        let after = self.units.partition_point(|unit| start(unit) <= offset.0);
        let index = after.checked_sub(1)?;
        Some((index, offset.to_unit_offset(self.units[index].header())?))
    }

    /// The entry that an attribute of `unit` refers to.
    pub(super) fn follow(&self, unit: usize, value: &Attribute) -> Option<(usize, UnitOffset)> {
        match value {
            Attribute::UnitRef(offset) => Some((unit, *offset)),
            Attribute::DebugInfoRef(offset) => self.unit_of(*offset),
            Attribute::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    pub(super) fn entry(&self, unit: usize, offset: UnitOffset) -> Option<Entry> {
        self.units.get(unit)?.raw().entry(offset).ok()
    }

    /// A string attribute of an entry.
    pub(super) fn string(&self, unit: usize, value: Attribute) -> Option<String> {
        let text = self.dwarf.attr_string(self.units.get(unit)?.raw(), value).ok()?;
        Some(String::from_utf8_lossy(text.bytes()).into_owned())
    }
}

fn load(elf: &Elf<'_>) -> Dwarf {
    let read = |id: SectionId| -> Result<Reader, std::convert::Infallible> {
        let bytes = section_bytes(elf, id.name()).unwrap_or_default();
        Ok(Reader::new(Arc::from(bytes), LittleEndian))
    };
    match Dwarf::load(read) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

/// Where distributions put debug information that was split off a file.
fn separate_files(elf: &Elf<'_>, image: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Ok(Some(id)) = elf.build_id()
        && id.len() > 1
    {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (folder, file) = hex.split_at(2);
        paths.push(format!("/usr/lib/debug/.build-id/{folder}/{file}.debug").into());
    }
    if let Ok(Some((name, _))) = elf.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let folder = image.parent().unwrap_or(Path::new("/"));
        let below_root = folder.strip_prefix("/").unwrap_or(folder);
        paths.push(folder.join(&name));
        paths.push(folder.join(".debug").join(&name));
        paths.push(Path::new("/usr/lib/debug").join(below_root).join(&name));
    }
    paths.retain(|path| path != image);
    paths
}
