//! Which lines are the most suspect?
//!
//! A line counts the more the fewer lines lie between it and the failure: along
//! values alone, and along all dependences. Lines whose branches help when switched
//! count most, and next to them the lines that their conditions were made of. Lines that were
//! good for right output count less.

use crate::budget::Budget;
use crate::dice::Dice;
use crate::options;
use crate::spots::Spots;
use crate::ways::{Lines, Texts, Ways};
use locate::{Edit, Kind, Predicate};
use position::{Also, PlaceId, Run};
use report::Suspect;
use slice::{Options, Slicer, Start};
use std::collections::{HashMap, HashSet};
use trace::{Instance, InstructionId};

/// So many lines with branches that help are taken into account.
const BLAMED: usize = 4;

/// So many of the last executions of instructions say what their values were made of.
const EXECUTIONS: usize = 256;

/// So much of a line's suspicion falls on lines that begin with its code, and on lines
/// that it was inlined into.
const BEGINS: f64 = 0.7;
const INLINED: f64 = 0.4;

/// So much less suspect a line is if all that it did was good for right output, too.
const WORKED: f64 = 0.6;

/// A branch whose other outcome helps.
#[derive(Clone, Copy)]
pub struct Helping<'a> {
    /// The branch.
    pub predicate: &'a Predicate,
    /// How much of what went wrong goes right then: 1 if all of it.
    pub gain: f64,
}

/// A line under suspicion.
pub struct Suspected {
    /// The execution nearest to the failure.
    pub at: Instance,
    /// The line.
    pub place: PlaceId,
    pub score: f64,
    pub reasons: Vec<String>,
}

/// All lines that the failure depends on.
pub struct Ranking {
    /// What counts against each, by number.
    weights: HashMap<u32, Line>,
    /// How often each ran.
    executions: HashMap<PlaceId, u64>,
    /// How many the failure depends on.
    pub lines: u64,
    /// How many were executed.
    pub executed: u64,
}

/// What lines are weighed by.
pub enum Of<'a> {
    /// How near they are to the failure, which shows in these.
    Failure(&'a [PlaceId]),
    /// How near to a wrong use of memory.
    Memory,
}

#[derive(Default)]
struct Line {
    at: Option<Instance>,
    score: f64,
    reasons: Vec<String>,
    /// What the trace shows of it that is suspect by itself.
    facts: Vec<String>,
}

impl Line {
    /// The strongest reason, then what is known for certain, then the others.
    fn reasons(&self) -> Vec<String> {
        let (first, rest) = self.reasons.split_at(self.reasons.len().min(1));
        first.iter().chain(&self.facts).chain(rest).cloned().collect()
    }
}

impl Suspected {
    /// As people see it.
    pub fn shown(&self, spots: &Spots<'_>) -> Suspect {
        Suspect {
            spot: spots.get_as(self.at, self.place),
            reasons: self.reasons.clone(),
            score: self.score,
        }
    }
}

impl Ranking {
    /// Weighs the lines that the failure depends on. It shows at some of those where looking
    /// back began; the others were only the last to decide.
    pub fn of(run: &Run, ways: &Ways<'_>, shows: &[PlaceId]) -> Ranking {
        let (executions, executed) = (executions(run), executed(run));
        let mut ranking = Ranking { weights: HashMap::new(), executions, lines: 0, executed };
        ranking.add(ways, &Of::Failure(shows));
        ranking.lines = ranking.weights.len() as u64;
        ranking
    }

    /// Weighs the lines that something depends on.
    pub fn add(&mut self, ways: &Ways<'_>, of: &Of<'_>) {
        let trees = [
            (&ways.values, 1.5, "values"),
            (&ways.data, 0.7, "values and their addresses"),
            (&ways.all, 1.0, "dependences"),
            (&ways.deciding, 1.0, DECIDED),
        ];
        for (tree, weight, word) in trees {
            for (line, node) in tree.groups() {
                // What ran often was right often.
                let times = self.executions.get(&PlaceId(line)).copied().unwrap_or(1).max(1);
                let often = 1.0 + 0.08 * (times as f64).log2();
                let entry = self.weights.entry(line).or_default();
                // Where a failure shows is seldom where it was made.
                entry.score += weight / (1.0 + f64::from(node.groups.max(1))) / often;
                entry.at.get_or_insert(node.at);
                if node.groups <= 3 && entry.reasons.is_empty() {
                    entry.reasons.extend(of.near(PlaceId(line), node.groups, word));
                }
            }
        }
    }

