//! Branches that decided why something wanted ran, until the walk meets them.

use crate::follow::Follow;
use trace::Instance;

/// Branches, earliest first. There are few, and those that are added are nearly always
/// among the latest: a list needs fewer steps than a tree.
#[derive(Clone)]
pub struct Demands<M>(Vec<(Instance, M)>);

impl<M> Default for Demands<M> {
    fn default() -> Self {
        Demands(Vec::new())
    }
}

impl<M: Copy> Demands<M> {
    /// Is no branch wanted?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latest, which is met next.
    #[inline]
    pub fn next(&self) -> Option<Instance> {
        self.0.last().map(|(at, _)| *at)
    }

    /// Is this one wanted?
    pub fn has(&self, at: Instance) -> bool {
        self.0.binary_search_by_key(&at, |(at, _)| *at).is_ok()
    }

    /// The mark of the one that is met now, if it is wanted.
    #[inline]
    pub fn mark(&self, at: Instance) -> Option<M> {
        self.0.last().filter(|(next, _)| *next == at).map(|(_, mark)| *mark)
    }

    /// All, the latest first.
    #[inline]
    pub fn latest(&self) -> impl Iterator<Item = (Instance, M)> + '_ {
        self.0.iter().rev().copied()
    }

    /// So many of the latest were met.
    #[inline]
    pub fn met(&mut self, count: usize) {
        self.0.truncate(self.0.len() - count);
    }

    /// The latest was met.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// One more is wanted.
    #[inline]
    pub fn add<F: Follow<Mark = M>>(&mut self, at: Instance, mark: M, follow: &mut F) {
        let n = self.place(at);
        match self.0.get_mut(n) {
            Some((known, old)) if *known == at => *old = follow.join(*old, mark),
            _ => self.0.insert(n, (at, mark)),
        }
    }

    /// Where it is, or would be.
    #[inline]
    fn place(&self, at: Instance) -> usize {
        const NEAR: usize = 8;
        let near = self.0.iter().rev().take(NEAR).take_while(|(known, _)| *known >= at).count();
        match near {
            NEAR => self.0.partition_point(|(known, _)| *known < at),
            _ => self.0.len() - near,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::{Transitive, Visitor};
    use crate::wanted::Distance;
    use trace::{InstructionId, Time};

    struct Nobody;

    impl Visitor for Nobody {
        fn instance(&mut self, _: Instance, _: InstructionId, _: Distance) {}
    }

    #[test]
    fn the_latest_is_met_first_and_twice_wanted_is_nearest() {
        let follow = &mut Transitive { visitor: Nobody, depth: Distance::MAX };
        let mut demands = Demands::default();
        let at = |n: u32| Instance { time: Time(n * 7919 % 101), index: (n % 3) as u16 };
        let all: std::collections::BTreeSet<Instance> = (0..300).map(at).collect();
        (0..300).for_each(|n| demands.add(at(n), 400 - n, follow));
        for next in all.iter().rev() {
            assert!(demands.has(*next) && demands.next() == Some(*next));
            let nearest = (0..300).rfind(|n| at(*n) == *next).map(|n| 400 - n);
            assert_eq!(demands.mark(*next), nearest);
            demands.pop();
        }
        assert!(demands.is_empty());
    }
}
