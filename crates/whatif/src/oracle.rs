//! What a run should have done.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What outputs are compared in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Lines.
    #[default]
    Line,
    /// Bytes.
    Byte,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Line => "line",
            Unit::Byte => "byte",
        })
    }
}

/// What is expected of a run; all that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oracle {
    /// Standard output.
    pub stdout: Option<Vec<u8>>,
    /// Standard error.
    pub stderr: Option<Vec<u8>>,
    /// Files: path and contents.
    pub files: Vec<(Vec<u8>, Vec<u8>)>,
    /// Exit status.
    pub exit: Option<i32>,
    /// No death by a signal.
    pub no_crash: bool,
    /// Somebody else decides, who needs all that the run wrote.
    pub asks: bool,
    /// What outputs are compared in.
    pub unit: Unit,
    /// A line on standard error with which a run says that it has failed in the known way.
    /// What comes after it, such as a long backtrace, need not be waited for.
    pub given_up: Option<Vec<u8>>,
}

impl Oracle {
    /// Does it expect anything?
    pub fn is_empty(&self) -> bool {
        let given_up = self.given_up.clone();
        *self == Oracle { unit: self.unit, given_up, ..Oracle::default() }
    }
}

/// The first unit, from 1, in which an output differs from what is expected; `None`
/// if it is right. An output that is not finished may still be right where it is
/// shorter.
pub fn first_wrong(output: &[u8], expected: &[u8], finished: bool, unit: Unit) -> Option<u64> {
    let same = output.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let right = if same < output.len() { false } else { !finished || same == expected.len() };
    if right {
        return None;
    }
    Some(match unit {
        Unit::Byte => same as u64 + 1,
        Unit::Line => expected[..same].iter().filter(|b| **b == b'\n').count() as u64 + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_line_is_found_in_long_and_short_output() {
        let wrong =
            |output: &[u8], finished| first_wrong(output, b"a\nb\nc\n", finished, Unit::Line);
        assert_eq!(wrong(b"a\nb\nc\n", true), None);
        assert_eq!(wrong(b"a\nx\nc\n", true), Some(2));
        assert_eq!(wrong(b"a\n", false), None);
        assert_eq!(wrong(b"a\n", true), Some(2), "what is missing is wrong");
        assert_eq!(wrong(b"", true), Some(1));
        assert_eq!(wrong(b"a\nb\nc\nd", false), Some(4), "what is too much is wrong at once");
        assert_eq!(first_wrong(b"abd", b"abc", false, Unit::Byte), Some(3));
    }
}
