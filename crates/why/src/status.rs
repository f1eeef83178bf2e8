//! With which status does a failure end `why`?

use position::Error as Position;
use program::debug::Error as Program;

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

/// Refuses words.
pub fn usage<T>(text: &str) -> anyhow::Result<T> {
    Err(Usage(text.to_owned()).into())
}

/// A word that would have to be the name of a recording.
pub fn no_recording(word: &str) -> Usage {
    Usage(format!("there is no recording called {word}; `why list` shows those that exist"))
}

/// Refuses words behind the last one that means something.
pub fn no_more(words: &[String]) -> Result<(), Usage> {
    words.first().map_or(Ok(()), |first| Err(no_recording(first)))
}

/// The status that tells a script what went wrong.
pub fn of(error: &anyhow::Error) -> u8 {
    let misread = error.is::<Usage>() || error.is::<position::Misread>();
    match error.downcast_ref::<Position>() {
        Some(error) => of_position(error),
        None if misread => USAGE,
        None => FAILED,
    }
}

fn of_position(error: &Position) -> u8 {
    match error {
        Position::Trace(_) | Position::Engine(_) => FAILED,
        Position::Misread(_) | Position::NoFunction { .. } | Position::NoRegister { .. } => USAGE,
        Position::Program(Program::Gone(_) | Program::NoAddress { .. }) => NOTHING,
        Position::Program(_) => USAGE,
        _ => NOTHING,
    }
}
