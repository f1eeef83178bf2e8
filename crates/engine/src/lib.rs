//! How does guest code run: load, translate, execute, serve system calls,
//! threads, signals; record and replay?
//!
//! The engine loads an unmodified x86-64 Linux program into its own process,
//! copies the program's instructions into a code cache with only control flow
//! rewritten, and stands between the program and the kernel. While recording, it
//! writes down every answer the program gets from outside. In replay it gives the
//! same answers again.
//!
//! ```no_run
//! use std::path::Path;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = engine::RecordOptions::new(Path::new("/tmp/rec"), "/bin/true", &[]);
//! let outcome = engine::record(&options)?;
//! println!("{}", outcome.ending);
//! let recording = recording::Recording::open(Path::new("/tmp/rec"))?;
//! engine::replay(&recording, &engine::ReplayOptions::default())?;
//! # Ok(())
//! # }
//! ```

/// Every system call known by name: its number, its name, and who performs it.
pub fn system_calls() -> impl Iterator<Item = (u32, &'static str, &'static str)> {
    kernel::table::TABLE.iter().map(|call| (call.number, call.name, kernel::table::words(call.how)))
}

/// The system calls that are not offered, and why.
pub fn missing_calls() -> impl Iterator<Item = (&'static str, &'static str)> {
    let because = |call: &kernel::table::Call| {
        kernel::table::missing_because(call).map(|why| (call.name, why))
    };
    kernel::table::TABLE.iter().filter_map(because)
}

/// The system calls that stop the run.
pub fn refused_calls() -> impl Iterator<Item = &'static str> {
    let refused = |call: &&kernel::table::Call| call.how == kernel::table::How::Refused;
    kernel::table::TABLE.iter().filter(refused).map(|call| call.name)
}

/// What the processor must be able to do, for any recording.
pub fn needed_features() -> &'static [&'static str] {
    cpu::features::BASELINE
}

mod as_text;
mod clerk;
mod code;
mod context;
mod cpu;
mod crossing;
mod error;
mod guest;
mod hash;
mod kernel;
mod lanes;
pub mod large;
mod layout;
pub mod lockstep;
mod pages;
mod record;
mod refusal;
mod replay;
pub mod sandbox;
mod signal;
mod sys;
pub mod trace;

pub use code::Profile;
pub use code::stock::keep_in as keep_translations_in;
pub use code::stops::{Stops, Watch};
pub use context::Registers;
pub use error::Error;
pub use guest::image::ImageError;
pub use guest::task::Thread;
pub use layout::is_address;
pub use record::{RecordOptions, record};
pub use refusal::{NotExecutable, Refusal};
pub use replay::{
    Access, Calls, Crash, Cut, Described, Finish, Forked, Goal, Grain, Instant, LogEnd,
    LogReplayed, Observer, Pieces, Place, Progress, Readiness, Region, ReplayOptions, Replayed,
    Replayer, Report, SliceSource, SliceWalk, Stopped, Stretch, Survey, Tally, To, Trail, Until,
    apart, count_instructions, crash, cut, cut_slice, replay, replay_all, replay_process,
    slice_addresses,
};
