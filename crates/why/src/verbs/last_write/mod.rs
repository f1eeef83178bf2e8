//! `why last-write`: who wrote this?

mod asked;

use std::io::Write;

use anyhow::Context;
use asked::{Asked, Side};
use clap::Args;
use position::{Criterion, Names, Position, Run, What};
use report::Style;
use serde::Serialize;
use trace::Instance;

use crate::show;
use crate::subject::Subject;

/// Find who last wrote a variable or address, or who writes it next.
#[derive(Args)]
#[command(after_help = "Examples:
  why last-write total --before list.c:42#3
  why last-write 0x55000000a2c0+8            before the end, or the crash
  why last-write 'p->next' --before crash
  why last-write total --after list.c:42#3   the next write instead")]
pub struct LastWrite {
    /// A recording [default: the latest], and a variable, an expression, or an
    /// address such as 0x1000 or 0x1000+8
    #[arg(value_name = "[REC] ADDR|VAR", num_args = 1..=2, required = true)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Before this position [default: the end of the run]
    #[arg(long, value_name = "POS", conflicts_with = "after")]
    before: Option<String>,

    /// The next write behind this position instead
    #[arg(long, value_name = "POS")]
    after: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Said where nobody named a place.
const ELSEWHERE: &str = "at the end of the run (name another place with --before POS)";

#[derive(Serialize)]
struct Found {
    position: String,
    thread: Option<u32>,
    number: u64,
    function: Option<String>,
    code: Option<String>,
    instruction: Option<String>,
    values: Vec<report::Value>,
}

impl LastWrite {
    /// Finds the writes, and says where they are.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let [what] = words else {
            return crate::status::usage("say what was written: `why last-write VAR`");
        };
        let run = self.subject.run(recording, false)?;
        let at = match self.before.as_ref().or(self.after.as_ref()) {
            Some(text) => crate::subject::position(text)?,
            None => Position::Exit,
        };
        let named = self.before.is_some() || self.after.is_some();
        let criterion = Criterion { position: at, what: place(what) };
        let starts = match self.after {
            Some(_) => position::meant(&run, &criterion)?.starts,
            None => match position::before(&run, &criterion) {
                Err(error) if !named => Err(error).context(ELSEWHERE)?,
                starts => starts?,
            },
        };
        let is_variable = matches!(criterion.what, What::Expression(_));
        let asked = Asked::new(&run, starts, is_variable)?;
        let found = match self.after {
            Some(_) => asked.next().into_iter().collect(),
            None => asked.last(),
        };
        let found = describe(&run, found)?;
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &found).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if found.is_empty() {
            let text = match asked.nowhere()? {
                Some(address) => format!("nothing wrote it: there is no memory at {address:#x}"),
                None => self.nothing(&run, what, &asked),
            };
            for line in Style::wrapped(&text, show::style().width) {
                writeln!(out, "{line}")?;
            }
        }
        for f in found.iter().filter(|_| !self.json) {
            f.write(out)?;
        }
        Ok(if found.is_empty() { 1 } else { 0 })
    }

    /// Says that no write was found, and what there is on the other side of the position.
    fn nothing(&self, run: &Run, what: &str, asked: &Asked<'_>) -> String {
        let (here, side, which) = match (&self.before, &self.after) {
            (_, Some(after)) if asked.is_in_register() => {
                return format!(
                    "{what} is in a register at {after}; what is written next is known of memory only"
                );
            }
            (_, Some(after)) => (format!("after {after}"), Side::Before, "last"),
            (Some(before), _) => (format!("before {before}"), Side::Behind, "first"),
            (None, None) => ("before the end".to_owned(), Side::Behind, "first"),
        };
        if asked.is_in_register() {
            return format!(
                "nothing wrote {what} {here}; it is in a register there, and what is written \
                 elsewhere is known of memory only"
            );
        }
        let writes = asked.writes(side);
        let nearest = if side == Side::Before { writes.last() } else { writes.first() };
        let Some(nearest) = nearest else {
            return nothing_at_all(run, what, asked);
        };
        let own = run.own_instance(nearest.by).unwrap_or(nearest.by);
        let place = Names::of(run, [own]).name(own);
        let when = match writes.len() {
            1 => format!("once, at {place}"),
            n => format!("{n} times, {which} at {place}"),
        };
        let there = if side == Side::Before { "before" } else { "from then on" };
        format!("nothing wrote {what} {here}; {there}, it was written {when}")
    }
}

/// Says that nothing on either side wrote it, too.
fn nothing_at_all(run: &Run, what: &str, asked: &Asked<'_>) -> String {
    let Some(lifetime) = asked.lifetime() else {
        return "nothing in the run wrote it; it is as the program was loaded".to_owned();
    };
    let place = run.places.at(run.trace.instruction(lifetime.begins));
    let function = place.and_then(|place| run.places.get(place).function.clone());
    let function = function.unwrap_or_else(|| "the function".to_owned());
    format!("nothing wrote {what} in this call of {function}; its memory is as {function} found it")
}

/// An address with a length, or an expression.
fn place(text: &str) -> What {
    let (address, len) = text.split_once('+').unwrap_or((text, "1"));
    let hex = address.strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok());
    match (hex, len.parse()) {
        (Some(address), Ok(len)) => What::Memory(address, len),
        _ => match text.strip_prefix('$') {
            Some(register) => What::Register(register.to_owned()),
            None => What::Expression(text.to_owned()),
        },
    }
}

fn describe(run: &Run, found: Vec<Instance>) -> anyhow::Result<Vec<Found>> {
    let mut found = found;
    found.sort_by_cached_key(|at| std::cmp::Reverse((run.trace.seen(*at), *at)));
    found.dedup();
    let own: Vec<Instance> = found.iter().map(|at| run.own_instance(*at).unwrap_or(*at)).collect();
    let names = Names::of(run, own.iter().copied());
    let entry = |at: Instance| names.get(at).map_or(at, |n| n.entry);
    let entries: Vec<Instance> = own.iter().map(|at| entry(*at)).collect();
    let values = report::values(run, &entries)?;
    let one = |(at, own): (&Instance, &Instance)| Found {
        position: names.name(*own),
        thread: names.thread(*at),
        number: run.trace.number(*at),
        function: names.get(*own).and_then(|n| run.places.get(n.place).function.clone()),
        code: report::code(run, *own).map(|c| c.trim().to_owned()),
        instruction: run.disassembled(*at),
        values: values.get(&entry(*own)).cloned().unwrap_or_default(),
    };
    Ok(found.iter().zip(&own).map(one).collect())
}

impl Found {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let thread = self.thread.map(|t| format!(", thread {t}")).unwrap_or_default();
        let function = self.function.as_deref().map(|f| format!(" in {f}")).unwrap_or_default();
        writeln!(out, "{}{thread}{function} (@{})", self.position, self.number)?;
        let code = self.code.as_deref().or(self.instruction.as_deref()).unwrap_or("");
        writeln!(out, "    {}", Style::cut(code, show::style().width - 4))?;
        let given = self.values.iter().filter(|v| v.assigned);
        let given: Vec<String> = given.map(|v| format!("{} = {}", v.name, v.value)).collect();
        if !given.is_empty() {
            writeln!(out, "    {}", Style::cut(&given.join(", "), show::style().width - 4))?;
        }
        Ok(())
    }
}
