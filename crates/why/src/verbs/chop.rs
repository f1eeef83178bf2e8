//! `why chop`: how one thing led to another.

use std::io::Write;

use clap::Args;
use position::Criterion;
use report::Question;
use slice::Slicer;

use super::slice::{Followed, Shown};
use crate::subject::Subject;

/// Show how one thing led to another.
#[derive(Args)]
#[command(after_help = "Examples:
  why chop input:0 crash             from the first byte of input to the crash
  why chop parse.c:40#2 output:17    from a line to a byte of output
  why chop 7 argv:1:0 list.c:42:n    in recording 7, from an argument to n")]
pub struct Chop {
    /// A recording [default: the latest], where to begin and where to end, each a
    /// position with :EXPRESSION behind it if one value is meant
    #[arg(value_name = "[REC] FROM TO", num_args = 2..=3, required = true)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    followed: Followed,

    #[command(flatten)]
    shown: Shown,
}

impl Chop {
    /// Chops, and writes the answer.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let [from, to] = words else {
            return crate::status::usage("say where to begin and where to end: `why chop FROM TO`");
        };
        let run = self.subject.run(recording, self.followed.via_lib)?;
        let (from, to) = (Criterion::parse(from)?, Criterion::parse(to)?);
        let (first, last) = (position::meant(&run, &from)?, position::meant(&run, &to)?);
        let options = self.followed.options(&run, &to)?;
        let slicer = Slicer::new(&run.trace);
        let text = format!("{from} and {to}");
        let question = Question {
            run: &run,
            slicer: &slicer,
            criterion: &text,
            options: &options,
            via_lib: self.followed.via_lib,
        };
        let report = question.chop(&first.onward, &last.starts)?;
        self.shown.write(&run, &report, out)
    }
}
