//! With which status does a failure end `why`?

use position::Error as Position;
use program::debug::Error as Program;
use whatif::Unresolved;

/// Nothing was found.
const NOTHING: u8 = 1;
/// The words are not understood.
const USAGE: u8 = 2;
/// Our own failure: none of the statuses that a recorded program is likely to use.
pub const FAILED: u8 = 125;

/// Words that fit the command line but mean nothing there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

mishap::mishaps! { Usage {
    Usage(_) = Usage("there is no recording called WORD; `why list` shows those that exist".into()) =>
        "A word of the command line means nothing where it stands; the message says which and what would.",
        "Write what it names; each verb's `--help` has examples.";
} }

/// Refuses words.
pub fn usage<T>(text: &str) -> anyhow::Result<T> {
    Err(Usage(text.to_owned()).into())
}

/// A word that would have to be the name of a recording.
pub fn no_recording(word: &str) -> Usage {
    if std::path::Path::new(word).is_dir() {
        return Usage(format!("{word:?} is not a recording; `why list` shows those that exist"));
    }
    let next = match std::path::Path::new(word).is_file() {
        true => format!("to explain a run of that program, write `why -- {word}`"),
        false => "`why list` shows those that exist".to_owned(),
    };
    Usage(format!("there is no recording called {word}; {next}"))
}

/// Refuses words behind the last one that means something.
pub fn no_more(words: &[String]) -> Result<(), Usage> {
    words.first().map_or(Ok(()), |first| Err(no_recording(first)))
}

/// The status that tells a script what went wrong.
pub fn of(error: &anyhow::Error) -> u8 {
    let misread =
        error.is::<Usage>() || error.is::<position::Misread>() || error.is::<whatif::Misread>();
    if misread {
        return USAGE;
    }
    match error.downcast_ref() {
        Some(recording::Error::Interrupted) => return engine::sandbox::INTERRUPTED_STATUS,
        Some(recording::Error::NoProcess(_)) => return NOTHING,
        _ => {}
    }
    if let Some(error) = error.downcast_ref::<Unresolved>() {
        return of_alteration(error);
    }
    match error.downcast_ref::<locate::Error>() {
        Some(locate::Error::Succeeds) => return NOTHING,
        Some(locate::Error::NoOracle) => return USAGE,
        Some(locate::Error::Position(error)) => return of_position(error),
        Some(locate::Error::Whatif(_)) | None => {}
    }
    if let Some(error) = error.downcast_ref::<engine::Error>() {
        return error.status();
    }
    match error.downcast_ref::<debugger::Error>() {
        Some(debugger::Error::Position(error)) => return of_position(error),
        Some(debugger::Error::Misread(_)) => return USAGE,
        _ => {}
    }
    error.downcast_ref::<Position>().map_or(FAILED, of_position)
}

fn of_alteration(error: &Unresolved) -> u8 {
    match error {
        Unresolved::Position(error) => of_position(error),
        _ => USAGE,
    }
}

fn of_position(error: &Position) -> u8 {
    match error {
        Position::Trace(_) | Position::Engine(_) => FAILED,
        Position::Misread(_)
        | Position::NoFunction { .. }
        | Position::NoRegister { .. }
        | Position::NoThread { .. } => USAGE,
        Position::Program(Program::Gone(_) | Program::NoAddress { .. }) => NOTHING,
        Position::Program(_) => USAGE,
        _ => NOTHING,
    }
}
