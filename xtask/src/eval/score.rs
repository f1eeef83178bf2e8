//! How good is a ranking? Rank with the worst case for ties, score, and the share of what was
//! executed that must be looked at (F-000-06).

use std::collections::BTreeSet;

/// A source line: the file's last name and the number.
pub type Line = (String, usize);

/// Lines with how suspect each is: the higher, the more.
pub type Suspicion = Vec<(Line, f64)>;

/// The rank of the first of `faulty`: as many lines as must be looked at until one of them is met,
/// if equal ones come in the worst order.
pub fn worst_rank(suspicion: &Suspicion, faulty: &BTreeSet<Line>) -> Option<usize> {
    let best = suspicion.iter().filter(|(line, _)| faulty.contains(line));
    let best = best.map(|(_, score)| *score).max_by(f64::total_cmp)?;
    Some(suspicion.iter().filter(|(_, score)| *score >= best).count())
}

/// `(executed − rank) / executed`, in percent: Definition 6.
pub fn score(rank: usize, executed: usize) -> f64 {
    100.0 * executed.saturating_sub(rank) as f64 / executed.max(1) as f64
}

/// The final share of code to look at over all programs (F-002-38): sizes where a technique
/// applies, all that was executed where it does not.
pub fn fcs(rows: &[(Option<usize>, usize)]) -> f64 {
    let looked: usize = rows.iter().map(|(size, executed)| size.unwrap_or(*executed)).sum();
    let executed: usize = rows.iter().map(|(_, executed)| *executed).sum();
    looked as f64 / executed.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> Line {
        ("a.c".to_owned(), n)
    }

    // F-000-06
    #[test]
    fn a_five_way_tie_at_the_top_is_rank_five() {
        let mut suspicion: Suspicion = (1..=5).map(|n| (line(n), 1.0)).collect();
        suspicion.push((line(6), 0.5));
        assert_eq!(worst_rank(&suspicion, &BTreeSet::from([line(2)])), Some(5));
        assert_eq!(worst_rank(&suspicion, &BTreeSet::from([line(6)])), Some(6));
        assert_eq!(worst_rank(&suspicion, &BTreeSet::from([line(6), line(1)])), Some(5));
        assert_eq!(worst_rank(&suspicion, &BTreeSet::from([line(9)])), None);
    }

    // F-000-06
    #[test]
    fn the_score_is_the_share_that_need_not_be_looked_at() {
        assert!((score(5, 100) - 95.0).abs() < 1e-9);
        assert!((score(100, 100)).abs() < 1e-9);
    }

    // F-002-38: sizes and executed lines of Table 4.5, backward slices; – is not applicable.
    #[test]
    fn the_share_counts_all_that_was_executed_where_there_is_no_slice() {
        let share = fcs(&[(Some(695), 1871), (None, 1157), (Some(50), 2053)]);
        assert!((share - (695.0 + 1157.0 + 50.0) / (1871.0 + 1157.0 + 2053.0)).abs() < 1e-12);
    }
}
