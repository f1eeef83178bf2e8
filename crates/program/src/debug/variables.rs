//! Which variables can be seen at an address, and where are they?

use gimli::{UnitOffset, constants};

use super::dwarf::{Attribute, Entry};
use super::error::Error;
use super::function::functions;
use super::functions::ScopeKind;
use super::globals::Global;
use super::located::Located;
use super::location::Instant;
use super::program::{Place, Program};
use super::similar::similar;
use super::source_lines::SourceLine;
use super::state::State;
use super::types::{EntryId, Shape, Type};

/// A variable of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name; a global one's with its namespaces.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// What kind of variable it is.
    pub kind: VariableKind,
    /// The line that declares it.
    pub declared: Option<SourceLine>,
    /// The index of its function in [`Program::lines`]: 0 for the innermost
    /// inlined function.
    pub frame: usize,
    entry: EntryId,
    function: Option<UnitOffset>,
}

/// What kind of variable it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A parameter of a function.
    Parameter,
    /// A variable inside a function.
    Local,
    /// A variable outside of functions.
    Global,
}

/// The program itself is the first of its files.
const PROGRAM: usize = 0;

impl Program {
    /// The parameters and local variables that can be seen at an address, those
    /// of the innermost block first. For a caller's frame, give
    /// [`executing`](super::CallFrame::executing).
    pub fn variables(&self, pc: u64) -> Vec<Variable> {
        let Ok(place) = self.place(pc) else { return Vec::new() };
        let function = functions(place.info, place.unit_index).at(place.link);
        let Some(function) = function else { return Vec::new() };
        let mut variables = Vec::new();
        let mut frame = 0;
        for scope in function.scopes_at(place.info, place.unit_index, place.link) {
            let offsets = scope.variables.iter();
            let found = offsets.filter_map(|offset| {
                let mut variable = self.describe(&place, *offset)?;
                variable.function = Some(function.offset);
                variable.frame = frame;
                Some(variable)
            });
            variables.extend(found);
            frame += usize::from(matches!(scope.kind, ScopeKind::Inlined { .. }));
        }
        variables
    }

    /// The variable that a name means at an address: the innermost local one,
    /// else a global one of the same unit, of the same file, of any file.
    pub fn variable(&self, pc: u64, name: &str) -> Result<Variable, Error> {
        let locals = self.variables(pc);
        if let Some(found) = locals.iter().find(|variable| variable.name == name) {
            return Ok(found.clone());
        }
        self.global(pc, name).ok_or_else(|| Error::NoVariable {
            name: name.to_owned(),
            similar: similar(name, locals.into_iter().map(|variable| variable.name)),
        })
    }

    /// Where a variable is when the code at `pc` is about to run.
    pub fn locate(
        &self,
        variable: &Variable,
        pc: u64,
        state: &dyn State,
    ) -> Result<Located, Error> {
        let place = self.place_of(variable.entry, pc)?;
        let offset = variable.entry.offset;
        let missing = Error::NotDescribed { address: pc };
        let entry = place.info.entry(place.unit_index, offset).ok_or(missing)?;
        let size = self.size_of(&variable.ty).unwrap_or(0);
        let instant = Instant { program: self, place, function: variable.function, pc, state };
        let pieces = instant.locate(&entry, size);
        Ok(Located { pieces, ty: variable.ty.clone(), bits: None })
    }

    fn place_of(&self, entry: EntryId, pc: u64) -> Result<Place<'_>, Error> {
        let missing = Error::NotDescribed { address: pc };
        let image = self.images().get(entry.image).ok_or(missing.clone())?;
        let info = self.info(entry.image).ok_or(missing)?;
        Ok(Place {
            image_index: entry.image,
            image,
            info,
            unit_index: entry.unit,
            unit: &info.units[entry.unit],
            link: image.to_link(pc),
        })
    }

    fn global(&self, pc: u64, name: &str) -> Option<Variable> {
        let here = self.place(pc).ok();
        let near: Option<(usize, usize)> =
            here.as_ref().map(|place| (place.image_index, place.unit_index));
        let home = here.as_ref().map(|place| place.image_index);
        let mut images: Vec<usize> = self.infos().map(|(index, ..)| index).collect();
        images.sort_by_key(|index| Some(*index) != home);
        let all = images.into_iter().flat_map(|image| {
            let units = self.info(image).map_or(0, |info| info.units.len());
            (0..units).map(move |unit| (image, unit))
        });
        near.into_iter().chain(all).find_map(|(image, unit)| {
            // What a file of a library keeps to itself is seen there alone.
            let is_here = near == Some((image, unit)) || image == PROGRAM;
            let is_seen = |global: &Global| global.is_external || is_here;
            self.global_of_unit(image, unit, name, is_seen)
        })
    }

    fn global_of_unit(
        &self,
        image: usize,
        unit: usize,
        name: &str,
        is_seen: impl Fn(&Global) -> bool,
    ) -> Option<Variable> {
        let info = self.info(image)?;
        let globals = info.globals(unit).variables.iter().filter(|global| is_seen(global));
        let ending = |known: &str| known.strip_suffix(name).is_some_and(|p| p.ends_with("::"));
        let exact = globals.clone().find(|global| global.name == name);
        let global = exact.or_else(|| globals.clone().find(|global| ending(&global.name)))?;
        let entry = EntryId { image, unit, offset: global.offset };
        let mut variable = self.describe(&self.place_of(entry, 0).ok()?, global.offset)?;
        variable.name = global.name.clone();
        variable.kind = VariableKind::Global;
        Some(variable)
    }

    /// Reads the entry of a variable, or of the one that it is a copy of.
    fn describe(&self, place: &Place<'_>, offset: UnitOffset) -> Option<Variable> {
        let (info, unit) = (place.info, place.unit_index);
        let entry = info.entry(unit, offset)?;
        let (name_unit, name) = info.inherited(unit, offset, constants::DW_AT_name)?;
        let kind = match entry.tag() {
            constants::DW_TAG_formal_parameter => VariableKind::Parameter,
            _ => VariableKind::Local,
        };
        Some(Variable {
            name: info.string(name_unit, name)?,
            ty: self.type_of(place, &entry),
            kind,
            declared: self.declaration(place, offset),
            frame: 0,
            entry: EntryId { image: place.image_index, unit, offset },
            function: None,
        })
    }

    fn type_of(&self, place: &Place<'_>, entry: &Entry) -> Type {
        let (info, image) = (place.info, place.image_index);
        let found = info.inherited(place.unit_index, entry.offset(), constants::DW_AT_type);
        let target = found.and_then(|(unit, value)| info.follow(unit, &value));
        match target {
            Some((unit, offset)) => Type(Shape::Entry(EntryId { image, unit, offset })),
            None => Type(Shape::Void),
        }
    }

    fn declaration(&self, place: &Place<'_>, offset: UnitOffset) -> Option<SourceLine> {
        let (info, unit) = (place.info, place.unit_index);
        let (_, line) = info.inherited(unit, offset, constants::DW_AT_decl_line)?;
        let (unit, file) = info.inherited(unit, offset, constants::DW_AT_decl_file)?;
        let Attribute::FileIndex(file) = file else { return None };
        let file = self.line_table(info, &info.units[unit]).file(file)?;
        Some(SourceLine { file, line: u32::try_from(line.udata_value()?).ok()? })
    }
}
