//! Which known names may have been meant?

/// How many names are offered.
const MOST: usize = 5;

/// Names that differ from `name` in a few letters only, or go on after it.
pub(super) fn similar(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let close = |known: &String| {
        let known = known.to_lowercase();
        let extends = wanted.len() > 1 && known.starts_with(&wanted);
        extends || distance(&wanted, &known) <= wanted.chars().count() / 3
    };
    let mut names: Vec<_> = known.filter(close).collect();
    names.dedup();
    names.truncate(MOST);
    names
}

/// How many letters must be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let known = || ["count", "total", "n"].into_iter().map(str::to_owned);
        assert_eq!(similar("cuont", known()), [] as [&str; 0]);
        assert_eq!(similar("coumt", known()), ["count"]);
        assert_eq!(similar("TOTAL", known()), ["total"]);
        assert_eq!(similar("co", known()), ["count"]);
        assert_eq!(similar("x", known()), [] as [&str; 0]);
    }

    #[test]
    fn distances_are_counted_in_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
