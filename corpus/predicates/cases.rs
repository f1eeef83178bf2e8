//! The programs of this folder: how each is run, and where its critical predicate is.
//! `cargo xtask corpus --critical` and the tests of `why critical` read them.

use serde::Deserialize;

/// A program and its failing run.
#[derive(Deserialize)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Standard input.
    pub input: String,
    #[serde(default)]
    crashes: bool,
    /// A text in the line of the critical predicate.
    line: String,
}

impl Case {
    /// All of them.
    pub fn all() -> Vec<Case> {
        #[derive(Deserialize)]
        struct All {
            case: Vec<Case>,
        }
        let all: All = toml::from_str(include_str!("cases.toml")).expect("cases.toml is in order");
        all.case
    }

    /// What says which runs are good, with the right output in the file `right`.
    pub fn oracle(&self) -> &'static [&'static str] {
        if self.crashes { &["--no-crash"] } else { &["--expect", "right"] }
    }

    /// The line of the critical predicate in the program's source.
    pub fn line_in(&self, source: &str) -> usize {
        let at = source.find(&self.line).expect("the line is there");
        let inside = self.line.rfind('\n').map_or(0, |n| n + 1);
        1 + source[..at + inside].matches('\n').count()
    }
}
