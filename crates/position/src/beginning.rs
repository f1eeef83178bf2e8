//! What the program was given: its arguments and its environment, which lie on
//! the stack before the first instruction.

use crate::Error;
use crate::resolve::Resolved;
use crate::run::{Instant, Run};
use program::debug::State;
use trace::Instance;

/// A byte of an argument.
pub fn argument(run: &Run, n: u64, byte: u64) -> Result<Resolved, Error> {
    let missing = || Error::NoArgument { what: format!("argument {n}"), byte };
    in_string(run, byte, &missing, |state, strings| {
        let (count, _) = counts(state, strings)?;
        (n < count).then(|| word(state, strings + 8 + 8 * n))?
    })
}

/// A byte of an environment variable's value.
pub fn environment(run: &Run, name: &str, byte: u64) -> Result<Resolved, Error> {
    let missing = || Error::NoArgument { what: format!("environment variable {name}"), byte };
    in_string(run, byte, &missing, |state, strings| {
        let (_, mut at) = counts(state, strings)?;
        let prefix = format!("{name}=");
        loop {
            let string = word(state, at).filter(|s| *s != 0)?;
            if state.memory(string, prefix.len()).is_some_and(|m| m == prefix.as_bytes()) {
                return Some(string + prefix.len() as u64);
            }
            at += 8;
        }
    })
}

/// Finds a string on the first stack, and one of its bytes.
fn in_string(
    run: &Run,
    byte: u64,
    missing: &dyn Fn() -> Error,
    find: impl Fn(&Instant<'_>, u64) -> Option<u64>,
) -> Result<Resolved, Error> {
    let first: Instance = run.trace.at_number(0).ok_or(Error::Empty)?;
    let mut states = run.states()?;
    let state = states.before(first)?;
    let string = find(&state, state.first_stack()).ok_or_else(missing)?;
    let text = state.memory(string, byte as usize + 1).ok_or_else(missing)?;
    if text[..byte as usize].contains(&0) {
        return Err(missing());
    }
    Ok(Resolved::Byte(first, string + byte))
}

fn word(state: &Instant<'_>, at: u64) -> Option<u64> {
    Some(u64::from_le_bytes(state.memory(at, 8)?.try_into().ok()?))
}

/// The number of arguments, and where the environment begins.
fn counts(state: &Instant<'_>, top: u64) -> Option<(u64, u64)> {
    let count = word(state, top)?;
    Some((count, top + 8 * (count + 2)))
}
