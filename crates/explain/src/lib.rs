//! Why did this run fail? Slices, switched branches and values put into one story.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! let mut laboratory = whatif::Laboratory::open(&recording)?;
//! let run = position::Run::open(recording, &mut |_| ())?;
//! let oracle = whatif::Oracle { no_crash: true, ..Default::default() };
//! let limits = explain::Limits::default();
//! let story = explain::explain(&run, &mut laboratory, &oracle, &limits, &mut |_, _| true)?;
//! println!("{}", story.failure.sentence);
//! # Ok(())
//! # }
//! ```

mod accesses;
mod blocked;
mod failure;
mod focus;
mod freed;
mod path;
mod ranking;
mod spots;
mod stale;
mod ways;

use locate::{Criterion, Failure, Order, Ordered, Search};
use position::Run;
use ranking::Helping;
use report::{Critical, Edited, Story, Tried};
use slice::{Options, Slicer};
use std::time::{Duration, Instant};
use ways::{Lines, Ways};
use whatif::{Laboratory, Oracle};

/// Why there is no story.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be looked at.
    #[error(transparent)]
    Position(#[from] position::Error),
    /// The failure cannot be located.
    #[error(transparent)]
    Locate(#[from] locate::Error),
    /// Experiments cannot be made.
    #[error(transparent)]
    Whatif(#[from] whatif::Error),
}

mishap::mishaps! { Error {
} passes on { Error::Position(_), Error::Locate(_), Error::Whatif(_) } }

/// How far an explanation may go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for experiments.
    pub time: Duration,
    /// Trials at most.
    pub trials: usize,
    /// Trials at a time.
    pub jobs: usize,
    /// Instructions of one trial.
    pub steps: u64,
    /// All steps of the causal path, rather than a handful.
    pub full: bool,
    /// So many places to look at are named.
    pub places: usize,
    /// The run did not end by itself within this time, and was ended.
    pub hung: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(30),
            trials: 3000,
            jobs: 2,
            steps: 20_000_000,
            full: false,
            places: 10,
            hung: None,
        }
    }
}

