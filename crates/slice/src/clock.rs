//! How long may a walk take?

use std::time::Instant;

/// Is it too late to go on?
pub struct Clock {
    until: Option<Instant>,
    /// Records met since it was looked at.
    met: u32,
    pub late: bool,
}

/// So many records are met between two looks at the clock.
const LOOK: u32 = 256;

impl Clock {
    /// Late from this time on, if there is one.
    pub fn new(until: Option<Instant>) -> Clock {
        Clock { until, met: 0, late: false }
    }

    /// One more record is met: is it late?
    #[inline]
    pub fn is_late(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        self.met += 1;
        if self.met == LOOK {
            self.met = 0;
            self.late |= until <= Instant::now();
        }
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_may_take_no_time_is_late_after_a_few_records() {
        let mut clock = Clock::new(Some(Instant::now()));
        assert_eq!((0..10_000).position(|_| clock.is_late()), Some(LOOK as usize - 1));
        assert!(clock.is_late(), "it stays late");
        let mut clock = Clock::new(None);
        assert!((0..10_000).all(|_| !clock.is_late()));
    }
}
