//! The verbs.

use super::prompt::wrapped;
use super::{Desk, Kept};
use crate::{Error, Result};
use std::fmt::Write;

/// What `why help` says.
const HELP: &str = "\
why goto POS               go to a position: f.c:15#4, func#3, @1048576, crash,
                           start, exit, …
why where                  the present position in every notation
why instance [LINE]        how often a line has been executed
why slice [CRITERION]      what the present line, or a criterion, depended on;
                           --save NAME keeps it
why deps [CRITERION]       what it depends on directly
why chop FROM TO           what carried an influence from one criterion to
                           another
why prune ID VAR,…         leave out dependences through these
why slices                 all slices; --remove ID
why sbreak ID LINE,…|all   stop only at the executions that are in the slice
why snext, why sprev       go along a slice, with values
why region on|off|all      what slices see: from here, up to here, everything
why lbreak FUNC [if COND]  stop at calls of a library function: argN == V,
                           ret == V, read, write or access ADDRESS [SIZE];
                           --remove ID
why checkpoint [NAME]      keep this instant; --remove ID
why checkpoints            all kept instants
why critical [OPTIONS]     which branches, switched, mend the run; as `why
                           critical`
why switch [POS]           let a branch go the other way: a what-if branch of
                           the run
why set [POS] LVALUE=VALUE set a value; gdb's `set var` does it too
why skip [POS] [=VALUE]    leave out a statement, or a call that returns VALUE
                           POS#all means every execution, from the first on
why rollback [ID]          return from a branch to history, or to a kept
                           instant
";

impl Desk {
    /// Does what a line says, and answers in words.
    pub fn command(&mut self, line: &str) -> String {
        let line = line.trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match self.verb(verb, rest.trim()) {
            Ok(text) => text,
            Err(error) => wrapped(&error.to_string()) + "\n",
        }
    }

    fn verb(&mut self, verb: &str, rest: &str) -> Result<String> {
        match verb {
            "help" | "" => Ok(HELP.to_owned()),
            "goto" => self.go_to(rest).map(|()| format!("at {}\n", self.short_position())),
            "where" => self.position(),
            "instance" => self.instance(rest),
            "slice" => self.make_slice(rest),
            "deps" => self.dependences(rest),
            "chop" => self.chop(rest),
            "prune" => self.prune(rest),
            "slices" => self.list_slices(rest),
            "sdelete" => self.list_slices(&format!("--remove {rest}")),
            "sbreak" => self.slice_break(rest),
            "snext" => self.step_along(rest, false),
            "sprev" => self.step_along(rest, true),
            "region" => self.set_region(rest),
            "lbreak" => self.library_break(rest),
            "checkpoint" => self.keep(rest),
            "checkpoints" => Ok(self.kept_instants()),
            "rollback" => self.roll_back(rest),
            "values" => self.values(),
            "print" => self.print(rest),
            "notice" => Ok(self.notice.take().map(|n| n + "\n").unwrap_or_default()),
            "addresses" => Ok(self.slice_addresses()),
            "position" => {
                let branch = if self.timeline.branch().is_some() { "what-if " } else { "" };
                Ok(format!("{branch}@{}\n", self.timeline.now().instructions))
            }
            "running" => self.running(),
            "switch" | "set" | "skip" => self.alter(verb, rest),
            "critical" => Ok(self.search(verb, rest)),
            _ => Ok(format!("no such verb: {verb}; `why help` lists them\n")),
        }
    }

    /// Has a question answered that takes a whole search.
    fn search(&self, verb: &str, rest: &str) -> String {
        let words: Vec<&str> = std::iter::once(verb).chain(rest.split_whitespace()).collect();
        match &self.searches {
            Some(search) => search(&words),
            None => format!("nobody searches here; ask `why {verb}` on the command line\n"),
        }
    }

    /// The kernel's number of the running thread, for gdb.
    fn running(&mut self) -> Result<String> {
        let tid = self.timeline.state()?.threads.first().ok_or(Error::Strange)?.tid;
        Ok(format!("{tid}\n"))
    }

    fn library_break(&mut self, text: &str) -> Result<String> {
        if let Some(id) = text.strip_prefix("--remove") {
            let gone = id.trim().parse().ok().and_then(|id| self.library.remove(&id));
            return Ok(match gone {
                Some(gone) => format!("no stop at {} any more\n", gone.text),
                None => "there is no such library breakpoint\n".to_owned(),
            });
        }
        if text.is_empty() {
            let lines = self.library.iter().map(|(id, b)| format!("{id}: {}\n", b.text));
            return Ok(lines.collect());
        }
        self.set_library_break(text)
    }

    fn keep(&mut self, text: &str) -> Result<String> {
        if let Some(id) = text.strip_prefix("--remove") {
            let gone = id.trim().parse().ok().and_then(|id| self.kept.remove(&id));
            return Ok(match gone {
                Some(gone) => format!("checkpoint {} is gone\n", gone.name),
                None => "there is no such checkpoint\n".to_owned(),
            });
        }
        self.timeline.checkpoint();
        let id = self.kept.keys().next_back().map_or(1, |n| n + 1);
        let name = if text.is_empty() { self.short_position() } else { text.to_owned() };
        let answer = format!("checkpoint {id}: {name}\n");
        self.kept.insert(id, Kept { at: self.timeline.now(), name });
        Ok(answer)
    }

    fn kept_instants(&self) -> String {
        let mut text = String::new();
        for (id, kept) in &self.kept {
            let _ = writeln!(text, "{id}: {} (@{})", kept.name, kept.at.instructions);
        }
        if text.is_empty() { "there are no checkpoints\n".to_owned() } else { text }
    }

    fn roll_back(&mut self, text: &str) -> Result<String> {
        if self.timeline.branch().is_some() {
            self.timeline.roll_back()?;
            if text.is_empty() {
                return Ok(format!("back in history, at {}\n", self.short_position()));
            }
        }
        let kept = match text {
            "" => self.kept.last_key_value().map(|(_, k)| k),
            id => id.parse().ok().and_then(|id| self.kept.get(&id)),
        };
        let Some(at) = kept.map(|k| k.at) else {
            return Ok("there is no such checkpoint; `why checkpoints` lists them\n".to_owned());
        };
        self.timeline.go_to(at)?;
        Ok(format!("at {}\n", self.short_position()))
    }
}
