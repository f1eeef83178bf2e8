//! `why path`: which lines ran, one after the other.

use std::collections::VecDeque;
use std::io::Write;

use clap::Args;
use position::{Names, Run, Targets};
use report::Style;
use serde::Serialize;
use trace::Instance;

use crate::show;
use crate::subject::Subject;

/// Show which lines ran, one after the other.
#[derive(Args)]
#[command(after_help = "Examples:
  why path                           the last lines of the run
  why path --around list.c:42#3      what came before and after
  why path --around crash --before 100 --after 0")]
pub struct Path {
    /// A recording [default: the latest]
    #[arg(value_name = "[REC]", num_args = 0..=1)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Around this position [default: the end of the run]
    #[arg(long, value_name = "POS")]
    around: Option<String>,

    /// So many lines before it
    #[arg(long, value_name = "N", default_value_t = 20)]
    before: usize,

    /// So many lines behind it
    #[arg(long, value_name = "N", default_value_t = 20)]
    after: usize,

    /// Only what thread N did
    #[arg(long, value_name = "N")]
    thread: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Step {
    position: String,
    thread: Option<u32>,
    number: u64,
    function: Option<String>,
    code: Option<String>,
    /// Is this the line that was asked for?
    here: bool,
}

impl Path {
    /// Finds the lines around a position, and writes them.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        crate::status::no_more(words)?;
        let run = self.subject.run(recording, false)?;
        let at = match &self.around {
            Some(text) => position::resolve(&run, &crate::subject::position(text)?)?.instance(),
            None => run.trace.last_instance(),
        };
        let thread = self.thread.map(|n| position::thread(&run, n)).transpose()?;
        let steps = self.steps(&run, at, thread);
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &steps).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            write(out, &steps)?;
        }
        Ok(if steps.is_empty() { 1 } else { 0 })
    }

    fn steps(&self, run: &Run, at: Instance, thread: Option<u32>) -> Vec<Step> {
        let mut near = VecDeque::new();
        let mut behind = 0;
        let own = Targets::groups(&run.trace, |id| {
            run.places.at(id).filter(|_| run.is_own(id)).map(|p| p.0)
        });
        position::executions(run, &own, thread, &mut |_, entry| {
            if entry > at {
                behind += 1;
                if behind > self.after {
                    return false;
                }
            } else if near.len() > self.before {
                near.pop_front();
            }
            near.push_back(entry);
            true
        });
        let names = Names::of(run, near.iter().copied());
        let here = near.iter().rev().find(|entry| **entry <= at).copied();
        let step = |entry: &Instance| Step {
            position: names.name(*entry),
            thread: names.thread(*entry),
            number: run.trace.number(*entry),
            function: names.get(*entry).and_then(|n| run.places.get(n.place).function.clone()),
            code: report::code(run, *entry).map(|c| c.trim().to_owned()),
            here: Some(*entry) == here,
        };
        near.iter().map(step).collect()
    }
}

fn write(out: &mut dyn Write, steps: &[Step]) -> std::io::Result<()> {
    let mut function = None;
    for step in steps {
        if step.function != function {
            function = step.function.clone();
            writeln!(out, "{}", show::bold(function.as_deref().unwrap_or("(no function)")))?;
        }
        let mark = if step.here { '>' } else { ' ' };
        let thread = step.thread.map(|t| format!("T{t} ")).unwrap_or_default();
        let code = step.code.as_deref().unwrap_or("");
        let line = format!("{mark} {thread}{:<20} {code}", step.position);
        writeln!(out, "{}", Style::cut(&line, show::style().width))?;
    }
    Ok(())
}
