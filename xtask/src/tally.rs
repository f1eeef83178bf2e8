//! Counting what passed and what failed, and saying so in one fixed form.

use std::fmt;

/// How many checks passed and how many failed; prints as `N passed, N failed`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
}

impl Tally {
    /// Counts one more check.
    pub fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Whether nothing failed.
    pub fn all_passed(&self) -> bool {
        self.failed == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}
