//! What is the type of a value?

use gimli::{DwAte, UnitOffset, constants};

use super::dwarf::{Attribute, DebugInfo, Entry};
use super::program::Program;
use super::unit::Language;

/// Longer chains of typedefs and qualifiers are circular.
const LONGEST_CHAIN: usize = 64;

/// An entry of the debug information of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct EntryId {
    pub(super) image: usize,
    pub(super) unit: usize,
    pub(super) offset: UnitOffset,
}

/// The type of a value of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type(pub(super) Shape);

/// A type that the debug information describes, or one made of such a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Void,
    Entry(EntryId),
    /// An array without its first dimensions.
    Row {
        array: EntryId,
        skipped: usize,
    },
    Pointer(Box<Type>),
    /// The type of computed numbers.
    Integer,
}

/// What a type is, behind its typedefs and qualifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Void,
    Base {
        encoding: DwAte,
        size: u64,
    },
    Pointer {
        target: Type,
        is_reference: bool,
    },
    /// A structure, class or union.
    Composite(EntryId),
    Array {
        element: Type,
        count: Option<u64>,
    },
    Enumeration(EntryId),
    Function,
    Unknown,
}

impl Type {
    /// Whether this is the type of nothing.
    pub fn is_void(&self) -> bool {
        self.0 == Shape::Void
    }
}

impl Program {
    /// The size of values of a type.
    pub fn size_of(&self, ty: &Type) -> Option<u64> {
        match &ty.0 {
            Shape::Void => None,
            Shape::Pointer(_) | Shape::Integer => Some(8),
            Shape::Row { .. } => self.array_size(ty, 0),
            Shape::Entry(_) => self.sized(ty, 0),
        }
    }

    /// What addresses of a type are multiples of; `None` if nothing tells.
    pub(super) fn align_of(&self, ty: &Type) -> Option<u64> {
        self.aligned(ty, 0)
    }

    fn aligned(&self, ty: &Type, depth: usize) -> Option<u64> {
        const LARGEST: u64 = 16;
        if depth > LONGEST_CHAIN {
            return None;
        }
        match self.kind(ty) {
            Kind::Base { size, .. } => Some(size.clamp(1, LARGEST)),
            Kind::Pointer { .. } => Some(8),
            Kind::Enumeration(_) => Some(self.size_of(ty)?.clamp(1, LARGEST)),
            Kind::Array { element, .. } => self.aligned(&element, depth + 1),
            Kind::Composite(id) => {
                let entry = self.entry(id)?;
                let said = entry.attr(constants::DW_AT_alignment).and_then(|a| a.udata_value());
                let members = self.members(id);
                let inner = members.iter().map(|member| self.aligned(&member.ty, depth + 1));
                let least = said.unwrap_or(1).max(1);
                inner.into_iter().try_fold(least, |most, one| Some(most.max(one?)))
            }
            Kind::Function | Kind::Void | Kind::Unknown => None,
        }
    }

    /// The language that a type was written in.
    pub fn language_of(&self, ty: &Type) -> Language {
        match &ty.0 {
            Shape::Entry(id) | Shape::Row { array: id, .. } => self
                .info(id.image)
                .and_then(|info| info.units.get(id.unit))
                .map(|unit| unit.language()),
            Shape::Pointer(target) => Some(self.language_of(target)),
            Shape::Void | Shape::Integer => None,
        }
        .unwrap_or_default()
    }

    /// What a type is, behind its typedefs and qualifiers.
    pub(super) fn kind(&self, ty: &Type) -> Kind {
        let plain = self.without_names(ty);
        let id = match &plain.0 {
            Shape::Void => return Kind::Void,
            Shape::Pointer(target) => {
                return Kind::Pointer { target: (**target).clone(), is_reference: false };
            }
            Shape::Integer => return Kind::Base { encoding: constants::DW_ATE_signed, size: 8 },
            Shape::Row { array, skipped } => return self.array_kind(*array, *skipped),
            Shape::Entry(id) => *id,
        };
        let Some(entry) = self.entry(id) else { return Kind::Unknown };
        match entry.tag() {
            constants::DW_TAG_base_type => match entry.attr_value(constants::DW_AT_encoding) {
                Some(Attribute::Encoding(encoding)) => {
                    Kind::Base { encoding, size: byte_size(&entry).unwrap_or(0) }
                }
                _ => Kind::Unknown,
            },
            constants::DW_TAG_pointer_type => {
                Kind::Pointer { target: self.target(id, &entry), is_reference: false }
            }
            constants::DW_TAG_reference_type | constants::DW_TAG_rvalue_reference_type => {
                Kind::Pointer { target: self.target(id, &entry), is_reference: true }
            }
            constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type => Kind::Composite(id),
            constants::DW_TAG_array_type => self.array_kind(id, 0),
            constants::DW_TAG_enumeration_type => Kind::Enumeration(id),
            constants::DW_TAG_subroutine_type => Kind::Function,
            constants::DW_TAG_unspecified_type => Kind::Void,
            _ => Kind::Unknown,
        }
    }

