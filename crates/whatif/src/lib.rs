//! What would have happened if…?
//!
//! An [`Experiment`] replays a run to one instant, changes something there, and lets
//! it run on in a sandbox. An [`Oracle`] judges what comes out. The [`Laboratory`]
//! performs many of them at once; the answer does not depend on how many.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use whatif::{Batch, Change, Experiment, Laboratory, Oracle};
//! let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! // Early, while the process is small: it is forked.
//! let mut laboratory = Laboratory::open(&recording)?;
//! let oracle = Oracle { stdout: Some(b"3\n".to_vec()), ..Oracle::default() };
//! let experiment = Experiment::one(1_000_000, Change::Switch);
//! let batch = Batch::new(vec![experiment], oracle);
//! laboratory.perform(&batch, &mut |_, outcome| {
//!     println!("{}", outcome.verdict);
//!     true
//! })?;
//! # Ok(())
//! # }
//! ```

mod changes;
mod experiment;
mod judge;
mod laboratory;
mod link;
mod oracle;
mod points;
mod resolve;
mod trial;
mod values;
mod verdict;
mod way;
mod words;

pub use changes::{Done, Unchangeable, apply};
pub use experiment::{Change, CrashPoint, Experiment, Step, Target, Trigger, Way};
pub use laboratory::{Batch, Laboratory};
pub use oracle::{Oracle, Unit, first_wrong};
pub use points::Crash;
pub use resolve::{Unresolved, between, branch_name, experiment};
pub use verdict::{Outcome, Verdict};
pub use words::{Misread, Selector, Verb, Words};

pub use engine::sandbox::{Limits, Original, Stopped, Stream};

/// Why an experiment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The replay failed.
    #[error("the run cannot be altered: {0}")]
    Engine(#[from] engine::Error),
    /// The process that makes experiments is gone.
    #[error("the process that makes experiments died; try again, or report it: {0}")]
    Died(#[from] std::io::Error),
    /// It could not begin.
    #[error("the run cannot be altered: {0}")]
    Refused(String),
}
mishap::mishaps! { Error {
    Error::Died(_) = Error::Died(std::io::ErrorKind::BrokenPipe.into()) =>
        "The process that makes experiments was killed, perhaps for want of memory.",
        "Try again with fewer `--jobs`; report it if it comes again.";
    Error::Refused(_) = Error::Refused("WHY".into()) =>
        "The run cannot leave its recording; the reason is named.",
        "See the limits; slices and the debugger still work.";
} passes on { Error::Engine(_) } }
