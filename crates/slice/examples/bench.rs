//! Measures one recording for `cargo xtask bench slicing`: traces it, slices the
//! latest instances of 25 distinct loads, stores it and loads it again. Prints one
//! line of JSON. Seconds are by the clock; a slice that is not done after LIMIT seconds
//! is broken off and has `null` for a time: `bench RECORDING LIMIT CODE [ablation]`. With `traced`
//! for LIMIT, it traces only, and prints how long that took; with `first`, it ends with the first
//! slice and prints the same. CODE is a folder for translations, empty at first: what is said of
//! the first answer is without any, the rest with what was kept, as for anybody who asks `why`
//! more than once.

use engine::{Profile, Replayer, Until};
use slice::{Options, Slicer, Start};
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trace::{Guess, Instance, Time, Trace};

struct Count(u64);

impl engine::trace::Sink for Count {
    fn units(&mut self, _: engine::trace::Units) {}
    fn records(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
    fn event(&mut self, _: engine::trace::Event) {}
}

/// The latest instances of so many distinct instructions that load.
fn latest_loads(trace: &Trace, count: usize) -> Vec<Instance> {
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    for time in (0..trace.records.len()).rev().map(Time) {
        let path = trace.code.path(trace.records.path(time));
        for (index, op) in trace.code.ops(path).iter().enumerate().rev() {
            let loads = trace.code.operands(op).iter().any(|o| o.access().reads);
            if loads && found.len() < count && seen.insert(op.instruction) {
                found.push(Instance { time, index: index as u16 });
            }
        }
        if found.len() == count {
            break;
        }
    }
    found
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed().as_secs_f64(), result)
}

/// Slices; how long it took, or `None` if that was too long, and how many instances are in it.
fn slice(slicer: &Slicer, at: Instance, limit: Duration, options: Options) -> (Option<f64>, u64) {
    let until = Some(Instant::now() + limit);
    let options = Options { until, ..options };
    let (seconds, slice) = timed(|| slicer.backward(&[Start::Instance(at)], &options));
    ((seconds < limit.as_secs_f64()).then_some(seconds), slice.instances)
}

/// Seconds until registers and memory are known at so many instants all over the run, each
/// asked for by itself: a replay from the beginning to there.
fn values(recording: &recording::Recording, n: u64, count: u64) -> Result<Vec<f64>, engine::Error> {
    let silent = engine::ReplayOptions { verify: false, silent: true };
    let one = |k: u64| {
        let (seconds, done) = timed(|| {
            let mut replayer = Replayer::new(recording, Profile::COUNTING, &silent)?;
            replayer.use_stock();
            replayer.run(Until::Instruction(n * k / count))
        });
        done.map(|_| seconds)
    };
    (0..count).map(one).collect()
}

/// Traces without keeping the trace; how long it took.
fn traced(recording: &recording::Recording) -> Result<f64, engine::Error> {
    let mut count = Count(0);
    let (seconds, done) = timed(|| engine::trace::trace(recording, &mut count));
    done.map(|_| seconds)
}

/// So often it is traced again, and asked for a first answer: the run in the middle counts.
const RUNS: usize = 5;

