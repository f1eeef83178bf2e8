//! `why critical`: the branches whose other outcome makes a failing run succeed.

mod report;
mod text;

use std::collections::{BTreeMap, HashSet};
use std::io::{IsTerminal, Write};

use self::report::{Report, Seen};
use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use locate::{Failure, Order, Ordered, Progress, Search};
use position::Run;
use slice::Slicer;
use trace::Instance;
use whatif::{Laboratory, Limits, Verdict};

use crate::expected::{Expected, Source, steps};
use crate::notice;
use crate::subject::Subject;

/// Where a search keeps what it found out, for --resume.
const KEPT: &str = "critical.json";

/// Find the branches whose other outcome makes a failing run succeed.
///
/// Each branch that the run executed is a candidate; a trial replays the run to it, lets it go the
/// other way and runs on in a sandbox. Nothing outside is touched. A recording remembers what was
/// expected of it the last time.
#[derive(Args)]
#[command(after_help = "Examples:
  why critical                              of a crash or an exit status that is not 0
  why critical --expect right.txt           of wrong output
  why critical --expect-text '3\\n' --all    all of them, not just the first
  why critical 7 --order lefs --jobs 4      last executed first, four at a time
  why critical --pairs --trials 5000        two switches if one does not help
  why critical --resume                     go on after ^C")]
pub struct Critical {
    /// A recording: its folder or its name in `why list` [default: the latest]
    #[arg(value_name = "REC")]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    expected: Expected,

    /// Which are tried first: those nearest to the failure by dependences, those
    /// executed last, or those executed first
    #[arg(long, value_enum, default_value = "prior")]
    order: By,

    /// All of them, not just the first
    #[arg(long)]
    all: bool,

    /// Input that brings the failure about, as input:N..M or input:PATH:N..M
    #[arg(long, value_name = "INPUT")]
    delta: Option<String>,

    /// Branches of libraries too
    #[arg(long)]
    via_lib: bool,

    /// At most N trials
    #[arg(long, value_name = "N")]
    trials: Option<usize>,

    /// At most so many instructions in a trial: a number, or a multiple of the
    /// recorded run [default: 10x, 1x of a run that hung]
    #[arg(long, value_name = "N|Nx")]
    steps: Option<String>,

    /// If no single switch helps, try pairs
    #[arg(long)]
    pairs: bool,

    /// So many trials at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Go on with a search that was interrupted
    #[arg(long)]
    resume: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Prior,
    Lefs,
    First,
}

/// Results of a search by rank, and what they belong to.
type Kept = (String, BTreeMap<usize, (Verdict, bool)>);

