//! What can go wrong, one sentence each.

/// An error of the debugger.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine could not do it.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// A replaying process could not do it.
    #[error("{0}")]
    Walker(String),
    /// A replaying process is gone.
    #[error("the replaying process ended unexpectedly: {0}; go to another position to start again")]
    Gone(std::io::Error),
    /// A position that cannot be found.
    #[error(transparent)]
    Position(#[from] position::Error),
    /// A text that is no position.
    #[error(transparent)]
    Misread(#[from] position::Misread),
    /// A function that nobody called is not returned from.
    #[error("nobody called this function: it has nothing to return to")]
    NoCaller,
    /// There are no whole functions in a slice.
    #[error("a slice has only parts of functions; `step` goes to its next line")]
    OnlyParts,
    /// A place without code.
    #[error("there is no code for {0}")]
    NoCode(String),
    /// How often a move is to be made must be a number.
    #[error("`{0}` is no count; write a number, or nothing")]
    NoCount(String),
    /// Memory to be watched.
    #[error("`{0}` is no memory; write an address and a size from 1 to 1048576 bytes")]
    NoMemory(String),
    /// Breakpoints are for all executions.
    #[error("a breakpoint stops at every execution; `goto {0}` goes to one, `if` chooses")]
    OneExecution(String),
    /// A register that holds no number.
    #[error("{0} holds no number")]
    NoNumber(String),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An answer that does not fit its question.
    #[error("the replaying process gave a strange answer; go to another position to start again")]
    Strange,
}

mishap::mishaps! { Error {
    Error::Walker(_) = Error::Walker("WHAT".into()) =>
        "A process that replays the run for the debugger met an error, which is named.",
        "Go to another position; if it comes again, `why replay --verify` says whether the recording replays.";
    Error::Gone(_) = Error::Gone(std::io::ErrorKind::BrokenPipe.into()) =>
        "A process that replays the run for the debugger was killed, perhaps for want of memory.",
        "Go to another position to start another one; report it if it comes again.";
    Error::NoCaller = Error::NoCaller =>
        "`finish` or `reverse-finish` in the function that was not called by another.",
        "`continue` and `reverse-continue` go to where the run ends and begins.";
    Error::OnlyParts = Error::OnlyParts =>
        "`finish`, `reverse-finish` or `until` in a recording that is only a slice.",
        "`step` and `reverse-step` go along the slice.";
    Error::NoCode(_) = Error::NoCode("WHERE".into()) =>
        "A line or function was named at the prompt that the program has no code for.",
        "`why coverage` lists lines that were executed.";
    Error::NoCount(_) = Error::NoCount("WHAT".into()) =>
        "A move at the plain prompt was given something else than a number behind it.",
        "`step 3` makes three steps; `until PLACE` goes to a place.";
    Error::NoMemory(_) = Error::NoMemory("WHERE".into()) =>
        "Memory was to be watched that is empty, too large, or goes beyond the last address.",
        "Write an address, and a size behind it if it is not 8.";
    Error::OneExecution(_) = Error::OneExecution("POS".into()) =>
        "A breakpoint was asked for at one execution of a line.",
        "Go to that execution, or give the breakpoint a condition.";
    Error::NoNumber(_) = Error::NoNumber("$REGISTER".into()) =>
        "A register was used as a number that is wider than one, or none of the debugger's.",
        "`print` shows vector registers whole.";
    Error::Interrupted = Error::Interrupted =>
        "^C came while the debugger was on its way.",
        "Go on from where you are.";
    Error::Strange = Error::Strange =>
        "A replaying process answered another question than it was asked.",
        "Go to another position to start again, and report it.";
} passes on { Error::Engine(_), Error::Position(_), Error::Misread(_) } }

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
