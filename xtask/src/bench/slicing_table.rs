//! The tables of `bench slicing`.
//!
//! A row says nothing of others, so each is kept with the day it was measured, until it is
//! measured again.

use std::fmt::Write;

use super::slicing::{Measured, median};
use super::slicing_goals;

/// Column names of the table of costs.
const COSTS: &str = "| | M instructions | native s | memcheck | traced | recording to first answer | 25 slices: median s | worst s | peak MiB | stored: bits per instruction | stored s | loaded s | traced anew s | a value: median s | `why slice`: s | measured |";
/// Column names of the table of what each optimisation buys.
const ABLATIONS: &str = "| | as in memory | values, zstd | difference from the last, zstd | from last and stride, zstd | slice s | without skipping s |";

/// Column names of the table of what constant distances would buy.
const LABELS: &str =
    "| | all that is in memory | labels | labels but those at a constant distance |";
/// A label names a record and an instruction of it.
const LABEL: u64 = 5;

/// Rows of all tables.
#[derive(Default)]
pub struct Tables {
    pub costs: Vec<Cells>,
    ablations: Vec<Cells>,
    labels: Vec<Cells>,
}

/// A row; the first cell is its name.
pub type Cells = Vec<String>;

impl Tables {
    /// The rows that a page has. Those of tables with other columns are left out.
    pub fn read(text: &str) -> Tables {
        let [costs, ablations, labels] =
            [COSTS, ABLATIONS, LABELS].map(|head| rows_below(text, head));
        Tables { costs, ablations, labels }
    }

    /// Takes a row in, instead of what was known of it. `order` has the names of all rows.
    pub fn put(&mut self, row: &Measured, order: &[String]) {
        replace(&mut self.costs, costs(row), order);
        if let Some(ablation) = ablation(row) {
            replace(&mut self.ablations, ablation, order);
        }
        if let Some(labels) = labels(row) {
            replace(&mut self.labels, labels, order);
        }
    }

    /// All tables as Markdown; with the goals, if rows have any.
    pub fn markdown(&self, goals: bool) -> String {
        let mut out = table(COSTS, &self.costs);
        if goals {
            out.push('\n');
            out.push_str(&slicing_goals::markdown(&self.costs));
        }
        if !self.ablations.is_empty() {
            out.push_str(
                "\nBits per instruction by what captured registers are told by, and seconds of a slice:\n\n",
            );
            out.push_str(&table(ABLATIONS, &self.ablations));
        }
        if !self.labels.is_empty() {
            out.push_str("\nBits per instruction that labels take:\n\n");
            out.push_str(&table(LABELS, &self.labels));
        }
        out
    }
}

fn rows_below(text: &str, head: &str) -> Vec<Cells> {
    let lines = text.lines().skip_while(|line| *line != head).skip(2);
    let cells = |line: &str| {
        let inner = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
    };
    lines.map_while(cells).collect()
}

fn replace(rows: &mut Vec<Cells>, row: Cells, order: &[String]) {
    rows.retain(|old| old[0] != row[0]);
    rows.push(row);
    rows.sort_by_key(|row| order.iter().position(|name| *name == row[0]));
}

