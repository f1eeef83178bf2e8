//! Which structures of libraries are sequences, and where are their elements?

use super::located::Located;
use super::location::number;
use super::program::Program;
use super::state::State;
use super::types::{Kind, Type};
use super::unit::Language;

/// How far a pointer may hide inside the wrappers of a library.
const DEEPEST: usize = 8;

/// A string, vector or slice: elements somewhere else in memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sequence {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) element: Type,
    pub(super) is_text: bool,
}

impl Program {
    /// The sequence that a value is, if it is one of a well-known library type.
    pub(super) fn sequence(&self, value: &Located, state: &dyn State) -> Option<Sequence> {
        let Kind::Composite(_) = self.kind(&value.ty) else { return None };
        match self.language_of(&value.ty) {
            Language::Rust => self.rust_sequence(value, state),
            Language::Cpp => self.cpp_sequence(value, state),
            Language::Go => self.go_sequence(value, state),
            Language::C => None,
        }
    }

    /// An element of a sequence.
    pub(super) fn element(&self, sequence: &Sequence, index: u64) -> Located {
        let size = self.size_of(&sequence.element).unwrap_or(0);
        let address = sequence.address.wrapping_add(index.wrapping_mul(size));
        Located::in_memory(address, size, sequence.element.clone())
    }

    fn rust_sequence(&self, value: &Located, state: &dyn State) -> Option<Sequence> {
        let name = self.type_name(&self.without_names(&value.ty));
        if name == "String" {
            let bytes = self.member_named(value, "vec", state).ok()?;
            return Some(Sequence { is_text: true, ..self.rust_sequence(&bytes, state)? });
        }
        if name.starts_with("Vec<") {
            let Kind::Composite(id) = self.kind(&value.ty) else { return None };
            let buffer = self.member_named(value, "buf", state).ok()?;
            return Some(Sequence {
                address: number(&self.inner_pointer(&buffer, 0)?.bytes(state).ok()?),
                len: self.number_in(value, "len", state)?,
                element: self.type_parameter(id, "T")?,
                is_text: false,
            });
        }
        // Slices, also boxed ones, and `str`.
        let data = self.member_named(value, "data_ptr", state).ok()?;
        let Kind::Pointer { target, .. } = self.kind(&data.ty) else { return None };
        Some(Sequence {
            address: number(&data.bytes(state).ok()?),
            len: self.number_in(value, "length", state)?,
            element: target,
            is_text: name.ends_with("str") || name.contains("<str"),
        })
    }

    fn cpp_sequence(&self, value: &Located, state: &dyn State) -> Option<Sequence> {
        let name = self.type_name(&self.without_names(&value.ty));
        let is_of_characters =
            |base: &str| name.strip_prefix(base).is_some_and(|rest| rest.starts_with([',', '>']));
        if is_of_characters("basic_string<char") {
            let pointer = self.member_path(value, &["_M_dataplus", "_M_p"], state)?;
            let Kind::Pointer { target, .. } = self.kind(&pointer.ty) else { return None };
            return Some(Sequence {
                address: number(&pointer.bytes(state).ok()?),
                len: self.number_in(value, "_M_string_length", state)?,
                element: target,
                is_text: true,
            });
        }
        if is_of_characters("basic_string_view<char") {
            let pointer = self.member_named(value, "_M_str", state).ok()?;
            let Kind::Pointer { target, .. } = self.kind(&pointer.ty) else { return None };
            return Some(Sequence {
                address: number(&pointer.bytes(state).ok()?),
                len: self.number_in(value, "_M_len", state)?,
                element: target,
                is_text: true,
            });
        }
        if !name.starts_with("vector<") || name.starts_with("vector<bool") {
            return None;
        }
        let start = self.member_path(value, &["_M_impl", "_M_start"], state)?;
        let finish = self.member_path(value, &["_M_impl", "_M_finish"], state)?;
        let Kind::Pointer { target, .. } = self.kind(&start.ty) else { return None };
        let address = number(&start.bytes(state).ok()?);
        let bytes = number(&finish.bytes(state).ok()?).checked_sub(address)?;
        let len = bytes.checked_div(self.size_of(&target)?)?;
        Some(Sequence { address, len, element: target, is_text: false })
    }

    fn go_sequence(&self, value: &Located, state: &dyn State) -> Option<Sequence> {
        let is_text = self.member_named(value, "str", state).is_ok();
        let data = self.member_named(value, if is_text { "str" } else { "array" }, state).ok()?;
        let Kind::Pointer { target, .. } = self.kind(&data.ty) else { return None };
        Some(Sequence {
            address: number(&data.bytes(state).ok()?),
            len: self.number_in(value, "len", state)?,
            element: target,
            is_text,
        })
    }

    pub(super) fn member_path(
        &self,
        value: &Located,
        names: &[&str],
        state: &dyn State,
    ) -> Option<Located> {
        let start = value.clone();
        names.iter().try_fold(start, |value, name| self.member_named(&value, name, state).ok())
    }

    pub(super) fn number_in(&self, value: &Located, name: &str, state: &dyn State) -> Option<u64> {
        let member = self.member_named(value, name, state).ok()?;
        Some(number(&member.bytes(state).ok()?))
    }

    /// The first pointer among the nested members of a value. The wrappers around
    /// the pointer of a Rust vector differ from release to release.
    pub(super) fn inner_pointer(&self, value: &Located, depth: usize) -> Option<Located> {
        match self.kind(&value.ty) {
            Kind::Pointer { .. } => Some(value.clone()),
            Kind::Composite(id) if depth < DEEPEST => {
                // More than a few members are no wrapper.
                let members = self.members(id).into_iter().take(4);
                let mut inner = members.map(|member| self.member(value, &member));
                inner.find_map(|member| self.inner_pointer(&member, depth + 1))
            }
            _ => None,
        }
    }
}
