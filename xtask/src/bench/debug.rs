//! What does going back cost? Timed inside gdb, so that its start does not count: the
//! same script on a recording and on gdb's own `record full`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::debug_parts;
use crate::why::Why;
use crate::{page, workspace};

/// Options of `cargo xtask bench debug`.
#[derive(Args)]
pub struct Options {
    /// Times the loop runs: about ten instructions each
    #[arg(long, default_value_t = 10_000_000)]
    loops: u64,
    /// The same for a longer run, in which what does not grow with the run matters less
    #[arg(long, default_value_t = 100_000_000)]
    loops_long: u64,
    /// Loops for `record full`, which is a thousand times slower
    #[arg(long, default_value_t = 20_000)]
    loops_record_full: u64,
    /// Put the tables into docs/debugging.md
    #[arg(long)]
    write: bool,
    /// The `why` to measure, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<std::path::PathBuf>,
}

/// Most milliseconds that a reverse step may take at the median.
const STEP: f64 = 50.0;
/// Most forward replays that a reverse watchpoint may take as long as.
const REPLAYS: f64 = 2.0;
/// Sessions of gdb; the median counts.
const SESSIONS: usize = 3;
/// Seconds that gdb's own recording may take.
const PATIENCE: &str = "120";

/// One write long before the end, then a loop that writes elsewhere in the same page.
const PROGRAM: &str = r#"
#include <stdlib.h>
volatile long marked, others[8];
__attribute__((noinline)) void finish(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
    long loops = atol(argv[1]);
    marked = 1;
    for (long i = 0; i < loops; i++) others[i & 7] += i;
    others[0] ^= loops;
    others[1] ^= loops;
    others[2] ^= loops;
    others[3] ^= loops;
    others[4] ^= loops;
    others[5] ^= loops;
    others[6] ^= loops;
    others[7] ^= loops;
    others[0] ^= loops;
    others[1] ^= loops;
    others[2] ^= loops;
    others[3] ^= loops;
    others[4] ^= loops;
    others[5] ^= loops;
    finish();
    return 0;
}
"#;

/// Prints milliseconds by name.
const SCRIPT: &str = r#"
import gdb, time
def timed(name, command):
    begin = time.monotonic()
    gdb.execute(command, to_string=True)
    print("MS %s %.3f" % (name, (time.monotonic() - begin) * 1000))
gdb.execute("set can-use-hw-watchpoints 1")
gdb.execute("break finish")
timed("forward", "continue")
gdb.execute("delete")
for n in range(11):
    timed("reverse-stepi", "reverse-stepi")
for n in range(11):
    timed("reverse-step", "reverse-step")
gdb.execute("watch marked")
timed("reverse-watch", "reverse-continue")
print("VALUE", int(gdb.parse_and_eval("marked")))
"#;

/// Measures, and prints a table.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("bench-debug")?;
    let folder = scratch.path();
    fs::write(folder.join("far.c"), PROGRAM)?;
    let program = folder.join("far");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O1", "-o"]).arg(&program).arg(folder.join("far.c"));
    let compiled = gcc.status().context("gcc")?;
    ensure!(compiled.success(), "the guest does not compile");
    fs::write(folder.join("timed.py"), SCRIPT)?;
    let runs = [options.loops, options.loops_long];
    let mut recorded = Vec::new();
    for loops in runs {
        recorded.push(on_recording(loops, &why.binary, folder, &program)?);
    }
    let full = on_record_full(options, folder, &program);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "| | why debug, {} loops | why debug, {} loops | gdb record full, {} loops |\n\
         | --- | ---: | ---: | ---: |",
        runs[0], runs[1], options.loops_record_full
    );
    for name in ["replay", "forward", "reverse-stepi", "reverse-step", "reverse-watch"] {
        let shown =
            |text: &str| median(text, name).map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
        let [short, long] = [0, 1].map(|n: usize| shown(&recorded[n].said));
        let _ = writeln!(text, "| {name} | {short} | {long} | {} |", shown(&full));
    }
    let mut met = true;
    for run in &recorded {
        let goals = run.goals()?;
        let _ = write!(text, "\n{}", goals.said);
        met &= goals.met;
    }
    print!("{text}");
    if options.write {
        page::put("debugging.md", "going back", &text)?;
    }
    let parts = debug_parts::measure(&why.binary, folder)?;
    print!("\n{parts}");
    if options.write {
        page::put("debugging.md", "parts", &parts)?;
    }
    Ok(met)
}

