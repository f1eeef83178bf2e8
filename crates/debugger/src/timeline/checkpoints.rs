//! Walkers that stand still at earlier instants.

use crate::walker::Walker;
use crate::{Error, Result};
use engine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most of them, besides the first.
const MOST: usize = 40;
/// Least time of replay between two.
const LEAST_SPACING: Duration = Duration::from_millis(40);
/// A fork may cost this part of the time between two.
const SHARE: u32 = 20;
/// The first of them are closer: what a program does first is executed once, and most of the
/// time goes into its translation, which a copy of a later one has behind it.
const EARLY: usize = 5;
const EARLY_SPACING: Duration = Duration::from_millis(4);

/// Kept walkers, by instant. The first instant is always among them.
pub struct Checkpoints {
    walkers: BTreeMap<Instant, Walker>,
    cost: Duration,
    /// Those that cannot be made again.
    pinned: BTreeSet<Instant>,
}

impl Checkpoints {
    /// With a walker at the first instant.
    pub fn new(first: Walker) -> Checkpoints {
        Checkpoints {
            walkers: BTreeMap::from([(first.now(), first)]),
            cost: Duration::ZERO,
            pinned: BTreeSet::new(),
        }
    }

    /// Kept instants.
    pub fn instants(&self) -> Vec<Instant> {
        self.walkers.keys().copied().collect()
    }

    /// Is it kept?
    pub fn has(&self, instant: Instant) -> bool {
        self.walkers.contains_key(&instant)
    }

    /// The latest kept instant up to this one.
    pub fn latest(&self, instant: Instant) -> Option<Instant> {
        self.walkers.range(..=instant).next_back().map(|(at, _)| *at)
    }

    /// The latest kept instant before this one.
    pub fn before(&self, instant: Instant) -> Option<Instant> {
        self.walkers.range(..instant).next_back().map(|(at, _)| *at)
    }

    /// The same; but if several are at most so many instructions before, the first of those.
    pub fn before_within(&self, instant: Instant, most: u64) -> Option<Instant> {
        let near = instant.instructions.saturating_sub(most);
        let first = self.walkers.range(Instant { instructions: near, happened: 0 }..instant).next();
        first.map(|(at, _)| *at).or_else(|| self.before(instant))
    }

    /// How long to replay before the next one.
    pub fn spacing(&self) -> Duration {
        match self.walkers.len() {
            ..EARLY => EARLY_SPACING.max(self.cost * 2),
            _ => LEAST_SPACING.max(self.cost * SHARE),
        }
    }

    /// Keeps a walker that took so long to copy. If there are too many, the one
    /// goes that is missed least: whose neighbours are close to each other, given
    /// how far back they are.
    pub fn keep(&mut self, walker: Walker, cost: Duration) {
        self.cost = cost;
        let newest = walker.now();
        self.walkers.insert(newest, walker);
        if self.walkers.len() > MOST {
            let instants = self.instants();
            let missed = |w: &[Instant]| {
                let gap = w[2].instructions - w[0].instructions;
                let age = newest.instructions.abs_diff(w[1].instructions) + 1;
                gap as f64 / age as f64
            };
            let least = instants
                .windows(3)
                .filter(|w| w[1] != newest && !self.pinned.contains(&w[1]))
                .min_by(|a, b| missed(a).total_cmp(&missed(b)));
            if let Some(w) = least {
                self.walkers.remove(&w[1]);
            }
        }
    }

    /// Never lets go of this instant.
    pub fn pin(&mut self, instant: Instant) {
        self.pinned.insert(instant);
    }

    /// Lets go of all of them when need be.
    pub fn unpin(&mut self) {
        self.pinned.clear();
    }

    /// Takes out all that are later than an instant.
    pub fn take_after(&mut self, instant: Instant) -> BTreeMap<Instant, Walker> {
        let mut later = self.walkers.split_off(&instant);
        if let Some(walker) = later.remove(&instant) {
            self.walkers.insert(instant, walker);
        }
        later
    }

    /// Puts some back.
    pub fn put(&mut self, walkers: BTreeMap<Instant, Walker>) {
        self.walkers.extend(walkers);
    }

    /// A copy of the latest walker up to an instant.
    pub fn copy(&mut self, instant: Instant) -> Result<Walker> {
        let (_, walker) = self.walkers.range_mut(..=instant).next_back().ok_or(Error::Strange)?;
        walker.fork()
    }
}
