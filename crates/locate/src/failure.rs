//! What is wrong with a run, and which instance brought it about.

use crate::wrong_files;
use position::{Offset, Position, Resolved, Run, Stream as Named};
use program::effects::Cells;
use slice::{Slicer, Start};
use trace::Instance;
use whatif::{Crash, Oracle, Original, Stream, first_wrong};

/// Why a search cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be looked at.
    #[error(transparent)]
    Position(#[from] position::Error),
    /// Experiments cannot be made.
    #[error(transparent)]
    Whatif(#[from] whatif::Error),
    /// Nothing is wrong.
    #[error("the run does what is expected of it, so there is nothing to search for")]
    Succeeds,
    /// Nobody said what is expected.
    #[error(
        "the run did not crash; say what it should have done, with --expect FILE, --expect-text TEXT, --expect-exit N or --oracle CMD"
    )]
    NoOracle,
}

mishap::mishaps! { Error {
    Error::Succeeds = Error::Succeeds =>
        "The run does all that was expected of it.",
        "Expect what it does not do, or record a run that fails.";
    Error::NoOracle = Error::NoOracle =>
        "The run did not crash, and nobody said what is wrong with it.",
        "Say what it should have done, with one of the named options.";
} passes on { Error::Position(_), Error::Whatif(_) } }

/// What a search is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The instruction that crashed.
    Crash,
    /// A byte of output, from 0, in a unit, from 1.
    Output(Stream, u64, u64),
    /// Output that is missing from a unit on.
    Missing(Stream, u64),
    /// How the run ended.
    End,
}

/// What is wrong with a run that wrote and ended as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Other {
    /// A file that it left.
    File {
        /// Its name, as it was expected.
        path: Vec<u8>,
        /// What the run wrote to it.
        contents: Vec<u8>,
        /// What it should have written.
        expected: Vec<u8>,
        /// The first unit that differs, from 1.
        unit: u64,
    },
    /// Whoever was asked said no.
    Rejected,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong.
    pub criterion: Criterion,
    /// The instance that is wrong, as a slice begins there. None where something is
    /// missing.
    pub starts: Vec<Start>,
    /// Only what happened before so many instructions can have caused it.
    pub until: u64,
    /// The crash, to be found again.
    pub crash: Option<Crash>,
    /// The line on standard error with which the run said that it has failed.
    pub announced: Option<Vec<u8>>,
    /// What is wrong, if it is neither output nor the end.
    pub other: Option<Other>,
}

impl Failure {
    /// Compares a run with what was expected of it.
    pub fn of(run: &Run, oracle: &Oracle, original: &Original) -> Result<Failure, Error> {
        let killed = original.status.is_none_or(|status| status & 0x7f != 0);
        let crash = Crash::of(run)?;
        if let Some(crash) = crash.clone().filter(|_| oracle.no_crash) {
            return Ok(Failure::crashed(run, crash));
        }
        if killed && oracle.no_crash {
            return Ok(Failure::ended(run, original));
        }
        for (stream, expected) in [(Stream::Out, &oracle.stdout), (Stream::Err, &oracle.stderr)] {
            let Some(expected) = expected else { continue };
            let output = &original.outputs[stream as usize];
            if let Some(unit) = first_wrong(output, expected, true, oracle.unit) {
                let failure = Failure::output(run, stream, original, expected, unit)?;
                let death =
                    crash.filter(|_| run.trace.ended.complete && !is_wanted(oracle, original));
                // All that a run wrote was right until it died: that it died is what is wrong.
                return Ok(match (failure.criterion, death) {
                    (Criterion::Missing(..), Some(crash)) => Failure::crashed(run, crash),
                    _ => failure,
                });
            }
        }
        let files = wrong_files::compare(run, oracle)?;
        if let wrong_files::Compared::Wrong(wrong) = files {
            return Failure::file(run, wrong);
        }
        let status = original.status.map(|status| status >> 8 & 0xff);
        let wrong_exit = oracle.exit.is_some_and(|wanted| killed || Some(wanted) != status);
        let wrong_end = oracle.no_crash && killed || wrong_exit;
        if !wrong_end && oracle.asks {
            return Ok(Failure::rejected(run, original));
        }
        if !wrong_end && files == wrong_files::Compared::Right {
            return Err(if oracle.is_empty() { Error::NoOracle } else { Error::Succeeds });
        }
        Ok(Failure::ended(run, original))
    }

