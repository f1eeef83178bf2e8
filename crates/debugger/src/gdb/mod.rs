//! A recording as a target of gdb's remote protocol.

mod arch;
mod connection;
mod files;
mod points;
mod serve;
mod session;

pub use serve::{Listener, serve};