/// What was measured on a recording.
struct Measured {
    /// What gdb printed.
    said: String,
    instructions: u64,
}

/// Whether goals are met.
struct Goals {
    said: String,
    met: bool,
}

impl Measured {
    fn goals(&self) -> Result<Goals> {
        ensure!(self.said.contains("VALUE 0"), "the write was not found:\n{}", self.said);
        let of = |name| median(&self.said, name).context("nothing was measured");
        let (step, watch, replay) = (of("reverse-step")?, of("reverse-watch")?, of("replay")?);
        let (is_quick, is_near) = (step < STEP, watch <= REPLAYS * replay);
        let word = |met: bool| if met { "met" } else { "not met" };
        let said = format!(
            "Goals over {:.0} million instructions. A reverse step under {STEP} ms at the \
             median:\n{step:.1} ms, {}. A reverse watchpoint in no more than {REPLAYS} forward \
             replays:\n{:.2}, {}.\n",
            self.instructions as f64 / 1e6,
            word(is_quick),
            watch / replay,
            word(is_near)
        );
        Ok(Goals { said, met: is_quick && is_near })
    }
}

/// How many instructions the recording of [`PROGRAM`] has.
fn instructions(why: &Path, folder: &Path) -> Result<u64> {
    let mut info = Command::new(why);
    info.args(["info", "--json"]).env("WHY_DIR", folder.join("home"));
    let info: serde_json::Value = serde_json::from_slice(&info.output()?.stdout)?;
    info["instructions"].as_u64().context("why info does not count instructions")
}

fn on_recording(loops: u64, why: &Path, folder: &Path, program: &Path) -> Result<Measured> {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(why);
        command.args(arguments).env("WHY_DIR", folder.join("home"));
        command
    };
    let mut record = command(&["record", "--"]);
    ensure!(
        record.arg(program).arg(loops.to_string()).status()?.success(),
        "it cannot be recorded"
    );
    let mut said = String::new();
    for _ in 0..SESSIONS {
        // In turn, so that both have the same machine.
        for _ in 0..SESSIONS {
            let begin = std::time::Instant::now();
            let replayed = command(&["replay", "-q"]).stdout(Stdio::null()).status()?;
            ensure!(replayed.success(), "no replay");
            said += &format!("MS replay {:.3}\n", begin.elapsed().as_secs_f64() * 1000.0);
        }
        let mut debug = command(&["debug", "--", "-batch", "-x"]);
        let output = debug.arg(folder.join("timed.py")).output()?;
        said += &String::from_utf8_lossy(&output.stdout);
    }
    Ok(Measured { said, instructions: instructions(why, folder)? })
}

fn on_record_full(options: &Options, folder: &Path, program: &Path) -> String {
    let mut gdb = Command::new("timeout");
    gdb.args([PATIENCE, "gdb", "-q", "-batch", "-iex", "set debuginfod enabled off"]);
    gdb.args(["-ex", "break main", "-ex"]).arg(format!("run {}", options.loops_record_full));
    gdb.args(["-ex", "set record full insn-number-max unlimited", "-ex", "record full", "-x"]);
    let output = gdb.arg(folder.join("timed.py")).arg(program).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
}

/// The median of what a script printed under a name.
fn median(text: &str, name: &str) -> Option<f64> {
    let of_line = |line: &str| line.strip_prefix("MS ")?.strip_prefix(name)?.trim().parse().ok();
    let mut all: Vec<f64> = text.lines().filter_map(of_line).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