    /// Lines that worked for right output as well count for less.
    pub fn dice(&mut self, dice: &Dice) {
        for (line, entry) in &mut self.weights {
            entry.score *= 1.0 - WORKED * dice.worked(PlaceId(*line));
        }
    }

    /// Blames branches whose other outcome helps.
    pub fn blame(
        &mut self,
        run: &Run,
        slicer: &Slicer<'_>,
        helping: &[Helping<'_>],
        budget: &Budget,
    ) {
        let mut seen = HashSet::new();
        for helping in helping {
            let Some(place) = run.places.at(helping.predicate.instruction) else { continue };
            if !seen.insert(place) {
                continue;
            }
            let weight = 1.0 / seen.len() as f64;
            let within = values_within(run, budget);
            blame(run, slicer, &within, helping, place, weight, &mut self.weights);
            if seen.len() == BLAMED {
                break;
            }
        }
    }

    /// Blames lines that let the run succeed once they say something else, and next to
    /// them the lines that made their values.
    pub fn blame_edits(
        &mut self,
        run: &Run,
        slicer: &Slicer<'_>,
        ways: &Ways<'_>,
        cures: &[&Edit],
        until: Instance,
        budget: &Budget,
    ) {
        let mut best: HashMap<PlaceId, (&Edit, u32)> = HashMap::new();
        for edit in cures {
            let (known, count) = best.entry(edit.place).or_insert((edit, 0));
            *count += 1;
            if likelihood(edit.kind) > likelihood(known.kind) {
                *known = edit;
            }
        }
        let mut blamed: Vec<&Edit> = Vec::new();
        for (place, (edit, count)) in best {
            let line = self.weights.entry(place.0).or_default();
            line.score += likelihood(edit.kind) + 0.1 * f64::from(count.min(10));
            line.at.get_or_insert(edit.first);
            line.reasons.insert(0, format!("the run succeeds if {} here", edit.words));
            blamed.push(edit);
        }
        let score = |edit: &Edit| self.score(edit.place);
        blamed.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.place.cmp(&b.place)));
        for (n, edit) in blamed.iter().take(BLAMED).enumerate() {
            let weight = 1.5 / (1.0 + n as f64);
            let within = values_within(run, budget);
            let of_line = cures.iter().filter(|e| e.place == edit.place);
            let changed: HashSet<InstructionId> = of_line.map(|e| e.instruction).collect();
            let starts = last_executions(run, &changed, until);
            self.blame_sources(run, slicer, &within, edit.place, &starts, weight);
            self.blame_users(run, ways, edit.place, weight);
        }
    }

    /// Lines that made the values that what was changed of a line used.
    fn blame_sources(
        &mut self,
        run: &Run,
        slicer: &Slicer<'_>,
        within: &Options,
        place: PlaceId,
        starts: &[Start],
        weight: f64,
    ) {
        let of = Lines::of(run, false);
        let group = |at: Instance, id: InstructionId| of.group(at, id);
        let tree = slicer.tree(starts, within, &group);
        let name = run.place_name(place);
        for (line, node) in tree.groups().filter(|(line, _)| *line != place.0) {
            if node.groups > 3 {
                continue;
            }
            let entry = self.weights.entry(line).or_default();
            entry.score += weight / f64::from(node.groups.max(1));
            entry.at.get_or_insert(node.at);
            if node.groups <= 1 {
                entry.reasons.push(format!("{name} used its value"));
            }
        }
    }

    /// The lines that used a line's values on the nearest ways to the failure.
    fn blame_users(&mut self, run: &Run, ways: &Ways<'_>, place: PlaceId, weight: f64) {
        let mut users: Vec<PlaceId> = Vec::new();
        for tree in [&ways.values, &ways.data, &ways.all] {
            let way = tree.way_from_group(place.0);
            let lines = way.iter().filter_map(|node| ways.place(run, node.at));
            if let Some(user) = lines.skip_while(|p| *p == place).find(|p| !users.contains(p)) {
                users.push(user);
            }
        }
        for user in users {
            let entry = self.weights.entry(user.0).or_default();
            entry.score += 0.7 * weight;
            entry.reasons.push(format!("it used the value of {}", run.place_name(place)));
        }
    }

    /// Something that the trace shows of a line and that is suspect by itself.
    pub fn accuse(&mut self, place: PlaceId, at: Instance, weight: f64, reason: String) {
        let line = self.weights.entry(place.0).or_default();
        line.score += weight;
        line.at.get_or_insert(at);
        if !line.facts.contains(&reason) {
            line.facts.push(reason);
        }
    }

    /// Suspects lines that share the code of suspects: in optimised code, an instruction
    /// may belong to several.
    pub fn share(&mut self, run: &Run) {
        let mut shared: HashMap<PlaceId, (f64, Instance, String)> = HashMap::new();
        for (id, _) in run.trace.code.instructions() {
            let Some(place) = run.places.at(id) else { continue };
            let Some(Line { at: Some(at), score, .. }) = self.weights.get(&place.0) else {
                continue;
            };
            for (other, also) in run.places.others(id) {
                let (part, words) = match also {
                    Also::Begins => (BEGINS, "its code is part of that of"),
                    Also::Inlined => (INLINED, "it called, without a call in the code,"),
                };
                let known = shared.get(other).map_or(0.0, |(score, ..)| *score);
                if score * part > known {
                    let words = format!("{words} {}", run.place_name(place));
                    shared.insert(*other, (score * part, *at, words));
                }
            }
        }
        for (place, (score, at, words)) in shared {
            let line = self.weights.entry(place.0).or_default();
            line.at.get_or_insert(at);
            if score > line.score {
                line.score = score;
                line.reasons.push(words);
            }
        }
    }

    /// How suspect a line is so far.
    pub fn score(&self, place: PlaceId) -> f64 {
        self.weights.get(&place.0).map_or(0.0, |line| line.score)
    }

    /// The most suspect lines.
    pub fn suspects(&self, run: &Run, places: usize) -> Vec<Suspected> {
        let mut texts = Texts::new(run);
        let mut suspects: Vec<Suspected> = self
            .weights
            .iter()
            .filter_map(|(n, l)| {
                let (place, reasons) = (PlaceId(*n), l.reasons());
                Some(Suspected { at: l.at?, place, score: l.score, reasons })
            })
            .filter(|s| texts.says_something(run.places.get(s.place).at))
            .collect();
        suspects.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
        // A line may be there several times, once for each function it was inlined from.
        let mut seen = HashSet::new();
        suspects.retain(|s| seen.insert(run.places.get(s.place).at));
        suspects.truncate(places);
        suspects
    }
}

