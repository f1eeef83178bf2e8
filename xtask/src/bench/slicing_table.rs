//! The tables of `bench slicing`.

use std::fmt::Write;

use super::slicing::{Measured, median};

/// All tables as Markdown.
pub fn markdown(rows: &[Measured]) -> String {
    let mut out = String::from(
        "| | M instructions | native s | memcheck | traced | recording to first answer | 25 slices: median s | worst s | peak MiB | stored: bits per instruction | stored s | loaded s | traced anew s | a value: median s |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", line(row));
    }
    let ablations: Vec<String> = rows.iter().filter_map(ablation).collect();
    if !ablations.is_empty() {
        out.push_str(
            "\nBits per instruction by what captured registers are told by, and seconds of a slice:\n\n\
             | | as in memory | values, zstd | difference from the last, zstd | from last and stride, zstd | slice s | without skipping s |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        out.push_str(&ablations.concat());
    }
    out
}

fn line(row: &Measured) -> String {
    let f = &row.facts;
    let times = |seconds: f64| format!("{:.1}×", seconds / row.native);
    let first = f.slices.first().copied().unwrap_or_default();
    let middle = median(f.slices.clone());
    let worst = f.slices.iter().copied().fold(0.0, f64::max);
    let bits = bits(f.stored_bytes, f.instructions);
    format!(
        "| {} | {:.0} | {:.3} | {} | {} | {} | {middle:.2} | {worst:.2} | {} | {bits:.2} | {:.2} | {:.2} | {:.2} | {:.3} |",
        row.name,
        f.instructions as f64 / 1e6,
        row.native,
        row.memcheck.map_or("–".to_owned(), times),
        times(f.traced),
        times(f.built + first),
        f.peak_bytes >> 20,
        f.stored,
        f.loaded,
        f.built,
        median(f.values.clone()),
    )
}

fn bits(bytes: u64, instructions: u64) -> f64 {
    bytes as f64 * 8.0 / instructions.max(1) as f64
}

fn ablation(row: &Measured) -> Option<String> {
    let f = &row.facts;
    let packed = f.packed.as_ref()?;
    let bits = |bytes: u64| bits(bytes, f.instructions);
    let mean = |which: fn(&(f64, f64)) -> f64| {
        f.skipping.iter().map(which).sum::<f64>() / f.skipping.len().max(1) as f64
    };
    Some(format!(
        "| {} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |\n",
        row.name,
        bits(f.record_bytes + f.control_bytes),
        bits(packed.values),
        bits(packed.last),
        bits(packed.stride),
        mean(|(with, _)| *with),
        mean(|(_, without)| *without),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::slicing::{Facts, Packed};
    use super::*;

    fn measured(packed: Option<Packed>) -> Measured {
        let facts = Facts {
            instructions: 100_000_000,
            traced: 0.05,
            built: 0.3,
            slices: vec![0.1, 0.2, 0.9],
            peak_bytes: 3 << 20,
            record_bytes: 25_000_000,
            control_bytes: 25_000_000,
            stored: 0.4,
            stored_bytes: 12_500_000,
            loaded: 0.2,
            loads: true,
            values: vec![0.03],
            packed,
            skipping: vec![(0.1, 0.5), (0.2, 0.7)],
        };
        Measured { name: "gzip".to_owned(), native: 0.02, memcheck: Some(0.5), facts }
    }

    // F-002-24: one row has what all ways cost, side by side.
    #[test]
    fn a_row_compares_native_memcheck_tracing_and_slicing() {
        let text = markdown(&[measured(None)]);
        let row = text.lines().last().expect("a row");
        let wanted = "| gzip | 100 | 0.020 | 25.0× | 2.5× | 20.0× | 0.20 | 0.90 | 3 | 1.00 | 0.40 | 0.20 | 0.30 | 0.030 |";
        assert_eq!(row, wanted);
    }

    // F-002-23: what each way of telling registers takes, and what skipping saves.
    #[test]
    fn an_ablation_has_the_size_and_time_of_every_way() {
        let packed = Packed { values: 25_000_000, last: 12_500_000, stride: 13_750_000 };
        let text = markdown(&[measured(Some(packed))]);
        let row = text.lines().last().expect("a row");
        assert_eq!(row, "| gzip | 4.0 | 2.00 | 1.00 | 1.10 | 0.15 | 0.60 |");
    }
}
