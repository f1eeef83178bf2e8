//! `why list`: which recordings are there.

use std::io::Write;

use clap::Args;
use recording::{ByteString, Ending, Entry, Home, Recording};
use serde::Serialize;

use crate::{notice, show};

/// List the recordings.
///
/// A star marks the latest, which is meant when none is named.
#[derive(Args)]
#[command(after_help = "Examples:
  why list
  why list --json")]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// No notice on stderr if there are none
    #[arg(short)]
    quiet: bool,
}

impl List {
    /// Prints one line for each recording.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let entries = Home::from_env()?.list()?;
        let rows: Vec<Row> = entries.iter().map(Row::of).collect();
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &rows).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if rows.is_empty() {
            if !self.quiet {
                notice(&recording::Error::NoRecordings.to_string());
            }
        } else {
            print_table(&rows, out)?;
        }
        Ok(0)
    }
}

/// One recording, as `--json` shows it.
#[derive(Serialize)]
struct Row {
    name: ByteString,
    path: ByteString,
    latest: bool,
    #[serde(flatten)]
    contents: Contents,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Contents {
    Readable { created: u64, outcome: Ending, size_bytes: u64, command: Vec<ByteString> },
    Unreadable { error: String },
}

impl Row {
    fn of(entry: &Entry) -> Row {
        let contents = Recording::open(&entry.path)
            .and_then(|recording| {
                Ok(Contents::Readable {
                    created: recording.manifest().created,
                    outcome: recording.outcome().map(|outcome| outcome.ending).unwrap_or_default(),
                    size_bytes: recording.usage()?.total(),
                    command: recording.manifest().command.clone(),
                })
            })
            .unwrap_or_else(|error| Contents::Unreadable { error: error.to_string() });
        let (name, path) = ((&entry.name).into(), (&entry.path).into());
        Row { name, path, latest: entry.latest, contents }
    }

    /// Name, date, outcome, size, command.
    fn cells(&self) -> [String; 5] {
        let star = if self.latest { "*" } else { "" };
        let name = format!("{}{star}", self.name);
        match &self.contents {
            Contents::Readable { created, outcome, size_bytes, command } => [
                name,
                show::date(*created),
                outcome.brief(),
                show::size(*size_bytes),
                show::command(command),
            ],
            Contents::Unreadable { .. } => {
                [name, String::new(), "unreadable".to_owned(), String::new(), String::new()]
            }
        }
    }
}

/// So many columns of a command are shown at least.
const COMMAND: usize = 20;
/// Before what is said of a recording in lines of its own.
const INDENT: usize = 6;

fn print_table(rows: &[Row], out: &mut dyn Write) -> std::io::Result<()> {
    let head = ["NAME", "RECORDED", "OUTCOME", "SIZE", "COMMAND"].map(str::to_owned);
    let cells: Vec<_> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
    let [name, date, outcome, size] = [0, 1, 2, 3].map(|column| width(column).unwrap_or(0));
    for (number, row) in cells.iter().enumerate() {
        let [a, b, c, d, e] = row;
        let before = name + date + outcome + size + 8;
        let e = report::Style::cut(e, show::style().width.saturating_sub(before).max(COMMAND));
        let line = format!("{a:<name$}  {b:<date$}  {c:<outcome$}  {d:>size$}  {e}");
        let row = number.checked_sub(1).map(|number| &rows[number]);
        let line = line.trim_end().to_owned();
        let latest = row.is_some_and(|row| row.latest);
        writeln!(out, "{}", if latest { show::bold(&line) } else { line })?;
        // Why one cannot be read is told whole.
        if let Some(Row { contents: Contents::Unreadable { error }, .. }) = row {
            for line in report::Style::wrapped(error, show::style().width.max(40) - INDENT) {
                writeln!(out, "{:INDENT$}{line}", "")?;
            }
        }
    }
    Ok(())
}
