//! A schedule that varies, to meet interleavings that the usual one never shows.
//!
//! How long a thread runs is drawn anew each time, around a length that is drawn anew
//! now and then, from a few accesses to a whole quantum: some faults need two switches
//! close together, others one at the right place and long peace. Who goes on is drawn
//! too. New threads are held back at times, so that they meet others like them.
//!
//! Each length holds for some switches, so that long ones fill most of the run: else it would
//! never end. Threads that live shortly would meet nothing else. So a new thread brings a new
//! length, and at times a call that waits does.

/// A source of decisions. Two with the same seed decide alike, as long as they are
/// asked alike.
#[derive(Clone, Debug)]
pub struct Chaos {
    state: u64,
    /// Safepoints between switches, about.
    mean: f64,
    /// Switches until another mean.
    left: u32,
    /// Prefer whoever came last?
    hasty: bool,
    last: i64,
}

/// The logarithm, to base two, of the greatest mean.
const GREATEST: f64 = 17.0;

/// One call in so many that wait begins another phase.
const PHASES: f64 = 16.0;

impl Chaos {
    /// With this seed.
    pub fn new(seed: u64) -> Chaos {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03;
        let mut chaos = Chaos { state, mean: 1.0, left: 0, hasty: false, last: 0 };
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

    /// Which of so many that wait goes on; they are in the order they came.
    pub fn pick(&mut self, waiting: usize) -> usize {
        if self.left == 0 {
            self.turn_over();
        }
        self.left -= 1;
        if self.hasty && self.unit() < 0.75 {
            return waiting.saturating_sub(1);
        }
        (self.unit() * waiting as f64) as usize
    }

    /// For how many safepoints of others a new thread is held back: threads that begin
    /// together meet where one after the other would not.
    pub fn delay(&mut self) -> u64 {
        self.turn_over();
        let drawn = self.unit();
        match drawn {
            // Until nobody else can go on, as a rule.
            0.0..0.7 => GREATEST.exp2() as u64,
            0.7..0.85 => (GREATEST * self.unit()).exp2() as u64,
            _ => 0,
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
        // Short ones more often: threads that live long pass many phases, others few.
        let drawn = self.unit();
        self.mean = (GREATEST * drawn.powi(3)).exp2();
        self.left = 100 + (self.unit() * 400.0) as u32;
        self.hasty = self.unit() < 0.5;
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
