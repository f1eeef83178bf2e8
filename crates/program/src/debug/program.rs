//! The files of a run as one program: which of them is at an address?

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::dwarf::{DebugInfo, DebugStatus, Loader};
use super::error::Error;
use super::files::{FileId, Files, Source};
use super::image::{Image, MappedFile};
use super::lines::LineTable;
use super::unit::Unit;

/// All that is known of the code of a run. Every address that is given to it or
/// comes from it is a run-time address.
pub struct Program {
    images: Vec<Image>,
    /// Sorted by start; the index is into `images`.
    extents: Vec<(Range<u64>, usize)>,
    pub(super) loader: Loader,
    pub(super) files: Files,
}

/// The debug information around an address.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) image_index: usize,
    pub(super) image: &'a Image,
    pub(super) info: &'a DebugInfo,
    pub(super) unit_index: usize,
    pub(super) unit: &'a Unit,
    /// The address in the file's own terms.
    pub(super) link: u64,
}

impl Program {
    /// A program of the given files. The first is the main executable; `loader`
    /// reads source text and separate debug information.
    pub fn new(files: Vec<MappedFile>, loader: Loader) -> Self {
        let mut program =
            Self { images: Vec::new(), extents: Vec::new(), loader, files: Files::default() };
        for file in files {
            program.add(file);
        }
        program
    }

    /// Adds a file that was mapped later.
    pub fn add(&mut self, file: MappedFile) {
        let image = Image::new(file);
        let index = self.images.len();
        self.extents.extend(image.extents().map(|extent| (extent, index)));
        self.extents.sort_by_key(|(extent, _)| extent.start);
        self.images.push(image);
    }

    /// The files, the main executable first.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The file that was mapped at an address, and its index in [`Self::images`].
    pub fn image_at(&self, address: u64) -> Option<(usize, &Image)> {
        let after = self.extents.partition_point(|(extent, _)| extent.start <= address);
        let (extent, index) = self.extents[..after].last()?;
        extent.contains(&address).then(|| (*index, &self.images[*index]))
    }

    /// How much the file with this index says about its source.
    pub fn debug_status(&self, image: usize) -> DebugStatus {
        match self.images.get(image).map(|image| image.debug(&self.loader)) {
            None => DebugStatus::Missing,
            Some(Ok(info)) => info.status.clone(),
            Some(Err(status)) => status.clone(),
        }
    }

    /// The path of a source file.
    pub fn path(&self, file: FileId) -> Arc<Path> {
        self.files.path(file)
    }

    /// The text of a source file, if the loader finds it.
    pub fn source(&self, file: FileId) -> Option<Source> {
        (self.loader)(&self.path(file)).map(|bytes| Source::new(&bytes))
    }

    /// The debug information that describes an address.
    pub(super) fn place(&self, address: u64) -> Result<Place<'_>, Error> {
        let (image_index, image) = self.image_at(address).ok_or(Error::NoFile { address })?;
        let info = image.debug(&self.loader).map_err(|status| Error::NoDebugInfo {
            file: image.path().to_owned(),
            status: status.clone(),
        })?;
        let link = image.to_link(address);
        let unit_index = info.unit_at(link).ok_or(Error::NotDescribed { address })?;
        let unit = &info.units[unit_index];
        Ok(Place { image_index, image, info, unit_index, unit, link })
    }

    /// The debug information of all files that have some.
    pub(super) fn infos(&self) -> impl Iterator<Item = (usize, &Image, &DebugInfo)> {
        let images = self.images.iter().enumerate();
        images.filter_map(|(index, image)| Some((index, image, image.debug(&self.loader).ok()?)))
    }

    pub(super) fn line_table<'a>(&self, info: &'a DebugInfo, unit: &'a Unit) -> &'a LineTable {
        unit.lines.get_or_init(|| LineTable::read(&info.dwarf, unit.raw(), &self.files))
    }
}

/// Sorts and removes what occurs twice.
pub(super) fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}
