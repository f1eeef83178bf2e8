//! The guest's timers, as it set them.

use std::collections::BTreeMap;

/// A setting: interval and first expiry, in nanoseconds from when it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// Between expiries; 0 for once.
    pub interval: u64,
    /// Until the first; 0 is off.
    pub first: u64,
}

/// All timers of a process.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Timers {
    /// `setitimer` and `alarm`, by `ITIMER_…`; absent if never set.
    pub interval: BTreeMap<i32, Setting>,
    /// `timer_create`: by its number, the clock and the last setting.
    pub created: BTreeMap<i32, (i32, Setting)>,
}

impl Timers {
    /// Was the interval timer never set?
    pub fn is_fresh(&self, which: i32) -> bool {
        !self.interval.contains_key(&which)
    }
}

impl Setting {
    /// From `struct itimerval` (microseconds) or `itimerspec` (nanoseconds).
    pub fn from_words(words: [u64; 4], unit: u64) -> Setting {
        let time = |seconds: u64, part: u64| {
            seconds.wrapping_mul(1_000_000_000).wrapping_add(part.wrapping_mul(unit))
        };
        Setting { interval: time(words[0], words[1]), first: time(words[2], words[3]) }
    }
}
