//! What failed, in a sentence.

use crate::spots::Spots;
use locate::{Criterion, Failure, Other};
use position::{Error, Run};
use report::{Failed, FailureKind};
use slice::Start;
use trace::Instance;
use whatif::{Oracle, Original, Stream};

/// A failure before it is shown.
pub struct Described {
    kind: FailureKind,
    sentence: String,
    at: Option<Instance>,
    calls: Vec<Instance>,
}

/// More calls than this are not named.
const CALLS: usize = 12;

impl Described {
    /// Instances to be looked up.
    pub fn instances(&self) -> impl Iterator<Item = Instance> + '_ {
        self.at.into_iter().chain(self.calls.iter().copied())
    }

    /// As people see it.
    pub fn shown(&self, spots: &Spots<'_>) -> Failed {
        Failed {
            kind: self.kind,
            sentence: self.sentence.clone(),
            spot: self.at.map(|at| spots.get(at)),
            calls: self.calls.iter().map(|at| spots.get(*at)).collect(),
        }
    }

    /// What it means that the failure is gone.
    pub fn remedied(&self) -> String {
        let text = match self.kind {
            FailureKind::WrongOutput | FailureKind::MissingOutput => "the output is as expected",
            FailureKind::WrongExit => "the exit status is as expected",
            FailureKind::Hang => "the run ends",
            FailureKind::WrongFile => "the file is as expected",
            FailureKind::Rejected => "the oracle accepts the run",
            _ => "the run goes on unharmed",
        };
        text.to_owned()
    }
}

/// Finds out what failed.
pub fn describe(
    run: &Run,
    oracle: &Oracle,
    original: &Original,
    failure: &Failure,
    hung: Option<std::time::Duration>,
) -> Result<Described, Error> {
    let said = last_words(original);
    let start = failure.starts.first().map(Start::at);
    let at = start.and_then(|at| run.own_instance(at));
    let (kind, sentence) = match failure.criterion {
        Criterion::Crash | Criterion::End => match crate::crash::sentence(run) {
            Some(sentence) => (FailureKind::Crash, sentence),
            None => end(oracle, original, &said),
        },
        Criterion::Output(stream, _, unit) => {
            (FailureKind::WrongOutput, wrong_output(oracle, original, stream, unit))
        }
        Criterion::Missing(stream, unit) => {
            (FailureKind::MissingOutput, wrong_output(oracle, original, stream, unit))
        }
    };
    let (kind, sentence) = match (hung, &failure.other) {
        (Some(time), _) => (FailureKind::Hang, hang(run, time)),
        (None, Some(Other::Rejected)) => (FailureKind::Rejected, rejected(original, &said)),
        (None, Some(Other::File { path, contents, expected, unit })) => {
            let name = String::from_utf8_lossy(path).into_owned();
            (FailureKind::WrongFile, difference(&name, contents, Some(expected.as_slice()), *unit))
        }
        (None, None) => (kind, sentence),
    };
    let at = match (failure.criterion, &failure.other) {
        (Criterion::Output(..), _) | (_, Some(_)) => printed(run, failure).or(at),
        _ if hung.is_some() => stands(run).or(at),
        _ => at,
    };
    Ok(Described { kind, sentence, at, calls: at.map(|at| calls(run, at)).unwrap_or_default() })
}

/// Where a program stands that hangs: the thread that ran last, unless that only waits in code
/// that no line of its own called; then the first thread.
pub fn stands(run: &Run) -> Option<Instance> {
    let last = run.trace.last_instance();
    let own = run.own_instance(last);
    let thread = |at: Instance| run.trace.thread(at.time);
    if own.is_some_and(|own| thread(own) == thread(last)) {
        return own;
    }
    let spans = &run.trace.spans.spans;
    let first = spans.first()?.thread;
    let span = spans.iter().rev().find(|span| span.thread == first)?;
    run.own_instance(Instance { time: trace::Time(span.end.0.checked_sub(1)?), index: 0 })
}

/// It had to be ended; what its threads were doing may say why.
fn hang(run: &Run, time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    let text = format!("the program had not ended after {seconds} s");
    match crate::blocked::deadlocked(run) {
        Some(1) => format!("{text}: a deadlock, it waits for a lock that nobody gives back"),
        Some(n) => format!("{text}: a deadlock, all its {n} threads wait for each other"),
        None => text,
    }
}

/// Somebody looked at what the run wrote and how it ended.
fn rejected(original: &Original, said: &str) -> String {
    let status = original.status.unwrap_or(0);
    let quoted = if said.is_empty() { String::new() } else { format!(": {said}") };
    match status & 0x7f {
        0 => format!("the oracle rejects the run (exit status {}){quoted}", status >> 8 & 0xff),
        signal => format!("the oracle rejects the run (signal {signal} killed it){quoted}"),
    }
}

