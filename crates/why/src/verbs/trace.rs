//! `why trace`: build the trace, keep it, and say how large it is.

use std::io::Write;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::hung;
use crate::show;
use crate::subject::Subject;

/// Trace a recording now, and show how large the trace is.
///
/// Every analysis traces what it needs by itself.
#[derive(Args)]
#[command(after_help = "Examples:
  why trace
  why trace 7 --json")]
pub struct Trace {
    /// A recording [default: the latest]
    #[arg(value_name = "[REC]", num_args = 0..=1)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What there is to say.
#[derive(Serialize)]
struct Facts {
    version: u32,
    instructions: u64,
    records: u64,
    distinct_instructions: u64,
    distinct_paths: u64,
    threads: u64,
    calls: u64,
    complete: bool,
    size_bytes: u64,
    stored_bytes: Option<u64>,
    bits_per_instruction: Option<f64>,
    seconds: f64,
}

impl Trace {
    /// Traces, and writes the facts.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        crate::status::no_more(words)?;
        let begin = Instant::now();
        let run = self.subject.run(recording, false)?;
        let trace = &run.trace;
        let instructions = trace.records.instructions();
        let threads: std::collections::HashSet<u32> =
            trace.spans.spans.iter().map(|s| s.thread).collect();
        // Of a run that hung, only the beginning may be there: whoever loads it takes it for all.
        let is_whole = trace.ended.complete || hung::remembered(&run.recording).is_none();
        if is_whole && trace::Trace::stored_size(&run.recording).is_none() {
            // Where it cannot be kept, its size is not known, and nothing is lost.
            let _ = trace.store(&run.recording);
        }
        let stored = trace::Trace::stored_size(&run.recording);
        let bits = |bytes: u64| bytes as f64 * 8.0 / instructions.max(1) as f64;
        let facts = Facts {
            version: 1,
            instructions,
            records: trace.records.len().into(),
            distinct_instructions: trace.executed().len() as u64,
            distinct_paths: trace.code.paths().count() as u64,
            threads: threads.len() as u64,
            calls: trace.spans.calls.len() as u64,
            complete: trace.ended.complete,
            size_bytes: trace.size(),
            stored_bytes: stored,
            bits_per_instruction: stored.map(bits),
            seconds: begin.elapsed().as_secs_f64(),
        };
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &facts).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            facts.write(out)?;
        }
        Ok(0)
    }
}

impl Facts {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let bits = self.bits_per_instruction.map(|b| format!("{b:.2}"));
        let stored = self.stored_bytes.map(show::size);
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let rows = [
            ("instructions", self.instructions.to_string()),
            ("records", self.records.to_string()),
            ("distinct instructions", self.distinct_instructions.to_string()),
            ("distinct paths", self.distinct_paths.to_string()),
            ("threads", self.threads.to_string()),
            ("system calls", self.calls.to_string()),
            ("to the end", if self.complete { "yes" } else { "no" }.to_owned()),
            ("size in memory", show::size(self.size_bytes)),
            ("size on disk", or_unknown(stored)),
            ("bits per instruction", or_unknown(bits)),
            ("built in", format!("{:.2} s", self.seconds)),
        ];
        for (name, value) in rows {
            writeln!(out, "{name:<21} {value}")?;
        }
        Ok(())
    }
}
