//! What can go wrong, one sentence each, with what to do next.

use crate::guest::image::ImageError;
use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such program.
    #[error("cannot find the program {0:?}; give its path, or put its folder in PATH")]
    NotFound(PathBuf),
    /// A file that cannot be run.
    #[error("cannot run {path:?}: {why}")]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Not a program for this engine.
    #[error("cannot run {path:?}: {error}")]
    Image {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: ImageError,
    },
    /// The run did something whose replay would be wrong.
    #[error("stopped the run: {0}")]
    Refused(String),
    /// The recording process reported a failure of its own.
    #[error("the recording failed: {0}")]
    Recorder(String),
    /// This machine lacks something.
    #[error("this machine cannot run the engine: {0}")]
    Machine(String),
    /// The CPU lacks what the recording needs.
    #[error("this CPU lacks {0}, which the recording needs; replay it on a newer machine")]
    LesserCpu(String),
    /// What is asked for needs a whole run.
    #[error(
        "this is only a slice, which `why replay` and `why debug` go along; \
         ask the recording it was cut from"
    )]
    Slice,
    /// The replay did not do what was recorded.
    #[error("the replay diverged from the recording at event {event} ({thread}): {what}")]
    Diverged {
        /// Number of the event.
        event: u64,
        /// The running thread.
        thread: crate::guest::task::Thread,
        /// What differs.
        what: String,
    },
    /// The same in one of several processes.
    #[error("process {pid}: {what}")]
    Process {
        /// Which.
        pid: i32,
        /// What is wrong.
        what: String,
    },
    /// The recording is not whole.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// The operating system said no.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's word.
        error: std::io::Error,
    },
}

impl Error {
    /// The exit status of `why` for it, as `env` and `timeout` have them.
    pub fn status(&self) -> u8 {
        match self {
            Error::NotFound(_) => 127,
            Error::NotExecutable { .. } | Error::Image { .. } => 126,
            _ => 125,
        }
    }

    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |error| Error::Io { what, error }
    }
}