/// Explains a failing run. `progress` hears of trials done and to do, and may end
/// the search.
pub fn explain(
    run: &Run,
    laboratory: &mut Laboratory,
    oracle: &Oracle,
    limits: &Limits,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Story, Error> {
    let begun = Instant::now();
    let original = laboratory.original().clone();
    let mut failure = Failure::of(run, oracle, &original)?;
    if let (Criterion::End, Some(call)) = (failure.criterion, focus::panicking(run, &original)) {
        // What comes after, such as a backtrace, is long and tells nothing.
        failure.starts = vec![slice::Start::Instance(call)];
        failure.until = run.trace.number(call);
    }
    if limits.hung.is_some() {
        // Where it was stopped is no place that a run must come back to.
        failure.crash = None;
    }
    let slicer = Slicer::new(&run.trace);
    let predicates = locate::predicates(run, failure.until, false);
    let focus = focus::focus(run, &failure, &predicates, limits.hung.is_some());
    let (flat, nested) = (Lines::of(run, true), Lines::of(run, false));
    let flat = |at: trace::Instance, id: trace::InstructionId| flat.group(at, id);
    let nested = |at: trace::Instance, id: trace::InstructionId| nested.group(at, id);
    let ways = Ways::of(run, &slicer, &focus.starts, &flat, &nested);
    let mut ranking = ranking::Ranking::of(run, &ways);
    stale::accuse(run, &ways, &mut ranking);
    if limits.hung.is_some() {
        blocked::accuse(run, &mut ranking);
    }
    if failure.criterion == Criterion::Crash {
        freed::accuse(run, &ways, &mut ranking);
    }
    let ordered =
        Ordered::new(&slicer, &self::options(run), &predicates, Order::Prior, &failure, None);
    let options = locate::Options {
        all: true,
        trials: limits.trials,
        jobs: limits.jobs,
        limits: whatif::Limits { steps: steps(limits, &failure), memory: 1 << 30 },
    };
    // To the byte: a trial that gets farther than the failure says something too.
    let exact = Oracle { unit: whatif::Unit::Byte, ..oracle.clone() };
    let mut search = Search::new(&predicates, &ordered, &failure, exact, options);
    let experiments = Instant::now();
    search.run(laboratory, &mut |p| {
        progress(p.done, p.total) && experiments.elapsed() < limits.time / 2
    })?;
    let found = search.found();
    let critical: Vec<_> = found.iter().map(|f| (&predicates[f.predicate], f.taken)).collect();
    let byte = match failure.criterion {
        locate::Criterion::Output(_, byte, _) => Some(byte + 1),
        _ => None,
    };
    let cures = critical.iter().map(|(predicate, _)| Helping { predicate, gain: 1.0 });
    let improved = search.improved(byte);
    let share = |gain: u64| progress_share(oracle, &failure, gain);
    let delays = improved
        .iter()
        .map(|(f, gain)| Helping { predicate: &predicates[f.predicate], gain: share(*gain) });
    let helping: Vec<Helping<'_>> = cures.chain(delays).collect();
    ranking.blame(run, &slicer, &helping);
    let edits = edits(run, &failure, &ranking);
    let tries = locate::Options { trials: limits.trials, ..options };
    let edited = locate::try_edits(&edits, &failure, oracle, &tries, laboratory, &mut |p| {
        progress(p.done, p.total) && experiments.elapsed() < limits.time
    })?;
    let cured = edited.iter().filter(|e| e.verdict == whatif::Verdict::Passed);
    let cured: Vec<&locate::Edit> = cured.map(|e| &edits[e.edit]).collect();
    let until = run.trace.at_number(focus.until.saturating_sub(1));
    let until = until.unwrap_or(run.trace.last_instance());
    ranking.blame_edits(run, &slicer, &ways, &cured, until);
    ranking.share(run);
    let suspects = ranking.suspects(run, limits.places);
    let path = path::path(run, &ways, &ranking, &suspects, limits.full);
    let mut wanted: Vec<trace::Instance> = Vec::new();
    wanted.extend(path.iter().map(|step| step.at));
    wanted.extend(critical.iter().map(|(p, _)| p.instance));
    wanted.extend(suspects.iter().map(|s| s.at));
    let told = told_edits(&cured, &ranking);
    wanted.extend(told.iter().map(|(edit, _)| edit.first));
    let failed = failure::describe(run, oracle, &original, &failure, limits.hung)?;
    wanted.extend(failed.instances());
    let spots = spots::Spots::of(run, &wanted)?;
    let mut doubts = Vec::new();
    if !run.trace.ended.complete {
        let doubt = match limits.hung {
            Some(_) if focus::has_reached(run, original.pc) => {
                "only the beginning of the long run was looked at"
            }
            Some(_) => "the part of the run that was looked at ends before the place where it hung",
            None => "the recording breaks off before the run's end",
        };
        doubts.push(doubt.to_owned());
    }
    if !ways.is_complete() {
        doubts.push("the run is long: the farthest dependences were not followed".to_owned());
    }
    if failure.starts.is_empty() {
        doubts
            .push("output is missing, and nothing that did not happen has dependences".to_owned());
    }
    let tried = Tried {
        candidates: predicates.len() as u64,
        trials: search.results().len() as u64,
        outcomes: search.counts().into_iter().map(|(w, n)| (w.to_owned(), n)).collect(),
        complete: search.results().len() >= ordered.order.len(),
        edits: edited.len() as u64,
        possible_edits: edits.len() as u64,
    };
    let effect = failed.remedied();
    Ok(Story {
        version: 1,
        command: command(run),
        recording: run.recording.dir().display().to_string(),
        failure: failed.shown(&spots),
        path: path.iter().map(|step| step.shown(&spots)).collect(),
        critical: branches(run, &critical)
            .into_iter()
            .map(|(p, taken, others)| Critical {
                spot: spots.get(p.instance),
                taken,
                others,
                effect: effect.clone(),
            })
            .collect(),
        edits: told
            .iter()
            .map(|(edit, others)| Edited {
                spot: spots.get(edit.first),
                change: edit.words.clone(),
                others: *others,
                effect: effect.clone(),
            })
            .collect(),
        tried,
        suspects: suspects.iter().map(|s| s.shown(&spots)).collect(),
        doubts,
        instructions: run.trace.records.instructions(),
        executed_lines: ranking.executed,
        slice_lines: ranking.lines,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// How far a trial may go: what a run does after it has announced its failure, a trial that
/// succeeds need not do.
fn steps(limits: &Limits, failure: &Failure) -> u64 {
    match failure.announced {
        Some(_) => limits.steps.min((10 * failure.until).max(20_000_000)),
        None => limits.steps,
    }
}

/// How much of what went wrong goes right in a trial that got farther: less than 1.
fn progress_share(oracle: &Oracle, failure: &Failure, gain: u64) -> f64 {
    let Criterion::Output(stream, byte, _) = failure.criterion else { return 0.0 };
    let expected = match stream {
        whatif::Stream::Out => &oracle.stdout,
        whatif::Stream::Err => &oracle.stderr,
    };
    let wrong = expected.as_ref().map_or(0, |e| (e.len() as u64).saturating_sub(byte));
    (gain as f64 / (wrong + 1) as f64).min(0.9)
}

/// Edits of the program, the most promising first: of the most suspect lines, and such
/// as people make.
fn edits(run: &Run, failure: &Failure, ranking: &ranking::Ranking) -> Vec<locate::Edit> {
    let lines = Lines::of(run, false);
    let mut edits = locate::edits(run, failure.until, &|place| !lines.opens(place));
    let promise = |e: &locate::Edit| ranking::likelihood(e.kind) * (0.1 + ranking.score(e.place));
    edits.sort_by(|a, b| promise(b).total_cmp(&promise(a)).then(a.number.cmp(&b.number)));
    edits
}

/// The likeliest edit that helps in each line, and how many others of that line do; of
/// the most suspect lines only.
fn told_edits<'e>(
    cured: &[&'e locate::Edit],
    ranking: &ranking::Ranking,
) -> Vec<(&'e locate::Edit, u64)> {
    let mut lines: Vec<(&locate::Edit, u64)> = Vec::new();
    for edit in cured {
        match lines.iter_mut().find(|(known, _)| known.place == edit.place) {
            Some((known, others)) => {
                *others += 1;
                if ranking::likelihood(edit.kind) > ranking::likelihood(known.kind) {
                    *known = edit;
                }
            }
            None => lines.push((edit, 0)),
        }
    }
    let score = |line: &(&locate::Edit, u64)| ranking.score(line.0.place);
    lines.sort_by(|a, b| score(b).total_cmp(&score(a)));
    lines.truncate(HELPING);
    lines
}

/// So many lines with branches that help are named.
const HELPING: usize = 3;

/// One branch for each line, and how many more of that line help too.
fn branches<'p>(
    run: &Run,
    critical: &[(&'p locate::Predicate, bool)],
) -> Vec<(&'p locate::Predicate, bool, u64)> {
    let mut lines: Vec<(Option<position::PlaceId>, &locate::Predicate, bool, u64)> = Vec::new();
    for (predicate, taken) in critical {
        let place = run.places.at(predicate.instruction);
        match lines.iter_mut().find(|l| l.0 == place) {
            Some(line) => line.3 += 1,
            None => lines.push((place, predicate, *taken, 0)),
        }
    }
    lines.truncate(HELPING);
    lines.into_iter().map(|(_, predicate, taken, others)| (predicate, taken, others)).collect()
}

/// Dependences of the program itself, not of what its loader did.
fn options(run: &Run) -> Options {
    let from = run.beginning().unwrap_or(Options::default().from);
    Options { from, ..Options::default() }
}

fn command(run: &Run) -> String {
    let words = &run.recording.manifest().command;
    let text = words.iter().map(|w| String::from_utf8_lossy(&w.0).into_owned());
    text.collect::<Vec<_>>().join(" ")
}
