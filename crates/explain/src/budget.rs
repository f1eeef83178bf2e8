//! How long may each part of an explanation take?
//!
//! All of it is to be done within a time. Whoever comes first takes a share of what is
//! left, so that there is something for those who come later; what they do not use is
//! theirs. A part that is not done in time says so, and the story is told without.

use crate::Limits;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Nothing is looked for any more from here on: the story is told.
    last: Instant,
    /// A part that comes too late may take so long all the same, or there would be no
    /// story.
    least: Duration,
}

impl Budget {
    /// What is left of the time.
    pub fn of(limits: &Limits) -> Budget {
        // Values are found by a replay, and names by a walk through the trace.
        let telling = (2 * limits.replay + Duration::from_millis(100)).min(limits.time / 3);
        Budget { last: limits.begun + limits.time - telling, least: limits.time / 64 }
    }

    /// Until when somebody may take nearly all that is left.
    pub fn most(&self) -> Instant {
        let now = Instant::now();
        now + (self.last.saturating_duration_since(now) * 9 / 10).max(self.least)
    }

    /// Until when somebody may take one of so many shares of what is left.
    pub fn share(&self, of: u32) -> Instant {
        let now = Instant::now();
        let left = self.last.saturating_duration_since(now);
        now + (left / of.max(1)).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(begun_before: u64, time: u64) -> Budget {
        let begun = Instant::now() - Duration::from_secs(begun_before);
        Budget::of(&Limits { begun, time: Duration::from_secs(time), ..Limits::default() })
    }

    fn seconds_from_now(until: Instant) -> f64 {
        until.saturating_duration_since(Instant::now()).as_secs_f64()
    }

    #[test]
    fn a_share_is_a_part_of_what_is_left() {
        let half = seconds_from_now(budget(10, 30).share(2));
        assert!((9.0..10.0).contains(&half), "{half}");
    }

    #[test]
    fn who_comes_too_late_gets_a_little() {
        let late = seconds_from_now(budget(100, 64).share(2));
        assert!((0.5..1.1).contains(&late), "{late}");
    }

    #[test]
    fn telling_the_story_is_left_time_for() {
        let limits = Limits { replay: Duration::from_secs(2), ..Limits::default() };
        let all = seconds_from_now(Budget::of(&limits).share(1));
        assert!((25.0..26.0).contains(&all), "{all}");
    }
}
