//! From a critical predicate to the code to look at: slices around it, intersected
//! where they exist.

use crate::failure::Failure;
use crate::predicates::Predicate;
use position::{PlaceId, Run};
use slice::{Distance, Slice, Slicer, Start};
use std::collections::{BTreeMap, HashSet};
use trace::InstructionId;

/// A statement to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Where it is.
    pub place: PlaceId,
    /// Dependences between it and the predicate.
    pub distance: Distance,
}

/// What lies around a critical predicate.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Lines that the predicate depended on.
    pub upstream: usize,
    /// Lines that the failure depended on, if a slice of it exists.
    pub failing: Option<usize>,
    /// Lines executed at all.
    pub executed: usize,
    /// The lines that both depended on, or that the one depended on that exists: the
    /// predicate first, then by distance from it.
    pub statements: Vec<Statement>,
}

impl Around {
    /// Slices around a predicate.
    pub fn of(run: &Run, slicer: &Slicer, predicate: &Predicate, failure: &Failure) -> Around {
        let options = slice::Options::default();
        let up = slicer.backward(&[Start::Instance(predicate.instance)], &options);
        let failing = (!failure.starts.is_empty()).then(|| {
            lines(run, slicer.backward(&failure.starts, &options).instructions.into_keys())
        });
        let upstream = by_line(run, &up);
        let executed = run.trace.code.instructions().map(|(id, _)| id);
        let mut statements: Vec<Statement> = upstream
            .iter()
            .filter(|(place, _)| failing.as_ref().is_none_or(|f| f.contains(place)))
            .map(|(place, distance)| Statement { place: *place, distance: *distance })
            .collect();
        let own = run.places.at(predicate.instruction);
        if let Some(place) = own.filter(|p| !statements.iter().any(|s| s.place == *p)) {
            statements.push(Statement { place, distance: 0 });
        }
        statements.sort_by_key(|s| (Some(s.place) != own, s.distance, s.place));
        Around {
            upstream: upstream.len(),
            failing: failing.map(|f| f.len()),
            executed: lines(run, executed).len(),
            statements,
        }
    }
}

fn lines(run: &Run, ids: impl Iterator<Item = InstructionId>) -> HashSet<PlaceId> {
    ids.filter(|id| run.is_own(*id)).filter_map(|id| run.places.at(id)).collect()
}

fn by_line(run: &Run, slice: &Slice) -> BTreeMap<PlaceId, Distance> {
    let mut lines = BTreeMap::new();
    for (id, part) in slice.instructions.iter().filter(|(id, _)| run.is_own(**id)) {
        let Some(place) = run.places.at(*id) else { continue };
        let known = lines.entry(place).or_insert(part.distance);
        *known = part.distance.min(*known);
    }
    lines
}
