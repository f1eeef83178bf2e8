//! The present state, for whoever finds variables in it.

use crate::{Error, Registers, Result, Timeline};
use program::debug::{Register, State};
use std::cell::RefCell;

/// From the number in debug information to the one in encodings.
const ENCODED: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// Registers and memory of the running thread.
pub struct Present<'a> {
    timeline: RefCell<&'a mut Timeline>,
    registers: Registers,
}

impl<'a> Present<'a> {
    /// Where a timeline stands.
    pub fn of(timeline: &'a mut Timeline) -> Result<Present<'a>> {
        let thread = timeline.state()?.threads.first().ok_or(Error::Strange)?.thread;
        let registers = timeline.registers(thread)?.ok_or(Error::Strange)?;
        Ok(Present { timeline: RefCell::new(timeline), registers })
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.registers.rip
    }

    /// `$rax` and the like; `None` if the text is no register's name, nothing in it if the
    /// register is no number.
    pub fn named_register(&self, text: &str) -> Option<Option<u64>> {
        let name = match text.strip_prefix('$')? {
            "pc" => "rip",
            "sp" => "rsp",
            "fp" => "rbp",
            name => name,
        };
        Register::named(name).map(|register| self.register(register))
    }

    /// The bytes of a register that is wider, in hexadecimal, the highest first.
    pub fn wide_text(&self, text: &str) -> Option<String> {
        let register = Register::named(text.strip_prefix('$')?)?;
        let bytes = self.wide_register(register)?;
        let digits = bytes.iter().rev().map(|byte| format!("{byte:02x}"));
        Some(format!("0x{}", digits.collect::<String>()))
    }
}

impl State for Present<'_> {
    fn register(&self, register: Register) -> Option<u64> {
        match register.0 {
            n @ 0..16 => Some(self.registers.gpr[ENCODED[usize::from(n)]]),
            16 => Some(self.registers.rip),
            _ => None,
        }
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let bytes = self.timeline.borrow_mut().memory(address, len).ok()?;
        (bytes.len() == len).then_some(bytes)
    }

    fn fs_base(&self) -> u64 {
        self.registers.fs
    }

    fn wide_register(&self, register: Register) -> Option<Vec<u8>> {
        let n = usize::from(register.0.checked_sub(17)?);
        self.registers.vectors.get(n).map(|v| v.to_vec())
    }
}
