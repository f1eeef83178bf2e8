//! Which global variables and types does a unit define?

use std::collections::HashMap;

use gimli::{DwTag, UnitOffset, constants};

use super::dwarf::{DebugInfo, Entry};

/// What a unit defines outside of functions.
#[derive(Default)]
pub(super) struct Globals {
    pub(super) variables: Vec<Global>,
    /// Complete structures and enumerations, by name.
    types: HashMap<String, (DwTag, UnitOffset)>,
    /// Variables that are declared in a namespace or class: their full names.
    declared: HashMap<UnitOffset, String>,
}

/// A variable outside of functions.
pub(super) struct Global {
    /// The name with its namespaces.
    pub(super) name: String,
    pub(super) offset: UnitOffset,
    /// Do other units see it?
    pub(super) is_external: bool,
}

impl Globals {
    fn read(info: &DebugInfo, unit: usize) -> Self {
        let mut globals = Self::default();
        let _ = globals.collect(info, unit);
        globals
    }

    fn collect(&mut self, info: &DebugInfo, unit: usize) -> gimli::Result<()> {
        let mut entries = info.units[unit].raw().entries_raw(None)?;
        let mut entry = Entry::null();
        // The namespaces around each depth; `None` inside functions.
        let mut open: Vec<Option<String>> = Vec::new();
        while !entries.is_empty() {
            if !entries.read_entry(&mut entry)? {
                continue;
            }
            open.truncate(usize::try_from(entry.depth()).unwrap_or(0));
            let outer = open.last().cloned().unwrap_or(Some(String::new()));
            let inner = outer.and_then(|outer| self.visit(info, unit, &entry, &outer));
            open.push(inner);
        }
        Ok(())
    }

    /// Takes note of an entry. Returns the prefix for names inside it, unless
    /// they are local.
    fn visit(
        &mut self,
        info: &DebugInfo,
        unit: usize,
        entry: &Entry,
        outer: &str,
    ) -> Option<String> {
        let name = || info.string(unit, entry.attr_value(constants::DW_AT_name)?);
        match entry.tag() {
            constants::DW_TAG_compile_unit | constants::DW_TAG_type_unit => Some(String::new()),
            constants::DW_TAG_namespace => match name() {
                Some(name) => Some(format!("{outer}{name}::")),
                None => Some(outer.to_owned()),
            },
            constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type
            | constants::DW_TAG_enumeration_type => {
                let name = name()?;
                let inside = format!("{outer}{name}::");
                if !entry.has_attr(constants::DW_AT_declaration) {
                    self.types.insert(name, (entry.tag(), entry.offset()));
                }
                Some(inside)
            }
            constants::DW_TAG_variable if has_value(entry) => {
                let name = match self.declaration(info, unit, entry) {
                    Some(declared) => declared.clone(),
                    None => format!("{outer}{}", name()?),
                };
                let seen = [constants::DW_AT_external, constants::DW_AT_specification];
                let is_external = seen.into_iter().any(|attribute| entry.has_attr(attribute));
                self.variables.push(Global { name, offset: entry.offset(), is_external });
                None
            }
            constants::DW_TAG_variable | constants::DW_TAG_member => {
                self.declared.insert(entry.offset(), format!("{outer}{}", name()?));
                None
            }
            _ => None,
        }
    }

    /// The full name of a variable that is declared elsewhere in the unit.
    fn declaration(&self, info: &DebugInfo, unit: usize, entry: &Entry) -> Option<&String> {
        let declaration = entry.attr_value(constants::DW_AT_specification)?;
        let (_, offset) = info.follow(unit, &declaration).filter(|(other, _)| *other == unit)?;
        self.declared.get(&offset)
    }
}

impl DebugInfo {
    /// What a unit defines outside of functions.
    pub(super) fn globals(&self, unit: usize) -> &Globals {
        self.units[unit].globals.get_or_init(|| Globals::read(self, unit))
    }

    /// The complete type of a name.
    pub(super) fn definition(&self, tag: DwTag, name: &str) -> Option<(usize, UnitOffset)> {
        (0..self.units.len()).find_map(|unit| {
            let (found, offset) = self.globals(unit).types.get(name)?;
            (*found == tag).then_some((unit, *offset))
        })
    }
}

fn has_value(entry: &Entry) -> bool {
    entry.has_attr(constants::DW_AT_location) || entry.has_attr(constants::DW_AT_const_value)
}
