//! Hard ends: does a recording replay as far as it goes, however it was cut short?
//!
//! Recorders are killed at random moments, all their processes at once or one of them; disks are
//! full; the ends of logs are lost. The programs write the same text in every run. So what a
//! replay writes must be the beginning of that text, as far as the recorded run had come (of
//! torn logs: what is left of it), and `why` must say that the recording breaks off.

mod mishaps;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::compat::Random;
use crate::process::{Outcome, Program, Status};
use crate::tally::Tally;
use crate::why::Why;
use crate::{parallel, workspace};
use mishaps::{Cut, Mishap};

/// Options of `cargo xtask kills`.
#[derive(Args)]
pub struct Options {
    /// How many hard ends
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// The first seed: what happens depends on its seed, when it happens on the machine too
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The `why` to test, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// One process, two threads that take turns, and many processes.
const PROGRAMS: [(&str, &[&str]); 3] = [
    (
        "one process",
        &["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done"],
    ),
    (
        "threads",
        &[
            "python3",
            "-Sc",
            "import threading as t, os\n\
             s = [t.Semaphore(1), t.Semaphore(0)]\n\
             def f(me):\n\
             \x20for i in range(1500):\n\
             \x20 s[me].acquire(); os.write(1, b'%d %d\\n' % (me, i)); s[1 - me].release()\n\
             a = t.Thread(target=f, args=(1,)); a.start(); f(0); a.join()",
        ],
    ),
    (
        "processes",
        &["sh", "-c", "i=0; while [ $i -lt 40 ]; do i=$((i+1)); /bin/echo line $i | cat; done"],
    ),
];

/// A program, what it writes, and how long it is recorded.
struct Subject {
    name: &'static str,
    argv: Vec<OsString>,
    written: Vec<u8>,
    takes: Duration,
    /// Bytes of its recording, without captured files.
    log_bytes: u64,
}

/// Lets recordings end hard, and replays them.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let scratch = workspace::scratch("kills")?;
    let subjects = PROGRAMS
        .iter()
        .map(|(name, argv)| Subject::measure(&why, name, argv, &scratch.path().join(name)))
        .collect::<Result<Vec<_>>>()?;
    let seeds: Vec<u64> = (0..options.count as u64).map(|n| options.seed + n).collect();
    let (mut tally, mut broken_off, mut nothing) = (Tally::default(), 0, 0);
    parallel::in_order(
        options.jobs,
        &seeds,
        |seed| judge(&why, &subjects, *seed, &scratch.path().join(seed.to_string())),
        |seed, verdict| {
            tally.count(verdict.is_ok());
            match verdict {
                Ok(Found::BreaksOff) => broken_off += 1,
                Ok(Found::Nothing) => nothing += 1,
                Ok(Found::Whole) => {}
                Err(reason) => println!("seed {seed}  FAIL  {reason:#}"),
            }
        },
    );
    let whole = options.count.saturating_sub(broken_off + nothing + tally.failed);
    println!("{broken_off} break off, {whole} are whole, {nothing} had not begun");
    println!("{tally}");
    Ok(tally.all_passed())
}

impl Subject {
    fn measure(
        why: &Why,
        name: &'static str,
        argv: &'static [&'static str],
        folder: &Path,
    ) -> Result<Subject> {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let native = Program::new(argv.clone(), "/".into()).run()?;
        ensure!(native.status == Status::Exited(0), "{name} fails natively");
        let recording = folder.join("rec");
        fs::create_dir_all(folder)?;
        let mut program = Program::new(why.record(&recording, &argv), "/".into());
        program.set("WHY_DIR", folder.join("home"));
        let recorded = program.run()?;
        ensure!(recorded.stdout == native.stdout, "{name} is recorded wrongly");
        let info = why.info(&recording)?;
        let log_bytes = info.log_bytes.context("`why info` does not say how large the log is")?;
        fs::remove_dir_all(folder)?;
        Ok(Subject { name, argv, written: native.stdout, takes: recorded.elapsed, log_bytes })
    }
}

/// What a recording turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The end came before there was one.
    Nothing,
    /// It replays to where it breaks off.
    BreaksOff,
    /// It replays to the program's end.
    Whole,
}

