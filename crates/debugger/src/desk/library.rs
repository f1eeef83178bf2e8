//! Breakpoints on library functions, by argument, result or memory touched.

use super::Desk;
use crate::{Error, Met, Registers, Result, Wanted};
use engine::{Stops, Thread, Watch};
use std::collections::BTreeSet;

/// Registers that hold a function's first arguments, by encoding number.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// When a call is stopped at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    Argument(usize, u64),
    Returns(u64),
    Touches(Watch),
}

/// A breakpoint on a library function.
pub struct LibraryBreak {
    /// As it was asked for.
    pub text: String,
    /// Where calls of it arrive.
    pub entries: Vec<u64>,
    condition: Condition,
}

impl Desk {
    /// `FUNC [if argN == VALUE | ret == VALUE | read|write|access ADDRESS [SIZE]]`
    pub(super) fn set_library_break(&mut self, text: &str) -> Result<String> {
        let (function, condition) = match text.split_once(" if ") {
            Some((function, condition)) => (function.trim(), condition.trim()),
            None => (text, ""),
        };
        let condition = self.condition(condition)?;
        let run = self.run()?;
        // Calls of the program itself go through its stub. That also finds functions
        // of which there are several, chosen when the program starts.
        let stubs = run.trace.code.instructions().map(|(_, i)| i.address()).filter(|a| {
            let ours = run.program.image_at(*a).is_some_and(|(n, _)| n == 0);
            ours && run.program.plt_target(*a) == Some(function)
        });
        let mut entries: Vec<u64> = stubs.min().into_iter().collect();
        if entries.is_empty() {
            entries = run.program.functions_named(function).iter().map(|f| f.start).collect();
        }
        if entries.is_empty() {
            return Ok(format!("no function of the run is called {function}\n"));
        }
        let id = self.library.keys().next_back().map_or(1, |n| n + 1);
        self.library.insert(id, LibraryBreak { text: text.to_owned(), entries, condition });
        Ok(format!("library breakpoint {id}: {text}\n"))
    }

    fn condition(&mut self, text: &str) -> Result<Condition> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || {
            Error::Walker(format!(
                "`{text}` is no condition; write argN == VALUE, ret == VALUE, or read, write or \
                 access ADDRESS [SIZE]"
            ))
        };
        Ok(match &words[..] {
            [] => Condition::Always,
            ["ret", "==", rest @ ..] => Condition::Returns(self.number(&rest.join(" "))?),
            ["arg", n, "==", rest @ ..] => {
                let n = n.parse().ok().filter(|n| (1..=6).contains(n)).ok_or_else(wrong)?;
                Condition::Argument(n, self.number(&rest.join(" "))?)
            }
            [arg, "==", rest @ ..] => {
                let n = arg.strip_prefix("arg").and_then(|n| n.parse().ok());
                let n = n.filter(|n| (1..=6).contains(n)).ok_or_else(wrong)?;
                Condition::Argument(n, self.number(&rest.join(" "))?)
            }
            [kind @ ("read" | "write" | "access"), address, size @ ..] => {
                let address = self.number(address)?;
                let len = size.first().map_or(Ok(1), |s| self.number(s))?;
                let (reads, writes) = (*kind != "write", *kind != "read");
                Condition::Touches(Watch { address, len, reads, writes })
            }
            _ => return Err(wrong()),
        })
    }

    /// A number, or what an expression is worth here.
    fn number(&mut self, text: &str) -> Result<u64> {
        self.signed(text).map(|n| n as u64)
    }

    /// The same, with its sign.
    pub(super) fn signed(&mut self, text: &str) -> Result<i128> {
        let plain = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
            None => text.parse::<i128>().ok(),
        };
        if let Some(number) = plain {
            return Ok(number);
        }
        let program = self.program()?;
        let state = super::state::Present::of(&mut self.timeline)?;
        if let Some(register) = state.named_register(text) {
            return register.map(|n| i128::from(n as i64)).ok_or(Error::NoNumber(text.to_owned()));
        }
        let value = program.evaluate(state.pc(), text, &state);
        let value = value.and_then(|value| program.integer(&value, &state));
        value.map_err(|e| Error::Position(e.into()))
    }

    /// A breakpoint was met: is it one on a library function whose condition holds?
    pub(super) fn library_met(&mut self, pc: u64, thread: Thread) -> Result<bool> {
        let here: Vec<(u32, Condition, String)> = self
            .library
            .iter()
            .filter(|(_, b)| b.entries.contains(&pc))
            .map(|(id, b)| (*id, b.condition.clone(), b.text.clone()))
            .collect();
        for (id, condition, text) in here {
            if self.holds(&condition, thread)? {
                self.notice = Some(format!("library breakpoint {id}: {text}"));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn holds(&mut self, condition: &Condition, thread: Thread) -> Result<bool> {
        let registers = self.timeline.registers(thread)?.ok_or(Error::Strange)?;
        match condition {
            Condition::Always => Ok(true),
            Condition::Argument(n, value) => Ok(same(registers.gpr[ARGUMENTS[n - 1]], *value)),
            Condition::Returns(value) => {
                let after = self.during_call(thread, &registers, BTreeSet::new())?;
                Ok(matches!(after, Some(Some(result)) if same(result, *value)))
            }
            Condition::Touches(watch) => {
                Ok(self.during_call(thread, &registers, [*watch].into())? == Some(None))
            }
        }
    }

    /// Lets the call that a thread is about to begin run, and comes back: its result,
    /// or nothing if it touched watched memory, or nothing at all if it never
    /// returned.
    fn during_call(
        &mut self,
        thread: Thread,
        registers: &Registers,
        watches: BTreeSet<Watch>,
    ) -> Result<Option<Option<u64>>> {
        let entry = self.timeline.now();
        self.timeline.checkpoint();
        let sp = registers.gpr[4];
        let bytes = self.timeline.memory(sp, 8)?;
        let back = u64::from_le_bytes(bytes.try_into().map_err(|_| Error::Strange)?);
        let stops = Stops { breaks: [back].into(), watches };
        let wanted = Wanted { stops, ..Wanted::default() };
        let outcome = loop {
            let stop = self.timeline.forward(&wanted)?;
            match stop.met {
                Met::Watched(_) if stop.thread == thread => break Some(None),
                Met::Break | Met::Watched(_) => {}
                _ => break None,
            }
            if stop.met == Met::Break && stop.thread == thread {
                let r = self.timeline.registers(thread)?.ok_or(Error::Strange)?;
                if r.gpr[4] > sp {
                    break Some(Some(r.gpr[0]));
                }
            }
        };
        self.timeline.go_to(entry)?;
        Ok(outcome)
    }
}

/// Equal, or equal as 32-bit numbers where a small one was asked for.
fn same(value: u64, asked: u64) -> bool {
    let small = i32::try_from(asked as i64).is_ok();
    value == asked || (small && value as u32 == asked as u32 && value >> 32 == 0)
}