/// The program's line that made the output where a failure shows, if it does in output: what
/// is kept may be written much later.
pub fn printed(run: &Run, failure: &Failure) -> Option<Instance> {
    let Some(Start::Before(_, _, written)) = failure.starts.first() else { return None };
    if written.is_empty() {
        return None;
    }
    let slicer = slice::Slicer::new(&run.trace);
    let options = slice::Options { control: false, addresses: false, ..crate::options(run) };
    let (direct, _) = slicer.direct(&failure.starts[..1], &options, &|_, _| false);
    let definition = direct.dependences().map(|(_, at, _)| at).max()?;
    run.own_instance(definition)
}

/// Calls of the program that led to an instance, innermost first.
fn calls(run: &Run, at: Instance) -> Vec<Instance> {
    let mut found = Vec::new();
    let mut frame = run.trace.control.frame_of(at.time);
    while let Some(call) = run.call_of(frame) {
        if run.is_own(run.trace.instruction(call)) {
            found.push(call);
        }
        frame = run.trace.control.frame_of(call.time);
        if found.len() == CALLS {
            break;
        }
    }
    found
}

/// The last line of standard error that is not empty.
fn last_words(original: &Original) -> String {
    let text = String::from_utf8_lossy(&original.outputs[Stream::Err as usize]).into_owned();
    let telling = ["assert", "panicked", "ERROR:", "runtime error", "terminate called", "corrupt"];
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let told = lines.iter().position(|l| {
        let lower = l.to_lowercase();
        telling.iter().any(|t| lower.contains(&t.to_lowercase()))
    });
    match told {
        // Rust says where first, and what in the next line.
        Some(n) if lines[n].contains("panicked") => {
            lines[n..].iter().take(2).map(|l| l.trim()).collect::<Vec<_>>().join(" ")
        }
        Some(n) => lines[n].trim().to_owned(),
        None => lines.last().map(|l| l.trim().to_owned()).unwrap_or_default(),
    }
}

fn end(oracle: &Oracle, original: &Original, said: &str) -> (FailureKind, String) {
    let lower = said.to_lowercase();
    let status = original.status.unwrap_or(0);
    let signal = status & 0x7f;
    let quoted = if said.is_empty() { String::new() } else { format!(": {said}") };
    if lower.contains("assert") && signal == 6 {
        return (FailureKind::Assertion, format!("an assertion failed{quoted}"));
    }
    if lower.contains("panicked") || lower.starts_with("panic:") {
        return (FailureKind::Panic, format!("the program panicked{quoted}"));
    }
    if lower.contains("sanitizer") || lower.contains("runtime error:") {
        return (FailureKind::Sanitizer, format!("a sanitizer stopped the program{quoted}"));
    }
    if signal == 6 {
        return (FailureKind::Abort, format!("SIGABRT: the program gave up{quoted}"));
    }
    if original.status.is_none() {
        return (FailureKind::Hang, "the program did not end".to_owned());
    }
    if signal != 0 {
        return (FailureKind::Crash, format!("signal {signal} killed the program"));
    }
    let status = status >> 8 & 0xff;
    let wanted = oracle.exit.map(|n| format!(" instead of {n}")).unwrap_or_default();
    (FailureKind::WrongExit, format!("exit status {status}{wanted}{quoted}"))
}

fn wrong_output(oracle: &Oracle, original: &Original, stream: Stream, unit: u64) -> String {
    let name = match stream {
        Stream::Out => "standard output",
        Stream::Err => "standard error",
    };
    let expected = match stream {
        Stream::Out => oracle.stdout.as_deref(),
        Stream::Err => oracle.stderr.as_deref(),
    };
    difference(name, &original.outputs[stream as usize], expected, unit)
}

/// The first line that is not as it should be.
fn difference(name: &str, found: &[u8], expected: Option<&[u8]>, unit: u64) -> String {
    let line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines().nth(unit.saturating_sub(1) as usize).map(str::to_owned)
    };
    let is = line(found);
    let should = expected.and_then(line);
    match (is, should) {
        (Some(is), Some(should)) => {
            format!("line {unit} of {name} is {is:?}, expected {should:?}")
        }
        (Some(is), None) => format!("line {unit} of {name} is {is:?}, and was not expected"),
        (None, Some(should)) => format!("line {unit} of {name} is missing: {should:?}"),
        (None, None) => format!("{name} differs from what was expected in line {unit}"),
    }
}
