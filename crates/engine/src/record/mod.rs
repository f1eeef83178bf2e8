//! Recording: running a program and writing down all it gets from outside.
//!
//! `why` forks. The child becomes the recorded program ([`session`]); the parent
//! waits, passes signals on, and closes the recording however the child ended. When
//! the program forks, so does its recorder ([`forks`]).

mod begin;
pub mod beginning;
mod calls;
mod capture;
mod chaos;
mod commons;
pub mod endings;
mod engine_calls;
pub mod exec;
mod forks;
mod guard;
mod host_calls;
mod inheriting;
mod launch;
mod leaks;
mod lending;
mod limits;
mod opening;
mod outsiders;
mod perform;
pub(crate) mod proc_self;
mod proc_sizes;
mod rights;
mod runner;
pub mod session;
mod shared_files;
mod signals;
mod supervise;
mod threads;
mod tree;
mod turn;

use crate::Error;
use recording::{Cpu, Outcome};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Folder of the new recording; it may exist if it is empty.
    pub dir: PathBuf,
    /// The program, by path or to be found in PATH.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The CPU it sees.
    pub cpu: Cpu,
    /// End the program if it runs longer.
    pub timeout: Option<std::time::Duration>,
    /// Largest size of the recording in bytes.
    pub max_bytes: Option<u64>,
    /// Vary the schedule, by this seed.
    pub chaos: Option<u64>,
    /// Where captured files are shared between recordings.
    pub store: recording::Store,
}

impl RecordOptions {
    /// The usual options.
    pub fn new(dir: &Path, program: impl AsRef<OsStr>, args: &[OsString]) -> RecordOptions {
        RecordOptions {
            dir: dir.to_owned(),
            program: program.as_ref().to_owned(),
            args: args.to_vec(),
            cpu: Cpu::V3,
            timeout: None,
            max_bytes: None,
            chaos: None,
            store: recording::Store::at(dir.join("store")),
        }
    }
}

/// Records one run.
pub fn record(options: &RecordOptions) -> Result<Outcome, Error> {
    crate::cpu::check_host()?;
    let launch = launch::Launch::prepare(options)?;
    // The program may change its working directory.
    let dir = std::path::absolute(&options.dir).unwrap_or_else(|_| options.dir.clone());
    supervise::run(&RecordOptions { dir, ..options.clone() }, launch)
}
