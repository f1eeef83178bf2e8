//! The plain prompt: gdb's most used commands, for where there is no gdb.

use super::Desk;
use super::state::Present;
use crate::{Error, Met, Result, Stop};
use engine::{Calls, Thread, Watch};
use position::{Of, Position};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What `help` adds to the verbs.
const HELP: &str = "\
continue, reverse-continue            c, rc: to what is met next
step, reverse-step                    s, rs: to another line of the program
next, reverse-next                    n, rn: the same, passing over calls
finish, reverse-finish                to where this function returns to, or was
                                      called
until [PLACE]                         u: to a later line of this function, or
                                      to a place; not beyond its end
stepi, reverse-stepi                  si, rsi: one instruction
break LINE|FUNC|ADDRESS               stop there
watch, rwatch, awatch EXPR            stop when it is written, read, either
catch syscall [NUMBER…]               stop at system calls
delete                                none of these any more
print EXPR, backtrace, threads        p, bt
quit                                  q; an empty line does the last one again
and every verb of `why`, with or without that word:
";

impl Desk {
    /// Obeys a line; `None` if that was to quit.
    pub fn obey(&mut self, line: &str) -> Option<String> {
        let line = match line.trim() {
            "" => std::mem::take(&mut self.last_line),
            line => line.to_owned(),
        };
        if line.is_empty() {
            return Some(String::new());
        }
        self.last_line.clone_from(&line);
        let line = line.strip_prefix("why ").unwrap_or(&line).trim();
        // As gdb has it.
        let line = &line.strip_prefix("set var ").map_or(line.to_owned(), |l| format!("set {l}"));
        if matches!(line.as_str(), "quit" | "q" | "exit") {
            return None;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let answer = match self.plain(word, rest.trim()) {
            Some(Ok(text)) => text,
            Some(Err(error)) => format!("{error}\n"),
            None => self.command(line),
        };
        Some(match self.notice.take() {
            Some(notice) => format!("{notice}\n{answer}"),
            None => answer,
        })
    }

    fn plain(&mut self, word: &str, rest: &str) -> Option<Result<String>> {
        Some(match word {
            "help" => Ok(HELP.to_owned() + &self.command("help")),
            "continue" | "c" => self.forward().and_then(|stop| self.show(&stop)),
            "reverse-continue" | "rc" => self.backward().and_then(|stop| self.show(&stop)),
            "stepi" | "si" => self.running_thread().and_then(|t| {
                let stop = self.step(t, 0..0)?;
                self.show(&stop)
            }),
            "reverse-stepi" | "rsi" => self.running_thread().and_then(|t| {
                let stop = self.step_back(t)?;
                self.show(&stop)
            }),
            "break" | "b" => self.set_break(rest),
            "watch" => self.set_watch(rest, false, true),
            "rwatch" => self.set_watch(rest, true, false),
            "awatch" => self.set_watch(rest, true, true),
            "catch" => Ok(self.set_catch(rest)),
            "delete" => {
                self.wanted.stops = Default::default();
                self.wanted.calls = Calls::None;
                Ok(String::new())
            }
            "p" => self.print(rest),
            "backtrace" | "bt" => self.backtrace(),
            "threads" => self.list_threads(),
            _ => return self.move_by_lines(word, rest),
        })
    }

    pub(super) fn running_thread(&mut self) -> Result<Thread> {
        Ok(self.timeline.state()?.threads.first().ok_or(Error::Strange)?.thread)
    }

    /// Why and where we stopped.
    pub(super) fn show(&mut self, stop: &Stop) -> Result<String> {
        let why = match &stop.met {
            Met::There => String::new(),
            Met::Break | Met::Mark => "breakpoint\n".to_owned(),
            Met::Watched(watch) => format!("watched memory at {:#x}\n", watch.address),
            Met::Call(n) => format!("system call {n}\n"),
            Met::Returned(n) => format!("system call {n} has returned\n"),
            Met::Signal(n) => format!("signal {n}\n"),
            Met::Begin => "the beginning of the run\n".to_owned(),
            Met::End(_) => "the end of the run\n".to_owned(),
            Met::Stuck(_) => "stuck\n".to_owned(),
            Met::Interrupted => "interrupted\n".to_owned(),
        };
        // Who is in a hurry does not wait for a trace.
        if !self.is_slice && stop.met != Met::Interrupted {
            self.run()?;
        }
        if self.run.is_none() && !self.is_slice {
            return Ok(format!("{why}{}\n", self.short_position()));
        }
        Ok(format!("{why}{}\n{}", self.short_position(), self.values()?))
    }

    fn set_break(&mut self, text: &str) -> Result<String> {
        let (of, found) = self.places(text)?;
        if found.is_empty() {
            return Err(Error::NoCode(text.to_owned()));
        }
        if self.is_slice {
            return self.break_in_slice(&of);
        }
        let mut answer = String::new();
        for address in found {
            self.wanted.stops.breaks.insert(address);
            let _ = writeln!(answer, "breakpoint at {address:#x}");
        }
        Ok(answer)
    }

    /// Where the code of a line, a function or an address begins.
    pub(super) fn places(&mut self, text: &str) -> Result<(Of, Vec<u64>)> {
        let Position::Execution { of, .. } = Position::parse(text)? else {
            return Err(Error::NoCode(text.to_owned()));
        };
        let program = self.program()?;
        let found: Vec<u64> = match &of {
            Of::Address(address) => vec![*address],
            Of::Function(name) => program.functions_named(name).iter().map(|f| f.start).collect(),
            Of::Line { file, line } => {
                let name = match &self.run {
                    Some(run) => run.source_name(file),
                    None => file.clone(),
                };
                let ranges = program.addresses(&name, *line);
                let ranges = ranges.map_err(position::Error::from)?;
                ranges.iter().map(|r| r.start).min().into_iter().collect()
            }
        };
        Ok((of, found))
    }

    /// The first instruction of a line or a function may not be in the slice, so all of
    /// them are stopped at.
    fn break_in_slice(&mut self, of: &Of) -> Result<String> {
        let program = self.program()?;
        let all: Vec<u64> = match of {
            Of::Address(address) => vec![*address],
            Of::Function(name) => {
                let functions = program.functions_named(name);
                functions.iter().flat_map(|f| f.start..f.end).collect()
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
        self.wanted.stops.breaks.extend(there);
        Ok("stops at all instructions of the slice there\n".to_owned())
    }

    /// Stops at system calls from now on.
    fn set_catch(&mut self, text: &str) -> String {
        let mut words = text.split_whitespace();
        let numbers: Option<BTreeSet<u64>> = match words.next() {
            Some("syscall") => words.map(|word| word.parse().ok()).collect(),
            _ => None,
        };
        let Some(numbers) = numbers else {
            return "write `catch syscall` or `catch syscall 1 257`, by number\n".to_owned();
        };
        let all = numbers.is_empty();
        self.wanted.calls = if all { Calls::All } else { Calls::These(numbers) };
        "stops before and after them\n".to_owned()
    }

    fn set_watch(&mut self, text: &str, reads: bool, writes: bool) -> Result<String> {
        let program = self.program()?;
        let state = Present::of(&mut self.timeline)?;
        let value = program.evaluate(state.pc(), text, &state);
        let value = value.map_err(position::Error::from)?;
        let Some(address) = value.address() else {
            return Ok(format!("{text} is not in memory\n"));
        };
        let len = value.len();
        self.wanted.stops.watches.insert(Watch { address, len, reads, writes });
        Ok(format!("watching {len} bytes at {address:#x}\n"))
    }

    fn backtrace(&mut self) -> Result<String> {
        let program = self.program()?;
        let state = Present::of(&mut self.timeline)?;
        let mut text = String::new();
        for (n, frame) in program.unwind(&state).iter().enumerate() {
            let function = frame.function.as_ref().map_or("?", |f| &f.name);
            let _ = write!(text, "#{n} {:#x} {function}", frame.pc);
            if let Some(line) = program.line(frame.executing()) {
                let path = program.path(line.file);
                let _ = write!(text, " at {}:{}", path.display(), line.line);
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn list_threads(&mut self) -> Result<String> {
        let threads = self.timeline.state()?.threads;
        let lines = threads.iter().map(|d| {
            let waits = if d.waits { ", waits in a system call" } else { "" };
            format!("{} (tid {}){waits}\n", d.thread, d.tid)
        });
        Ok(lines.collect())
    }
}
