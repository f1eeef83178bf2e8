//! From a critical predicate to the code to look at: slices around it, intersected
//! where they exist.

use crate::failure::Failure;
use crate::predicates::Predicate;
use position::{PlaceId, Run};
use slice::{Distance, Options, Slice, Slicer, Start};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use trace::{Instance, InstructionId};

/// A statement to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Where it is.
    pub place: PlaceId,
    /// Dependences between it and the predicate.
    pub distance: Distance,
    /// On which side of it.
    pub side: Side,
}

/// Where a statement is, seen from a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It is the predicate.
    Predicate,
    /// The predicate depended on it.
    Before,
    /// It depended on the predicate.
    Behind,
    /// Both, in different executions.
    Both,
}

impl Side {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Side::Predicate => "predicate",
            Side::Before => "before",
            Side::Behind => "behind",
            Side::Both => "both",
        }
    }
}

/// Lines, each with its distance from a predicate.
type Lines = BTreeMap<PlaceId, Distance>;

/// What lies around a critical predicate.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Lines executed at all.
    pub executed: usize,
    /// Lines that the predicate depended on.
    pub upstream: usize,
    /// Lines that depended on it.
    pub downstream: usize,
    /// Both together.
    pub bidirectional: usize,
    /// Lines that the failure depended on, if there is a slice of it.
    pub failing: Option<usize>,
    /// Lines that depended on the input that brings the failure about, if it is
    /// known.
    pub input: Option<usize>,
    /// Lines in all of those that exist: the predicate first, then by distance from
    /// it.
    pub statements: Vec<Statement>,
}

impl Around {
    /// Slices around a predicate. `input` are instances that depend on the input that
    /// brings the failure about.
    pub fn of(
        run: &Run,
        slicer: &Slicer,
        options: &Options,
        predicate: &Predicate,
        failure: &Failure,
        input: Option<&HashSet<Instance>>,
    ) -> Around {
        let start = [Start::Instance(predicate.instance)];
        let up = by_line(run, &slicer.backward(&start, options));
        let down = by_line(run, &slicer.forward(&start, options, Slice::default()));
        let failing = (!failure.starts.is_empty()).then(|| {
            lines(run, slicer.backward(&failure.starts, options).instructions.into_keys())
        });
        let input = input.map(|all| lines(run, all.iter().map(|at| run.trace.instruction(*at))));
        let both = union(&up, &down);
        let own = run.places.at(predicate.instruction);
        let side = |place: PlaceId| match (up.contains_key(&place), down.contains_key(&place)) {
            _ if Some(place) == own => Side::Predicate,
            (true, true) => Side::Both,
            (true, false) => Side::Before,
            (false, _) => Side::Behind,
        };
        let chopped = chop(&both, &[failing.as_ref(), input.as_ref()]);
        let mut statements: Vec<Statement> = chopped
            .into_iter()
            .map(|(place, distance)| Statement { place, distance, side: side(place) })
            .collect();
        if let Some(place) = own.filter(|p| !statements.iter().any(|s| s.place == *p)) {
            statements.push(Statement { place, distance: 0, side: Side::Predicate });
        }
        statements.sort_by_key(|s| (Some(s.place) != own, s.distance, s.place));
        let executed = run.trace.code.instructions().map(|(id, _)| id);
        Around {
            executed: lines(run, executed).len(),
            upstream: up.len(),
            downstream: down.len(),
            bidirectional: both.len(),
            failing: failing.map(|f| f.len()),
            input: input.map(|f| f.len()),
            statements,
        }
    }
}

fn union(a: &Lines, b: &Lines) -> Lines {
    let mut both = a.clone();
    for (place, distance) in b {
        let known = both.entry(*place).or_insert(*distance);
        *known = (*distance).min(*known);
    }
    both
}

/// What is in all of the slices that exist.
fn chop(lines: &Lines, others: &[Option<&BTreeSet<PlaceId>>]) -> Lines {
    let in_all = |place: &PlaceId| others.iter().flatten().all(|other| other.contains(place));
    let kept = lines.iter().filter(|(place, _)| in_all(place));
    kept.map(|(place, distance)| (*place, *distance)).collect()
}

fn lines(run: &Run, ids: impl Iterator<Item = InstructionId>) -> BTreeSet<PlaceId> {
    ids.filter(|id| run.is_own(*id)).filter_map(|id| run.places.at(id)).collect()
}

fn by_line(run: &Run, slice: &Slice) -> Lines {
    let mut lines = Lines::new();
    for (id, part) in slice.instructions.iter().filter(|(id, _)| run.is_own(**id)) {
        let Some(place) = run.places.at(*id) else { continue };
        let known = lines.entry(place).or_insert(part.distance);
        *known = part.distance.min(*known);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(all: &[u32]) -> BTreeSet<PlaceId> {
        all.iter().map(|n| PlaceId(*n)).collect()
    }

    fn spread(all: &[u32]) -> Lines {
        all.iter().map(|n| (PlaceId(*n), *n)).collect()
    }

    fn chopped(lines: &Lines, others: &[Option<&BTreeSet<PlaceId>>]) -> Vec<u32> {
        chop(lines, others).keys().map(|place| place.0).collect()
    }

    // F-003-24, F-002-33: intersect what exists.
    #[test]
    fn a_chop_degrades_to_the_slices_that_exist() {
        let both = spread(&[1, 2, 3, 4]);
        let (failing, input) = (set(&[2, 3, 4, 5]), set(&[3, 4, 6]));
        assert_eq!(chopped(&both, &[Some(&failing), Some(&input)]), [3, 4]);
        assert_eq!(chopped(&both, &[Some(&failing), None]), [2, 3, 4]);
        assert_eq!(chopped(&both, &[None, Some(&input)]), [3, 4]);
        assert_eq!(chopped(&both, &[None, None]), [1, 2, 3, 4]);
    }

    // F-003-23, F-002-32
    #[test]
    fn both_directions_together_keep_the_smaller_distance() {
        let (up, down) = (spread(&[1, 2]), Lines::from([(PlaceId(2), 1), (PlaceId(7), 3)]));
        let both = union(&up, &down);
        assert_eq!(both, Lines::from([(PlaceId(1), 1), (PlaceId(2), 1), (PlaceId(7), 3)]));
    }
}
