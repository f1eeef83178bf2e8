//! `why omitted`: what was not done, and should perhaps have been.

use std::io::Write;

use clap::Args;
use locate::{Potential, Reach};
use position::{Criterion, Names, Run};
use serde::Serialize;
use slice::Slicer;
use whatif::{Laboratory, Limits};

use crate::expected::steps;
use crate::subject::{Subject, default_criterion};

/// Find the branches that hid a dependence: each that might have changed a value, had it gone the
/// other way, is switched, and the value looked at.
///
/// `why slice --relevant` has all of them; these are those that an experiment confirms.
#[derive(Args)]
#[command(after_help = "Examples:
  why omitted                      of the crash, or of the last byte of output
  why omitted output:589           of one byte
  why omitted zip.c:312:flags      of the value of flags at the last execution")]
pub struct Omitted {
    /// A recording [default: the latest] and a criterion [default: the crash, else
    /// the last byte of output that ends no line]
    #[arg(value_name = "[REC] [CRITERION]", num_args = 0..=2)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// At most N trials, the nearest first
    #[arg(long, value_name = "N", default_value_t = 200)]
    trials: usize,

    /// At most so many instructions in a trial: a number, or a multiple of the
    /// recorded run [default: 10x, 1x of a run that hung]
    #[arg(long, value_name = "N|Nx")]
    steps: Option<String>,

    /// So many trials at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found, as `--json` shows it.
#[derive(Serialize)]
struct Report {
    /// Branches that were switched.
    trials: usize,
    confirmed: Vec<Branch>,
    refuted: usize,
    unknown: usize,
}

#[derive(Serialize)]
struct Branch {
    position: String,
    distance: u32,
    text: Option<String>,
}

impl Omitted {
    /// Switches, and shows what that changed.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        // First of all, while this process is small: it is forked.
        let mut laboratory = Laboratory::open(&recording)?;
        let instructions = laboratory.original().instructions;
        let run = self.subject.run(recording, false)?;
        let criterion = match words {
            [] => default_criterion(&run)?,
            [text] => Criterion::parse(text)?,
            [first, ..] => return Err(crate::status::no_recording(first).into()),
        };
        let meant = position::meant(&run, &criterion)?;
        let slicer = Slicer::new(&run.trace);
        let options = slice::Options {
            from: run.beginning().unwrap_or(slice::Options::default().from),
            ..slice::Options::default()
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let steps = steps(self.steps.as_deref(), &run.recording, instructions)?;
        let reach = Reach {
            trials: self.trials,
            jobs: self.jobs.unwrap_or_else(processors),
            limits: Limits { steps, memory: 1 << 30 },
        };
        let Some(start) = meant.starts.last() else { anyhow::bail!("nothing is used there") };
        let found = locate::omitted(&run, &slicer, &options, start, &mut laboratory, &reach)?;
        let names = Names::of(&run, found.confirmed.iter().map(|p| p.predicate.instance));
        let report = Report {
            trials: found.confirmed.len() + found.refuted.len() + found.unknown.len(),
            confirmed: found.confirmed.iter().map(|p| Branch::of(&run, &names, p)).collect(),
            refuted: found.refuted.len(),
            unknown: found.unknown.len(),
        };
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            report.write(out)?;
        }
        Ok(u8::from(report.confirmed.is_empty()))
    }
}

impl Branch {
    fn of(run: &Run, names: &Names, potential: &Potential) -> Branch {
        let line = run.program.line(potential.predicate.pc);
        let text = line.and_then(|l| Some(run.program.source(l.file)?.line(l.line)?.to_owned()));
        Branch {
            position: names.name(potential.predicate.instance),
            distance: potential.distance,
            text: text.map(|text| text.trim().to_owned()),
        }
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "{} branches might have changed it; switched, {} did, {} did not, {} cannot be told",
            self.trials,
            self.confirmed.len(),
            self.refuted,
            self.unknown
        )?;
        for branch in &self.confirmed {
            let text = branch.text.as_deref().unwrap_or("");
            let text = report::Style::cut(text, 60);
            writeln!(out, "  {:>3}  {:<24} {text}", branch.distance, branch.position)?;
        }
        Ok(())
    }
}