/// One case.
fn judge(why: &Why, subjects: &[Subject], seed: u64, folder: &Path) -> Result<Found> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // The first numbers of close seeds are close.
    (0..8).for_each(|_| _ = random.next());
    let subject = &subjects[random.next() as usize % subjects.len()];
    let mishap = Mishap::choose(subject.takes, subject.log_bytes, &mut random);
    fs::create_dir_all(folder)?;
    let found = mishap
        .let_happen(why, &subject.argv, folder)
        .and_then(|cut| check(why, subject, &cut))
        .with_context(|| format!("{} after {mishap:?}", subject.name));
    let _ = mishap.clean_up(folder);
    let _ = fs::remove_dir_all(folder); // only costs disk until the scratch folder goes
    found
}

fn check(why: &Why, subject: &Subject, cut: &Cut) -> Result<Found> {
    if !cut.recording.join("manifest.json").exists() {
        ensure!(cut.shown.is_empty(), "the program wrote, and there is no recording");
        return Ok(Found::Nothing);
    }
    let home = cut.recording.with_file_name("home");
    let ask = |argv: Vec<OsString>| {
        let mut program = Program::new(argv, "/".into());
        program.set("WHY_DIR", &home);
        program.run()
    };
    let mut replay = why.replay(&cut.recording);
    replay.pop(); // the notice is wanted
    let replayed = ask(replay)?;
    let text = String::from_utf8_lossy(&replayed.stderr).into_owned();
    let notices: Vec<&str> = text.lines().filter(|line| line.starts_with("why: ")).collect();
    ensure!(notices.len() <= 1, "it says more than one thing: {text}");
    ensure!(!text.contains("panicked") && !text.contains("diverged"), "{text}");
    let info = ask(vec![why.binary.clone().into(), "info".into(), cut.recording.clone().into()])?;
    ensure!(info.status == Status::Exited(0), "info: {}", String::from_utf8_lossy(&info.stderr));
    let whole = is_whole(&replayed, notices.first().copied(), cut)?;
    compare(subject, cut, &replayed, whole)?;
    Ok(if whole { Found::Whole } else { Found::BreaksOff })
}

/// Does the replay reach the program's end? If not, it must say so.
fn is_whole(replayed: &Outcome, notice: Option<&str>, cut: &Cut) -> Result<bool> {
    let status = replayed.status.as_shell().context("the replay takes for ever")?;
    match (status, notice) {
        (125, Some(text)) if text.contains("breaks off") => Ok(false),
        (125, Some(text)) if cut.torn && text.contains("damaged") => Ok(false),
        (125, text) => bail!("the replay ends with {:?}", text.unwrap_or_default()),
        (_, None) => Ok(true),
        (_, Some(text)) if cut.others && names_what_is_missing(text) => Ok(false),
        (status, Some(text)) => bail!("status {status}, and {text}"),
    }
}

/// Others of the processes may have gone on to the end of the run.
fn names_what_is_missing(notice: &str) -> bool {
    ["breaks off", "not recorded to"].iter().any(|words| notice.contains(words))
}

/// The replay writes what the run had written, but for the writes that were under way.
fn compare(subject: &Subject, cut: &Cut, replayed: &Outcome, whole: bool) -> Result<()> {
    let (again, shown) = (&replayed.stdout, &cut.shown);
    if cut.others {
        // Without one of its processes the run went another way than usual.
        ensure!(again == shown || !whole, "the replay writes something else than the run");
        return Ok(());
    }
    ensure!(subject.written.starts_with(shown), "the run wrote something else than usual");
    if cut.torn {
        let left = is_left(again, &subject.written);
        ensure!(left, "the replay writes something else than the run");
        return Ok(());
    }
    ensure!(subject.written.starts_with(again), "the replay writes something else than the run");
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    let lost = lines(shown).saturating_sub(lines(again));
    // A write that was done but not yet in the log, in each process or thread.
    ensure!(lost <= 2, "{lost} lines of {} are lost", lines(shown));
    Ok(())
}

/// Is a text what is left of another when lines are taken out? The log of each process ends
/// where it was torn, and what others wrote after that is still known.
fn is_left(text: &[u8], of: &[u8]) -> bool {
    let mut lines = of.split_inclusive(|byte| *byte == b'\n');
    text.split_inclusive(|byte| *byte == b'\n').all(|line| lines.any(|other| other == line))
}

/// Waits until it is so; false if that takes too long.
fn eventually(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
