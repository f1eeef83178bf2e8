//! What does a part of a recording save? The whole, a region and a slice, replayed side
//! by side.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// A value of few instructions in a run of many.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned noise[1024];
static long kept;
__attribute__((noinline)) void churn(long loops, int n)
{
    for (long i = 0; i < loops; i++) noise[i & 1023] = noise[(i * 7) & 1023] * 31 + n;
}
__attribute__((noinline)) void keep(int n) { kept += n * 2; }
int main(int argc, char **argv)
{
    long loops = atol(argv[1]);
    int most = atoi(argv[2]);
    for (int n = 0; n < most; n++) {
        churn(loops, n);
        keep(n);
    }
    printf("%ld\n", kept);
    return 0;
}
"#;

/// A run and what is asked of it.
struct Row {
    /// Loops of noise.
    loops: &'static str,
    /// How often the value is added to.
    most: &'static str,
    /// What is sliced.
    value: &'static str,
}

/// From a slice of a few instructions to one of nearly all.
const ROWS: [Row; 5] = [
    Row { loops: "100000", most: "50", value: "kept" },
    Row { loops: "10000", most: "500", value: "kept" },
    Row { loops: "1000", most: "5000", value: "kept" },
    Row { loops: "100", most: "5000", value: "kept" },
    Row { loops: "100000", most: "50", value: "noise[5]" },
];

/// A table of what cutting and replaying take.
pub fn measure(why: &Path, folder: &Path) -> Result<String> {
    fs::write(folder.join("sea.c"), PROGRAM)?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-o", "sea", "sea.c"]).current_dir(folder);
    ensure!(gcc.status().context("gcc")?.success(), "the guest does not compile");
    let mut table = String::from(
        "| noise × additions | instructions | replay | of the last tenth | slice of | instructions in it | `why cut --slice` | replay of the slice |\n\
         | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n",
    );
    for row in ROWS {
        table += &measure_row(why, folder, &row)?;
    }
    Ok(table)
}

fn measure_row(why: &Path, folder: &Path, row: &Row) -> Result<String> {
    let Row { loops, most, value } = *row;
    for old in ["whole", "tenth", "slice"] {
        let _ = fs::remove_dir_all(folder.join(old));
    }
    let run = |arguments: &[&str]| said(why, folder, arguments);
    run(&["record", "-o", "whole", "--", "./sea", loops, most])?;
    let from = format!("keep#{}", most.parse::<u64>()? * 9 / 10);
    run(&["cut", "whole", "--from", &from, "-o", "tenth"])?;
    run(&["slice", "whole", &format!("keep#last:{value}"), "--save", "kept"])?;
    let begin = Instant::now();
    let cut = run(&["cut", "whole", "--slice", "kept", "-o", "slice"])?;
    let cutting = begin.elapsed().as_secs_f64();
    let mut numbers = cut.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (kept, total) = (numbers.next().context("no count")?, numbers.next().context("no count")?);
    let [whole, tenth, slice] = ["whole", "tenth", "slice"].map(|p| median_replay(why, folder, p));
    Ok(format!(
        "| {loops} × {most} | {:.1} M | {:.1} ms | {:.1} ms | `{value}` | {:.1} % | {cutting:.1} s | {:.1} ms |\n",
        total as f64 / 1e6,
        whole?,
        tenth?,
        kept as f64 * 100.0 / total as f64,
        slice?,
    ))
}

/// What a verb says on stderr.
fn said(why: &Path, folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(why);
    command.args(arguments).env("WHY_DIR", folder.join("home")).current_dir(folder);
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "why {}: {text}", arguments.join(" "));
    Ok(text)
}

/// Milliseconds of a replay.
fn median_replay(why: &Path, folder: &Path, part: &str) -> Result<f64> {
    let mut all = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        said(why, folder, &["replay", "-q", part])?;
        all.push(begin.elapsed().as_secs_f64() * 1000.0);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}