    /// The crash that trials must not come to. If it is output that is expected, that decides.
    pub(crate) fn crash_in_trials(&self, oracle: &Oracle) -> Option<&Crash> {
        self.crash.as_ref().filter(|_| oracle.no_crash)
    }

    /// The oracle, knowing how a run says that it has failed in this way, unless somebody
    /// else decides.
    pub(crate) fn known_by(&self, oracle: Oracle) -> Oracle {
        let given_up = self.announced.clone().filter(|_| !oracle.asks);
        Oracle { given_up, ..oracle }
    }

    /// The run died where it should not.
    fn crashed(run: &Run, crash: Crash) -> Failure {
        Failure {
            criterion: Criterion::Crash,
            starts: vec![Start::Instance(crash.instance)],
            until: run.trace.number(crash.instance),
            crash: Some(crash),
            announced: None,
            other: None,
        }
    }

    /// The run ended as it should not.
    fn ended(run: &Run, original: &Original) -> Failure {
        Failure {
            criterion: Criterion::End,
            starts: vec![Start::Instance(run.trace.last_instance())],
            until: run.trace.records.instructions(),
            crash: None,
            announced: announced(&original.outputs[Stream::Err as usize]),
            other: None,
        }
    }

    /// A file is not as it should be.
    fn file(run: &Run, wrong: Other) -> Result<Failure, Error> {
        let starts = match wrong_files::first_byte(run, &wrong)? {
            Some(start) => vec![start],
            None => Vec::new(),
        };
        let wrote = starts.first().map(|start| definition(run, start).unwrap_or(start.at()));
        Ok(Failure {
            criterion: Criterion::End,
            starts,
            until: wrote.map_or(run.trace.records.instructions(), |at| run.trace.number(at)),
            crash: None,
            announced: None,
            other: Some(wrong),
        })
    }

    /// Somebody looked at the outputs, and said no: what is wrong is somewhere in them, or in
    /// how the run ended.
    fn rejected(run: &Run, original: &Original) -> Failure {
        let output = &original.outputs[Stream::Out as usize];
        let traced = before(run, original, Stream::Out);
        let is_end = |byte: usize| output.get(byte).is_none_or(|b| b"\r\n".contains(b));
        let last_of_lines = (0..output.len()).rev().filter(|n| !is_end(*n) && is_end(n + 1));
        let mut failure = Failure::ended(run, original);
        for byte in last_of_lines.take(LOOKED_AT).filter_map(|n| (n as u64).checked_sub(traced)) {
            // What came by other ways than a write has no place to begin at.
            failure.starts.extend(written_byte(run, Named::Out, byte).ok());
        }
        // Where it shows comes first.
        failure.starts.rotate_left(1);
        failure.announced = None;
        failure.other = Some(Other::Rejected);
        failure
    }

    fn output(
        run: &Run,
        stream: Stream,
        original: &Original,
        expected: &[u8],
        unit: u64,
    ) -> Result<Failure, Error> {
        let output = &original.outputs[stream as usize];
        let byte = output.iter().zip(expected).take_while(|(a, b)| a == b).count() as u64;
        if byte as usize >= output.len() {
            return Ok(Failure {
                criterion: Criterion::Missing(stream, unit),
                starts: Vec::new(),
                until: run.trace.records.instructions(),
                crash: None,
                announced: None,
                other: None,
            });
        }
        let named = match stream {
            Stream::Out => Named::Out,
            Stream::Err => Named::Err,
        };
        // What was written before the trace begins is not counted there.
        let Some(traced) = byte.checked_sub(before(run, original, stream)) else {
            return Ok(Failure::ended(run, original));
        };
        let start = written_byte(run, named, traced)?;
        let until = run.trace.number(definition(run, &start).unwrap_or(start.at()));
        let criterion = Criterion::Output(stream, byte, unit);
        let writer = position::writer(run, &start);
        Ok(Failure {
            criterion,
            starts: [start].into_iter().chain(writer).collect(),
            until,
            crash: None,
            announced: None,
            other: None,
        })
    }
}

