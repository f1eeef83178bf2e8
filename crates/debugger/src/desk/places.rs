//! Where are we, and how does one get elsewhere?

use super::Desk;
use super::prompt::{WIDTH, wrapped};
use super::state::Present;
use crate::{Error, Result};
use engine::Instant;
use position::{Names, Of, Position, Run, executions, resolve, targets};
use program::debug::Limits;
use report::Style;
use std::fmt::Write;
use trace::Instance;

impl Desk {
    /// Goes to a position.
    pub fn go_to(&mut self, text: &str) -> Result<()> {
        let position = Position::parse(text)?;
        match position {
            Position::Start => self.timeline.go_to(self.timeline.first()),
            Position::Number(n) => self.go_to_number(n),
            Position::Exit => self.timeline.go_to_end(),
            Position::Crash => {
                let here = self.timeline.now();
                self.timeline.go_to_end()?;
                match self.timeline.end() {
                    Some((_, Some(recording::Ending::Killed { .. }))) => Ok(()),
                    _ => {
                        self.timeline.go_to(here)?;
                        Err(Error::Position(position::Error::NoCrash))
                    }
                }
            }
            _ => {
                let run = self.run()?;
                let at = resolve(run, &position)?.instance();
                let (number, address) = (run.trace.number(at), run.address(at));
                self.timeline.go_to_number(number)?;
                self.pass_exception(address)
            }
        }
    }

    /// Goes to where so many instructions have been executed; stays where that is never.
    fn go_to_number(&mut self, number: u64) -> Result<()> {
        let here = self.timeline.now();
        if self.timeline.branch().is_some() {
            let moved = self.timeline.go_to_number(number);
            let total = self.timeline.now().instructions;
            if matches!(moved, Err(Error::Strange)) && total < number {
                self.timeline.go_to(here)?;
                return Err(Error::Position(position::Error::PastEnd { n: number, total }));
            }
            return moved;
        }
        // The end is found on the way, if it was not known.
        let moved = match self.timeline.end() {
            Some((end, _)) if number >= end.instructions => Ok(()),
            _ => self.timeline.go_to_number(number),
        };
        match self.timeline.end() {
            Some((end, _)) if number > end.instructions => {
                self.timeline.go_to(here)?;
                let total = end.instructions;
                let past = position::Error::PastEnd { n: number, total };
                if self.is_slice {
                    return Err(Error::Position(past));
                }
                // The instruction that the run died at was begun, and counts.
                match resolve(self.run()?, &Position::Number(number)) {
                    Ok(_) => self.timeline.go_to(end),
                    Err(error) => Err(Error::Position(error)),
                }
            }
            Some((end, _)) if number == end.instructions => self.timeline.go_to(end),
            _ => moved,
        }
    }

    /// An instruction that raises an exception has the number of its handler's first: the
    /// address tells which is meant.
    fn pass_exception(&mut self, address: u64) -> Result<()> {
        let now = self.timeline.now();
        if self.timeline.branch().is_some() || self.pc()? == address {
            return Ok(());
        }
        match self.run()?.trace.fault_at_number(now.instructions) {
            Some(_) => self.timeline.go_to(Instant { happened: now.happened + 1, ..now }),
            None => Ok(()),
        }
    }

    /// The instruction number of a position.
    pub(super) fn number_of(&mut self, position: &Position) -> Result<u64> {
        let run = self.run()?;
        let at = resolve(run, position)?.instance();
        Ok(run.trace.number(at))
    }

    /// The instance that is about to run.
    pub(super) fn here(&mut self) -> Result<Instance> {
        let (number, pc) = (self.timeline.now().instructions, self.pc()?);
        Ok(instance_at(self.run()?, number, pc))
    }

    /// The present position in every notation.
    pub(super) fn position(&mut self) -> Result<String> {
        if self.is_slice || self.timeline.branch().is_some() {
            return self.position_by_address();
        }
        let now = self.timeline.now();
        let state = self.timeline.state()?;
        let running = state.threads.first().ok_or(Error::Strange)?;
        let at = self.here()?;
        let run = self.run()?;
        let mut text = format!("@{}\n", now.instructions);
        let names = Names::of(run, [at]);
        let address = run.address(at);
        if let Some(named) = names.get(at) {
            let _ = writeln!(text, "{}#{}", run.place_name(named.place), named.nth);
        }
        if let Some(name) = run.program.function(address).map(|f| f.name) {
            // A loader's stub has a name, and is no function.
            if let Ok(entries) = count(run, &Of::Function(name.clone()), at) {
                let _ = writeln!(text, "{name}#{entries}");
            }
        }
        let times = count(run, &Of::Address(address), at)?;
        let _ = writeln!(text, "{address:#x}#{times}");
        let _ = writeln!(text, "{} (tid {})", running.thread, running.tid);
        if self.timeline.end().is_some_and(|(end, _)| end <= now) {
            text.push_str("the end of the run\n");
        }
        Ok(text)
    }

