//! Does the machine do anything else while something is measured?

use std::fs;

/// Time of processors, in the kernel's ticks.
pub struct Quiet {
    all: u64,
    own: u64,
}

/// So much of what the machine does may be others' work.
const MOST: f64 = 0.1;

impl Quiet {
    /// From now on.
    pub fn begin() -> Quiet {
        let stat = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Quiet { all: all(&stat("/proc/stat")), own: own(&stat("/proc/self/stat")) }
    }

    /// The share of others in all that the machine did since, if it is worth telling.
    pub fn others(&self) -> Option<f64> {
        let now = Quiet::begin();
        others(now.all - self.all, now.own - self.own)
    }
}

fn others(all: u64, own: u64) -> Option<f64> {
    let share = all.saturating_sub(own) as f64 / all.max(1) as f64;
    (share > MOST).then_some(share)
}

/// What all processors worked: user, nice, system.
fn all(stat: &str) -> u64 {
    let first = stat.lines().next().unwrap_or_default();
    first.split_whitespace().skip(1).take(3).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// What this process and its children that have ended worked, in user and system mode.
fn own(stat: &str) -> u64 {
    // The name before may have spaces in it.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_neither_own_nor_idle() {
        let stat = "cpu  700 20 80 99999 5 0 1 0 0 0\ncpu0 1 1 1 1\n";
        let own_stat = "1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 100 20 300 80 20 0 1";
        assert_eq!((all(stat), own(own_stat)), (800, 500));
        assert_eq!(others(800, 500), Some(0.375));
        assert_eq!(others(800, 790), None);
    }
}
