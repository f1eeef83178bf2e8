//! Broken recordings: does `why` meet each with one clear sentence?
//!
//! Real recordings are damaged at random, on disk or event by event with all checksums right, and
//! every verb that reads one is tried. Wrong are: a panic, a crash of `why`, more than one line of
//! error, more memory than a small recording needs, and taking for ever.

mod damage;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// Programs whose recordings are damaged: small, so that many cases fit into a minute.
const PROGRAMS: [&[&str]; 4] = [
    &["/bin/echo", "hello"],
    &["/bin/date", "+%s"],
    &["/usr/bin/sort", "--parallel=2", "/etc/passwd"],
    &["/bin/sh", "-c", "kill -SEGV $$"],
];

/// The verbs that are tried, each with the recording behind it.
const VERBS: [&[&str]; 4] =
    [&["replay", "-q"], &["info", "-q"], &["replay", "-q", "--verify"], &["slice", "-q"]];

/// More than any verb needs for such a recording.
const MEMORY: &str = "--data=3221225472";
const LIMIT: Duration = Duration::from_secs(60);

/// Damages recordings, and looks at what `why` makes of them.
pub fn run(options: &Options) -> Result<bool> {
    let What::Recording(options) = &options.what;
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("fuzz")?;
    let bases = PROGRAMS
        .iter()
        .enumerate()
        .map(|(n, program)| record(&why, program, &scratch.path().join(format!("base{n}"))))
        .collect::<Result<Vec<Base>>>()?;
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
    println!("{tally}");
    Ok(tally.all_passed())
}

fn record(why: &Why, program: &[&str], dir: &Path) -> Result<Base> {
    let mut argv: Vec<OsString> = vec![why.binary.clone().into(), "record".into(), "-q".into()];
    argv.extend(["-o".into(), dir.into(), "--".into()]);
    argv.extend(program.iter().map(OsString::from));
    let outcome = Program::new(argv, "/".into()).run()?;
    ensure!(outcome.stderr.is_empty(), "cannot record {program:?}");
    Base::read(dir)
}

/// One case. Answers whether the recording was refused.
fn judge(why: &Why, bases: &[Base], seed: u64, folder: &Path) -> Result<bool> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // The first numbers of close seeds are close.
    (0..8).for_each(|_| _ = random.next());
    let base = &bases[random.next() as usize % bases.len()];
    let damage = Damage::choose(base, &mut random);
    let verb = VERBS[random.next() as usize % VERBS.len()];
    damage.apply(base, folder).with_context(|| format!("cannot apply {damage:?}"))?;
    let outcome = try_verb(why, verb, folder)?;
    let _ = fs::remove_dir_all(folder); // only costs disk until the scratch folder goes
    check(base, &outcome).with_context(|| format!("why {} after {damage}", verb.join(" ")))
}

fn try_verb(why: &Why, verb: &[&str], folder: &Path) -> Result<Outcome> {
    let mut argv: Vec<OsString> = vec!["/usr/bin/prlimit".into(), MEMORY.into(), "--".into()];
    argv.push(why.binary.clone().into());
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
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("why: ")).collect();
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