/// Is a run expected to die as it did?
fn is_wanted(oracle: &Oracle, original: &Original) -> bool {
    let signal = original.status.map(|status| status & 0x7f);
    signal.is_some_and(|signal| oracle.exit == Some(128 + signal))
}

/// So many lines of an output that was rejected are looked at, the last ones.
const LOOKED_AT: usize = 16;

/// A byte that was written, just before.
pub(crate) fn written_byte(run: &Run, stream: Named, byte: u64) -> Result<Start, Error> {
    let resolved = position::resolve(run, &Position::Output(stream, Offset::Byte(byte)))?;
    Ok(match resolved {
        Resolved::Byte(at, address) => Start::Before(at, Cells::NONE, vec![(address, 1)]),
        other => Start::Instance(other.instance()),
    })
}

/// Bytes that were written to a stream before the trace begins.
pub fn before(run: &Run, original: &Original, stream: Stream) -> u64 {
    let from = run.trace.records.before();
    let calls = original.written.iter().filter(|call| call.stream == stream as usize);
    calls.take_while(|call| call.number <= from).last().map_or(0, |call| call.end as u64)
}

/// How many instructions had been executed when the failure showed, if that was before the
/// run's end: when a wrong byte was written, or a run said that it has failed.
pub fn shown_at(oracle: &Oracle, original: &Original) -> Option<u64> {
    for (stream, expected) in [(Stream::Out, &oracle.stdout), (Stream::Err, &oracle.stderr)] {
        let Some(expected) = expected else { continue };
        let output = &original.outputs[stream as usize];
        let byte = output.iter().zip(expected).take_while(|(a, b)| a == b).count();
        if byte < output.len() {
            return original.written_at(stream as usize, byte);
        }
    }
    let said = &original.outputs[Stream::Err as usize];
    let line = announced(said)?;
    let byte = said.windows(line.len()).position(|part| part == line)?;
    original.written_at(Stream::Err as usize, byte)
}

/// The instance that defined what a start is about.
fn definition(run: &Run, start: &Start) -> Option<Instance> {
    let slicer = Slicer::new(&run.trace);
    let options = slice::Options { control: false, ..slice::Options::default() };
    let (direct, _) = slicer.direct(std::slice::from_ref(start), &options, &|_, _| false);
    direct.dependences().map(|(_, at, _)| at).max()
}

/// What runtimes write when they give up, before anything long such as a backtrace.
const ANNOUNCEMENTS: [&[u8]; 3] = [b" panicked at ", b"ERROR: AddressSanitizer", b"panic: "];

/// The line with which a run announces that it has failed, if it does so just once: what is
/// said several times may be no failure.
fn announced(said: &[u8]) -> Option<Vec<u8>> {
    let has = |line: &[u8], part: &[u8]| line.windows(part.len()).any(|w| w == part);
    let tells = |line: &&[u8]| ANNOUNCEMENTS.iter().any(|part| has(line, part));
    let mut lines = said.split_inclusive(|b| *b == b'\n').filter(tells);
    let line = lines.next()?;
    lines.next().is_none().then(|| line.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_once_announces_the_failure() {
        let told = |text: &str| announced(text.as_bytes()).map(|l| String::from_utf8(l).unwrap());
        let panic = "thread 'main' panicked at a.rs:4:2:\n";
        assert_eq!(told(&format!("reading\n{panic}index out of bounds\n")).as_deref(), Some(panic));
        assert_eq!(told(&format!("{panic}caught\n{panic}")), None);
        assert_eq!(told("no such file\n"), None);
    }
}
