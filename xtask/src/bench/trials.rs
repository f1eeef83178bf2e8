//! What does a trial cost, next to a native run of the same program?
//!
//! For programs of 10⁴ to 10⁷ instructions, whole runs and searches are measured in turn, so that a
//! slow spell of the machine hits both alike. The program walks a list: a switched exit of its
//! loops ends in a crash and not in the step limit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::why::Why;
use crate::{page, workspace};

/// Options of `cargo xtask bench trials`.
#[derive(Args)]
pub struct Options {
    /// Rounds of each, of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Trials in a round
    #[arg(long, default_value_t = 400)]
    trials: usize,
    /// Also search all predicates of a run of two million instructions
    #[arg(long)]
    whole: bool,
    /// Put the table into docs/what-if.md
    #[arg(long)]
    write: bool,
    /// The `why` to measure, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { struct item *next; char text[24]; int weight; };
static struct item *find(struct item *list, const char *text) {
    for (struct item *p = list; p; p = p->next)
        if (strcmp(p->text, text) == 0)
            return p;
    return NULL;
}
int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);
    struct item *list = NULL;
    unsigned seed = 1;
    long total = 0;
    for (int n = 0; n != rounds; n++) {
        char text[24];
        seed = seed * 1103515245 + 12345;
        snprintf(text, sizeof text, "item%u", seed >> 16 & 63);
        struct item *p = find(list, text);
        if (!p) {
            p = calloc(1, sizeof *p);
            strcpy(p->text, text);
            p->next = list;
            list = p;
        }
        p->weight++;
        total += p->weight & 1 ? 1 : 2;
    }
    for (struct item *p = list; p; p = p->next)
        printf("%s %d\n", p->text, p->weight);
    printf("%ld\n", total);
    return 0;
}
"#;

/// Rounds of the program for about 10⁴, 10⁵, 10⁶ and 10⁷ instructions, and what compiles it.
/// The first is linked statically with a small C library: the dynamic linker alone takes 10⁵.
const SIZES: [(u32, &[&str]); 4] =
    [(15, &["musl-gcc", "-static"]), (60, &["gcc"]), (900, &["gcc"]), (9000, &["gcc"])];
/// Rounds for two million.
const WHOLE: u32 = 1050;

/// Measures.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("trials")?;
    let mut table = Table::default();
    table.line("| instructions | native | trial | ratio | verdicts |");
    table.line("| --- | --- | --- | --- | --- |");
    let mut good = true;
    for (size, compiler) in SIZES {
        let program = compile(scratch.path(), compiler)?;
        let recording = scratch.path().join(format!("rec{size}"));
        let right = record(&why, &recording, &program, size)?;
        let instructions = why.info(&recording)?.instructions;
        let (mut native, mut trials) = (Vec::new(), Vec::new());
        let mut verdicts = String::new();
        for _ in 0..options.rounds.max(1) {
            native.push(native_run(&program, size, 100)?);
            // The cost of a trial falls with what is left of the run: the mean of those
            // from the beginning and those from the end.
            let half = options.trials.div_ceil(2);
            let (early, _) = search(&why, &recording, &right, "first", Some(half), 1)?;
            let (late, said) = search(&why, &recording, &right, "lefs", Some(half), 1)?;
            trials.push((early + late) / 2.0);
            verdicts = said;
        }
        let (native, trial) = (median(native), median(trials));
        table.line(&format!(
            "| {instructions} | {:.3} ms | {:.3} ms | {:.2} | {verdicts} |",
            native * 1e3,
            trial * 1e3,
            trial / native
        ));
        good &= trial <= native;
    }
    if options.whole {
        let program = compile(scratch.path(), &["gcc"])?;
        let recording = scratch.path().join("whole");
        let right = record(&why, &recording, &program, WHOLE)?;
        let begun = Instant::now();
        let (_, verdicts) = search(&why, &recording, &right, "lefs", None, 2)?;
        table.line("");
        table.line(&format!(
            "All predicates of {} instructions: {:.1} s on two cores, {verdicts}.",
            why.info(&recording)?.instructions,
            begun.elapsed().as_secs_f64()
        ));
    }
    if options.write {
        page::put("what-if.md", "trials", &table.text)?;
    }
    Ok(good)
}

/// What is printed as it comes, and kept.
#[derive(Default)]
struct Table {
    text: String,
}

impl Table {
    fn line(&mut self, line: &str) {
        println!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }
}

fn compile(folder: &Path, compiler: &[&str]) -> Result<PathBuf> {
    let (source, program) = (folder.join("walk.c"), folder.join(compiler.concat()));
    std::fs::write(&source, PROGRAM)?;
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-g", "-O1", "-o"]).arg(&program).arg(&source);
    let done = command.status().context("cannot compile; try `cargo xtask setup`")?;
    ensure!(done.success(), "{} failed", compiler[0]);
    Ok(program)
}

/// Records a run. Returns a file with what is expected of it: its output, but for the last line.
fn record(why: &Why, recording: &Path, program: &Path, size: u32) -> Result<PathBuf> {
    let argv: Vec<OsString> = vec![program.into(), size.to_string().into()];
    let argv = why.record(recording, &argv);
    let done = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).output()?;
    ensure!(done.status.success(), "the program failed");
    let right = recording.with_extension("right");
    std::fs::write(&right, [&done.stdout[..], b"and one line more\n"].concat())?;
    Ok(right)
}

/// Seconds of one run, over several.
fn native_run(program: &Path, size: u32, runs: u32) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..runs {
        Command::new(program).arg(size.to_string()).stdout(Stdio::null()).status()?;
    }
    Ok(begun.elapsed().as_secs_f64() / f64::from(runs))
}

/// Seconds of one trial, and what came out.
fn search(
    why: &Why,
    recording: &Path,
    right: &Path,
    order: &str,
    trials: Option<usize>,
    jobs: usize,
) -> Result<(f64, String)> {
    let mut command = Command::new(&why.binary);
    command
        .arg("critical")
        .arg(recording)
        .arg("--expect")
        .arg(right)
        .args(["--all", "--json", "--order", order, "--steps", "2x"])
        .args(["--jobs", &jobs.to_string()]);
    if let Some(trials) = trials {
        command.args(["--trials", &trials.to_string()]);
    }
    let output = command.output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .context("cannot read what `why critical` printed")?;
    let seconds = report["seconds"].as_f64().context("no seconds")?;
    let done = report["trials"].as_f64().context("no trials")?;
    let verdicts = report["verdicts"].as_object().context("no verdicts")?;
    let said: Vec<String> = verdicts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    Ok((seconds / done.max(1.0), said.join(", ")))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
