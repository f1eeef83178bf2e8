//! Why did this run fail? Slices, switched branches and values put into one story.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! let mut laboratory = whatif::Laboratory::open(&recording)?;
//! let run = position::Run::open(recording, &mut |_| ())?;
//! let oracle = whatif::Oracle { no_crash: true, ..Default::default() };
//! let limits = explain::Limits::default();
//! let judge = explain::Judge { oracle: &oracle, decide: None, accepted: true };
//! let story = explain::explain(&run, &mut laboratory, &judge, &limits, &mut |_, _| true)?;
//! println!("{}", story.failure.sentence);
//! # Ok(())
//! # }
//! ```

mod accesses;
mod blocked;
mod blocks;
mod budget;
mod crash;
mod dice;
mod doubts;
mod experiments;
mod failure;
mod filled;
mod focus;
mod functions;
mod heap;
mod lookups;
mod misuse;
mod ordering;
mod path;
mod races;
mod ranking;
mod spots;
mod stale;
mod watch;
mod ways;

use budget::Budget;
use experiments::{Candidates, Subject};
use locate::{Criterion, Failure, Order, Ordered};
use position::Run;
use report::{Critical, Edited, Story};
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

/// What was expected of the run, and who judges trials.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What can be compared.
    pub oracle: &'a Oracle,
    /// Who judges what that leaves undecided.
    pub decide: Option<locate::Decide<'a>>,
    /// Has nobody said no to the recorded run?
    pub accepted: bool,
}

/// How far an explanation may go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for all of it.
    pub time: Duration,
    /// When that began: tracing the run is part of it.
    pub begun: Instant,
    /// How long a replay of the run takes.
    pub replay: Duration,
    /// Trials at most.
    pub trials: usize,
    /// Are small changes of the program tried, besides other ways of its predicates?
    pub edits: bool,
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
            begun: Instant::now(),
            replay: Duration::ZERO,
            trials: 3000,
            edits: true,
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
    judge: &Judge<'_>,
    limits: &Limits,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Story, Error> {
    let budget = Budget::of(limits);
    let original = laboratory.original().clone();
    let oracle = judge.oracle;
    let failure = failure(run, judge, &original, limits)?;
    let slicer = Slicer::new(&run.trace);
    let predicates = locate::predicates(run, failure.until, false);
    let misuses = misuse::is_found_out(run, &failure).then(|| watch::misuses(run, budget.share(6)));
    let found_out = misuses.iter().flatten().flat_map(|found| misuse::told(run, found, None));
    let found_out: Vec<blocks::Misuse> = found_out.collect();
    let hung = limits.hung.is_some();
    let focus = focus::focus(run, &failure, &predicates, &found_out, &original, hung);
    let (flat, nested) = (Lines::of(run, true), Lines::of(run, false));
    let flat = |at: trace::Instance, id: trace::InstructionId| flat.group(at, id);
    let nested = |at: trace::Instance, id: trace::InstructionId| nested.group(at, id);
    let ways = Ways::of(run, &slicer, &focus.starts, &flat, &nested, &budget);
    let shows = failure.starts.iter().map(slice::Start::at);
    let shows = shows.chain(failure::printed(run, &focus));
    let shows = shows.chain(found_out.iter().map(|misuse| misuse.at));
    let shows: Vec<_> = shows.filter_map(|at| ways.place(run, at)).collect();
    let mut ranking = ranking::Ranking::of(run, &ways, &shows);
    if let Some(right) = dice::right(run, oracle, &original) {
        let until = budget.share(8);
        ranking.dice(&dice::Dice::of(run, &slicer, &focus.starts, &right, until));
    }
    let mut doubts = doubts::of_trace(run, limits, &original);
    if !accuse(run, &ways, limits, &budget, &mut ranking) {
        doubts.push("there was no time to look at all accesses to memory".to_owned());
    }
    let misuses = misuses.unwrap_or_else(|| watch::misuses(run, budget.share(6)));
    if misuses.is_none() {
        doubts.push("not all uses of the heap were looked at".to_owned());
    }
    let wrong = misuse::told(run, &misuses.unwrap_or_default(), Some(&ways));
    if found_out.is_empty() && !wrong.is_empty() {
        let starts: Vec<_> = wrong.iter().flat_map(|misuse| misuse.starts(run)).collect();
        let of_memory = Ways::of(run, &slicer, &starts, &flat, &nested, &budget);
        ranking.add(&of_memory, &ranking::Of::Memory);
    }
    for (n, misuse) in wrong.iter().enumerate() {
        misuse.accuse(run, &mut ranking, 1.5 / (1.0 + n as f64));
    }
    let within = Options { until: Some(budget.share(6)), ..self::options(run) };
    let ordered = Ordered::new(&slicer, &within, &predicates, Order::Prior, &failure, None);
    if !ways.is_complete() || !ordered.complete {
        doubts.push("the run is long: the farthest dependences were not followed".to_owned());
    }
    if failure.starts.is_empty() {
        doubts
            .push("output is missing, and nothing that did not happen has dependences".to_owned());
    }
    let trials = locate::Judge { oracle, decide: judge.decide };
    let subject = Subject { run, slicer: &slicer, judge: trials, failure: &failure, limits };
    let candidates = Candidates { predicates: &predicates, ordered: &ordered };
    let tried = subject.experiment(&candidates, &budget, &mut ranking, laboratory, progress);
    doubts.extend(tried.broke_off.as_ref().map(|why| format!("experiments broke off: {why}")));
    let until = run.trace.at_number(focus.until.saturating_sub(1));
    let until = until.unwrap_or(run.trace.last_instance());
    let cured: Vec<&locate::Edit> = tried.cured.iter().collect();
    ranking.blame_edits(run, &slicer, &ways, &cured, until, &budget);
    ranking.share(run);
    let suspects = ranking.suspects(run, limits.places);
    let path = path::path(run, &ways, &ranking, &suspects, limits.full);
    let wrong_paths: Vec<_> = wrong
        .iter()
        .map(|misuse| misuse.path(run, &slicer, limits.full, budget.share(6)))
        .collect();
    let mut wanted: Vec<trace::Instance> = Vec::new();
    wanted.extend(path.iter().chain(wrong_paths.iter().flatten()).map(|step| step.at));
    wanted.extend(wrong.iter().flat_map(|misuse| [misuse.at, misuse.call]));
    wanted.extend(tried.critical.iter().map(|(p, _)| p.instance));
    wanted.extend(suspects.iter().map(|s| s.at));
    let told = told_edits(&cured, &ranking);
    wanted.extend(told.iter().map(|(edit, _)| edit.first));
    let (edited, switched) = match limits.edits {
        true => (told, Vec::new()),
        false => (Vec::new(), told),
    };
    let failed = failure::describe(run, oracle, &original, &failure, limits.hung)?;
    wanted.extend(failed.instances());
    let spots = spots::Spots::of(run, &wanted)?;
    let effect = failed.remedied();
    Ok(Story {
        version: 1,
        command: command(run),
        recording: run.recording.dir().display().to_string(),
        failure: failed.shown(&spots),
        path: path.iter().map(|step| step.shown(&spots)).collect(),
        memory: wrong.iter().zip(&wrong_paths).map(|(m, path)| m.shown(path, &spots)).collect(),
        critical: critical(run, &tried.critical, &switched, &effect, &spots),
        edits: edited.iter().map(|told| shown_edit(told, &effect, &spots)).collect(),
        tried: tried.counted,
        suspects: suspects.iter().map(|s| s.shown(&spots)).collect(),
        doubts,
        instructions: original.instructions,
        executed_lines: ranking.executed,
        slice_lines: ranking.lines,
        seconds: limits.begun.elapsed().as_secs_f64(),
    })
}

