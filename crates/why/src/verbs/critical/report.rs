//! What a search found, as `--json` shows it.

use std::collections::{BTreeMap, HashSet};

use locate::{Around, Criterion, Failure, Found, Ordered, Predicate, Search};
use position::{Names, Run};
use serde::Serialize;
use slice::Slicer;
use trace::Instance;
use whatif::{Stream, Unit};

/// All that a report is made of.
pub struct Seen<'a> {
    pub run: &'a Run,
    pub slicer: &'a Slicer<'a>,
    pub dependences: &'a slice::Options,
    pub forward: Option<&'a HashSet<Instance>>,
    pub predicates: &'a [Predicate],
    pub ordered: &'a Ordered,
    pub failure: &'a Failure,
    pub search: &'a Search<'a>,
    pub pair: Option<locate::Pair>,
    /// How many were tried, if they were.
    pub pairs_tried: Option<usize>,
    /// What outputs are compared in.
    pub unit: Unit,
    /// Is what was expected known from an earlier time?
    pub remembered: bool,
    pub seconds: f64,
}

/// What was found, as `--json` shows it.
#[derive(Serialize)]
pub struct Report {
    pub failure: String,
    pub order: &'static str,
    /// Branches executed before the failure.
    pub predicates: usize,
    /// Those of them in the slice or chop.
    pub in_slice: usize,
    /// Trials that the answer needed.
    pub trials: usize,
    pub seconds: f64,
    pub interrupted: bool,
    pub verdicts: BTreeMap<&'static str, u64>,
    pub unserved: BTreeMap<String, u64>,
    pub critical: Vec<Branch>,
    /// Two branches that help together.
    pub pair: Option<[Branch; 2]>,
    /// How many pairs were tried; nothing if pairs were not asked for or not needed.
    pub pairs_tried: Option<usize>,
    /// Was it judged by what was expected of the recording before?
    pub remembered: bool,
    /// How many switches keep the run away from the crash point.
    pub avoided: usize,
    /// The first of those branches.
    pub avoiding: Vec<String>,
    pub slices: Option<Slices>,
}

/// A branch's execution.
#[derive(Serialize)]
pub struct Branch {
    pub position: String,
    pub instruction: u64,
    pub address: u64,
    pub function: Option<String>,
    /// Was it taken in the failing run? Not known of pairs.
    pub taken: Option<bool>,
    /// Which execution before the failure, from 0.
    pub backward: u64,
    pub trial: usize,
    pub distance: Option<u32>,
    pub source: Vec<(u32, String)>,
    pub line: Option<u32>,
}

/// Lines around a critical predicate.
#[derive(Serialize)]
pub struct Slices {
    pub executed: usize,
    /// Lines that the branch depended on.
    pub upstream: usize,
    /// Lines that depended on it.
    pub downstream: usize,
    /// Both together.
    pub bidirectional: usize,
    /// Lines that the failure depended on.
    pub failing: Option<usize>,
    /// Lines that depended on the input that was named.
    pub input: Option<usize>,
    /// What is in all of those that exist; what to look at first comes first.
    pub statements: Vec<Look>,
}

/// A line to look at.
#[derive(Serialize)]
pub struct Look {
    pub position: String,
    pub distance: u32,
    /// The branch itself, what it depended on, or what depended on it.
    pub side: &'static str,
    pub text: Option<String>,
}

/// So many lines of source before and after a branch.
const CONTEXT: u32 = 2;
/// Which branch of a line is meant is looked up if there are no more than these.
const EXACT: usize = 50;
/// So many branches that only avoid the crash are named.
const AVOIDING: usize = 5;

impl Report {
    /// Looks up all that is shown.
    pub fn new(seen: &Seen) -> Report {
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
            failure: failure(seen.failure, seen.unit),
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
            pairs_tried: seen.pairs_tried,
            remembered: seen.remembered,
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
            position: match seen.search.found().len() {
                ..=EXACT => whatif::branch_name(seen.run, &names.name(p.instance), p.number),
                _ => names.name(p.instance),
            },
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
            side: s.side.word(),
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

fn failure(failure: &Failure, compared_in: Unit) -> String {
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
            let unit = match compared_in {
                Unit::Line => format!(", in line {unit}"),
                Unit::Byte => String::new(),
            };
            format!("{} is wrong from byte {byte} on{unit}", name(stream))
        }
        Criterion::Missing(stream, unit) => {
            // Bytes are counted from 0, as in positions.
            let unit = match compared_in {
                Unit::Line => unit,
                Unit::Byte => unit - 1,
            };
            format!("{} breaks off; {compared_in} {unit} is missing", name(stream))
        }
        Criterion::End => "it ended otherwise than expected".to_owned(),
    }
}