/// Values and the addresses they were found by, for a little while.
fn values_within(run: &Run, budget: &Budget) -> Options {
    Options { control: false, until: Some(budget.share(20)), ..options(run) }
}

/// What instructions did last, before an instant.
fn last_executions(
    run: &Run,
    instructions: &HashSet<InstructionId>,
    until: Instance,
) -> Vec<Start> {
    let trace = &run.trace;
    let has = |path| trace.code.ops(path).iter().any(|op| instructions.contains(&op.instruction));
    let paths: Vec<bool> = trace.code.paths().map(|(_, path)| has(path)).collect();
    let mut last = Vec::new();
    for time in (0..=until.time.0).rev().map(trace::Time) {
        let path = trace.records.path(time);
        if !paths[path.0 as usize] {
            continue;
        }
        let ops = trace.code.ops(trace.code.path(path));
        for (n, op) in ops.iter().enumerate().rev() {
            let at = Instance { time, index: n as u16 };
            if instructions.contains(&op.instruction) && at <= until {
                last.push(Start::Instance(at));
            }
        }
        if last.len() >= EXECUTIONS {
            break;
        }
    }
    last
}

/// How likely a fault of this kind is, if the edit makes the run succeed. What takes
/// much away succeeds more often by chance.
pub fn likelihood(kind: Kind) -> f64 {
    match kind {
        Kind::Boundary => 4.6,
        Kind::Constant | Kind::Operator => 4.0,
        Kind::Operand => 3.5,
        Kind::Opposite | Kind::Unassigned => 3.0,
        Kind::Forced => 2.5,
        Kind::Uncalled => 2.0,
    }
}