    /// The type behind typedefs and qualifiers; for a structure that is only
    /// declared here, the same structure where it is defined.
    pub(super) fn without_names(&self, ty: &Type) -> Type {
        let mut plain = ty.clone();
        for _ in 0..LONGEST_CHAIN {
            let Shape::Entry(id) = plain.0 else { return plain };
            let Some(entry) = self.entry(id) else { return plain };
            if is_name(&entry) {
                plain = self.target(id, &entry);
            } else if entry.has_attr(constants::DW_AT_declaration) {
                return self.definition(id, &entry).map_or(plain, |id| Type(Shape::Entry(id)));
            } else {
                return plain;
            }
        }
        Type(Shape::Void)
    }

    /// The type that an entry names by `DW_AT_type`.
    pub(super) fn target(&self, id: EntryId, entry: &Entry) -> Type {
        let target = || {
            let value = entry.attr_value(constants::DW_AT_type)?;
            let (unit, offset) = self.info(id.image)?.follow(id.unit, &value)?;
            Some(Type(Shape::Entry(EntryId { unit, offset, ..id })))
        };
        target().unwrap_or(Type(Shape::Void))
    }

    pub(super) fn info(&self, image: usize) -> Option<&DebugInfo> {
        self.images().get(image)?.debug(&self.loader).ok()
    }

    pub(super) fn entry(&self, id: EntryId) -> Option<Entry> {
        self.info(id.image)?.entry(id.unit, id.offset)
    }

    pub(super) fn entry_name(&self, id: EntryId, entry: &Entry) -> Option<String> {
        self.info(id.image)?.string(id.unit, entry.attr_value(constants::DW_AT_name)?)
    }

    fn sized(&self, ty: &Type, depth: usize) -> Option<u64> {
        let Type(Shape::Entry(id)) = self.without_names(ty) else { return self.size_of_made(ty) };
        let entry = self.entry(id)?;
        match entry.tag() {
            constants::DW_TAG_array_type => self.array_size(&Type(Shape::Entry(id)), depth),
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => Some(byte_size(&entry).unwrap_or(8)),
            _ => byte_size(&entry),
        }
    }

    fn size_of_made(&self, ty: &Type) -> Option<u64> {
        matches!(ty.0, Shape::Pointer(_) | Shape::Integer).then_some(8)
    }

    fn array_size(&self, ty: &Type, depth: usize) -> Option<u64> {
        if depth > LONGEST_CHAIN {
            return None;
        }
        let Kind::Array { element, count } = self.kind(ty) else { return None };
        let element = match &element.0 {
            Shape::Row { .. } => self.array_size(&element, depth + 1)?,
            _ => self.sized(&element, depth + 1)?,
        };
        element.checked_mul(count?)
    }

    fn array_kind(&self, array: EntryId, skipped: usize) -> Kind {
        let Some(entry) = self.entry(array) else { return Kind::Unknown };
        let counts = self.counts(array);
        let element = if skipped + 1 < counts.len() {
            Type(Shape::Row { array, skipped: skipped + 1 })
        } else {
            self.target(array, &entry)
        };
        Kind::Array { element, count: counts.get(skipped).copied().flatten() }
    }

    /// The lengths of an array in each dimension.
    fn counts(&self, array: EntryId) -> Vec<Option<u64>> {
        let ranges = self.children(array).into_iter();
        let ranges = ranges.filter(|(_, entry)| entry.tag() == constants::DW_TAG_subrange_type);
        ranges
            .map(|(_, range)| {
                let number = |at| range.attr(at).and_then(|value| value.udata_value());
                let bound = number(constants::DW_AT_upper_bound);
                // A bound of -1 is how compilers write an empty array.
                number(constants::DW_AT_count).or(bound.map(|bound| bound.wrapping_add(1)))
            })
            .collect()
    }

    /// The entries directly below an entry. What follows damage is missing.
    pub(super) fn children(&self, id: EntryId) -> Vec<(EntryId, Entry)> {
        let mut children = Vec::new();
        let unit = self.info(id.image).and_then(|info| info.units.get(id.unit));
        let tree = unit.map(|unit| unit.raw().entries_tree(Some(id.offset)));
        let Some(Ok(mut tree)) = tree else { return children };
        let Ok(root) = tree.root() else { return children };
        let mut iterator = root.children();
        while let Ok(Some(child)) = iterator.next() {
            let entry = child.entry().clone();
            children.push((EntryId { offset: entry.offset(), ..id }, entry));
        }
        children
    }

    /// Where a structure that is only declared is defined: by signature, or by
    /// name in another unit of the file.
    fn definition(&self, id: EntryId, entry: &Entry) -> Option<EntryId> {
        let info = self.info(id.image)?;
        if let Some(signature) = entry.attr_value(constants::DW_AT_signature) {
            let (unit, offset) = info.follow(id.unit, &signature)?;
            return Some(EntryId { unit, offset, ..id });
        }
        let name = self.entry_name(id, entry)?;
        let (unit, offset) = info.definition(entry.tag(), &name)?;
        Some(EntryId { unit, offset, ..id })
    }
}

/// Whether an entry is only another name for a type.
pub(super) fn is_name(entry: &Entry) -> bool {
    matches!(
        entry.tag(),
        constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_restrict_type
            | constants::DW_TAG_atomic_type
            | constants::DW_TAG_template_alias
    )
}

pub(super) fn byte_size(entry: &Entry) -> Option<u64> {
    entry.attr(constants::DW_AT_byte_size)?.udata_value()
}
