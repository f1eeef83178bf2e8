//! `why critical`: the branches whose other outcome makes a failing run succeed.

use std::collections::{BTreeMap, HashSet};
use std::io::{IsTerminal, Write};

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use locate::{Around, Criterion, Failure, Found, Order, Ordered, Predicate, Progress, Search};
use position::{Names, Run};
use serde::Serialize;
use slice::Slicer;
use trace::Instance;
use whatif::{Laboratory, Limits, Stream, Verdict};

use crate::expected::{Expected, steps};
use crate::notice;
use crate::subject::Subject;

/// Where a search keeps what it found out, for --resume.
const KEPT: &str = "critical.json";

/// Find the branches whose other outcome makes a failing run succeed.
///
/// Each branch that the run executed is a candidate; a trial replays the run to it, lets it go the
/// other way and runs on in a sandbox. Nothing outside is touched.
#[derive(Args)]
#[command(after_help = "Examples:
  why critical                              of a crash
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
    /// recorded run
    #[arg(long, value_name = "N|Nx", default_value = "10x")]
    steps: String,

    /// If no single switch helps, try pairs
    #[arg(long)]
    pairs: bool,

    /// So many trials at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

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
        let judged = self.expected.oracle(&recording, &original)?;
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
        let limits = Limits { steps: steps(&self.steps, original.instructions)?, memory: 1 << 30 };
        let options = locate::Options {
            all: self.all,
            trials: self.trials.unwrap_or(usize::MAX),
            jobs: self.jobs.unwrap_or_else(processors),
            limits,
        };
        let decide =
            |outcome: &mut whatif::Outcome| super::what_if::decide(&judged, outcome).is_ok();
        let mut search =
            Search::new(&predicates, &ordered, &failure, judged.oracle.clone(), options);
        search.decide(&decide);
        let key = format!("{:?} {:?} {}", judged.oracle, ordered.used, predicates.len());
        if self.resume {
            search.resume(kept(&run, &key));
        }
        let bar = self.bar();
        let begun = std::time::Instant::now();
        engine::sandbox::catch_interrupts();
        search.run(&mut laboratory, &mut |progress| tell(&bar, progress))?;
        let mut pair = None;
        let single = search.found();
        if self.pairs && single.is_empty() && !search.is_interrupted() {
            bar.set_message("pairs ");
            let most = self.trials.unwrap_or(20_000);
            pair = search.pairs(&predicates, most, &mut laboratory, &mut |p| tell(&bar, p))?;
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
            search: &search,
            pair,
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

/// All that a report is made of.
struct Seen<'a> {
    run: &'a Run,
    slicer: &'a Slicer<'a>,
    dependences: &'a slice::Options,
    forward: Option<&'a HashSet<Instance>>,
    predicates: &'a [Predicate],
    ordered: &'a Ordered,
    failure: &'a Failure,
    search: &'a Search<'a>,
    pair: Option<locate::Pair>,
    seconds: f64,
}

/// What was found, as `--json` shows it.
#[derive(Serialize)]
struct Report {
    failure: String,
    order: &'static str,
    /// Branches executed before the failure.
    predicates: usize,
    /// Those of them in the slice or chop.
    in_slice: usize,
    /// Trials that the answer needed.
    trials: usize,
    seconds: f64,
    interrupted: bool,
    verdicts: BTreeMap<&'static str, u64>,
    unserved: BTreeMap<String, u64>,
    critical: Vec<Branch>,
    /// Two branches that help together.
    pair: Option<[Branch; 2]>,
    /// How many switches keep the run away from the crash point.
    avoided: usize,
    /// The first of those branches.
    avoiding: Vec<String>,
    slices: Option<Slices>,
}

/// A branch's execution.
#[derive(Serialize)]
struct Branch {
    position: String,
    instruction: u64,
    address: u64,
    function: Option<String>,
    /// Was it taken in the failing run? Not known of pairs.
    taken: Option<bool>,
    /// Which execution before the failure, from 0.
    backward: u64,
    trial: usize,
    distance: Option<u32>,
    source: Vec<(u32, String)>,
    line: Option<u32>,
}

