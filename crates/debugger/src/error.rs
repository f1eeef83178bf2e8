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
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An answer that does not fit its question.
    #[error("the replaying process gave a strange answer; go to another position to start again")]
    Strange,
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
