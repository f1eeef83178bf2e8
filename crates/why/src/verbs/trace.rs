//! `why trace`: build the trace, and say how large it is.

use std::io::Write;
use std::time::Instant;

use clap::Args;
use serde::Serialize;

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
    bits_per_instruction: f64,
    seconds: f64,
}

impl Trace {
    /// Traces, and writes the facts.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        anyhow::ensure!(words.is_empty(), "there is no recording called {}", words[0]);
        let begin = Instant::now();
        let run = self.subject.run(recording, false)?;
        let trace = &run.trace;
        let instructions = trace.records.instructions();
        let threads: std::collections::HashSet<u32> =
            trace.spans.spans.iter().map(|s| s.thread).collect();
        let size = trace.size();
        let facts = Facts {
            version: 1,
            instructions,
            records: trace.records.len().into(),
            distinct_instructions: trace.executed().len() as u64,
            distinct_paths: trace.code.paths().count() as u64,
            threads: threads.len() as u64,
            calls: trace.spans.calls.len() as u64,
            complete: trace.ended.complete,
            size_bytes: size,
            bits_per_instruction: size as f64 * 8.0 / instructions.max(1) as f64,
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
        let bits = format!("{:.2}", self.bits_per_instruction);
        let rows = [
            ("instructions", self.instructions.to_string()),
            ("records", self.records.to_string()),
            ("distinct instructions", self.distinct_instructions.to_string()),
            ("distinct paths", self.distinct_paths.to_string()),
            ("threads", self.threads.to_string()),
            ("system calls", self.calls.to_string()),
            ("to the end", if self.complete { "yes" } else { "no" }.to_owned()),
            ("size in memory", show::size(self.size_bytes)),
            ("bits per instruction", bits),
            ("built in", format!("{:.2} s", self.seconds)),
        ];
        for (name, value) in rows {
            writeln!(out, "{name:<21} {value}")?;
        }
        Ok(())
    }
}