/// Lines around a critical predicate.
#[derive(Serialize)]
struct Slices {
    executed: usize,
    /// Lines that the branch depended on.
    upstream: usize,
    /// Lines that depended on it.
    downstream: usize,
    /// Both together.
    bidirectional: usize,
    /// Lines that the failure depended on.
    failing: Option<usize>,
    /// Lines that depended on the input that was named.
    input: Option<usize>,
    /// What is in all of those that exist; what to look at first comes first.
    statements: Vec<Look>,
}

#[derive(Serialize)]
struct Look {
    position: String,
    distance: u32,
    text: Option<String>,
}

/// So many lines of source before and after a branch.
const CONTEXT: u32 = 2;
/// So many branches that only avoid the crash are named.
const AVOIDING: usize = 5;
/// So many statements are shown.
const STATEMENTS: usize = 10;

impl Report {
    fn new(seen: &Seen) -> Report {
        let found = seen.search.found();
        let pair = seen.pair.map(|pair| {
            pair.predicates.map(|predicate| Found { predicate, rank: pair.tried - 1, taken: false })
        });
        let avoided = seen.search.avoided();
        let avoiding = avoided.iter().take(AVOIDING);
        let shown = found.iter().chain(pair.iter().flatten()).chain(avoiding);
        let instances = shown.map(|f| seen.predicates[f.predicate].instance);
        let names = Names::of(seen.run, instances);
        let first = found.first().map(|f| &seen.predicates[f.predicate]);
        Report {
            failure: failure(seen.failure),
            order: seen.ordered.used.words(),
            predicates: seen.predicates.len(),
            in_slice: seen.ordered.high,
            trials: seen.search.tried(),
            seconds: seen.seconds,
            interrupted: seen.search.is_interrupted(),
            verdicts: seen.search.counts(),
            unserved: seen.search.unserved(),
            critical: found.iter().map(|f| Branch::of(seen, &names, f)).collect(),
            pair: pair.map(|both| both.map(|f| Branch::of(seen, &names, &f))),
            avoided: avoided.len(),
            avoiding: avoided
                .iter()
                .take(AVOIDING)
                .map(|f| names.name(seen.predicates[f.predicate].instance))
                .collect(),
            slices: first.map(|predicate| Slices::of(seen, predicate)),
        }
    }
}

impl Branch {
    fn of(seen: &Seen, names: &Names, found: &Found) -> Branch {
        let p = &seen.predicates[found.predicate];
        let program = &seen.run.program;
        let line = program.line(p.pc);
        let source = line.and_then(|l| Some((program.source(l.file)?, l.line)));
        let source = source.map(|(source, at)| {
            let lines = at.saturating_sub(CONTEXT).max(1)..=at + CONTEXT;
            lines.filter_map(|n| Some((n, source.line(n)?.to_owned()))).collect()
        });
        let same = seen.predicates[found.predicate + 1..].iter().filter(|q| q.pc == p.pc);
        Branch {
            position: names.name(p.instance),
            instruction: p.number,
            address: p.pc,
            function: program.function(p.pc).map(|f| f.name),
            taken: seen.pair.is_none().then_some(found.taken),
            backward: same.count() as u64,
            trial: found.rank + 1,
            distance: seen.ordered.distances.get(&found.predicate).copied(),
            source: source.unwrap_or_default(),
            line: line.map(|l| l.line),
        }
    }
}

impl Slices {
    fn of(seen: &Seen, predicate: &Predicate) -> Slices {
        let around = Around::of(
            seen.run,
            seen.slicer,
            seen.dependences,
            predicate,
            seen.failure,
            seen.forward,
        );
        let look = |s: &locate::Statement| Look {
            position: seen.run.place_name(s.place),
            distance: s.distance,
            text: source_text(seen.run, s.place),
        };
        Slices {
            executed: around.executed,
            upstream: around.upstream,
            downstream: around.downstream,
            bidirectional: around.bidirectional,
            failing: around.failing,
            input: around.input,
            statements: around.statements.iter().map(look).collect(),
        }
    }
}

