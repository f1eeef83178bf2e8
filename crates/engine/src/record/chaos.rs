//! A schedule that varies, to meet interleavings that the usual one never shows.
//!
//! How long a thread runs is drawn anew each time, around a length that is drawn anew
//! now and then: some faults need two switches close together, others one at the right
//! place and long peace. Who goes on is drawn too, and now and then whoever was stopped is
//! held back for long, as new threads are: they meet others where they are.
//!
//! Most places to be stopped at do not matter. Those around what synchronises, and accesses
//! of the program itself, weigh more ([`crate::code::dense`]). So lengths from a few accesses
//! up to many times the greatest weight all have their use: short ones stop at every access
//! of the program, long ones now and then where threads synchronise.
//!
//! Each length holds for some switches, so that long ones fill most of the run: else it would
//! never end. Threads that live shortly would meet nothing else. So a new thread brings a new
//! length, and at times a call that waits does.

use crate::code::dense::SYNCHRONISES;
use crate::kernel::table::{self, How};

/// A source of decisions. Two with the same seed decide alike, as long as they are
/// asked alike.
#[derive(Clone, Debug)]
pub struct Chaos {
    state: u64,
    /// Safepoints between switches, about.
    mean: f64,
    /// Switches until another mean.
    left: u32,
    next: Next,
    /// How often one that is stopped is held back.
    held_back: f64,
    last: i64,
}

/// Who goes on, as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Any,
    /// Who came last.
    Newest,
    /// Who waited longest.
    Oldest,
}

/// The logarithms, to base two, of the least mean, of where those begin that stop rather where
/// threads synchronise, and of the greatest.
const LEAST: f64 = 2.0;
const COARSE: f64 = 9.0;
const GREATEST: f64 = 14.0;

/// One phase in so many is a fine one.
const FINE: f64 = 6.0;

/// The logarithms of the times that a thread is held back.
const SHORTEST: f64 = 10.0;
const LONGEST: f64 = 18.0;

/// One call in so many that wait begins another phase.
const PHASES: f64 = 16.0;

/// Is a call one that other threads may notice?
pub fn is_felt(number: u64) -> bool {
    let number = number as u32;
    matches!(number, table::clone) || table::call(number.into()).how == How::Waits
}

impl Chaos {
    /// With this seed.
    pub fn new(seed: u64) -> Chaos {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03;
        let (next, held_back) = (Next::Any, 0.0);
        let mut chaos = Chaos { state, mean: 1.0, left: 0, next, held_back, last: 0 };
        chaos.turn_over();
        chaos
    }

    /// In a process that was forked off: decisions of its own.
    pub fn fork(&mut self, log: u64) {
        self.state ^= log.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.turn_over();
    }

    /// Safepoints that a thread may pass before others are asked.
    pub fn quantum(&mut self) -> i64 {
        let drawn = -(1.0 - self.unit()).ln() * self.mean;
        self.last = 1 + drawn.min(1e6) as i64;
        self.last
    }

    /// The same behind a call that others feel, which counts as what synchronises does.
    pub fn quantum_after_call(&mut self) -> i64 {
        self.last = (self.quantum() - i64::from(SYNCHRONISES)).max(1);
        self.last
    }

    /// Which of so many that wait goes on; they are in the order they came.
    pub fn pick(&mut self, waiting: usize) -> usize {
        if self.left == 0 {
            self.turn_over();
        }
        self.left -= 1;
        let as_a_rule = self.unit() < 0.75;
        match self.next {
            Next::Newest if as_a_rule => waiting.saturating_sub(1),
            Next::Oldest if as_a_rule => 0,
            _ => (self.unit() * waiting as f64) as usize,
        }
    }

    /// For how many safepoints of others a new thread is held back: threads that begin
    /// together meet where one after the other would not.
    pub fn delay(&mut self) -> u64 {
        self.turn_over();
        let drawn = self.unit();
        match drawn {
            // Until nobody else can go on, as a rule.
            0.0..0.55 => LONGEST.exp2() as u64,
            0.55..0.75 => self.between(SHORTEST, LONGEST) as u64,
            _ => 0,
        }
    }

    /// For how many safepoints of others one that was stopped is held back: those may come
    /// to their end meanwhile.
    pub fn hold_back(&mut self) -> u64 {
        match self.unit() < self.held_back {
            true => self.between(SHORTEST, LONGEST) as u64,
            false => 0,
        }
    }

    /// A thread waits for another.
    pub fn wait(&mut self) {
        if self.unit() * PHASES < 1.0 {
            self.turn_over();
        }
    }

    /// The quantum that was drawn last.
    pub fn last(&self) -> u64 {
        self.last as u64
    }

    /// Another phase.
    fn turn_over(&mut self) {
        let fine = self.unit() * FINE < 1.0;
        self.mean = match fine {
            true => self.between(LEAST, COARSE),
            false => self.between(COARSE, GREATEST),
        };
        self.left = 100 + (self.unit() * 400.0) as u32;
        self.next = match self.unit() {
            0.0..0.4 => Next::Any,
            0.4..0.7 => Next::Newest,
            _ => Next::Oldest,
        };
        self.held_back = if self.unit() < 0.5 { 0.0 } else { 0.5 };
    }

    /// A power of two, whose exponent is drawn.
    fn between(&mut self, least: f64, greatest: f64) -> f64 {
        (least + (greatest - least) * self.unit()).exp2()
    }

    /// A number in 0..1 (splitmix64).
    fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Chaos;

    #[test]
    fn a_seed_decides_and_another_decides_otherwise() {
        let draw = |seed| {
            let mut chaos = Chaos::new(seed);
            (0..100).map(|_| (chaos.quantum(), chaos.pick(5))).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn quanta_are_short_and_long_and_all_threads_get_on() {
        let mut chaos = Chaos::new(1);
        let mut quantum = || {
            chaos.pick(2);
            chaos.quantum()
        };
        let quanta: Vec<i64> = (0..100_000).map(|_| quantum()).collect();
        assert!(quanta.iter().all(|q| *q >= 1));
        assert!(quanta.iter().any(|q| *q < 10) && quanta.iter().any(|q| *q > 10_000));
        let picks: std::collections::HashSet<usize> = (0..1000).map(|_| chaos.pick(3)).collect();
        assert_eq!(picks.len(), 3);
    }
}
