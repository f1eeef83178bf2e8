//! `why slices`: slices that were kept.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use recording::Recording;
use report::SliceReport;
use serde::Serialize;
use slice::Runs;

use crate::show;
use crate::status::{Usage, usage};
use crate::subject::Subject;

/// What kept slices are called on disk.
const PREFIX: &str = "slice-";
const SUFFIX: &str = ".json";

/// List, show or remove kept slices.
#[derive(Args)]
#[command(after_help = "Examples:
  why slice crash --save first    keep a slice
  why slices                      list those of the latest recording
  why slices --show first         show it again, without slicing
  why slices --remove first")]
pub struct Slices {
    /// A recording [default: the latest]
    #[arg(value_name = "[REC]", num_args = 0..=1)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Show a kept slice
    #[arg(long, value_name = "NAME")]
    show: Option<String>,

    /// Remove kept slices
    #[arg(long, value_name = "NAME", num_args = 1..)]
    remove: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One of the list.
#[derive(Serialize)]
struct Entry {
    name: String,
    criterion: String,
    kind: report::Kind,
    instances: u64,
    lines: u64,
}

impl Slices {
    /// Does what is asked.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        crate::status::no_more(words)?;
        for name in &self.remove {
            let path = recording.derived(&file_name(name)?);
            std::fs::remove_file(path).map_err(|_| no_such(name))?;
            // Slices that go forward have none.
            let _ = std::fs::remove_file(recording.derived(&runs_name(name)?));
        }
        if let Some(name) = &self.show {
            let report = load(&recording, name)?;
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
                writeln!(out)?;
            } else {
                report.write_text(out, show::style())?;
            }
            return Ok(0);
        }
        if self.remove.is_empty() {
            self.list(&recording, out)?;
        }
        Ok(0)
    }

    fn list(&self, recording: &Recording, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut entries = Vec::new();
        for name in names(recording) {
            let report = load(recording, &name)?;
            entries.push(Entry {
                name,
                criterion: report.criterion.clone(),
                kind: report.kind,
                instances: report.instances,
                lines: report.distinct_lines(),
            });
        }
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &entries).map_err(std::io::Error::from)?;
            writeln!(out)?;
            return Ok(());
        }
        for e in &entries {
            let size = format!("{} lines, {} instances", e.lines, e.instances);
            writeln!(out, "{:<16} {:<28} {size}", e.name, e.criterion)?;
        }
        Ok(())
    }
}

fn no_such(name: &str) -> Usage {
    Usage(format!("there is no slice called {name}; `why slices` lists them"))
}

/// Names go into file names, so they are plain.
fn file_name(name: &str) -> anyhow::Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        return usage("a slice's name is made of letters, digits, `-`, `_` and `.`");
    }
    Ok(format!("{PREFIX}{name}{SUFFIX}"))
}

/// Keeps a slice with its recording.
pub fn save(recording: &Recording, name: &str, report: &SliceReport) -> anyhow::Result<()> {
    let bytes = serde_json::to_vec(report)?;
    Ok(recording.keep_derived(&file_name(name)?, &bytes)?)
}

fn runs_name(name: &str) -> anyhow::Result<String> {
    Ok(format!("{}.runs", file_name(name)?))
}

/// Keeps which executions a slice consists of, by their numbers in the run.
pub fn save_runs(recording: &Recording, name: &str, runs: &Runs) -> anyhow::Result<()> {
    Ok(recording.keep_derived(&runs_name(name)?, &runs.to_bytes())?)
}

/// Which executions a kept slice consists of.
pub fn load_runs(recording: &Recording, name: &str) -> anyhow::Result<Runs> {
    load(recording, name)?;
    let bytes = std::fs::read(recording.derived(&runs_name(name)?)).ok();
    bytes.and_then(|bytes| Runs::from_bytes(&bytes)).ok_or_else(|| {
        Usage(format!(
            "the slice {name} goes forward or was kept by an older version; keep a backward one \
             with `why slice CRITERION --save {name}`"
        ))
        .into()
    })
}

/// Reads a kept slice.
fn load(recording: &Recording, name: &str) -> anyhow::Result<SliceReport> {
    let bytes = std::fs::read(recording.derived(&file_name(name)?)).map_err(|_| no_such(name))?;
    serde_json::from_slice(&bytes).with_context(|| {
        format!("the slice {name} was kept by another version; remove it and slice again")
    })
}

fn names(recording: &Recording) -> Vec<String> {
    let folder = recording.derived("");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = files
        .filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned())
        })
        .collect();
    names.sort();
    names
}
