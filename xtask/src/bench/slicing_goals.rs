//! Which rows of `bench slicing` are as good as they should be?

use std::fmt::Write;

use super::slicing_table::Cells;

/// The columns that goals are about.
const MEMCHECK: usize = 3;
const TRACED: usize = 4;
const GOALS: [(&str, usize, f64); 6] = [
    ("recording to first answer ≤ 20× native", 5, 20.0),
    ("25 slices: median ≤ 0.2 s", 6, 0.2),
    ("25 slices: worst ≤ 3 s", 7, 3.0),
    ("memory ≤ 2 GiB", 8, 2048.0),
    ("stored: ≤ 2 bits per instruction", 9, 2.0),
    ("a value ≤ 0.05 s", 13, 0.05),
];
/// Of the geometric mean.
const TRACING: f64 = 4.0;

/// A table of the goals.
pub fn markdown(rows: &[Cells]) -> String {
    let mut out = String::from("| goal | rows that meet it | not met by |\n| --- | ---: | --- |\n");
    let mean = geometric_mean(rows.iter().map(|row| number(&row[TRACED])));
    let verdict = if mean <= TRACING { "met" } else { "not met" };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "| traced ≤ {TRACING}× native in the geometric mean of these rows | {verdict}: {mean:.1}× | |"
    );
    let slower =
        |row: &&Cells| row[MEMCHECK] != "–" && number(&row[TRACED]) > number(&row[MEMCHECK]);
    out.push_str(&line("traced ≤ memcheck", rows, slower));
    for (name, column, most) in GOALS {
        out.push_str(&line(name, rows, |row| number(&row[column]) > most));
    }
    out
}

fn line(goal: &str, rows: &[Cells], misses: impl Fn(&&Cells) -> bool) -> String {
    let missing: Vec<&str> = rows.iter().filter(misses).map(|row| row[0].as_str()).collect();
    let met = rows.len() - missing.len();
    format!("| {goal} | {met} of {} | {} |\n", rows.len(), missing.join(", "))
}

/// What a cell says; more than any goal, if it says that it was not measured to its end.
fn number(cell: &str) -> f64 {
    cell.trim_end_matches('×').parse().unwrap_or(f64::INFINITY)
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Cells {
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn a_row_misses_what_it_exceeds_or_was_not_measured_to_its_end() {
        let rows = [
            row(
                "a | 1 | 0.1 | 9.0× | 2.0× | 20.0× | 0.20 | 3.00 | 2048 | 2.00 | 1 | 1 | 1 | 0.050",
            ),
            row(
                "b | 1 | 0.1 | 7.0× | 8.0× | > 9.0× | 0.21 | > 10 | 2049 | 2.01 | 1 | 1 | 1 | 0.051",
            ),
        ];
        let text = markdown(&rows);
        assert!(text.contains("| met: 4.0× |"), "{text}");
        let missed = text.lines().filter(|line| line.ends_with("| 1 of 2 | b |")).count();
        assert_eq!(missed, 1 + GOALS.len(), "{text}");
        let all = markdown(&rows[..1]);
        assert_eq!(all.lines().filter(|line| line.ends_with("| 1 of 1 |  |")).count(), 7, "{all}");
    }
}