fn source_text(run: &Run, place: position::PlaceId) -> Option<String> {
    match run.places.get(place).at {
        position::At::Line(file, line) => run.program.source(file)?.line(line).map(str::to_owned),
        position::At::Address(_) => None,
    }
}

fn failure(failure: &Failure) -> String {
    let name = |stream| match stream {
        Stream::Out => "output",
        Stream::Err => "standard error",
    };
    match failure.criterion {
        Criterion::Crash => {
            let crash = failure.crash.as_ref().expect("a crash has a point");
            match crash.signal {
                Some(signal) => format!("it crashed with signal {signal} at {:#x}", crash.point.pc),
                None => format!("it died inside of the call at {:#x}", crash.point.pc),
            }
        }
        Criterion::Output(stream, byte, unit) => {
            format!("{} is wrong from byte {byte} on, in unit {unit}", name(stream))
        }
        Criterion::Missing(stream, unit) => {
            format!("{} breaks off; unit {unit} is missing", name(stream))
        }
        Criterion::End => "it ended otherwise than expected".to_owned(),
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "failure     {}", self.failure)?;
        writeln!(
            out,
            "candidates  {} branches executed before it, {} of them in the slice; order: {}",
            self.predicates, self.in_slice, self.order
        )?;
        let counts = self.verdicts.iter().map(|(word, n)| format!("{n} {word}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        writeln!(out, "trials      {} in {:.2} s: {counts}", self.trials, self.seconds)?;
        for (what, n) in &self.unserved {
            writeln!(out, "            {n} × unserved: {what}")?;
        }
        if self.avoided > 0 {
            writeln!(
                out,
                "avoided     {} switches only keep it from the crash point: {}",
                self.avoided,
                self.avoiding.join(", ")
            )?;
        }
        for branch in &self.critical {
            branch.write(out, "critical")?;
        }
        for branch in self.pair.iter().flatten() {
            branch.write(out, "together")?;
        }
        if self.interrupted {
            writeln!(out, "interrupted; `--resume` goes on")?;
        }
        if self.critical.is_empty() && self.pair.is_none() {
            return writeln!(out, "no critical predicate was found");
        }
        self.slices.as_ref().map_or(Ok(()), |slices| slices.write(out))
    }
}

impl Branch {
    fn write(&self, out: &mut dyn Write, word: &str) -> std::io::Result<()> {
        let function = self.function.as_deref().unwrap_or("?");
        let how = match self.taken {
            Some(true) => " was taken",
            Some(false) => " was not taken",
            None => "",
        };
        let distance = self.distance.map(|d| format!(", distance {d}")).unwrap_or_default();
        writeln!(
            out,
            "\n{}  {} in {function}: the branch at {:#x}{how} (trial {}, {} from the end{distance})",
            crate::show::bold(word),
            self.position,
            self.address,
            self.trial,
            self.backward
        )?;
        for (n, text) in &self.source {
            let mark = if Some(*n) == self.line { '>' } else { ' ' };
            writeln!(out, "  {mark} {n:>5}  {}", report::Style::cut(text, 90))?;
        }
        Ok(())
    }
}

impl Slices {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "\nslices      {} lines ran; {} led to the branch, {} followed, {} in all",
            self.executed, self.upstream, self.downstream, self.bidirectional
        )?;
        for (n, what) in [(self.failing, "led to the failure"), (self.input, "used the input")] {
            if let Some(n) = n {
                writeln!(out, "            {n} {what}")?;
            }
        }
        writeln!(out, "            {} are in all of these", self.statements.len())?;
        writeln!(out, "look at")?;
        for look in self.statements.iter().take(STATEMENTS) {
            let text = look.text.as_deref().unwrap_or("");
            let text = report::Style::cut(text.trim(), 60);
            writeln!(out, "  {:>3}  {:<24} {text}", look.distance, look.position)?;
        }
        if self.statements.len() > STATEMENTS {
            writeln!(out, "       … {} more with --json", self.statements.len() - STATEMENTS)?;
        }
        Ok(())
    }
}
