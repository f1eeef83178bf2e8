//! How does the source write a type?

use gimli::constants;

use super::dwarf::Entry;
use super::program::Program;
use super::types::{EntryId, Kind, Shape, Type, is_name};
use super::unit::Language;

/// Types nested deeper than this are cut off.
const DEEPEST: usize = 24;

/// A C declaration is written around the name that it declares.
struct Declarator {
    before: String,
    after: String,
}

impl Program {
    /// The type as its language writes it.
    pub fn type_name(&self, ty: &Type) -> String {
        let Declarator { before, after } = self.declarator(ty, self.language_of(ty), 0);
        match after.starts_with('[') {
            true => format!("{before} {after}"),
            false => before + &after,
        }
    }

    fn declarator(&self, ty: &Type, language: Language, depth: usize) -> Declarator {
        if depth > DEEPEST {
            return plain("...");
        }
        match &ty.0 {
            Shape::Void if language == Language::Rust => plain("()"),
            Shape::Void => plain("void"),
            Shape::Integer => plain("long"),
            Shape::Pointer(target) => self.pointer(target, "*", language, depth),
            Shape::Row { .. } => self.array(ty, language, depth),
            Shape::Entry(id) => match self.entry(*id) {
                Some(entry) => self.entry_declarator(*id, &entry, language, depth),
                None => plain("?"),
            },
        }
    }

    fn entry_declarator(
        &self,
        id: EntryId,
        entry: &Entry,
        language: Language,
        depth: usize,
    ) -> Declarator {
        let ty = Type(Shape::Entry(id));
        if let Some(name) = self.entry_name(id, entry) {
            return plain(&format!("{}{name}", keyword(entry, language)));
        }
        let target = self.target(id, entry);
        match entry.tag() {
            constants::DW_TAG_pointer_type => self.pointer(&target, "*", language, depth),
            constants::DW_TAG_reference_type => self.pointer(&target, "&", language, depth),
            constants::DW_TAG_rvalue_reference_type => self.pointer(&target, "&&", language, depth),
            constants::DW_TAG_array_type => self.array(&ty, language, depth),
            constants::DW_TAG_subroutine_type => {
                let result = self.declarator(&target, language, depth + 1);
                let parameters = self.parameters(id, language, depth);
                Declarator { after: format!("({parameters}){}", result.after), ..result }
            }
            _ if is_name(entry) => self.qualified(entry, &target, language, depth),
            _ => plain(&format!("{}{{...}}", keyword(entry, language))),
        }
    }

    fn qualified(
        &self,
        entry: &Entry,
        target: &Type,
        language: Language,
        depth: usize,
    ) -> Declarator {
        let word = match entry.tag() {
            constants::DW_TAG_const_type => "const",
            constants::DW_TAG_volatile_type => "volatile",
            constants::DW_TAG_restrict_type => "restrict",
            constants::DW_TAG_atomic_type => "_Atomic",
            _ => "",
        };
        let inner = self.declarator(target, language, depth + 1);
        // `const` before a pointer would speak of its target.
        let before = match matches!(self.kind(target), Kind::Pointer { .. }) {
            true => format!("{} {word}", inner.before),
            false => format!("{word} {}", inner.before),
        };
        Declarator { before, ..inner }
    }

    fn pointer(&self, target: &Type, sign: &str, language: Language, depth: usize) -> Declarator {
        let inner = self.declarator(target, language, depth + 1);
        if language == Language::Rust {
            return plain(&format!("*{}", inner.before));
        }
        if inner.after.is_empty() {
            let gap = if inner.before.ends_with(['*', '&']) { "" } else { " " };
            return plain(&format!("{}{gap}{sign}", inner.before));
        }
        Declarator {
            before: format!("{} ({sign}", inner.before),
            after: format!("){}", inner.after),
        }
    }

    fn array(&self, ty: &Type, language: Language, depth: usize) -> Declarator {
        let Kind::Array { element, count } = self.kind(ty) else { return plain("?") };
        let inner = self.declarator(&element, language, depth + 1);
        let count = count.map(|count| count.to_string()).unwrap_or_default();
        match language {
            Language::Rust => plain(&format!("[{}; {count}]", inner.before)),
            _ => Declarator { after: format!("[{count}]{}", inner.after), ..inner },
        }
    }

    fn parameters(&self, function: EntryId, language: Language, depth: usize) -> String {
        let children = self.children(function).into_iter();
        let names = children.map(|(id, entry)| match entry.tag() {
            constants::DW_TAG_unspecified_parameters => "...".to_owned(),
            _ => {
                let name = self.declarator(&self.target(id, &entry), language, depth + 1);
                name.before + &name.after
            }
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

fn plain(name: &str) -> Declarator {
    Declarator { before: name.to_owned(), after: String::new() }
}

/// The word that C puts before the name of a structure.
fn keyword(entry: &Entry, language: Language) -> &'static str {
    match (language, entry.tag()) {
        (Language::C, constants::DW_TAG_structure_type) => "struct ",
        (Language::C, constants::DW_TAG_union_type) => "union ",
        (Language::C, constants::DW_TAG_enumeration_type) => "enum ",
        _ => "",
    }
}
