//! Which other branches and other lines would have made the run succeed?

use crate::Limits;
use crate::budget::Budget;
use crate::ranking::{Helping, Ranking, likelihood};
use crate::ways::Lines;
use locate::{Criterion, Edit, Failure, Kind, Ordered, Predicate, Search};
use position::Run;
use report::Tried;
use slice::Slicer;
use std::collections::HashSet;
use whatif::{Laboratory, Oracle, Unit, Verdict};

/// What experiments are about.
pub struct Subject<'a> {
    pub run: &'a Run,
    pub slicer: &'a Slicer<'a>,
    pub judge: locate::Judge<'a>,
    pub failure: &'a Failure,
    pub limits: &'a Limits,
}

/// Branches to be switched.
#[derive(Clone, Copy)]
pub struct Candidates<'p> {
    pub predicates: &'p [Predicate],
    pub ordered: &'p Ordered,
}

/// What experiments showed.
#[derive(Default)]
pub struct Experimented<'p> {
    /// Branches whose other outcome helps, and whether they were taken.
    pub critical: Vec<(&'p Predicate, bool)>,
    /// Edits that help; only such as switch predicates, if no others are wanted.
    pub cured: Vec<Edit>,
    /// How many were tried.
    pub counted: Tried,
    /// Why no more could be tried, if something failed.
    pub broke_off: Option<String>,
}

impl Subject<'_> {
    /// Switches branches, then edits lines, those that the branches make suspect first.
    pub fn experiment<'p>(
        &self,
        candidates: &Candidates<'p>,
        budget: &Budget,
        ranking: &mut Ranking,
        laboratory: &mut Laboratory,
        progress: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Experimented<'p> {
        let Candidates { predicates, ordered } = *candidates;
        let mut options = self.options();
        progress(0, predicates.len());
        options.until = Some(budget.share(2));
        // To the byte: a trial that gets farther than the failure says something too.
        let exact = Oracle { unit: Unit::Byte, ..self.judge.oracle.clone() };
        let mut search = Search::new(predicates, ordered, self.failure, exact, options);
        if let Some(decide) = self.judge.decide {
            search.decide(decide);
        }
        let searched = search.run(laboratory, &mut |p| progress(p.done, p.total));
        let mut seen = Experimented { broke_off: told(searched), ..Experimented::default() };
        let found = search.found();
        seen.critical = found.iter().map(|f| (&predicates[f.predicate], f.taken)).collect();
        self.blame(&search, &seen.critical, predicates, ranking, budget);
        let mut edits = edits(self.run, self.failure, ranking);
        if !self.limits.edits {
            let place = |p: &Predicate| self.run.places.at(p.instruction);
            let known: HashSet<_> = seen.critical.iter().filter_map(|(p, _)| place(p)).collect();
            // Where one execution is enough, all of them are no news.
            edits.retain(|edit| edit.kind.is_switch() && !known.contains(&edit.place));
        }
        seen.counted = Tried {
            candidates: predicates.len() as u64,
            trials: search.results().len() as u64,
            outcomes: search.counts().into_iter().map(|(w, n)| (w.to_owned(), n)).collect(),
            complete: search.results().len() >= ordered.order.len(),
            possible_edits: if self.limits.edits { edits.len() as u64 } else { 0 },
            ..Tried::default()
        };
        if seen.broke_off.is_none() {
            options.until = Some(budget.most());
            self.edit(edits, &options, &mut seen, laboratory, progress);
        }
        seen
    }

    /// Tries edits.
    fn edit(
        &self,
        edits: Vec<Edit>,
        options: &locate::Options,
        seen: &mut Experimented<'_>,
        laboratory: &mut Laboratory,
        progress: &mut dyn FnMut(usize, usize) -> bool,
    ) {
        let mut results = Vec::new();
        let tried = locate::try_edits(
            &edits,
            self.failure,
            &self.judge,
            options,
            laboratory,
            &mut results,
            &mut |p| progress(p.done, p.total),
        );
        seen.broke_off = told(tried);
        match self.limits.edits {
            true => seen.counted.edits = results.len() as u64,
            false => seen.counted.throughout = results.len() as u64,
        }
        let cured = results.iter().filter(|e| e.verdict == Verdict::Passed);
        seen.cured = cured.map(|e| edits[e.edit].clone()).collect();
    }

    fn options(&self) -> locate::Options {
        locate::Options {
            all: true,
            trials: self.limits.trials,
            jobs: self.limits.jobs,
            limits: whatif::Limits { steps: self.steps(), memory: 1 << 30 },
            until: None,
        }
    }

    /// Blames the branches that help, and those after which the run goes right for longer.
    fn blame(
        &self,
        search: &Search<'_>,
        critical: &[(&Predicate, bool)],
        predicates: &[Predicate],
        ranking: &mut Ranking,
        budget: &Budget,
    ) {
        let byte = match self.failure.criterion {
            Criterion::Output(_, byte, _) => Some(byte + 1),
            _ => None,
        };
        let cures = critical.iter().map(|(predicate, _)| Helping { predicate, gain: 1.0 });
        let improved = search.improved(byte);
        // A run that only ends as wrongly as before has not got farther.
        let ends = matches!(self.failure.criterion, Criterion::End | Criterion::Missing(..));
        let is_measured = !ends || self.limits.hung.is_some();
        let delays = improved.iter().filter(|_| is_measured).map(|(f, gain)| {
            let predicate = &predicates[f.predicate];
            Helping { predicate, gain: self.progress_share(*gain) }
        });
        let helping: Vec<Helping<'_>> = cures.chain(delays).collect();
        ranking.blame(self.run, self.slicer, &helping, budget);
    }

    /// How far a trial may go: what a run does after it has announced its failure, a trial
    /// that succeeds need not do.
    fn steps(&self) -> u64 {
        match self.failure.announced {
            Some(_) => self.limits.steps.min((10 * self.failure.until).max(20_000_000)),
            None => self.limits.steps,
        }
    }

    /// How much of what went wrong goes right in a trial that got farther: less than 1.
    fn progress_share(&self, gain: u64) -> f64 {
        let Criterion::Output(stream, byte, _) = self.failure.criterion else { return 0.0 };
        let expected = match stream {
            whatif::Stream::Out => &self.judge.oracle.stdout,
            whatif::Stream::Err => &self.judge.oracle.stderr,
        };
        let wrong = expected.as_ref().map_or(0, |e| (e.len() as u64).saturating_sub(byte));
        (gain as f64 / (wrong + 1) as f64).min(0.9)
    }
}

/// The story is told without what failed, and says why.
fn told(done: Result<(), locate::Error>) -> Option<String> {
    done.err().map(|error| error.to_string())
}

/// Edits of the program, the most promising first: of the most suspect lines, and such
/// as people make.
fn edits(run: &Run, failure: &Failure, ranking: &Ranking) -> Vec<Edit> {
    let lines = Lines::of(run, false);
    let mut edits = locate::edits(run, failure.until, &|place| !lines.opens(place));
    // That nothing fails where nobody complains is no news.
    let complaint = failure.crash.as_ref().map(|crash| run.trace.instruction(crash.instance));
    edits.retain(|e| e.kind != Kind::Uncalled || Some(e.instruction) != complaint);
    let promise = |e: &Edit| likelihood(e.kind) * (0.1 + ranking.score(e.place));
    edits.sort_by(|a, b| promise(b).total_cmp(&promise(a)).then(a.number.cmp(&b.number)));
    edits
}
