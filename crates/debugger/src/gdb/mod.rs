//! A recording as a target of gdb's remote protocol.

mod arch;
mod connection;
mod files;
mod points;
mod serve;
mod session;

/// What `why debug` adds to gdb, in gdb's own Python.
pub const EXTENSION: &str = include_str!("extension.py");

pub use serve::{Listener, serve};
