//! How does its language write a value?

use gimli::constants;

use super::error::Error;
use super::located::{Gone, Located};
use super::location::number;
use super::program::Program;
use super::scalars;
use super::state::State;
use super::types::{EntryId, Kind, Type, byte_size};
use super::unit::Language;

/// How much of a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many structures deep.
    pub depth: usize,
    /// How many elements of an array.
    pub elements: u64,
    /// How many bytes of a string.
    pub text: u64,
    /// About how many characters in all.
    pub total: usize,
}

/// A value as it is shown to people, and as it goes into JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The name or expression of the value.
    pub name: String,
    /// The type as its language writes it.
    pub type_name: String,
    /// The value as its language writes it; why it is missing, in angle brackets.
    pub text: String,
    /// Whether there is a value.
    pub available: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 4, elements: 16, text: 80, total: 400 }
    }
}

impl Program {
    /// The value with its name and type.
    pub fn show(&self, name: &str, value: &Located, state: &dyn State, limits: Limits) -> Shown {
        // Of a large value, the beginning stands for the rest.
        let beginning = value.part(0, value.len().min(4096), value.ty.clone());
        Shown {
            name: name.to_owned(),
            type_name: self.type_name(&value.ty),
            text: self.text(value, state, limits),
            available: beginning.bytes(state).is_ok(),
        }
    }

    /// A pointer that Rust follows by itself.
    pub(super) fn is_rust_reference(&self, ty: &Type) -> bool {
        let name = self.type_name(ty);
        self.language_of(ty) == Language::Rust
            && (name.starts_with('&') || name.starts_with("alloc::boxed::Box<"))
    }

    /// The value as its language writes it. What cannot be read is said in angle
    /// brackets in its place.
    pub fn text(&self, value: &Located, state: &dyn State, limits: Limits) -> String {
        let language = self.language_of(&value.ty);
        let out = String::new();
        let mut printer = Printer { program: self, state, limits, language, out, nested: 0 };
        printer.value(value, 0);
        printer.out
    }
}

/// Writes one value.
pub(super) struct Printer<'a> {
    pub(super) program: &'a Program,
    pub(super) state: &'a dyn State,
    pub(super) limits: Limits,
    pub(super) language: Language,
    pub(super) out: String,
    /// How many values inside each other are being written. What references and wrappers stand
    /// for is no deeper, but only damaged types have many of them.
    nested: usize,
}

/// No sound value has so many values inside each other.
const MOST_NESTED: usize = 64;

