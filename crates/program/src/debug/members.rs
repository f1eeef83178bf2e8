//! What is a structure made of, and where in it is a member?

use std::collections::VecDeque;

use gimli::constants;

use super::dwarf::{Attribute, Entry};
use super::error::Error;
use super::located::{BitField, Located};
use super::location::number;
use super::program::Program;
use super::similar::similar;
use super::state::State;
use super::types::{EntryId, Kind, Shape, Type, byte_size};

/// How many nested structures are searched for a member. Only damaged types,
/// which may contain themselves, have more.
const MOST_NESTED: usize = 1000;

/// A member or base class of a structure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    /// `None` for anonymous structures and unions.
    pub(super) name: Option<String>,
    pub(super) ty: Type,
    pub(super) offset: u64,
    pub(super) bits: Option<BitField>,
    pub(super) is_base: bool,
}

/// A case of a Rust enumeration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) offset: u64,
}

impl Program {
    /// The members of a structure in the order of the source. Static ones and
    /// virtual bases, which are elsewhere, are left out.
    pub(super) fn members(&self, id: EntryId) -> Vec<Member> {
        let children = self.children(id).into_iter();
        children.filter_map(|(child, entry)| self.read_member(child, &entry)).collect()
    }

    fn read_member(&self, id: EntryId, entry: &Entry) -> Option<Member> {
        let is_base = entry.tag() == constants::DW_TAG_inheritance;
        let is_static = entry.has_attr(constants::DW_AT_declaration);
        if is_static || !(is_base || entry.tag() == constants::DW_TAG_member) {
            return None;
        }
        let ty = self.target(id, entry);
        let (offset, bits) = position(entry, self.size_of(&ty))?;
        Some(Member { name: self.entry_name(id, entry), ty, offset, bits, is_base })
    }

    /// A member as a value of its own.
    pub(super) fn member(&self, whole: &Located, member: &Member) -> Located {
        let len = match member.bits {
            Some(bits) => u64::from(bits.first.saturating_add(bits.len)).div_ceil(8),
            None => self.size_of(&member.ty).unwrap_or(0),
        };
        let mut part = whole.part(member.offset, len, member.ty.clone());
        part.bits = member.bits;
        part
    }

    /// The member of a name, also in base classes, anonymous unions and, for a
    /// Rust enumeration, the case that it is in.
    pub(super) fn member_named(
        &self,
        whole: &Located,
        name: &str,
        state: &dyn State,
    ) -> Result<Located, Error> {
        if let Some(found) = self.find_member(whole, name, state) {
            return Ok(found);
        }
        let Kind::Composite(id) = self.kind(&whole.ty) else {
            return Err(Error::WrongType {
                operator: format!(".{name}"),
                type_name: self.type_name(&whole.ty),
            });
        };
        let names = self.members(id).into_iter().filter_map(|member| member.name);
        Err(Error::NoMember {
            type_name: self.type_name(&whole.ty),
            member: name.to_owned(),
            similar: similar(name, names),
        })
    }

    /// Searches a structure, then what is nested in it, outermost first.
    fn find_member(&self, whole: &Located, name: &str, state: &dyn State) -> Option<Located> {
        let mut waiting = VecDeque::from([whole.clone()]);
        for _ in 0..MOST_NESTED {
            let whole = waiting.pop_front()?;
            let Kind::Composite(id) = self.kind(&whole.ty) else { continue };
            let members = self.members(id);
            if let Some(member) = members.iter().find(|member| is_called(member, name)) {
                return Some(self.member(&whole, member));
            }
            let variant = self.variant(&whole, id, state);
            waiting.extend(variant.map(|variant| self.case(&whole, &variant)));
            let hidden = members.iter().filter(|member| member.is_base || member.name.is_none());
            waiting.extend(hidden.map(|member| self.member(&whole, member)));
        }
        None
    }

    /// The fields of a Rust enumeration in one of its cases.
    pub(super) fn case(&self, whole: &Located, variant: &Variant) -> Located {
        let len = self.size_of(&variant.ty).unwrap_or(0);
        whole.part(variant.offset, len, variant.ty.clone())
    }