impl Critical {
    /// Searches, and shows what was found.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        if let [first, ..] = words {
            return Err(crate::status::no_recording(first).into());
        }
        // First of all, while this process is small: it is forked.
        let mut laboratory = Laboratory::open(&recording)?;
        let original = laboratory.original().clone();
        let mut judged = self.expected.oracle(&recording, &original)?;
        judged.or_success(&original);
        if judged.is_content() {
            return Err(locate::Error::Succeeds.into());
        }
        let run = self.subject.run(recording, self.via_lib)?;
        let failure = Failure::of(&run, &judged.oracle, &original)?;
        let predicates = locate::predicates(&run, failure.until, self.via_lib);
        let slicer = Slicer::new(&run.trace);
        let order = match self.order {
            By::Prior => Order::Prior,
            By::Lefs => Order::Lefs,
            By::First => Order::First,
        };
        let dependences = slice::Options {
            from: run.beginning().unwrap_or(slice::Options::default().from),
            ..slice::Options::default()
        };
        let forward = self.forward(&run, &slicer, &dependences)?;
        let ordered =
            Ordered::new(&slicer, &dependences, &predicates, order, &failure, forward.as_ref());
        let steps = steps(self.steps.as_deref(), &run.recording, original.instructions)?;
        let limits = Limits { steps, memory: 1 << 30 };
        let options = locate::Options {
            all: self.all,
            trials: self.trials.unwrap_or(usize::MAX),
            jobs: self.jobs.map_or_else(processors, usize::from),
            limits,
            until: None,
        };
        let decide =
            |outcome: &mut whatif::Outcome| super::what_if::decide(&judged, outcome).is_ok();
        let mut search =
            Search::new(&predicates, &ordered, &failure, judged.oracle.clone(), options);
        search.decide(&decide);
        let (oracle, command) = (&judged.oracle, &judged.command);
        let key = format!("{oracle:?} {command:?} {:?} {}", ordered.used, predicates.len());
        if self.resume {
            search.resume(kept(&run, &key));
        }
        let bar = self.bar();
        let begun = std::time::Instant::now();
        engine::sandbox::catch_interrupts();
        search.run(&mut laboratory, &mut |progress| tell(&bar, progress))?;
        let (mut pair, mut pairs_tried) = (None, None);
        let single = search.found();
        if self.pairs && single.is_empty() && !search.is_interrupted() {
            bar.set_message("pairs ");
            let most = self.trials.unwrap_or(20_000);
            let mut done = 0;
            pair = search.pairs(&predicates, most, &mut laboratory, &mut |progress| {
                done = progress.done;
                tell(&bar, progress)
            })?;
            pairs_tried = Some(done);
        }
        bar.finish_and_clear();
        if let Ok(text) = serde_json::to_vec(&(&key, search.results())) {
            let _ = run.recording.keep_derived(KEPT, &text);
        }
        let report = Report::new(&Seen {
            run: &run,
            slicer: &slicer,
            dependences: &dependences,
            forward: forward.as_ref(),
            predicates: &predicates,
            ordered: &ordered,
            failure: &failure,
            unit: judged.oracle.unit,
            remembered: judged.source == Source::Remembered,
            search: &search,
            pair,
            pairs_tried,
            seconds: begun.elapsed().as_secs_f64(),
        });
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            report.write(out)?;
        }
        Ok(match (search.is_interrupted(), report.critical.is_empty() && report.pair.is_none()) {
            (true, _) => 130,
            (false, true) => 1,
            (false, false) => 0,
        })
    }

    /// What depends on the input that was named.
    fn forward(
        &self,
        run: &Run,
        slicer: &Slicer,
        options: &slice::Options,
    ) -> anyhow::Result<Option<HashSet<Instance>>> {
        let Some(delta) = &self.delta else { return Ok(None) };
        let wrong = || format!("`{delta}` names no input; write input:N..M or input:PATH:N..M");
        let (first, end) = delta.split_once("..").with_context(wrong)?;
        let (of, first) = first.rsplit_once(':').with_context(wrong)?;
        let bytes = first.parse::<u64>().with_context(wrong)?..end.parse().with_context(wrong)?;
        let mut starts = Vec::new();
        for n in bytes {
            let criterion = position::Criterion::parse(&format!("{of}:{n}"))?;
            starts.extend(position::meant(run, &criterion)?.onward);
        }
        let found = slicer.forward(&starts, options, slice::Instances::default());
        Ok(Some(found.0.into_iter().map(|(at, ..)| at).collect()))
    }

    fn bar(&self) -> ProgressBar {
        if self.subject.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template =
            "{msg}{bar:30} {human_pos}/{human_len} trials, {per_sec}, {eta} left at most";
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }
}

fn tell(bar: &ProgressBar, progress: Progress) -> bool {
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
    !engine::sandbox::is_interrupted()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What an earlier search of the same kind found out.
fn kept(run: &Run, key: &str) -> BTreeMap<usize, (Verdict, bool)> {
    let text = std::fs::read(run.recording.derived(KEPT)).unwrap_or_default();
    match serde_json::from_slice::<Kept>(&text) {
        Ok((of, results)) if of == key => results,
        _ => {
            notice("there is no interrupted search of this kind; this is a new one");
            BTreeMap::new()
        }
    }
}
