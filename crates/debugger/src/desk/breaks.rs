//! Where the plain prompt stops: places, conditions, watched memory.

use super::Desk;
use super::state::Present;
use crate::{Error, Result};
use engine::{Calls, Watch};
use position::{Of, Position};
use program::debug::Program;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What compilers begin a function with that keeps a frame pointer; `endbr64` may precede it.
const FRAME: [&[u8]; 2] = [&[0x55, 0x48, 0x89, 0xe5], &[0x55, 0x48, 0x8b, 0xec]];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Bytes that are watched where only an address is given, and most of them.
const WORD: u64 = 8;
const MOST_WATCHED: u64 = 1 << 20;

/// How two sides compare.
type Comparison = fn(&i128, &i128) -> bool;

/// Whether to stop at a breakpoint.
#[derive(Clone, Debug)]
pub struct Condition {
    left: String,
    holds: Comparison,
    right: String,
}

impl Condition {
    /// `LEFT == RIGHT`, or with `!=`, `<`, `<=`, `>`, `>=`; a mere value is to be not 0.
    fn parse(text: &str) -> Condition {
        // Longer ones first: `<=` has `<` in it. An arrow is no comparison.
        let operators: [(&str, Comparison); 6] = [
            ("==", i128::eq),
            ("!=", i128::ne),
            ("<=", i128::le),
            (">=", i128::ge),
            ("<", i128::lt),
            (">", i128::gt),
        ];
        let hidden = text.replace("->", "\u{1}\u{1}");
        let found = operators.iter().find_map(|(sign, holds)| {
            let at = hidden.find(sign)?;
            let side = |part: &str| part.trim().to_owned();
            let (left, right) = (side(&text[..at]), side(&text[at + sign.len()..]));
            Some(Condition { left, holds: *holds, right })
        });
        found.unwrap_or(Condition { left: text.to_owned(), holds: i128::ne, right: "0".into() })
    }
}

impl Desk {
    /// `PLACE [if CONDITION]`
    pub(super) fn set_break(&mut self, text: &str) -> Result<String> {
        let (place, condition) = match text.split_once(" if ") {
            Some((place, condition)) => (place.trim(), Some(Condition::parse(condition.trim()))),
            None => (text, None),
        };
        let (of, found) = self.places(place)?;
        if found.is_empty() {
            return Err(Error::NoCode(place.to_owned()));
        }
        if self.is_slice {
            return self.break_in_slice(&of, condition);
        }
        let mut answer = String::new();
        for address in found {
            self.stop_at(address, condition.clone());
            let line = self.line_of(address);
            let _ = writeln!(answer, "breakpoint at {address:#x}{line}");
        }
        Ok(answer)
    }

    fn stop_at(&mut self, address: u64, condition: Option<Condition>) {
        let is_new = self.wanted.stops.breaks.insert(address);
        match condition {
            // Whoever stops there always goes on doing so.
            Some(condition) if is_new || self.conditions.contains_key(&address) => {
                self.conditions.entry(address).or_default().push(condition);
            }
            Some(_) => {}
            None => _ = self.conditions.remove(&address),
        }
    }

    /// The line of an address, in brackets.
    fn line_of(&mut self, address: u64) -> String {
        let Ok(program) = self.program() else { return String::new() };
        let Some(line) = program.line(address) else { return String::new() };
        let path = program.path(line.file);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!(" ({name}:{})", line.line)
    }

    /// Where the code of a line, a function or an address begins.
    pub(super) fn places(&mut self, text: &str) -> Result<(Of, Vec<u64>)> {
        let Position::Execution { of, .. } = Position::parse(text)? else {
            return Err(Error::NoCode(text.to_owned()));
        };
        if text.contains('#') {
            return Err(Error::OneExecution(text.to_owned()));
        }
        let program = self.program()?;
        let found: Vec<u64> = match &of {
            Of::Address(address) => vec![*address],
            Of::Function(name) => {
                let starts = program.functions_named(name).into_iter().map(|f| f.start);
                let mut found = Vec::new();
                for start in starts.collect::<Vec<_>>() {
                    found.push(self.behind_prologue(start)?);
                }
                let copies = program.inlined_copies(name).into_iter();
                found.extend(copies.filter_map(|copy| Some(copy.first()?.start)));
                found
            }
            Of::Line { file, line } => {
                let name = match &self.run {
                    Some(run) => run.source_name(file),
                    None => file.clone(),
                };
                let ranges = program.addresses(&name, *line);
                let ranges = ranges.map_err(position::Error::from)?;
                // Copies of a line that lie next to each other are one range.
                let starts = ranges.iter().flat_map(|range| {
                    let inside = program.inlined_starts(range.start..range.end);
                    std::iter::once(range.start).chain(inside)
                });
                first_of_each_copy(&program, starts)
            }
        };
        Ok((of, found))
    }

    /// Where the frame of a function is made and its parameters are in their places: as gdb
    /// has it, if there is a frame pointer.
    fn behind_prologue(&mut self, start: u64) -> Result<u64> {
        let bytes = self.code_at(start, ENDBR64.len() + FRAME[0].len())?;
        let code = bytes.strip_prefix(&ENDBR64).unwrap_or(&bytes);
        let program = self.program()?;
        let end = program.function(start).map_or(start, |function| function.end);
        let behind = program.statement_after(start).filter(|at| *at < end);
        match behind {
            Some(at) if FRAME.iter().any(|frame| code.starts_with(frame)) => Ok(at),
            _ => Ok(start),
        }
    }

