//! Changing things: what-if branches.

use super::Desk;
use crate::{Error, Result};
use position::Names;
use whatif::{Change, Target, Words, experiment};

impl Desk {
    /// Writes memory, and leaves history.
    pub fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let change = Change::Set { target: Target::Memory(address), bytes: bytes.to_vec() };
        self.change(&change)
    }

    /// Writes a general register by its number in encodings, or RIP (16), of the
    /// running thread, and leaves history.
    pub fn write_register(&mut self, register: u8, value: u64) -> Result<()> {
        let bytes = value.to_le_bytes().to_vec();
        self.change(&Change::Set { target: Target::Register(register), bytes })
    }

    fn change(&mut self, change: &Change) -> Result<()> {
        let entered = self.timeline.branch().is_none();
        self.timeline.alter(change)?;
        if entered {
            self.notice =
                Some("this is a what-if branch now; `why rollback` returns to history".to_owned());
        }
        Ok(())
    }

    /// `switch [POS]`, `skip [POS] [=VALUE]`, `set [POS] LVALUE=VALUE`. Without a
    /// position, the present line; with `#all`, every execution from the first on.
    pub(super) fn alter(&mut self, verb: &str, rest: &str) -> Result<String> {
        let mut words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
        let named = match verb {
            "set" => words.len() > 1,
            "skip" => words.first().is_some_and(|w| !w.starts_with('=')),
            _ => !words.is_empty(),
        };
        if !named {
            words.insert(0, self.present_line()?);
        }
        words.insert(0, verb.to_owned());
        if self.timeline.branch().is_some() {
            return Ok(
                "this is a branch already; `why rollback` first, or use gdb's `set var`\n".into()
            );
        }
        let words = Words::parse(&words).map_err(|e| Error::Walker(e.to_string()))?;
        let run = self.run()?;
        let wanted = experiment(run, &words, None).map_err(|e| Error::Walker(e.to_string()))?;
        self.timeline.go_to_number(wanted.at)?;
        for change in &wanted.changes {
            self.timeline.alter_always(change, &wanted.triggers)?;
        }
        let always = if wanted.triggers.is_empty() { "" } else { ", and whenever it comes by" };
        Ok(format!(
            "in a what-if branch from @{}{always}; `why rollback` returns to history\n",
            wanted.at
        ))
    }

    fn present_line(&mut self) -> Result<String> {
        let at = self.here()?;
        let run = self.run()?;
        Ok(Names::of(run, [at]).name(at))
    }
}
