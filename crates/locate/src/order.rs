//! In which order are predicates tried?

use crate::failure::Failure;
use crate::predicates::Predicate;
use slice::{Distance, Options, Slicer, Start, Visitor};
use std::collections::{HashMap, HashSet};
use trace::{Instance, InstructionId};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By dependence on the failure, nearest first.
    #[default]
    Prior,
    /// Last executed, first switched.
    Lefs,
    /// First executed, first switched.
    First,
}

/// What was used, which may be less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// What depends on the named input and what the failure depends on.
    Chop,
    /// What the failure depends on.
    BackwardSlice,
    /// What depends on the named input.
    ForwardSlice,
    /// Last executed, first switched.
    Lefs,
    /// First executed, first switched.
    First,
}

impl Used {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Used::Chop => "PRIOR, by the chop between input and failure",
            Used::BackwardSlice => "PRIOR, by the backward slice of the failure",
            Used::ForwardSlice => "PRIOR, by the forward slice of the input",
            Used::Lefs => "LEFS, last executed first",
            Used::First => "first executed first",
        }
    }
}

/// Predicates in an order.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// Places in the list of predicates.
    pub order: Vec<usize>,
    /// How many of them are in the slice or chop.
    pub high: usize,
    /// What was used.
    pub used: Used,
    /// Distance of predicates in the slice, by their place in the list.
    pub distances: HashMap<usize, Distance>,
    /// Was the slice followed to its end?
    pub complete: bool,
}

/// Distances of predicates from the failure, by their place in the list; of those that
/// were reached.
struct Reached<'p> {
    predicates: &'p [Predicate],
    distances: Vec<Option<Distance>>,
    complete: bool,
}

impl Visitor for Reached<'_> {
    fn instance(&mut self, at: Instance, _: InstructionId, distance: Distance) {
        // They are in order of time.
        if let Ok(n) = self.predicates.binary_search_by_key(&at, |p| p.instance) {
            let nearest = self.distances[n].map_or(distance, |known| known.min(distance));
            self.distances[n] = Some(nearest);
        }
    }

    fn cut_short(&mut self) {
        self.complete = false;
    }
}

impl Ordered {
    /// Puts predicates in order. `forward` are instances that depend on the input
    /// that brings the failure about, if it is known.
    pub fn new(
        slicer: &Slicer,
        options: &Options,
        predicates: &[Predicate],
        order: Order,
        failure: &Failure,
        forward: Option<&HashSet<Instance>>,
    ) -> Ordered {
        let backward = (order == Order::Prior && !failure.starts.is_empty())
            .then(|| reached(slicer, options, &failure.starts, predicates));
        let complete = backward.as_ref().is_none_or(|b| b.complete);
        let distances = backward.as_ref().map(|b| b.distances.as_slice());
        Ordered { complete, ..Ordered::by(predicates, order, distances, forward) }
    }

    fn by(
        predicates: &[Predicate],
        order: Order,
        backward: Option<&[Option<Distance>]>,
        forward: Option<&HashSet<Instance>>,
    ) -> Ordered {
        let lefs = (0..predicates.len()).rev();
        let without = |order: Vec<usize>, used: Used| Ordered {
            order,
            high: 0,
            used,
            distances: HashMap::new(),
            complete: true,
        };
        let used = match (order, backward, forward) {
            (Order::First, ..) => return without((0..predicates.len()).collect(), Used::First),
            (Order::Lefs, ..) | (Order::Prior, None, None) => {
                return without(lefs.collect(), Used::Lefs);
            }
            (Order::Prior, Some(_), Some(_)) => Used::Chop,
            (Order::Prior, Some(_), None) => Used::BackwardSlice,
            (Order::Prior, None, Some(_)) => Used::ForwardSlice,
        };
        let distance = |n: usize| {
            let far = match backward {
                Some(backward) => backward[n]?,
                None => 0,
            };
            forward.is_none_or(|f| f.contains(&predicates[n].instance)).then_some(far)
        };
        let (mut high, low): (Vec<usize>, Vec<usize>) = lefs.partition(|n| distance(*n).is_some());
        let distances: HashMap<usize, Distance> =
            high.iter().filter_map(|n| Some((*n, distance(*n)?))).collect();
        // A stable sort: equal distances stay last executed first.
        high.sort_by_key(|n| distances[n]);
        let count = high.len();
        high.extend(low);
        Ordered { order: high, high: count, used, distances, complete: true }
    }
}

fn reached<'p>(
    slicer: &Slicer,
    options: &Options,
    starts: &[Start],
    predicates: &'p [Predicate],
) -> Reached<'p> {
    let new = || {
        let distances = vec![None; predicates.len()];
        Reached { predicates, distances, complete: true }
    };
    slicer.visit(starts, options, &new).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{InstructionId, Time};

    fn predicate(n: u32) -> Predicate {
        let instance = Instance { time: Time(n), index: 0 };
        Predicate { number: n.into(), instance, instruction: InstructionId(0), pc: 0 }
    }

    fn all() -> Vec<Predicate> {
        (0..6).map(predicate).collect()
    }

    fn at(n: u32) -> Instance {
        Instance { time: Time(n), index: 0 }
    }

    // F-003-07, F-002-29
    #[test]
    fn lefs_is_the_trace_backwards() {
        let ordered = Ordered::by(&all(), Order::Lefs, None, None);
        assert_eq!(ordered.order, [5, 4, 3, 2, 1, 0]);
        assert_eq!(ordered.used, Used::Lefs);
    }

    // F-003-09, F-003-11, F-002-30
    #[test]
    fn prior_puts_the_slice_first_by_distance_and_the_rest_last_executed_first() {
        let backward = [Some(1), None, Some(3), Some(1), None, None];
        let ordered = Ordered::by(&all(), Order::Prior, Some(&backward), None);
        assert_eq!(ordered.order, [3, 0, 2, 5, 4, 1]);
        assert_eq!((ordered.used, ordered.high), (Used::BackwardSlice, 3));
        let forward = HashSet::from([at(2), at(3), at(5)]);
        let ordered = Ordered::by(&all(), Order::Prior, Some(&backward), Some(&forward));
        assert_eq!(ordered.order, [3, 2, 5, 4, 1, 0]);
        assert_eq!((ordered.used, ordered.high), (Used::Chop, 2));
    }

    // F-003-10
    #[test]
    fn prior_falls_back_to_the_slice_that_exists_and_then_to_lefs() {
        let forward = HashSet::from([at(1)]);
        let ordered = Ordered::by(&all(), Order::Prior, None, Some(&forward));
        assert_eq!((ordered.used, ordered.order[0]), (Used::ForwardSlice, 1));
        let ordered = Ordered::by(&all(), Order::Prior, None, None);
        assert_eq!((ordered.used, ordered.order[0]), (Used::Lefs, 5));
    }
}