    /// The case that a Rust enumeration is in; `None` if the structure is no
    /// enumeration, or its discriminant fits no case.
    pub(super) fn variant(
        &self,
        whole: &Located,
        id: EntryId,
        state: &dyn State,
    ) -> Option<Variant> {
        let children = self.children(id).into_iter();
        let mut parts = children.filter(|(_, entry)| entry.tag() == constants::DW_TAG_variant_part);
        let (part, entry) = parts.next()?;
        let discriminant = self.discriminant(whole, part, &entry, state);
        let variants = self.children(part);
        let variants = variants.iter().filter(|(_, e)| e.tag() == constants::DW_TAG_variant);
        let value = |entry: &Entry| entry.attr(constants::DW_AT_discr_value)?.udata_value_or_bits();
        let exact =
            variants.clone().find(|(_, e)| discriminant.is_some() && value(e) == discriminant);
        // The case without a value is all other values: that is how a niche looks.
        let (id, _) = exact.or_else(|| variants.clone().find(|(_, e)| value(e).is_none()))?;
        let (member, entry) =
            self.children(*id).into_iter().find(|(_, e)| e.tag() == constants::DW_TAG_member)?;
        let (offset, _) = position(&entry, None)?;
        let ty = self.target(member, &entry);
        Some(Variant { name: self.entry_name(member, &entry)?, ty, offset })
    }

    fn discriminant(
        &self,
        whole: &Located,
        part: EntryId,
        entry: &Entry,
        state: &dyn State,
    ) -> Option<u64> {
        let reference = entry.attr_value(constants::DW_AT_discr)?;
        let (unit, offset) = self.info(part.image)?.follow(part.unit, &reference)?;
        let id = EntryId { unit, offset, ..part };
        let entry = self.entry(id)?;
        let ty = self.target(id, &entry);
        let (offset, _) = position(&entry, None)?;
        let bytes = whole.part(offset, self.size_of(&ty)?, ty).bytes(state).ok()?;
        Some(number(&bytes))
    }

    /// The type that a template parameter of a structure stands for.
    pub(super) fn type_parameter(&self, id: EntryId, name: &str) -> Option<Type> {
        let is_parameter = |entry: &Entry| entry.tag() == constants::DW_TAG_template_type_parameter;
        let children = self.children(id).into_iter();
        children
            .filter(|(_, entry)| is_parameter(entry))
            .find(|(id, entry)| self.entry_name(*id, entry).as_deref() == Some(name))
            .map(|(id, entry)| self.target(id, &entry))
            .filter(|ty| ty.0 != Shape::Void)
    }
}

/// Whether the source calls a member so. Rust calls the fields of tuples `__0`,
/// `__1` in its debug information.
fn is_called(member: &Member, name: &str) -> bool {
    let own = member.name.as_deref().filter(|_| !member.is_base);
    own.is_some_and(|own| own == name || own.strip_prefix("__") == Some(name))
}

/// The offset of a member in its structure, and its bits if it is a bit-field.
fn position(entry: &Entry, size: Option<u64>) -> Option<(u64, Option<BitField>)> {
    let number = |at| entry.attr(at).and_then(|value| value.udata_value());
    let offset = match entry.attr_value(constants::DW_AT_data_member_location) {
        None => 0,
        Some(Attribute::Exprloc(_)) => return None,
        Some(value) => value.udata_value()?,
    };
    let Some(len) = number(constants::DW_AT_bit_size) else { return Some((offset, None)) };
    let first = if let Some(first) = number(constants::DW_AT_data_bit_offset) {
        first
    } else {
        // DWARF 3 counts from the highest bit of the storage unit.
        let storage = byte_size(entry).or(size)?.checked_mul(8)?;
        let from_top = number(constants::DW_AT_bit_offset)?;
        storage.checked_sub(from_top)?.checked_sub(len)?
    };
    let bits = BitField { first: (first % 8) as u32, len: u32::try_from(len).ok()? };
    Some((offset.checked_add(first / 8)?, Some(bits)))
}

/// Discriminants are compared as bits, however they are stored.
trait Bits {
    fn udata_value_or_bits(&self) -> Option<u64>;
}

impl Bits for gimli::Attribute<super::dwarf::Reader> {
    fn udata_value_or_bits(&self) -> Option<u64> {
        self.udata_value().or_else(|| self.sdata_value().map(|value| value as u64))
    }
}