/// What is wrong with the run, and where it shows.
fn failure(
    run: &Run,
    judge: &Judge<'_>,
    original: &whatif::Original,
    limits: &Limits,
) -> Result<Failure, Error> {
    let oracle = Oracle { asks: !judge.accepted, ..judge.oracle.clone() };
    let mut failure = Failure::of(run, &oracle, original)?;
    if let (Criterion::End, Some(call)) = (failure.criterion, focus::panicking(run, original)) {
        // What comes after, such as a backtrace, is long and tells nothing.
        failure.starts = vec![slice::Start::Instance(call)];
        failure.until = run.trace.number(call);
    }
    if limits.hung.is_some() {
        // Where it was stopped is no place that a run must come back to.
        failure.crash = None;
        failure.starts = match failure::stands(run) {
            Some(at) => vec![slice::Start::Instance(at)],
            None => failure.starts,
        };
    }
    Ok(failure)
}

/// Accuses lines of what the trace shows by itself. Was there time for all of it?
fn accuse(
    run: &Run,
    ways: &Ways<'_>,
    limits: &Limits,
    budget: &Budget,
    ranking: &mut ranking::Ranking,
) -> bool {
    // Where there are threads, how they get along tells more than anything else.
    let mut done = races::accuse(run, ways, ranking, budget.share(4));
    done &= stale::accuse(run, ways, ranking, budget.share(12));
    if limits.hung.is_some() {
        done &= blocked::accuse(run, ranking, budget.share(8));
    }
    done
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

/// Of what lies ever farther from the failure, keeps the first few, the last of all among them:
/// that is where the run could be set right earliest, and nearest to the cause.
fn farthest_among<T>(lines: &mut Vec<T>, few: usize) {
    if lines.len() > few {
        lines.drain(few - 1..lines.len() - 1);
    }
}

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
    farthest_among(&mut lines, HELPING);
    lines.into_iter().map(|(_, predicate, taken, others)| (predicate, taken, others)).collect()
}

/// Branches that help, and conditions that do when they are switched throughout.
fn critical(
    run: &Run,
    once: &[(&locate::Predicate, bool)],
    throughout: &[(&locate::Edit, u64)],
    effect: &str,
    spots: &spots::Spots<'_>,
) -> Vec<Critical> {
    let once = branches(run, once).into_iter().map(|(predicate, taken, others)| Critical {
        spot: spots.get(predicate.instance),
        taken: Some(taken),
        throughout: None,
        others,
        effect: effect.to_owned(),
    });
    let throughout = throughout.iter().map(|(edit, others)| Critical {
        spot: spots.get(edit.first),
        taken: None,
        throughout: Some(edit.words.clone()),
        others: *others,
        effect: effect.to_owned(),
    });
    once.chain(throughout).collect()
}

/// A change that helps, as people see it.
fn shown_edit(
    (edit, others): &(&locate::Edit, u64),
    effect: &str,
    spots: &spots::Spots<'_>,
) -> Edited {
    Edited {
        spot: spots.get(edit.first),
        change: edit.words.clone(),
        others: *others,
        effect: effect.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_that_help_the_nearest_are_named_and_the_farthest() {
        let few = |mut all: Vec<u32>| {
            farthest_among(&mut all, 3);
            all
        };
        assert_eq!(few(vec![1, 2, 3, 4, 5]), [1, 2, 5]);
        assert_eq!(few(vec![1, 2, 3]), [1, 2, 3]);
        assert_eq!(few(vec![1]), [1]);
    }
}
