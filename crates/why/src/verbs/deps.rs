//! `why deps`: one step back, in words.

use std::io::Write;

use clap::Args;
use position::Criterion;
use report::DepsReport;
use slice::Slicer;

use crate::show;
use crate::subject::{Subject, default_criterion};

/// Say what one execution of a line used, and where that came from.
#[derive(Args)]
#[command(after_help = "Examples:
  why deps list.c:42       of the last execution of the line
  why deps list.c:42#3     of the third
  why deps crash           of what crashed")]
pub struct Deps {
    /// A recording [default: the latest] and a position [default: the crash, else
    /// the last byte of output that ends no line]
    #[arg(value_name = "[REC] [POS]", num_args = 0..=2)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Deps {
    /// Looks one step back, and says what is there.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let run = self.subject.run(recording, false)?;
        let criterion = match words {
            [] => default_criterion(&run)?,
            [text] => Criterion::parse(text)?,
            [first, ..] => return Err(crate::status::no_recording(first).into()),
        };
        crate::subject::say_who_answers(&run, &criterion.position);
        let meant = position::meant(&run, &criterion)?;
        let report = DepsReport::of(&run, &Slicer::new(&run.trace), &meant)?;
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            report.write_text(out, show::style())?;
        }
        Ok(0)
    }
}
