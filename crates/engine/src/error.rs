//! What can go wrong, one sentence each, with what to do next.

use crate::guest::image::ImageError;
use crate::refusal::{NotExecutable, Refusal};
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
        why: NotExecutable,
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
    Refused(Refusal),
    /// A replay cannot do what it was asked for.
    #[error("the replay cannot go on: {0}")]
    CannotGoOn(String),
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
    /// Somebody pressed ^C.
    #[error("interrupted; nothing was kept")]
    Interrupted,
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
            Error::Interrupted => 130,
            _ => 125,
        }
    }

    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |error| Error::Io { what, error }
    }
}

mishap::mishaps! { Error {
    Error::NotFound(_) = Error::NotFound("PROG".into()) =>
        "There is no such file, or it is in no folder of `PATH`. A shell's aliases, functions and built-in commands are no programs.",
        "Give a path, or record a shell: `why record -- sh -c 'COMMAND'`.";
    Error::Recorder(_) = Error::Recorder("WHY".into()) =>
        "The process that records ended early, for the reason that is named: one of the others on this page.",
        "See there. What came before is recorded and replays.";
    Error::Machine(_) = Error::Machine("WHAT IS MISSING".into()) =>
        "The processor or the kernel lacks something that translated code uses. A virtual machine may hide features of its host.",
        "See *Machines* in the limits, and look for `avx2` in `/proc/cpuinfo`.";
    Error::LesserCpu(_) = Error::LesserCpu("avx512f".into()) =>
        "The recording was made with `--cpu host` on a processor that can do more.",
        "Replay it there, or record with `--cpu v3`.";
    Error::Diverged { .. } = Error::Diverged { event: 17, thread: crate::guest::task::Thread(1), what: "WHAT DIFFERS".into() } =>
        "The replay did something else than the run: a damaged recording, one of the named limits, or a fault of Whydunit.",
        "Find the first instant that differs with `why replay --verify`, and report it with that line.";
    Error::Process { .. } = Error::Process { pid: 1234, what: "WHAT IS WRONG".into() } =>
        "One of several processes could not be replayed, for the reason that is named: one of the others on this page.",
        "See there; `why replay -p PID` replays another process alone.";
    Error::CannotGoOn(_) = Error::CannotGoOn("WHY".into()) =>
        "An experiment, a trace or a step of the debugger needs what this run does not offer; the reason is named.",
        "Ask at another instant; if the whole run cannot be replayed, `why replay --verify` says where.";
    Error::Slice = Error::Slice =>
        "`why cut --slice` keeps the instructions of one slice. What lies between them is not there to be asked.",
        "Ask the recording that it was cut from: `why info` names it.";
    Error::Interrupted = Error::Interrupted =>
        "^C was pressed while something was being made. What had been made of it is removed.",
        "Ask for it again.";
    Error::Io { .. } = Error::Io { what: "cannot make a pipe", error: std::io::ErrorKind::OutOfMemory.into() } =>
        "The system refused something that the engine needs: memory, descriptors or processes.",
        "Free what is named; look at `ulimit -a`.";
} passes on { Error::NotExecutable { .. }, Error::Image { .. }, Error::Refused(_), Error::Recording(_) } }