impl Printer<'_> {
    /// Writes a value that is `depth` structures inside the whole.
    pub(super) fn value(&mut self, value: &Located, depth: usize) {
        if self.out.len() > self.limits.total || self.nested == MOST_NESTED {
            return self.push("...");
        }
        self.nested += 1;
        self.inner_value(value, depth);
        self.nested -= 1;
    }

    fn inner_value(&mut self, value: &Located, depth: usize) {
        match self.program.kind(&value.ty) {
            Kind::Base { encoding, .. } => match value.bytes(self.state) {
                Ok(bytes) => {
                    let (number, bits) = bits_of(value, &bytes);
                    self.push(&scalars::base(number, bits, encoding, self.language));
                }
                Err(error) => self.missing(&error),
            },
            Kind::Enumeration(id) => match value.bytes(self.state) {
                Ok(bytes) => self.enumeration(value, id, &bytes),
                Err(error) => self.missing(&error),
            },
            Kind::Pointer { target, is_reference } => match value.bytes(self.state) {
                Ok(bytes) => self.pointer(value, number(&bytes), &target, is_reference, depth),
                Err(error) => self.missing(&error),
            },
            Kind::Composite(_) | Kind::Array { .. } if self.all_gone(value) => {}
            Kind::Composite(id) => self.composite(value, id, depth),
            Kind::Array { element, count } => self.array(value, &element, count, depth),
            Kind::Function => self.function(value),
            Kind::Void | Kind::Unknown => self.push("<a type that is not described>"),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// If no part of a value exists, says so once instead of for each part.
    fn all_gone(&mut self, value: &Located) -> bool {
        let gone = value.pieces.iter().map(|piece| match piece {
            super::located::Piece::Gone { why, .. } => Some(*why),
            _ => None,
        });
        let reasons: Option<Vec<Gone>> = gone.collect();
        match reasons.as_deref() {
            Some([why, ..]) => {
                self.missing(&Error::Gone(*why));
                true
            }
            _ => false,
        }
    }

    fn missing(&mut self, error: &Error) {
        let text = match error {
            Error::Gone(Gone::OptimisedOut) => "<optimised out>".to_owned(),
            Error::Gone(Gone::EntryValue) => "<known only at the function's entry>".to_owned(),
            Error::Gone(why) => format!("<{why}>"),
            Error::Unreadable { address, .. } => format!("<unreadable at {address:#x}>"),
            other => format!("<{other}>"),
        };
        self.push(&text);
    }

    fn enumeration(&mut self, value: &Located, id: EntryId, bytes: &[u8]) {
        let Some(entry) = self.program.entry(id) else { return };
        let (raw, bits) = bits_of(value, bytes);
        let children = self.program.children(id);
        let numbers = children.iter().filter_map(|(child, entry)| {
            let constant = entry.attr(constants::DW_AT_const_value)?;
            let number = constant.sdata_value().map(i128::from);
            let number = number.or_else(|| constant.udata_value().map(i128::from))?;
            Some((self.program.entry_name(*child, entry)?, number))
        });
        let names: Vec<(String, i128)> = numbers.collect();
        let size = byte_size(&entry).unwrap_or(4).min(16) as u32 * 8;
        let has_negative = names.iter().any(|(_, number)| *number < 0);
        let number = if has_negative { scalars::signed(raw, bits) } else { raw as i128 };
        // Compilers store small constants in forms that may look negative.
        let cut = |number: i128| if has_negative { number } else { number & mask(size) };
        let names: Vec<_> = names.into_iter().map(|(name, number)| (name, cut(number))).collect();
        let scoped = self.language == Language::Rust || entry.has_attr(constants::DW_AT_enum_class);
        let prefix = match self.program.entry_name(id, &entry) {
            Some(name) if scoped => format!("{name}::"),
            _ => String::new(),
        };
        self.push(&scalars::enumeration(number, &names, &prefix));
    }

    fn function(&mut self, value: &Located) {
        if let Some(address) = value.address() {
            self.code(address);
        }
    }

    /// An address of code with the name of its function.
    fn code(&mut self, address: u64) {
        self.push(&format!("{address:#x}"));
        if let Some(function) = self.program.function(address) {
            match function.offset {
                0 => self.push(&format!(" <{}>", function.name)),
                offset => self.push(&format!(" <{}+{offset}>", function.name)),
            }
        }
    }

    fn pointer(
        &mut self,
        value: &Located,
        address: u64,
        target: &Type,
        is_reference: bool,
        depth: usize,
    ) {
        let name = self.program.type_name(&value.ty);
        let shows_target = is_reference || self.program.is_rust_reference(&value.ty);
        if shows_target && address != 0 && depth < self.limits.depth {
            let size = self.program.size_of(target).unwrap_or(0);
            let target = Located::in_memory(address, size, target.clone());
            if !is_reference {
                self.push(if name.starts_with('&') { "&" } else { "" });
            }
            return self.value(&target, depth);
        }
        if address == 0 {
            return self.push(match self.language {
                Language::C => "NULL",
                Language::Cpp => "nullptr",
                Language::Go => "nil",
                Language::Rust => "0x0",
            });
        }
        match self.program.kind(target) {
            Kind::Function => self.code(address),
            Kind::Base { encoding, size } if scalars::is_character(encoding, size) => {
                self.push(&format!("{address:#x}"));
                if let Some((bytes, goes_on)) = self.string_at(address) {
                    self.push(&format!(" {}", scalars::text(&bytes, goes_on)));
                }
            }
            _ => self.push(&format!("{address:#x}")),
        }
    }

    /// The bytes up to a zero, and whether the limit came first.
    fn string_at(&self, address: u64) -> Option<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        for offset in 0..self.limits.text {
            match self.state.memory(address.wrapping_add(offset), 1)?.first()? {
                0 => return Some((bytes, false)),
                byte => bytes.push(*byte),
            }
        }
        Some((bytes, true))
    }
}

/// The number that a value's bytes hold, and its length in bits.
fn bits_of(value: &Located, bytes: &[u8]) -> (u128, u32) {
    match value.bits {
        Some(bits) => (scalars::extract(bytes, bits), bits.len),
        None => (scalars::wide(bytes), (bytes.len().min(16) * 8) as u32),
    }
}

fn mask(bits: u32) -> i128 {
    1i128.checked_shl(bits).map_or(-1, |above| above.wrapping_sub(1))
}
