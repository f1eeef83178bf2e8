//! What must be known of a stopped thread to find its variables and callers?

use std::fmt;

/// A register by the number that debug information uses for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u16);

/// The names of the registers, by number. The order is that of the psABI.
const NAMES: [&str; 41] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
    "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st0", "st1", "st2", "st3",
    "st4", "st5", "st6", "st7",
];

impl Register {
    /// The frame pointer.
    pub const RBP: Self = Self(6);
    /// The stack pointer.
    pub const RSP: Self = Self(7);
    /// The instruction pointer.
    pub const RIP: Self = Self(16);

    /// The register of a name such as `rax` or `xmm3`.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|number| Self(number as u16))
    }

    /// The name of the register, if it is a known one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }

    /// Whether a function must leave the register as it found it.
    pub fn is_preserved(self) -> bool {
        matches!(self.0, 3 | 6 | 12..=15)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "register {}", self.0),
        }
    }
}

/// A thread at an instant: registers and memory.
pub trait State {
    /// The value of a general register (0 to 15) or of `rip` (16).
    fn register(&self, register: Register) -> Option<u64>;

    /// `len` bytes of memory; `None` unless all of them can be read.
    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>>;

    /// The base of the FS segment, where thread-local variables are found.
    fn fs_base(&self) -> u64;

    /// The bytes of a vector register (17 to 32) or an x87 register (33 to 40).
    fn wide_register(&self, register: Register) -> Option<Vec<u8>> {
        let _ = register;
        None
    }

    /// The value that a register had when the current function was entered. Who
    /// can look into the past may answer; it brings back optimised parameters.
    fn register_at_entry(&self, register: Register) -> Option<u64> {
        let _ = register;
        None
    }
}

/// Reads a little-endian word.
pub(super) fn read_word(state: &dyn State, address: u64) -> Option<u64> {
    let bytes = state.memory(address, 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// The bytes of any register.
pub(super) fn register_bytes(state: &dyn State, register: Register) -> Option<Vec<u8>> {
    match register.0 {
        0..=16 => state.register(register).map(|value| value.to_le_bytes().to_vec()),
        _ => state.wide_register(register),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_inverses() {
        for number in 0..41 {
            let register = Register(number);
            assert_eq!(register.name().and_then(Register::named), Some(register));
        }
        assert_eq!(Register::named("rsp"), Some(Register::RSP));
        assert_eq!(Register::named("xmm15"), Some(Register(32)));
        assert_eq!(Register(200).name(), None);
    }
}
