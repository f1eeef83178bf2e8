//! The tables of `bench slicing`.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::slicing::{Measured, median};
use crate::workspace;

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

/// Puts a table between its marks in a page of docs/.
pub fn write(page: &str, name: &str, table: &str) -> Result<()> {
    let path = workspace::root().join("docs").join(page);
    let page = std::fs::read_to_string(&path).context("cannot read the page")?;
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no {begin} in it"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no {end} in it"))?;
    std::fs::write(&path, format!("{before}{begin}{table}{end}{after}"))
        .context("cannot write the page")
}
