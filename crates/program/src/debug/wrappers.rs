//! Which structures of libraries stand for one other value?

use super::located::Located;
use super::location::number;
use super::program::Program;
use super::state::State;
use super::types::Kind;
use super::unit::Language;

/// What a wrapper stands for.
#[derive(Debug, Clone)]
pub(super) enum Wrapped {
    /// That value.
    Value(Located),
    /// A value that `*` leads to.
    Held(Located),
    /// A pointer that it owns.
    Pointer(Located),
    /// Nothing.
    Nothing,
}

impl Program {
    /// What a value stands for, if it is a wrapper of a well-known library.
    pub(super) fn wrapped(&self, value: &Located, state: &dyn State) -> Option<Wrapped> {
        let name = self.type_name(&self.without_names(&value.ty));
        match (self.language_of(&value.ty), name.split_once('<')) {
            (Language::Cpp, Some((base, _))) => self.cpp_wrapped(value, base, state),
            (Language::Rust, Some((base, _))) => self.rust_wrapped(value, base, state),
            (Language::Rust, None) if name.starts_with("Atomic") => {
                self.only(value, &["v"], "v", state).map(Wrapped::Value)
            }
            _ => None,
        }
    }

    fn cpp_wrapped(&self, value: &Located, base: &str, state: &dyn State) -> Option<Wrapped> {
        let path = |names: &[&str]| self.member_path(value, names, state);
        match base {
            "unique_ptr" => path(&["_M_t", "_M_t", "_M_head_impl"]).map(Wrapped::Pointer),
            "shared_ptr" => path(&["_M_ptr"]).map(Wrapped::Pointer),
            "optional" => {
                let payload = path(&["_M_payload"])?;
                match self.number_in(&payload, "_M_engaged", state)? & 1 {
                    0 => Some(Wrapped::Nothing),
                    _ => self
                        .member_path(&payload, &["_M_payload", "_M_value"], state)
                        .map(Wrapped::Held),
                }
            }
            "stack" | "queue" | "priority_queue" => {
                self.only(value, &["c", "comp"], "c", state).map(Wrapped::Value)
            }
            "array" => path(&["_M_elems"]).map(Wrapped::Value),
            "atomic" => [&["_M_i"][..], &["_M_base", "_M_i"], &["_M_b", "_M_p"], &["_M_fp"]]
                .into_iter()
                .find_map(path)
                .map(Wrapped::Value),
            _ => None,
        }
    }

    fn rust_wrapped(&self, value: &Located, base: &str, state: &dyn State) -> Option<Wrapped> {
        match base {
            "Rc" | "Arc" => {
                let pointer = self.only(value, &["ptr", "phantom", "alloc"], "ptr", state)?;
                let pointer = self.inner_pointer(&pointer, 0)?;
                if self.is_wide(value) {
                    return None;
                }
                let Kind::Pointer { target, .. } = self.kind(&pointer.ty) else { return None };
                let address = number(&pointer.bytes(state).ok()?);
                let counted = Located::in_memory(address, self.size_of(&target)?, target);
                let member = |name| self.member_named(&counted, name, state).ok();
                member("value").or_else(|| member("data")).map(Wrapped::Held)
            }
            "Cell" | "UnsafeCell" | "RefCell" => {
                self.only(value, &["value", "borrow"], "value", state).map(Wrapped::Value)
            }
            _ => None,
        }
    }

    /// Whether a counted pointer has a length or a table of methods besides: what it points
    /// to is of no size that its type tells.
    fn is_wide(&self, value: &Located) -> bool {
        self.size_of(&value.ty) != Some(8)
    }

    /// A member of a structure that has no others than those of a library.
    fn only(
        &self,
        value: &Located,
        known: &[&str],
        name: &str,
        state: &dyn State,
    ) -> Option<Located> {
        let Kind::Composite(id) = self.kind(&value.ty) else { return None };
        let is_known = |own: &Option<String>| own.as_deref().is_none_or(|own| known.contains(&own));
        if !self.members(id).iter().all(|member| is_known(&member.name)) {
            return None;
        }
        self.member_named(value, name, state).ok()
    }
}
