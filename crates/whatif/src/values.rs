//! What is set: where it is kept, and the bytes of its new value.

use crate::experiment::{Change, Target};
use crate::resolve::Unresolved;
use crate::words::Selector;
use position::Run;
use program::debug::{Located, NumberKind, Piece, Register, State};
use trace::Instance;

/// `set POS LVALUE=VALUE`, for an execution of the recorded run that tells where it is kept.
pub fn set(
    run: &Run,
    at: Instance,
    what: &str,
    value: &str,
    selector: Selector,
) -> Result<Change, Unresolved> {
    if let Some(name) = what.strip_prefix('$') {
        let unknown = || Unresolved::NoPlace(what.to_owned());
        let target = Register::named(name).and_then(register_target).ok_or_else(unknown)?;
        return Ok(Change::Set { target, bytes: register(value)?.to_le_bytes().to_vec() });
    }
    let mut states = run.states()?;
    let state = states.before(at)?;
    let pc = state.pc();
    let located = run.program.evaluate(pc, what, &state)?;
    let (target, len) = place(&located).ok_or_else(|| Unresolved::NoPlace(what.to_owned()))?;
    let kind = run.program.number_kind(&located);
    let bytes = match (kind, located.bits) {
        (Some(kind), None) => encode(value, kind, len as usize, what)?,
        (None, _) => return Err(Unresolved::NoNumber(what.to_owned())),
        (_, Some(_)) => return Err(Unresolved::NoPlace(what.to_owned())),
    };
    let Target::Memory(address) = target else { return Ok(Change::Set { target, bytes }) };
    if selector == Selector::One {
        return Ok(Change::Set { target, bytes });
    }
    // Whether it is the same memory each time is told by a stack elsewhere.
    let shifted = run.program.evaluate(pc, what, &Shifted(&state));
    let sp = state.register(Register::RSP).unwrap_or(0);
    let target = match shifted.ok().as_ref().and_then(place) {
        Some((Target::Memory(then), _)) if then == address.wrapping_add(SHIFT) => {
            Target::Stack(address.wrapping_sub(sp) as i64)
        }
        Some((Target::Memory(then), _)) if then == address && address.abs_diff(sp) > STACK => {
            target
        }
        _ => return Err(Unresolved::Moves(what.to_owned())),
    };
    Ok(Change::Set { target, bytes })
}

/// By how much a stack is elsewhere, and how large one is at most.
const SHIFT: u64 = 1 << 12;
const STACK: u64 = 1 << 24;

/// A state whose stack is elsewhere.
struct Shifted<'a>(&'a dyn State);

impl State for Shifted<'_> {
    fn register(&self, register: Register) -> Option<u64> {
        let value = self.0.register(register)?;
        let of_frame = [Register::RSP, Register::RBP].contains(&register);
        Some(if of_frame { value.wrapping_add(SHIFT) } else { value })
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.0.memory(address, len)
    }

    fn fs_base(&self) -> u64 {
        self.0.fs_base()
    }
}

fn place(located: &Located) -> Option<(Target, u64)> {
    let [piece] = &located.pieces[..] else { return None };
    match piece {
        Piece::Memory { address, len } => Some((Target::Memory(*address), *len)),
        Piece::Register { number, first_byte: 0, len } => Some((register_target(*number)?, *len)),
        _ => None,
    }
}

/// From the number in debug information to the one in encodings.
const ENCODED: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

fn register_target(register: Register) -> Option<Target> {
    match register.0 {
        n @ 0..=15 => Some(Target::Register(ENCODED[usize::from(n)])),
        n @ 17..=32 => Some(Target::Vector(n as u8 - 17)),
        _ => None,
    }
}

/// A value of so many bytes.
fn encode(text: &str, kind: NumberKind, len: usize, what: &str) -> Result<Vec<u8>, Unresolved> {
    let too_large = || {
        let (value, what) = (text.to_owned(), what.to_owned());
        Unresolved::TooLarge { value, what, len }
    };
    if kind == NumberKind::Float {
        let value: f64 = text.parse().map_err(|_| Unresolved::NoValue(text.to_owned()))?;
        return match len {
            8 => Ok(value.to_le_bytes().to_vec()),
            4 if (value as f32).is_infinite() && value.is_finite() => Err(too_large()),
            4 => Ok((value as f32).to_le_bytes().to_vec()),
            _ => Err(Unresolved::NoNumber(what.to_owned())),
        };
    }
    let value = number(text)?;
    if !fits(value, len) {
        return Err(too_large());
    }
    Ok(value.to_le_bytes()[..len.min(16)].to_vec())
}

/// Is a number one of so many bytes, with or without a sign?
fn fits(value: i128, len: usize) -> bool {
    match 8 * len as u32 {
        0 => false,
        bits @ 1..=64 => (-(1i128 << (bits - 1))..1i128 << bits).contains(&value),
        _ => true,
    }
}

/// The value of a register.
pub fn register(text: &str) -> Result<u64, Unresolved> {
    let value = number(text)?;
    let too_large = || Unresolved::TooLarge {
        value: text.to_owned(),
        what: "a register".to_owned(),
        len: size_of::<u64>(),
    };
    fits(value, size_of::<u64>()).then_some(value as u64).ok_or_else(too_large)
}

/// A number, or a character in quotes.
fn number(text: &str) -> Result<i128, Unresolved> {
    let none = || Unresolved::NoValue(text.to_owned());
    if let Some(c) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        return c.bytes().next().filter(|_| c.len() == 1).map(i128::from).ok_or_else(none);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse::<u64>(),
    };
    value.map(|value| sign * i128::from(value)).map_err(|_| none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, len: usize) -> Result<Vec<u8>, Unresolved> {
        encode(text, NumberKind::Whole, len, "n")
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        assert_eq!(whole("255", 1).unwrap(), [255]);
        assert_eq!(whole("-128", 1).unwrap(), [128]);
        assert_eq!(whole("-1", 4).unwrap(), [255; 4]);
        assert_eq!(whole("-1", 16).unwrap(), [255; 16]);
        for text in ["256", "-129"] {
            assert!(matches!(whole(text, 1), Err(Unresolved::TooLarge { len: 1, .. })));
        }
        assert!(whole("0xffffffffffffffff", 8).is_ok());
        assert!(whole("-18446744073709551615", 8).is_err());
        assert!(whole("4294967296", 4).is_err());
        assert!(whole("2.5", 4).is_err());
        assert!(whole("1", 0).is_err());
    }

    #[test]
    fn floating_point_is_written_as_such() {
        let float = |text, len| encode(text, NumberKind::Float, len, "x");
        assert_eq!(float("3", 8).unwrap(), 3f64.to_le_bytes());
        assert_eq!(float("-2.5", 4).unwrap(), (-2.5f32).to_le_bytes());
        assert!(float("1e39", 4).is_err());
        assert!(float("1", 16).is_err());
    }
}