/// What ways over conditions go by.
const DECIDED: &str = "the values that decided";

impl Of<'_> {
    /// How a line is so many lines away.
    fn near(&self, line: PlaceId, lines: u32, word: &str) -> Option<String> {
        let what = match self {
            Of::Failure(_) => "the failure",
            Of::Memory => "the misuse of memory",
        };
        Some(match (lines, self) {
            (0, Of::Failure(shows)) if word != DECIDED && shows.contains(&line) => {
                "it is where the failure shows".to_owned()
            }
            (0, Of::Failure(_)) => "it was among the last to decide how the run went on".to_owned(),
            (0, Of::Memory) => return None,
            (1, _) => format!("{what} depends on it directly, by {word}"),
            (n, _) => format!("{n} lines from {what}, by {word}"),
        })
    }
}

/// A branch that helps when it is switched, and what its condition was made of.
fn blame(
    run: &Run,
    slicer: &Slicer<'_>,
    within: &Options,
    helping: &Helping<'_>,
    place: PlaceId,
    weight: f64,
    lines: &mut HashMap<u32, Line>,
) {
    let predicate = helping.predicate;
    let (weight, effect) = match helping.gain {
        1.0 => (1.5 * weight, "the run succeeds when its branch goes the other way"),
        gain => (
            weight * (0.2 + 0.8 * gain),
            "the run goes right for longer when its branch goes the other way",
        ),
    };
    let entry = lines.entry(place.0).or_default();
    entry.score += 2.0 * weight;
    entry.at = Some(predicate.instance);
    entry.reasons.insert(0, effect.to_owned());
    let of = Lines::of(run, false);
    let group = |at: Instance, id: InstructionId| of.group(at, id);
    let tree = slicer.tree(&[Start::Instance(predicate.instance)], within, &group);
    let name = run.place_name(place);
    for (line, node) in tree.groups().filter(|(line, _)| *line != place.0) {
        let entry = lines.entry(line).or_default();
        entry.score += 2.0 * weight / (1.0 + f64::from(node.groups));
        entry.at.get_or_insert(node.at);
        if node.groups <= 2 {
            entry.reasons.push(format!("the condition at {name} was made of its values"));
        }
    }
}

/// How often lines ran.
fn executions(run: &Run) -> HashMap<PlaceId, u64> {
    let trace = &run.trace;
    let mut paths = vec![0u64; trace.code.paths().count()];
    for time in (0..trace.records.len()).map(trace::Time) {
        paths[trace.records.path(time).0 as usize] += 1;
    }
    let mut instructions: HashMap<InstructionId, u64> = HashMap::new();
    for (id, path) in trace.code.paths() {
        for op in trace.code.ops(path) {
            *instructions.entry(op.instruction).or_default() += paths[id.0 as usize];
        }
    }
    let mut lines = HashMap::new();
    for (id, times) in instructions {
        if let Some(place) = run.places.at(id) {
            let most = lines.entry(place).or_insert(0);
            *most = times.max(*most);
        }
    }
    lines
}

fn executed(run: &Run) -> u64 {
    let ids = run.trace.executed();
    let own = ids.iter().filter(|id| run.is_own(**id));
    own.filter_map(|id| run.places.at(*id)).collect::<HashSet<PlaceId>>().len() as u64
}
