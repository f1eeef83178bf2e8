//! `why slice`: what led to a value, and what followed from it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use position::{Criterion, Run};
use report::{Question, SliceReport};
use slice::{Options, Region, Slicer};

use crate::show;
use crate::subject::{Subject, default_criterion};

/// Show what a value, a line or a crash depended on.
#[derive(Args)]
#[command(after_help = "Examples:
  why slice                      what led to the crash, or to the last output
  why slice list.c:42            all that the last execution of line 42 used
  why slice list.c:42#3:total    the value of total at the third execution
  why slice output:589           what byte 589 of the output was made of
  why slice 7 crash --data       of recording 7, without control dependences")]
pub struct Slice {
    /// A recording [default: the latest], and what to explain: a position such as
    /// f.c:15#4, crash or output:7, with :EXPRESSION behind it if one value is
    /// meant [default: the crash, else the last byte of output that ends no line]
    #[arg(value_name = "[REC] [CRITERION]", num_args = 0..=2)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    followed: Followed,

    #[command(flatten)]
    shown: Shown,

    /// What followed from it instead
    #[arg(long, conflicts_with = "both")]
    forward: bool,

    /// Both: what led to it, and what followed from it
    #[arg(long)]
    both: bool,

    /// Also branches that might have changed a value, had they gone the other way
    #[arg(long, conflicts_with_all = ["forward", "both", "data", "thin"])]
    relevant: bool,
}

/// Which dependences are followed.
#[derive(Args)]
pub struct Followed {
    /// Data dependences only: leave out why lines ran at all
    #[arg(long)]
    data: bool,

    /// Leave out where values were found: no addresses, no control
    #[arg(long)]
    thin: bool,

    /// Show the insides of libraries, not just the calls that led there
    #[arg(long)]
    pub via_lib: bool,

    /// Also stack pointers, saved registers and the binding of symbols
    #[arg(long)]
    all_deps: bool,

    /// No farther than so many dependences
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// Show only what thread N did; others are followed where they lead back to it
    #[arg(long, value_name = "N")]
    thread: Option<u32>,

    /// Show nothing before this position
    #[arg(long, value_name = "POS")]
    from: Option<String>,

    /// Show nothing behind this position; the criterion may lie there
    #[arg(long, value_name = "POS")]
    to: Option<String>,

    /// Nothing through these variables or registers
    #[arg(long, value_name = "VAR|REG", value_delimiter = ',')]
    prune: Vec<String>,
}

impl Followed {
    /// The same in the slicer's words.
    pub fn options(&self, run: &Run, criterion: &Criterion) -> anyhow::Result<Options> {
        let mut options = Options {
            control: !self.data && !self.thin,
            addresses: !self.thin,
            bookkeeping: self.all_deps,
            depth: self.depth.unwrap_or(u32::MAX),
            region: self.region(run)?,
            ..Options::default()
        };
        if let Some(beginning) = run.beginning().filter(|_| !self.all_deps) {
            // Who names a place before the program begins wants to see what is there.
            let named = self.from.is_some().then_some(options.region.from);
            options.from = named.map_or(beginning, |from| from.min(beginning));
        }
        options.pruned = position::pruned(run, criterion, &self.prune)?;
        Ok(options)
    }

    /// What of the slice is shown.
    fn region(&self, run: &Run) -> anyhow::Result<Region> {
        let mut region = Region::default();
        if let Some(from) = &self.from {
            region.from = position::resolve(run, &crate::subject::position(from)?)?.instance();
        }
        if let Some(to) = &self.to {
            region.to = position::resolve(run, &crate::subject::position(to)?)?.instance();
        }
        region.thread = self.thread.map(|n| position::thread(run, n)).transpose()?;
        Ok(region)
    }
}

impl Slice {
    /// Slices, and writes the answer.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let run = self.subject.run(recording, self.followed.via_lib)?;
        let criterion = match words {
            [] => default_criterion(&run)?,
            [text] => Criterion::parse(text)?,
            [first, ..] => return Err(crate::status::no_recording(first).into()),
        };
        crate::subject::say_who_answers(&run, &criterion.position);
        let meant = position::meant(&run, &criterion)?;
        let mut options = self.followed.options(&run, &criterion)?;
        options.relevant = self.relevant;
        let slicer = Slicer::new(&run.trace);
        let text = criterion.to_string();
        let question = Question {
            run: &run,
            slicer: &slicer,
            criterion: &text,
            options: &options,
            via_lib: self.followed.via_lib,
        };
        let report = match (self.forward, self.both) {
            (false, false) => question.backward(&meant.starts)?,
            (true, false) => question.forward(&meant.onward)?,
            (_, true) => question.both(&meant.starts, &meant.onward)?,
        };
        if let (Some(name), false) = (&self.shown.save, self.forward || self.both) {
            let runs = slicer.runs(&meant.starts, &options);
            super::slices::save_runs(&run.recording, name, &runs)?;
        }
        self.shown.write(&run, &report, out)
    }
}

/// How a slice is shown, and whether it is kept.
#[derive(Args)]
pub struct Shown {
    /// Print JSON
    #[arg(long, conflicts_with = "dot")]
    json: bool,

    /// Print a graph for Graphviz
    #[arg(long)]
    dot: bool,

    /// Write a page with the source, to walk about in
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Keep the slice under a name; `why slices` lists them
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
}

impl Shown {
    /// Writes a slice as it is wanted.
    pub fn write(
        &self,
        run: &Run,
        report: &SliceReport,
        out: &mut dyn Write,
    ) -> anyhow::Result<u8> {
        if let Some(name) = &self.save {
            super::slices::save(&run.recording, name, report)?;
        }
        let needs_links = self.dot || self.html.is_some();
        let links = if needs_links { report::links(run, report)? } else { Vec::new() };
        if let Some(path) = &self.html {
            std::fs::write(path, report.html(run, &links)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if self.json {
            serde_json::to_writer_pretty(&mut *out, report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if self.dot {
            report.write_dot(&links, out)?;
        } else if self.html.is_none() {
            report.write_text(out, show::style())?;
        }
        Ok(if report.lines.is_empty() { 1 } else { 0 })
    }
}