    /// Code as its file has it: where we are, it need not be mapped yet.
    fn code_at(&mut self, address: u64, len: usize) -> Result<Vec<u8>> {
        if self.is_slice {
            return self.timeline.memory(address, len);
        }
        let code = self.run()?.trace.images.bytes(address);
        Ok(code[..code.len().min(len)].to_vec())
    }

    /// The first instruction of a line or a function may not be in the slice, so all of
    /// them are stopped at.
    fn break_in_slice(&mut self, of: &Of, condition: Option<Condition>) -> Result<String> {
        let program = self.program()?;
        let all: Vec<u64> = match of {
            Of::Address(address) => vec![*address],
            Of::Function(name) => {
                let functions = program.functions_named(name).into_iter();
                let copies = program.inlined_copies(name).into_iter().flatten();
                functions.map(|f| f.start..f.end).chain(copies).flatten().collect()
            }
            Of::Line { file, line } => {
                let ranges = program.addresses(file, *line).map_err(position::Error::from)?;
                ranges.iter().flat_map(|range| range.start..range.end).collect()
            }
        };
        let there: Vec<u64> = all.into_iter().filter(|at| self.is_in_slice(*at)).collect();
        if there.is_empty() {
            return Ok("nothing of the slice is there, so it is never come to\n".to_owned());
        }
        there.into_iter().for_each(|at| self.stop_at(at, condition.clone()));
        Ok("stops at all instructions of the slice there\n".to_owned())
    }

    /// Does the condition of a breakpoint hold, if it has one? Where that cannot be told we
    /// stop, and say so.
    pub(super) fn is_meant(&mut self, pc: u64) -> bool {
        let Some(conditions) = self.conditions.get(&pc).cloned() else { return true };
        conditions.iter().any(|condition| match self.tell(condition) {
            Ok(holds) => holds,
            Err(error) => {
                self.notice = Some(format!("the condition cannot be told: {error}"));
                true
            }
        })
    }

    fn tell(&mut self, Condition { left, holds, right }: &Condition) -> Result<bool> {
        let (mut a, mut b) = (self.signed(left)?, self.signed(right)?);
        // Who writes bits means bits.
        if [left, right].iter().any(|side| side.starts_with("0x")) {
            (a, b) = (i128::from(a as u64), i128::from(b as u64));
        }
        Ok(holds(&a, &b))
    }

    /// `EXPR`, or `ADDRESS [SIZE]`.
    pub(super) fn set_watch(&mut self, text: &str, reads: bool, writes: bool) -> Result<String> {
        let (address, len) = match plain_address(text)? {
            Some(memory) => memory,
            None => {
                let program = self.program()?;
                let state = Present::of(&mut self.timeline)?;
                let value = program.evaluate(state.pc(), text, &state);
                let value = value.map_err(position::Error::from)?;
                let Some(address) = value.address() else {
                    return Ok(format!("{text} is not in memory\n"));
                };
                (address, value.len())
            }
        };
        self.wanted.stops.watches.insert(Watch { address, len, reads, writes });
        Ok(format!("watching {len} bytes at {address:#x}\n"))
    }

    /// Forgets all that is stopped at.
    pub(super) fn stop_nowhere(&mut self, what: &str) -> Result<String> {
        if !what.is_empty() {
            return Ok("`delete` takes all away; `lbreak --remove ID` one of those\n".to_owned());
        }
        self.wanted.stops = Default::default();
        self.wanted.calls = Calls::None;
        self.conditions.clear();
        self.library.clear();
        self.slices.values_mut().for_each(|slice| slice.stop_nowhere());
        Ok(String::new())
    }
}

/// One of some addresses for each function, or inlined copy of one, that they are in.
fn first_of_each_copy(program: &Program, starts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut first: BTreeMap<Option<u64>, u64> = BTreeMap::new();
    for start in starts {
        let known = first.entry(program.innermost_start(start)).or_insert(start);
        *known = start.min(*known);
    }
    first.into_values().collect()
}

/// `0xADDRESS [SIZE]`
fn plain_address(text: &str) -> Result<Option<(u64, u64)>> {
    let mut words = text.split_whitespace();
    let hex = words.next().and_then(|word| word.strip_prefix("0x"));
    let Some(address) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) else {
        return Ok(None);
    };
    let len = words.next().map_or(Some(WORD), |size| size.parse().ok());
    let fits = |len: &u64| (1..=MOST_WATCHED).contains(len) && address.checked_add(*len).is_some();
    match len.filter(fits).filter(|_| words.next().is_none()) {
        Some(len) => Ok(Some((address, len))),
        None => Err(Error::NoMemory(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_and_arrows_do_not() {
        let sides = |text| {
            let condition = Condition::parse(text);
            (condition.left, condition.right)
        };
        assert_eq!(sides("i == 3"), ("i".into(), "3".into()));
        assert_eq!(sides("p->n>=q->n"), ("p->n".into(), "q->n".into()));
        assert_eq!(sides("p->next"), ("p->next".into(), "0".into()));
        assert!((Condition::parse("a <= b").holds)(&2, &2));
        assert!(!(Condition::parse("a < b").holds)(&2, &2));
    }

    #[test]
    fn addresses_are_watched_with_or_without_a_size() {
        let read = |text| plain_address(text).ok().flatten();
        assert_eq!(read("0x1000 4"), Some((0x1000, 4)));
        assert_eq!(read("0x1000"), Some((0x1000, 8)));
        assert_eq!(read("total"), None);
        for wrong in ["0x1000 0", "0x0 18446744073709551615", "0xffffffffffffffff", "0x1 2 3"] {
            assert!(plain_address(wrong).is_err(), "{wrong}");
        }
    }
}
