//! All ways back from the failure, line by line: along values alone, along values and
//! the addresses they were found by, and along everything.

use crate::budget::Budget;
use crate::{lookups, options};
use position::{At, PlaceId, Run};
use program::debug::{FileId, Source};
use slice::{Group, Options, Slicer, Start, Tree};
use std::collections::{HashMap, HashSet};
use trace::{Flow, Instance, InstructionId};

/// Slices of the failure with the nearest way to each line.
pub struct Ways<'a> {
    /// Along values.
    pub values: Tree<'a>,
    /// Along values and addresses.
    pub data: Tree<'a>,
    /// Along control too.
    pub all: Tree<'a>,
    /// Along the values that decided what the nearest values were.
    pub deciding: Tree<'a>,
}

/// So many lines from the failure what decided is looked for.
const NEAR: u32 = 3;

/// How instances are put together.
type Grouping<'a> = dyn Fn(Instance, InstructionId) -> Option<Group> + 'a;

impl<'a> Ways<'a> {
    /// Follows all dependences of the starts.
    pub fn of(
        run: &Run,
        slicer: &Slicer<'_>,
        starts: &[Start],
        flat: &'a Grouping<'a>,
        nested: &'a Grouping<'a>,
        budget: &Budget,
    ) -> Ways<'a> {
        let all = options(run);
        let data = Options { control: false, ..all.clone() };
        let thin = Options { addresses: false, ..data.clone() };
        // Those that tell most come first, and are the smallest.
        let tree = |starts: &[Start], options: &Options, group, shares: u32| {
            let within = Options { until: Some(budget.share(shares)), ..options.clone() };
            slicer.tree(starts, &within, group)
        };
        let mut values = tree(starts, &thin, flat, 10);
        let mut made = starts.to_vec();
        for _ in 0..lookups::DEEP {
            let indices = lookups::indices(run, &values);
            if indices.is_empty() {
                break;
            }
            made.extend(indices);
            values = tree(&made, &thin, flat, 10);
        }
        let near: Vec<Instance> = starts.iter().map(Start::at).chain(near(&values)).collect();
        let deciding = tree(&deciders(run, &near), &thin, flat, 9);
        let data = tree(starts, &data, nested, 8);
        let all = tree(starts, &all, nested, 7);
        Ways { values, data, all, deciding }
    }

    /// Was everything followed?
    pub fn is_complete(&self) -> bool {
        [&self.values, &self.data, &self.all, &self.deciding].iter().all(|tree| tree.is_complete())
    }

    /// The line of the program that an instance belongs to.
    pub fn place(&self, run: &Run, at: Instance) -> Option<PlaceId> {
        let own = run.own_instance(at)?;
        run.places.at(run.trace.instruction(own))
    }
}

/// The nearest instance of each near line.
fn near(tree: &Tree<'_>) -> Vec<Instance> {
    let mut near: Vec<(u32, Instance)> =
        tree.groups().map(|(_, node)| (node.groups, node.at)).filter(|n| n.0 <= NEAR).collect();
    near.sort_unstable();
    near.into_iter().map(|(_, at)| at).collect()
}

/// The branches of the program that let instances happen.
fn deciders(run: &Run, instances: &[Instance]) -> Vec<Start> {
    let mut found: Vec<Instance> = Vec::new();
    for at in instances {
        let mut next = run.own_instance(*at);
        // Calls are passed: what matters is why they were made.
        while let Some(at) = next.and_then(|at| run.trace.parent(at)) {
            let id = run.trace.instruction(at);
            if run.is_own(id) && run.trace.code.info(id).flow == Flow::Branch {
                found.push(at);
                break;
            }
            next = Some(at);
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(Start::Instance).collect()
}

/// The line that an entry's code begins with: optimised code may go on with another one
/// at once.
fn first_line(run: &Run, id: InstructionId) -> Option<At> {
    let address = run.trace.code.info(id).address();
    match run.program.shared_lines(address).first() {
        Some(line) => Some(At::Line(line.file, line.line)),
        None => run.places.at(id).map(|place| run.places.get(place).at),
    }
}

/// The source, each file looked up once.
pub struct Texts<'a> {
    run: &'a Run,
    files: HashMap<FileId, Option<Source>>,
}

impl<'a> Texts<'a> {
    /// None looked up yet.
    pub fn new(run: &'a Run) -> Texts<'a> {
        Texts { run, files: HashMap::new() }
    }

    /// Braces and the like say nothing.
    pub fn says_something(&mut self, at: At) -> bool {
        let At::Line(file, line) = at else { return true };
        let source = self.files.entry(file).or_insert_with(|| self.run.program.source(file));
        let text = source.as_ref().and_then(|source| source.line(line));
        text.is_none_or(|text| text.chars().any(char::is_alphanumeric))
    }
}

/// Places in functions that have other lines too: a function on one line is more than
/// its opening.
fn says_more(run: &Run) -> HashSet<PlaceId> {
    let mut functions: HashMap<Option<u64>, HashSet<PlaceId>> = HashMap::new();
    for (id, info) in run.trace.code.instructions().filter(|(id, _)| run.is_own(*id)) {
        if let Some(place) = run.places.at(id) {
            let function = run.trace.function_of(info.address());
            functions.entry(function).or_default().insert(place);
        }
    }
    functions.into_values().filter(|places| places.len() > 1).flatten().collect()
}

/// Lines by number, without those that only open a function or close a block.
pub struct Lines<'a> {
    run: &'a Run,
    opening: HashSet<PlaceId>,
    /// Values alone are followed: they may well pass from library to library.
    values: bool,
}

impl<'a> Lines<'a> {
    /// Of a run.
    pub fn of(run: &'a Run, values: bool) -> Lines<'a> {
        let opens = |id: &InstructionId| {
            run.program.is_entry(run.trace.code.info(*id).address()) && run.is_own(*id)
        };
        let ids = run.trace.code.instructions().map(|(id, _)| id).filter(opens);
        let first: HashSet<At> = ids.filter_map(|id| first_line(run, id)).collect();
        let more = says_more(run);
        let mut texts = Texts::new(run);
        let mut is_mute = |id: PlaceId, at: At| {
            first.contains(&at) && more.contains(&id) || !texts.says_something(at)
        };
        let mut opening = HashSet::new();
        for (id, place) in run.places.iter().filter(|(_, place)| place.own) {
            if is_mute(id, place.at) {
                opening.insert(id);
            }
        }
        Lines { run, opening, values }
    }

    /// Does a line only open a function?
    pub fn opens(&self, place: PlaceId) -> bool {
        self.opening.contains(&place)
    }

    /// The line that an instance belongs to.
    pub fn group(&self, at: Instance, id: InstructionId) -> Option<Group> {
        let run = self.run;
        if run.is_own(id)
            && let Some(place) = run.places.at(id)
        {
            let said = !self.opening.contains(&place);
            return said.then_some(Group { number: place.0, inner: false });
        }
        let own = run.own_instance(at)?;
        let place = run.places.at(run.trace.instruction(own))?;
        Some(Group { number: place.0, inner: !self.values })
    }
}
