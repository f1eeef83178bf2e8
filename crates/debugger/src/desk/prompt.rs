//! The plain prompt: gdb's most used commands, for where there is no gdb.

use super::Desk;
use super::state::Present;
use crate::{Error, Met, Result, Stop};
use engine::{Calls, Thread};
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
                                      a number behind these: so many times
break LINE|FUNC|ADDRESS [if COND]     stop there, if `i == 3`, `n > $rax`, …
watch, rwatch, awatch EXPR            stop when it is written, read, either;
                                      or ADDRESS [SIZE]
catch syscall [NUMBER…]               stop at system calls
delete                                stop at nothing any more, not in slices
                                      and libraries either
print EXPR, print $rax                p: a value
backtrace, threads                    bt
quit                                  q; an empty line does the last one again
and every verb of `why`, with or without that word:
";

/// Columns that are used.
pub(super) const WIDTH: usize = 80;

/// How far a move goes that is made several times.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Move {
    Step,
    /// To what is stopped at.
    Run,
}

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
            Some(Err(error)) => wrapped(&error.to_string()) + "\n",
            None => self.command(line),
        };
        Some(match self.notice.take() {
            Some(notice) => format!("{}\n{answer}", wrapped(&notice)),
            None => answer,
        })
    }

    fn plain(&mut self, word: &str, rest: &str) -> Option<Result<String>> {
        Some(match word {
            "help" => Ok(HELP.to_owned() + &self.command("help")),
            "continue" | "c" => self.times(Move::Run, rest, Desk::forward),
            "reverse-continue" | "rc" => self.times(Move::Run, rest, Desk::backward),
            "stepi" | "si" => self.times(Move::Step, rest, |desk| {
                let thread = desk.running_thread()?;
                desk.step(thread, 0..0)
            }),
            "reverse-stepi" | "rsi" => self.times(Move::Step, rest, |desk| {
                let thread = desk.running_thread()?;
                desk.step_back(thread)
            }),
            "break" | "b" => self.set_break(rest),
            "watch" => self.set_watch(rest, false, true),
            "rwatch" => self.set_watch(rest, true, false),
            "awatch" => self.set_watch(rest, true, true),
            "catch" => Ok(self.set_catch(rest)),
            "delete" | "d" => self.stop_nowhere(rest),
            "p" => self.print(rest),
            "backtrace" | "bt" => self.backtrace(),
            "threads" => self.list_threads(),
            _ => return self.move_by_lines(word, rest),
        })
    }

    /// Makes a move once, or as often as a number says. What is stopped at ends a row of
    /// steps, and is one of those that a row of longer moves goes to.
    pub(super) fn times(
        &mut self,
        kind: Move,
        count: &str,
        mut make: impl FnMut(&mut Desk) -> Result<Stop>,
    ) -> Result<String> {
        let count: u64 = match count {
            "" => 1,
            text => text.parse().map_err(|_| Error::NoCount(text.to_owned()))?,
        };
        let mut stop = Stop { met: Met::There, thread: self.running_thread()? };
        for _ in 0..count {
            stop = make(self)?;
            if kind == Move::Step && stop.met == Met::There && self.is_at_break()? {
                stop.met = Met::Break;
            }
            if self.timeline.is_interrupted() {
                stop.met = Met::Interrupted;
            }
            let is_over =
                matches!(stop.met, Met::Begin | Met::End(_) | Met::Stuck(_) | Met::Interrupted);
            if is_over || (kind == Move::Step && stop.met != Met::There) {
                break;
            }
        }
        self.show(&stop)
    }

    /// Is there a breakpoint here that is meant?
    fn is_at_break(&mut self) -> Result<bool> {
        let pc = self.pc()?;
        Ok(self.wanted.stops.breaks.contains(&pc) && self.is_meant(pc))
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

/// Lines that fit a terminal.
pub(super) fn wrapped(text: &str) -> String {
    let lines = text.lines().flat_map(|line| report::Style::wrapped(line, WIDTH));
    lines.collect::<Vec<_>>().join("\n")
}
