//! What does a part of a recording save? The whole, a region and a slice, replayed side
//! by side.

use std::fmt::Write;
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

/// Loops of noise, and how often the value is added to.
const ROWS: [(&str, &str); 4] =
    [("100000", "50"), ("10000", "500"), ("1000", "5000"), ("100", "5000")];

/// A table of what replaying takes.
pub fn measure(why: &Path, folder: &Path) -> Result<String> {
    fs::write(folder.join("sea.c"), PROGRAM)?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-o", "sea", "sea.c"]).current_dir(folder);
    ensure!(gcc.status().context("gcc")?.success(), "the guest does not compile");
    let mut table = String::from(
        "| noise × additions | instructions | whole | last tenth | instructions in the slice | slice |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (loops, most) in ROWS {
        for old in ["whole", "tenth", "slice"] {
            let _ = fs::remove_dir_all(folder.join(old));
        }
        let run = |arguments: &[&str]| said(why, folder, arguments);
        run(&["record", "-o", "whole", "--", "./sea", loops, most])?;
        let from = format!("keep#{}", most.parse::<u64>()? * 9 / 10);
        run(&["cut", "whole", "--from", &from, "-o", "tenth"])?;
        run(&["slice", "whole", "keep#last:kept", "--save", "kept"])?;
        let cut = run(&["cut", "whole", "--slice", "kept", "-o", "slice"])?;
        let mut numbers = cut.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (kept, total) =
            (numbers.next().context("no count")?, numbers.next().context("no count")?);
        let mut times = Vec::new();
        for part in ["whole", "tenth", "slice"] {
            times.push(median_replay(why, folder, part)?);
        }
        let [whole, tenth, slice] = times[..] else { anyhow::bail!("three are measured") };
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {loops} × {most} | {:.1} M | {whole:.1} ms | {tenth:.1} ms | {:.1} % | {slice:.1} ms |",
            total as f64 / 1e6,
            kept as f64 * 100.0 / total as f64,
        );
    }
    Ok(table)
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
