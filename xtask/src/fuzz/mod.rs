//! Broken recordings: does `why` meet each with one clear sentence?
//!
//! Real recordings are damaged at random, on disk or event by event with all checksums right, and
//! every verb that reads one is tried. Wrong are: a panic, a crash of `why`, more than one line of
//! error, more memory than a small recording needs, and taking for ever.

mod damage;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

use crate::compat::Random;
use crate::process::{Outcome, Program, Status};
use crate::tally::Tally;
use crate::why::Why;
use crate::{parallel, workspace};
use damage::{Base, Damage};

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Damage recordings
    Recording(Damaging),
}

#[derive(Args)]
struct Damaging {
    /// How many damaged recordings
    #[arg(long, default_value_t = 2000)]
    count: usize,
    /// The first seed: a case depends on its seed alone
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` to test, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// Real programs whose recordings are damaged.
const PROGRAMS: [&[&str]; 4] = [
    &["/bin/echo", "hello"],
    &["/bin/date", "+%s"],
    &["/usr/bin/sort", "--parallel=2", "/etc/passwd"],
    &["/bin/sh", "-c", "kill -SEGV $$"],
];

/// The verbs that are tried, each with the recording behind it.
const VERBS: [&[&str]; 4] =
    [&["replay", "-q"], &["info", "-q"], &["replay", "-q", "--verify"], &["slice", "-q"]];

/// A program of our own with many kinds of events, whose replay takes next to no time: most cases
/// are damaged recordings of it, alone and with a child, so that 100,000 fit into a run.
const TINY: &str = include_str!("tiny.c");
/// One case in so many has a real program.
const REAL: u64 = 64;

/// More than any verb needs for such a recording.
const MEMORY: u64 = 3 << 30;
const LIMIT: Duration = Duration::from_secs(60);

/// Damages recordings, and looks at what `why` makes of them.
pub fn run(options: &Options) -> Result<bool> {
    let What::Recording(options) = &options.what;
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("fuzz")?;
    let bases = Bases::record(&why, scratch.path())?;
    limit_memory()?;
    let begin = Instant::now();
    let seeds: Vec<u64> = (0..options.count as u64).map(|n| options.seed + n).collect();
    let (mut tally, mut refused) = (Tally::default(), 0);
    parallel::in_order(
        options.jobs,
        &seeds,
        |seed| judge(&why, &bases, *seed, &scratch.path().join(seed.to_string())),
        |seed, verdict| {
            tally.count(verdict.is_ok());
            match verdict {
                Ok(true) => refused += 1,
                Ok(false) => {}
                Err(reason) => println!("seed {seed}  FAIL  {reason:#}"),
            }
        },
    );
    println!("{refused} refused, the others replayed up to the damage or past it");
    println!("{} s", begin.elapsed().as_secs());
    println!("{tally}");
    Ok(tally.all_passed())
}

/// What is damaged.
struct Bases {
    tiny: Vec<Base>,
    real: Vec<Base>,
}

impl Bases {
    fn record(why: &Why, scratch: &Path) -> Result<Bases> {
        let tiny = scratch.join("tiny");
        fs::write(tiny.with_extension("c"), TINY)?;
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-static", "-nostdlib", "-fno-stack-protector", "-o"]).arg(&tiny);
        let built = gcc.arg(tiny.with_extension("c")).status().context("cannot run gcc")?;
        ensure!(built.success(), "the tiny program does not compile");
        let tiny = tiny.to_str().context("the scratch folder has a strange name")?;
        let all = |programs: &[&[&str]], name: &str| -> Result<Vec<Base>> {
            let place = |n| scratch.join(format!("{name}{n}"));
            programs.iter().enumerate().map(|(n, p)| record(why, p, &place(n))).collect()
        };
        Ok(Bases {
            tiny: all(&[&[tiny], &[tiny, "child"]], "base-tiny")?,
            real: all(&PROGRAMS, "base")?,
        })
    }

    fn choose(&self, random: &mut Random) -> &Base {
        let bases = if random.next().is_multiple_of(REAL) { &self.real } else { &self.tiny };
        &bases[random.next() as usize % bases.len()]
    }
}

/// Whatever we start from now on may have so much memory.
fn limit_memory() -> Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::Data, limit).context("cannot limit memory")
}

fn record(why: &Why, program: &[&str], dir: &Path) -> Result<Base> {
    let mut argv: Vec<OsString> = vec![why.binary.clone().into(), "record".into(), "-q".into()];
    argv.extend(["-o".into(), dir.into(), "--".into()]);
    argv.extend(program.iter().map(OsString::from));
    let outcome = Program::new(argv, "/".into()).run()?;
    let text = String::from_utf8_lossy(&outcome.stderr);
    ensure!(!text.contains("why: "), "cannot record {program:?}: {text}");
    Base::read(dir)
}

/// One case. Answers whether the recording was refused.
fn judge(why: &Why, bases: &Bases, seed: u64, folder: &Path) -> Result<bool> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // The first numbers of close seeds are close.
    (0..8).for_each(|_| _ = random.next());
    let base = bases.choose(&mut random);
    let damage = Damage::choose(base, &mut random);
    let verb = VERBS[random.next() as usize % VERBS.len()];
    damage.apply(base, folder).with_context(|| format!("cannot apply {damage:?}"))?;
    let outcome = try_verb(why, verb, folder)?;
    let _ = fs::remove_dir_all(folder); // only costs disk until the scratch folder goes
    check(base, &outcome).with_context(|| format!("why {} after {damage}", verb.join(" ")))
}

fn try_verb(why: &Why, verb: &[&str], folder: &Path) -> Result<Outcome> {
    let mut argv: Vec<OsString> = vec![why.binary.clone().into()];
    argv.extend(verb.iter().map(OsString::from));
    argv.extend(["-r".into(), folder.into()]);
    let mut program = Program::new(argv, "/".into());
    program.set("WHY_DIR", folder.join("home"));
    program.limit = LIMIT;
    program.run()
}

/// Did `why` behave? If so: did it refuse the recording?
fn check(base: &Base, outcome: &Outcome) -> Result<bool> {
    let text = String::from_utf8_lossy(&outcome.stderr);
    // What a damaged program writes need not end its line.
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("why: ")).collect();
    ensure!(outcome.status != Status::TimedOut, "it took for ever");
    let own = matches!(outcome.status, Status::Killed(_));
    ensure!(!own, "it was {}: {text}", outcome.status);
    ensure!(!text.contains("panicked") && !text.contains("fault in the engine"), "{text}");
    let Some(status) = outcome.status.as_shell() else { return Ok(true) };
    let known = [0, 1, 2, 125].contains(&status) || Some(status) == base.status;
    // A damaged program may end in any way of its own.
    ensure!(known || !lines.is_empty() || outcome.stderr.is_empty(), "status {status}: {text}");
    ensure!(lines.len() <= 1, "it says more than one thing: {text}");
    ensure!(status != 125 || lines.len() == 1, "it fails and does not say why: {text}");
    Ok(status == 125)
}