    /// The same where executions are not counted: in a slice, and in a branch, of which there
    /// is no trace.
    fn position_by_address(&mut self) -> Result<String> {
        let branch = if self.timeline.branch().is_some() { "what-if " } else { "" };
        let mut text = format!("{branch}@{}\n", self.timeline.now().instructions);
        let (program, pc) = (self.program()?, self.pc()?);
        if let Some(line) = program.line(pc) {
            let _ = writeln!(text, "{}:{}", program.path(line.file).display(), line.line);
        }
        if let Some(function) = program.function(pc) {
            let _ = writeln!(text, "{}", function.name);
        }
        let _ = writeln!(text, "{pc:#x}");
        let state = self.timeline.state()?;
        let running = state.threads.first().ok_or(Error::Strange)?;
        let _ = writeln!(text, "{} (tid {})", running.thread, running.tid);
        Ok(text)
    }

    /// The line in a branch. How often it has been executed there nobody has counted.
    fn place_in_branch(&mut self) -> Option<String> {
        let pc = self.pc().ok()?;
        let program = self.run.as_ref()?.program.clone();
        let line = program.line(pc).filter(|_| program.is_own(pc))?;
        let path = program.path(line.file);
        Some(format!("{}:{}", path.file_name()?.to_string_lossy(), line.line))
    }

    /// A short name of the present position, from what is known already.
    pub(super) fn short_position(&mut self) -> String {
        let now = self.timeline.now().instructions;
        if self.timeline.branch().is_some() {
            return self.place_in_branch().unwrap_or_else(|| format!("@{now}"));
        }
        let pc = self.pc().unwrap_or_default();
        let Some(run) = &self.run else { return format!("@{now}") };
        let at = instance_at(run, now, pc);
        Names::of(run, [at]).name(at)
    }

    /// How often a line has been executed, the execution we are in included.
    pub(super) fn instance(&mut self, text: &str) -> Result<String> {
        if self.timeline.branch().is_some() {
            let text = "executions are not counted in a what-if branch; `why rollback` leaves it";
            return Ok(format!("{text}\n"));
        }
        let at = self.here()?;
        let run = self.run()?;
        if text.is_empty() {
            return Ok(format!("{}\n", Names::of(run, [at]).name(at)));
        }
        match Position::parse(text)? {
            Position::Execution { of, .. } => Ok(format!("{text}#{}\n", count(run, &of, at)?)),
            _ => Ok("instances are counted for lines, functions and addresses\n".to_owned()),
        }
    }

    /// The values that the present line names.
    pub(super) fn values(&mut self) -> Result<String> {
        let program = self.program()?;
        let state = Present::of(&mut self.timeline)?;
        let Some(line) = program.line(state.pc()) else { return Ok(String::new()) };
        let source = program.source(line.file);
        let Some(source) = source.and_then(|s| s.line(line.line).map(str::to_owned)) else {
            return Ok(String::new());
        };
        let mut text = format!("    {}\n", Style::cut(source.trim(), WIDTH - 4));
        for name in report::expressions(&source).into_iter().map(|e| e.text) {
            if let Ok(value) = program.evaluate(state.pc(), &name, &state) {
                let shown = program.text(&value, &state, Limits::default());
                let line = Style::cut(&format!("{name} = {shown}"), WIDTH - 4);
                let _ = writeln!(text, "    {line}");
            }
        }
        Ok(text)
    }

    /// The value of an expression.
    pub(super) fn print(&mut self, expression: &str) -> Result<String> {
        let program = self.program()?;
        let state = Present::of(&mut self.timeline)?;
        if let Some(register) = state.named_register(expression) {
            let number = register.map(|n| format!("{n:#x} ({})", n as i64));
            let shown = number.or_else(|| state.wide_text(expression));
            return shown.map(|s| s + "\n").ok_or(Error::NoNumber(expression.to_owned()));
        }
        match program.evaluate(state.pc(), expression, &state) {
            Ok(value) => Ok(format!("{}\n", program.text(&value, &state, Limits::default()))),
            Err(error) => Ok(wrapped(&error.to_string()) + "\n"),
        }
    }
}

/// What is about to be executed, or to raise an exception instead.
fn instance_at(run: &Run, number: u64, pc: u64) -> Instance {
    // What the run crashed at was not executed.
    let at = run.trace.at_number(number).unwrap_or_else(|| run.trace.last_instance());
    let raises = run.trace.fault_at_number(number);
    raises.filter(|_| run.address(at) != pc).unwrap_or(at)
}

/// How often something was executed up to an instance.
fn count(run: &Run, of: &Of, at: Instance) -> Result<u64> {
    let targets = targets(run, of)?;
    let mut n = 0;
    executions(run, &targets, None, &mut |_, entry| {
        n += u64::from(entry <= at);
        entry <= at
    });
    Ok(n)
}