/// The time in the middle, of processes of their own that do as they are told: with a whole trace
/// in memory, a fork alone would take a good part of the time.
fn alone(
    folder: &OsStr,
    what: &str,
    code: &dyn Fn(usize) -> OsString,
) -> Result<f64, Box<dyn std::error::Error>> {
    let one = |n| -> Result<f64, Box<dyn std::error::Error>> {
        let mut again = Command::new(std::env::current_exe()?);
        let again = again.arg(folder).arg(what).arg(code(n)).stderr(Stdio::inherit());
        let output = again.output()?;
        if !output.status.success() {
            return Err("cannot trace once more".into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let mut seconds = (0..RUNS).map(one).collect::<Result<Vec<f64>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// Seconds from nothing to the first answer, without any code.
fn first_answer(folder: &OsStr, code: &OsStr) -> Result<f64, Box<dyn std::error::Error>> {
    let empty = |n: usize| {
        let mut empty = code.to_owned();
        empty.push(format!("-first-{n}"));
        empty
    };
    let seconds = alone(folder, "first", &empty)?;
    (0..RUNS).try_for_each(|n| std::fs::remove_dir_all(empty(n)))?;
    Ok(seconds)
}

/// How many labels there are, and how many of them need not be kept because the branch or call
/// that they name is always equally many records back.
fn labels(trace: &Trace) -> (u64, u64) {
    #[derive(Clone, Copy, Default)]
    struct Seen {
        labels: u64,
        distance: u32,
        varies: bool,
    }
    let mut seen: Vec<Vec<Seen>> =
        trace.code.paths().map(|(id, _)| vec![Seen::default(); trace.control.labels(id)]).collect();
    let mut first = 0;
    for (time, path) in (0..).zip(trace.records.paths()) {
        let own = &mut seen[path.0 as usize];
        let named = trace.control.label_instances(*path, Time(time), first);
        for (seen, label) in own.iter_mut().zip(named) {
            let distance = label.map_or(u32::MAX, |at| time - at.time.0);
            seen.varies |= seen.labels > 0 && seen.distance != distance;
            seen.distance = distance;
            seen.labels += 1;
        }
        first += own.len();
    }
    let all = seen.iter().flatten();
    let constant = all.clone().filter(|s| !s.varies).map(|s| s.labels).sum();
    (all.map(|s| s.labels).sum(), constant)
}

/// The most memory that was in use, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("which recording?")?;
    let limit = arguments.next().ok_or("after how many seconds is a slice broken off?")?;
    let code = arguments.next().ok_or("where shall translations be kept?")?;
    engine::keep_translations_in(code.clone().into());
    let ablation = arguments.next().is_some_and(|a| a == "ablation");
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    if limit == "traced" {
        println!("{}", traced(&recording)?);
        return Ok(());
    }
    let only_first = limit == "first";
    let limit = if only_first { "60".into() } else { limit };
    let limit = Duration::try_from_secs_f64(limit.to_string_lossy().parse()?)?;
    // What is worked out beside everything else is waited for where it is needed: so the first
    // answer is asked for at once.
    let begin = Instant::now();
    let trace = Trace::build(&recording, &mut |_| ())?;
    let slicer = Slicer::new(&trace);
    let starts = latest_loads(&trace, 25);
    let usual = |at: &Instance| slice(&slicer, *at, limit, Options::default());
    let mut each = vec![usual(&starts[0])];
    if only_first {
        println!("{}", begin.elapsed().as_secs_f64());
        return Ok(());
    }
    each.extend(starts[1..].iter().map(usual));
    let slices: Vec<Option<f64>> = each.iter().map(|(t, _)| *t).collect();
    let peak = peak();
    let traced = alone(&folder, "traced", &|_| code.clone())?;
    let first_answer = first_answer(&folder, &code)?;
    let n = trace.records.instructions();
    let (stored, bytes) = timed(|| trace.store(&recording));
    let bytes = bytes?;
    let mut facts = serde_json::json!({
        "instructions": n,
        "records": trace.records.len(),
        "traced": traced,
        "first_answer": first_answer,
        "slices": slices,
        "instances": each.iter().map(|(_, i)| *i).max(),
        "peak_bytes": peak,
        "record_bytes": trace.records.size(),
        "control_bytes": trace.control.size(),
        "stored": stored,
        "stored_bytes": bytes,
        "values": values(&recording, n, 25)?,
    });
    if ablation {
        let guesses =
            [("values", Guess::Nothing), ("last", Guess::Last), ("stride", Guess::Stride)];
        for (name, guess) in guesses {
            facts["packed"][name] = trace.packed_size(guess)?.into();
        }
        facts["labels"] = serde_json::to_value(labels(&trace))?;
        let plodding = Options { skipping: false, ..Options::default() };
        let pairs: Vec<_> = starts
            .iter()
            .take(3)
            .zip(&each)
            .map(|(at, fast)| {
                let slow = slice(&slicer, *at, limit, plodding.clone());
                let both = fast.0.is_some() && slow.0.is_some();
                assert!(!both || slow.1 == fast.1, "the slice depends on how it is found");
                (fast.0, slow.0)
            })
            .collect();
        facts["skipping"] = serde_json::to_value(pairs)?;
    }
    drop(slicer);
    drop(trace);
    // Both as a whole, with what is worked out beside everything else.
    let whole = |trace: Option<Trace>| {
        trace.iter().for_each(Trace::settle);
        trace.map(|t| t.records.instructions())
    };
    let (built, _) = timed(|| whole(Trace::build(&recording, &mut |_| ()).ok()));
    let (loaded, loads) = timed(|| whole(Trace::load(&recording)));
    facts["built"] = built.into();
    facts["loaded"] = loaded.into();
    facts["loads"] = (loads == Some(n)).into();
    println!("{facts}");
    Ok(())
}
