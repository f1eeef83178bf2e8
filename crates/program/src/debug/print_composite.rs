//! How does its language write a structure, an array or a string?

use gimli::constants;

use super::containers::Container;
use super::located::Located;
use super::members::Member;
use super::print::Printer;
use super::scalars;
use super::sequences::Sequence;
use super::types::{EntryId, Kind, Type};
use super::unit::Language;
use super::wrappers::Wrapped;

/// So many equal elements in a row are written once.
const REPEATS: u64 = 8;

impl Printer<'_> {
    pub(super) fn composite(&mut self, value: &Located, id: EntryId, depth: usize) {
        let entry = self.program.entry(id);
        if entry.is_none_or(|entry| entry.has_attr(constants::DW_AT_declaration)) {
            return self.push("<a type that is only declared>");
        }
        if let Some(sequence) = self.program.sequence(value, self.state) {
            return self.sequence(&sequence, depth);
        }
        if let Some(wrapped) = self.program.wrapped(value, self.state) {
            return self.wrapped(&wrapped, depth);
        }
        if depth >= self.limits.depth {
            return self.push("{...}");
        }
        if let Some(container) = self.program.container(value, self.state, self.limits.elements) {
            return self.container(&container, depth);
        }
        match self.language {
            Language::Rust => self.rust_composite(value, id, depth),
            _ => self.c_composite(value, id, depth),
        }
    }

    fn c_composite(&mut self, value: &Located, id: EntryId, depth: usize) {
        self.push("{");
        for (index, member) in self.program.members(id).iter().enumerate() {
            self.push(if index == 0 { "" } else { ", " });
            if member.is_base {
                self.push(&format!("<{}> = ", self.program.type_name(&member.ty)));
            } else if let Some(name) = &member.name {
                self.push(&format!("{name} = "));
            }
            if self.member(value, member, depth) {
                break;
            }
        }
        self.push("}");
    }

    fn rust_composite(&mut self, value: &Located, id: EntryId, depth: usize) {
        if let Some(variant) = self.program.variant(value, id, self.state) {
            let case = self.program.case(value, &variant);
            let Kind::Composite(id) = self.program.kind(&case.ty) else {
                return self.push(&variant.name);
            };
            return self.rust_fields(&variant.name, &case, id, depth);
        }
        let name = self.program.type_name(&value.ty);
        let name = if name.starts_with('(') { "" } else { short(&name) };
        self.rust_fields(name, value, id, depth);
    }

    fn rust_fields(&mut self, name: &str, value: &Located, id: EntryId, depth: usize) {
        self.push(name);
        let members = self.program.members(id);
        let is_tuple = members.iter().all(|m| m.name.as_ref().is_some_and(|n| n.starts_with("__")));
        if members.is_empty() {
            return self.push(if name.is_empty() { "()" } else { "" });
        }
        self.push(if is_tuple { "(" } else { " { " });
        for (index, member) in members.iter().enumerate() {
            self.push(if index == 0 { "" } else { ", " });
            if let Some(name) = member.name.as_ref().filter(|_| !is_tuple) {
                self.push(&format!("{name}: "));
            }
            if self.member(value, member, depth) {
                break;
            }
        }
        self.push(if is_tuple { ")" } else { " }" });
    }

    /// Writes a member. Returns whether there is no room for another.
    fn member(&mut self, whole: &Located, member: &Member, depth: usize) -> bool {
        let part = self.program.member(whole, member);
        self.value(&part, depth + 1);
        self.out.len() > self.limits.total
    }

    pub(super) fn array(
        &mut self,
        value: &Located,
        element: &Type,
        count: Option<u64>,
        depth: usize,
    ) {
        let size = self.program.size_of(element).unwrap_or(0);
        if let Kind::Base { encoding, size } = self.program.kind(element)
            && scalars::is_character(encoding, size)
            && count.is_some()
            && let len = value.len().min(self.limits.text.saturating_add(1))
            && let Ok(bytes) = value.part(0, len, element.clone()).bytes(self.state)
        {
            return self.characters(&bytes);
        }
        let Some(count) = count else { return self.push("{...}") };
        let part = |index: u64| value.part(index.saturating_mul(size), size, element.clone());
        self.elements(count, depth, part);
    }

    /// An array of characters, up to the zero that ends it.
    fn characters(&mut self, bytes: &[u8]) {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let shown = end.min(self.limits.text as usize);
        self.push(&scalars::text(&bytes[..shown], shown < end));
    }

    fn sequence(&mut self, sequence: &Sequence, depth: usize) {
        if !sequence.is_text {
            let program = self.program;
            return self.elements(sequence.len, depth, |index| program.element(sequence, index));
        }
        let shown = sequence.len.min(self.limits.text);
        match self.state.memory(sequence.address, shown as usize) {
            Some(bytes) => self.push(&scalars::text(&bytes, shown < sequence.len)),
            None if shown == 0 => self.push("\"\""),
            None => self.push(&format!("<unreadable at {:#x}>", sequence.address)),
        }
    }

    fn wrapped(&mut self, wrapped: &Wrapped, depth: usize) {
        match wrapped {
            Wrapped::Value(value) | Wrapped::Held(value) | Wrapped::Pointer(value) => {
                self.value(value, depth);
            }
            Wrapped::Nothing => self.push("nullopt"),
        }
    }

    fn container(&mut self, container: &Container, depth: usize) {
        self.push("{");
        for (index, element) in container.elements.iter().enumerate() {
            self.push(if index == 0 { "" } else { ", " });
            if self.out.len() > self.limits.total {
                break;
            }
            match self.program.entry_of(element, self.state).filter(|_| container.has_keys) {
                Some((key, value)) => self.keyed(&key, &value, depth + 1),
                None => self.value(element, depth + 1),
            }
        }
        let is_cut = self.out.len() > self.limits.total;
        if is_cut || container.len > container.elements.len() as u64 {
            let is_next = self.out.ends_with(", ") || container.elements.is_empty();
            self.push(if is_next { "..." } else { ", ..." });
        }
        self.push("}");
    }

    /// A key and what it stands for.
    fn keyed(&mut self, key: &Located, value: &Located, depth: usize) {
        let (open, close) = match self.language {
            Language::Rust => ("", ": "),
            _ => ("[", "] = "),
        };
        self.push(open);
        self.value(key, depth);
        self.push(close);
        self.value(value, depth);
    }

    /// Writes elements between brackets, long runs of equal ones only once.
    fn elements(&mut self, count: u64, depth: usize, element: impl Fn(u64) -> Located) {
        let (open, close) = match self.language {
            Language::Rust | Language::Go => ("[", "]"),
            _ => ("{", "}"),
        };
        if depth >= self.limits.depth {
            return self.push(&format!("{open}...{close}"));
        }
        self.push(open);
        let (mut index, mut written) = (0, 0);
        while index < count {
            self.push(if index == 0 { "" } else { ", " });
            if written >= self.limits.elements || self.out.len() > self.limits.total {
                self.push("...");
                break;
            }
            self.value(&element(index), depth + 1);
            let run = self.run_from(index, count, &element);
            if run >= REPEATS {
                self.push(&format!(" <repeats {run} times>"));
                index += run;
            } else {
                index += 1;
            }
            written += 1;
        }
        self.push(close);
    }

    /// How many elements from `index` on are equal, counted only so far as it
    /// is worth it.
    fn run_from(&self, index: u64, count: u64, element: &impl Fn(u64) -> Located) -> u64 {
        const LONGEST: u64 = 10_000;
        let Ok(first) = element(index).bytes(self.state) else { return 1 };
        let end = count.min(index.saturating_add(LONGEST));
        let rest = (index + 1..end)
            .take_while(|next| element(*next).bytes(self.state).is_ok_and(|bytes| bytes == first));
        1 + rest.count() as u64
    }
}

/// The last part of a path of Rust, without its arguments.
fn short(name: &str) -> &str {
    let base = name.split('<').next().unwrap_or(name);
    base.rsplit("::").next().unwrap_or(base)
}
