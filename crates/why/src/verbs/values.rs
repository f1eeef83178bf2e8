//! `why values`: what a line saw, every time.

use std::collections::VecDeque;
use std::io::Write;

use clap::Args;
use position::{Names, Of, Position};
use report::{Style, Value};
use serde::Serialize;
use trace::Instance;

use crate::show;
use crate::subject::Subject;

/// Show the values that a line saw, every time it was executed.
#[derive(Args)]
#[command(after_help = "Examples:
  why values list.c:42              all that the line mentions
  why values list.c:42 total        one variable or expression
  why values list.c:42 --last 5     the last five executions
  why values 7 list.c:42 'p->next'  in recording 7")]
pub struct Values {
    /// A recording [default: the latest], a line, and an expression [default: all
    /// that the line mentions]
    #[arg(value_name = "[REC] FILE:LINE [VAR]", num_args = 1..=3, required = true)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Only the first N executions
    #[arg(long, value_name = "N", conflicts_with = "last")]
    first: Option<usize>,

    /// Only the last N executions [default: 100]
    #[arg(long, value_name = "N")]
    last: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    version: u32,
    executions: u64,
    shown: Vec<Seen>,
}

#[derive(Serialize)]
struct Seen {
    position: String,
    thread: Option<u32>,
    number: u64,
    values: Vec<Value>,
}

impl Values {
    /// Finds the executions, and writes what they saw.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let (line, wanted) = match words {
            [line] => (line, None),
            [line, wanted] => (line, Some(wanted.as_str())),
            _ => return crate::status::usage("say which line: `why values FILE:LINE`"),
        };
        let position = Position::parse(line)?;
        let Position::Execution { of: of @ Of::Line { .. }, thread, .. } = &position else {
            return crate::status::usage(&format!("`{line}` is no line; write FILE:LINE"));
        };
        let run = self.subject.run(recording, false)?;
        crate::subject::say_who_answers(&run, &position);
        let (total, entries) = self.entries(&run, of, *thread)?;
        if total == 0 && !self.json {
            // Says that it was never executed, and which lines near it were.
            position::resolve(&run, &position)?;
        }
        let values = match wanted {
            Some(text) => report::values_of(&run, &entries, text)?,
            None => report::values(&run, &entries)?,
        };
        let names = Names::of(&run, entries.iter().copied());
        let seen = |at: &Instance| Seen {
            position: names.name(*at),
            thread: names.thread(*at),
            number: run.trace.number(*at),
            values: values.get(at).cloned().unwrap_or_default(),
        };
        let answer =
            Answer { version: 1, executions: total, shown: entries.iter().map(seen).collect() };
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            answer.write(out)?;
        }
        Ok(if total == 0 { 1 } else { 0 })
    }

    /// How many executions there are, and those that are to be shown.
    fn entries(
        &self,
        run: &position::Run,
        of: &Of,
        thread: Option<u32>,
    ) -> anyhow::Result<(u64, Vec<Instance>)> {
        let targets = position::targets(run, of)?;
        let mut total = 0;
        let mut kept = VecDeque::new();
        let most = self.first.or(self.last).unwrap_or(100);
        position::executions(run, &targets, thread, &mut |_, at| {
            total += 1;
            if self.first.is_none() && kept.len() == most {
                kept.pop_front();
            }
            if kept.len() < most {
                kept.push_back(at);
            }
            true
        });
        Ok((total, kept.into()))
    }
}

impl Answer {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let hidden = self.executions - self.shown.len() as u64;
        if hidden > 0 {
            writeln!(out, "{hidden} of {} executions not shown; see --last", self.executions)?;
        }
        for seen in &self.shown {
            let values: Vec<String> =
                seen.values.iter().map(|v| format!("{} = {}", v.name, v.value)).collect();
            let thread = seen.thread.map(|t| format!("T{t} ")).unwrap_or_default();
            let line = format!("{:<24} {thread}{}", seen.position, values.join(", "));
            writeln!(out, "{}", Style::cut(&line, show::style().width))?;
        }
        Ok(())
    }
}
