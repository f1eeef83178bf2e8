//! The baselines: which lines do failing tests run, and passing ones not?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::score::{Line, Suspicion};

/// How often each line was run by failing and by passing tests.
#[derive(Debug, Default)]
pub struct Spectrum {
    failing: usize,
    passing: usize,
    lines: BTreeMap<Line, (usize, usize)>,
}

/// A formula that makes suspicion of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    Tarantula,
    Ochiai,
    DStar,
}

impl Spectrum {
    /// Adds a test.
    pub fn add(&mut self, covered: &BTreeSet<Line>, fails: bool) {
        *(if fails { &mut self.failing } else { &mut self.passing }) += 1;
        for line in covered {
            let (failing, passing) = self.lines.entry(line.clone()).or_default();
            *(if fails { failing } else { passing }) += 1;
        }
    }

    /// Lines that failing tests run: what the literature counts.
    pub fn executed(&self) -> usize {
        self.lines.values().filter(|(failing, _)| *failing > 0).count()
    }

    /// Suspicion of the lines that a failing test runs.
    pub fn suspicion(&self, formula: Formula) -> Suspicion {
        let (all_failing, all_passing) = (self.failing as f64, self.passing as f64);
        let lines = self.lines.iter().filter(|(_, (failing, _))| *failing > 0);
        lines
            .map(|(line, &(failing, passing))| {
                let (failing, passing) = (failing as f64, passing as f64);
                let score = match formula {
                    Formula::Tarantula => {
                        let failing = failing / all_failing;
                        failing / (failing + passing / all_passing.max(1.0))
                    }
                    Formula::Ochiai => failing / (all_failing * (failing + passing)).sqrt(),
                    Formula::DStar => {
                        let missed = all_failing - failing;
                        match missed + passing {
                            0.0 => f64::MAX,
                            rest => failing * failing / rest,
                        }
                    }
                };
                (line.clone(), score)
            })
            .collect()
    }
}

/// The lines that an lcov tracefile says were run.
pub fn covered(lcov: &str) -> BTreeSet<Line> {
    let mut lines = BTreeSet::new();
    let mut file = String::new();
    for row in lcov.lines() {
        if let Some(path) = row.strip_prefix("SF:") {
            file = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        } else if let Some((line, count)) = row.strip_prefix("DA:").and_then(|r| r.split_once(','))
            && count != "0"
            && let Ok(line) = line.parse()
        {
            lines.insert((file.clone(), line));
        }
    }
    lines
}

/// Chooses tests until together they run what all of them run: those that add lines, in the order
/// given, then more until five fail and five pass, where there are so many (F-000-08).
pub fn adequate(tests: &[(BTreeSet<Line>, bool)]) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut known: BTreeSet<&Line> = BTreeSet::new();
    for (n, (lines, _)) in tests.iter().enumerate() {
        if lines.iter().any(|line| !known.contains(line)) {
            known.extend(lines);
            chosen.push(n);
        }
    }
    for wanted in [true, false] {
        let mut of_kind = chosen.iter().filter(|n| tests[**n].1 == wanted).count();
        for (n, (_, fails)) in tests.iter().enumerate() {
            if of_kind < 5 && *fails == wanted && !chosen.contains(&n) {
                chosen.push(n);
                of_kind += 1;
            }
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[usize]) -> BTreeSet<Line> {
        all.iter().map(|n| ("a.c".to_owned(), *n)).collect()
    }

    fn suspicion(formula: Formula, line: usize) -> f64 {
        let mut spectrum = Spectrum::default();
        spectrum.add(&lines(&[1, 2]), true);
        spectrum.add(&lines(&[1, 3]), false);
        spectrum.add(&lines(&[1, 2, 3]), false);
        let all = spectrum.suspicion(formula);
        all.into_iter().find(|(l, _)| l.1 == line).map_or(0.0, |(_, score)| score)
    }

    #[test]
    fn the_formulas_give_what_their_papers_say() {
        assert!((suspicion(Formula::Tarantula, 2) - 1.0 / 1.5).abs() < 1e-9);
        assert!((suspicion(Formula::Tarantula, 1) - 0.5).abs() < 1e-9);
        assert!((suspicion(Formula::Ochiai, 2) - 1.0 / 2f64.sqrt()).abs() < 1e-9);
        assert!((suspicion(Formula::DStar, 2) - 1.0).abs() < 1e-9);
        assert!((suspicion(Formula::DStar, 1) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn lines_that_did_not_run_are_not_covered() {
        let lcov = "TN:\nSF:/x/a.c\nDA:1,4\nDA:2,0\nend_of_record\n";
        assert_eq!(covered(lcov), lines(&[1]));
    }

    // F-000-08
    #[test]
    fn an_adequate_suite_covers_what_the_pool_covers() {
        let mut pool = vec![(lines(&[1, 2]), false), (lines(&[1]), false), (lines(&[1, 3]), true)];
        pool.extend((0..9).map(|_| (lines(&[1]), false)));
        let chosen = adequate(&pool);
        let all: BTreeSet<Line> = chosen.iter().flat_map(|n| pool[*n].0.clone()).collect();
        assert_eq!(all, lines(&[1, 2, 3]));
        assert_eq!(chosen.iter().filter(|n| !pool[**n].1).count(), 5);
        assert_eq!(chosen.len(), 6);
    }
}