fn table(head: &str, rows: &[Cells]) -> String {
    let columns = head.matches('|').count() - 1;
    let mut out = format!("{head}\n| --- |{}\n", " ---: |".repeat(columns - 1));
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

fn costs(row: &Measured) -> Cells {
    let f = &row.facts;
    let times = |seconds: f64| format!("{:.1}×", seconds / row.native);
    let first_answer = match f.slices.first().copied().flatten() {
        Some(_) => times(f.first_answer),
        None => format!("> {}", times(f.first_answer)),
    };
    // A slice that was broken off took longer than all others.
    let mut slices: Vec<f64> = f.slices.iter().map(|s| s.unwrap_or(f64::INFINITY)).collect();
    slices.sort_by(f64::total_cmp);
    let worst = slices.last().copied().unwrap_or_default();
    vec![
        row.name.clone(),
        format!("{:.0}", f.instructions as f64 / 1e6),
        format!("{:.3}", row.native),
        row.memcheck.map_or("–".to_owned(), times),
        times(f.traced),
        first_answer,
        within(median(slices), row.limit),
        within(worst, row.limit),
        (f.peak_bytes >> 20).to_string(),
        format!("{:.2}", bits(f.stored_bytes, f.instructions)),
        format!("{:.2}", f.stored),
        format!("{:.2}", f.loaded),
        format!("{:.2}", f.built),
        format!("{:.3}", median(f.values.clone())),
        format!("{:.1}", row.command),
        row.when.clone(),
    ]
}

/// Seconds, if they are less than what there was time for.
fn within(seconds: f64, limit: f64) -> String {
    if seconds < limit { format!("{seconds:.2}") } else { format!("> {limit}") }
}

fn bits(bytes: u64, instructions: u64) -> f64 {
    bytes as f64 * 8.0 / instructions.max(1) as f64
}

fn ablation(row: &Measured) -> Option<Cells> {
    let f = &row.facts;
    let packed = f.packed.as_ref()?;
    let bits = |bytes: u64| format!("{:.2}", bits(bytes, f.instructions));
    let (with, without): (Vec<_>, Vec<_>) = f.skipping.iter().copied().unzip();
    let mean = |seconds: Vec<Option<f64>>| {
        let all: Option<Vec<f64>> = seconds.into_iter().collect();
        let mean = all.map(|all| all.iter().sum::<f64>() / all.len().max(1) as f64);
        within(mean.unwrap_or(f64::INFINITY), row.limit)
    };
    Some(vec![
        row.name.clone(),
        bits(f.record_bytes + f.control_bytes),
        bits(packed.values),
        bits(packed.last),
        bits(packed.stride),
        mean(with),
        mean(without),
    ])
}

fn labels(row: &Measured) -> Option<Cells> {
    let f = &row.facts;
    let (all, constant) = f.labels?;
    let bits = |bytes: u64| format!("{:.2}", bits(bytes, f.instructions));
    Some(vec![
        row.name.clone(),
        bits(f.record_bytes + f.control_bytes),
        bits(LABEL * all),
        bits(LABEL * (all - constant)),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::slicing::{Facts, Packed};
    use super::*;

    fn measured(name: &str, packed: Option<Packed>) -> Measured {
        let facts = Facts {
            instructions: 100_000_000,
            traced: 0.05,
            built: 0.2,
            first_answer: 0.4,
            slices: vec![Some(0.1), Some(0.2), Some(0.9)],
            peak_bytes: 3 << 20,
            record_bytes: 25_000_000,
            control_bytes: 25_000_000,
            stored: 0.4,
            stored_bytes: 12_500_000,
            loaded: 0.2,
            loads: true,
            values: vec![0.03],
            packed,
            labels: None,
            skipping: vec![(Some(0.1), Some(0.5)), (Some(0.2), Some(0.7))],
        };
        let (name, when) = (name.to_owned(), "2026-01-02".to_owned());
        Measured {
            name,
            native: 0.02,
            memcheck: Some(0.5),
            facts,
            command: 1.25,
            limit: 10.0,
            when,
        }
    }

    fn order() -> Vec<String> {
        ["gzip", "perl", "cc1"].map(str::to_owned).to_vec()
    }

    fn tables(rows: &[Measured]) -> Tables {
        let mut tables = Tables::default();
        rows.iter().for_each(|row| tables.put(row, &order()));
        tables
    }

    // F-002-24: one row has what all ways cost, side by side.
    #[test]
    fn a_row_compares_native_memcheck_tracing_and_slicing() {
        let text = tables(&[measured("gzip", None)]).markdown(false);
        let row = text.lines().last().expect("a row");
        let wanted = "| gzip | 100 | 0.020 | 25.0× | 2.5× | 20.0× | 0.20 | 0.90 | 3 | 1.00 | 0.40 | 0.20 | 0.20 | 0.030 | 1.2 | 2026-01-02 |";
        assert_eq!(row, wanted);
    }

    #[test]
    fn slices_that_were_broken_off_are_the_worst() {
        let mut row = measured("cc1", None);
        (row.facts.first_answer, row.facts.slices) = (10.3, vec![None, Some(0.1), None]);
        let costs = tables(&[row]).costs.remove(0);
        assert_eq!(costs[5..8], ["> 515.0×", "> 10", "> 10"]);
        let mut row = measured("cc1", None);
        row.facts.slices = vec![Some(0.1), Some(0.2), None];
        assert_eq!(tables(&[row]).costs[0][5..8], ["20.0×", "0.20", "> 10"]);
    }

    // F-002-23: what each way of telling registers takes, and what skipping saves.
    #[test]
    fn an_ablation_has_the_size_and_time_of_every_way() {
        let packed = Packed { values: 25_000_000, last: 12_500_000, stride: 13_750_000 };
        let text = tables(&[measured("gzip", Some(packed))]).markdown(true);
        let row = text.lines().last().expect("a row");
        assert_eq!(row, "| gzip | 4.00 | 2.00 | 1.00 | 1.10 | 0.15 | 0.60 |");
    }

    // F-002-16 to 18: what it would save not to keep labels at a constant distance.
    #[test]
    fn labels_are_counted_with_and_without_those_at_a_constant_distance() {
        let mut row = measured("gzip", None);
        row.facts.labels = Some((10_000_000, 2_500_000));
        let text = tables(&[row]).markdown(true);
        let row = text.lines().last().expect("a row");
        assert_eq!(row, "| gzip | 4.00 | 4.00 | 3.00 |");
        assert_eq!(Tables::read(&text).labels[0][3], "3.00");
    }

    #[test]
    fn a_row_that_is_measured_again_takes_its_old_place_and_others_stay() {
        let old = tables(&[measured("gzip", None), measured("cc1", None)]).markdown(true);
        let mut tables = Tables::read(&old);
        let mut again = measured("gzip", None);
        again.native = 0.04;
        tables.put(&again, &order());
        tables.put(&measured("perl", None), &order());
        let names: Vec<&str> = tables.costs.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["gzip", "perl", "cc1"]);
        let native: Vec<&str> = tables.costs.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(native, ["0.040", "0.020", "0.020"]);
    }

    #[test]
    fn rows_of_other_columns_are_not_kept() {
        let old = tables(&[measured("gzip", None)]).markdown(false);
        assert!(Tables::read(&old.replace("native s", "native ms")).costs.is_empty());
    }
}
