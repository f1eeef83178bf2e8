//! How the lines of a slice depend on each other.

use crate::slice_report::{Line, SliceReport};
use position::{Error, PlaceId, Run, statement_at};
use serde::{Deserialize, Serialize};
use slice::{Options, Slicer, Start};
use std::collections::{BTreeSet, HashMap};
use trace::Instance;

/// One line depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// The line that depends: its number in [`SliceReport::lines`].
    pub user: usize,
    /// The line it depends on.
    pub source: usize,
    /// Because it ran at all, rather than for a value.
    pub control: bool,
}

/// Which line of a slice depends on which other, as its latest execution there
/// shows.
pub fn links(run: &Run, report: &SliceReport) -> Result<Vec<Link>, Error> {
    let number: HashMap<PlaceId, usize> = report
        .lines
        .iter()
        .enumerate()
        .filter_map(|(n, line)| Some((place(run, line)?, n)))
        .collect();
    let latest: Vec<Instance> = report
        .lines
        .iter()
        .filter_map(|line| run.trace.at_number(line.latest.first()?.number))
        .collect();
    let mut starts = Vec::new();
    let mut user_of: HashMap<Instance, usize> = HashMap::new();
    let mut found: BTreeSet<Link> = BTreeSet::new();
    let far = if report.follows("control") { FAR } else { 1 };
    let mut reasons = Reasons { run, far, known: HashMap::new() };
    let line_of = |at: Instance| number.get(&run.places.at(run.trace.instruction(at))?).copied();
    for entry in latest {
        let Some(user) = line_of(entry) else { continue };
        for at in statement_at(run, entry) {
            user_of.insert(at, user);
            starts.push(Start::Instance(at));
        }
        let because = reasons.line_of(entry, &line_of).filter(|s| *s != user);
        found.extend(because.map(|source| Link { user, source, control: true }));
    }
    let slicer = Slicer::new(&run.trace);
    let addresses = report.follows("addresses");
    let mut options = Options { control: false, addresses, ..Options::default() };
    if let Some(beginning) = run.beginning() {
        options.from = beginning;
    }
    // Other lines may be left out, such as those outside of a part.
    let through = |at: Instance, _| line_of(at).is_none() && !user_of.contains_key(&at);
    let (direct, _) = slicer.direct(&starts, &options, &through);
    for (used, at, _) in direct.dependences() {
        let user = user_of.get(&direct.uses[used].0).copied();
        if let (Some(user), Some(source)) = (user, line_of(at))
            && user != source
        {
            found.insert(Link { user, source, control: false });
        }
    }
    Ok(found.into_iter().collect())
}

/// Why things ran, as far as the report shows.
struct Reasons<'a> {
    run: &'a Run,
    /// Through so many instances that are not shown.
    far: usize,
    /// The lines that were found for instances, so that no way is gone twice.
    known: HashMap<Instance, Option<usize>>,
}

impl Reasons<'_> {
    /// The nearest line of the report that decided that an instance ran.
    fn line_of(
        &mut self,
        at: Instance,
        line_of: &dyn Fn(Instance) -> Option<usize>,
    ) -> Option<usize> {
        let (mut passed, mut at) = (Vec::new(), at);
        let line = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            passed.push(at);
            let because = self.run.trace.parent(at).and_then(|p| self.run.own_instance(p));
            let line = because.and_then(line_of);
            match because.filter(|_| line.is_none() && passed.len() < self.far) {
                Some(because) => at = because,
                None => break line,
            }
        };
        self.known.extend(passed.into_iter().map(|at| (at, line)));
        line
    }
}

/// Reasons are followed so far: through rounds of a loop, as a rule, each of which is the reason for
/// the next.
const FAR: usize = 1 << 20;

fn place(run: &Run, line: &Line) -> Option<PlaceId> {
    let first = run.trace.at_number(line.latest.first()?.number)?;
    run.places.at(run.trace.instruction(first))
}
