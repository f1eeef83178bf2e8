//! What does a person at a prompt see: positions, breakpoints, steps in both
//! directions, the gdb remote protocol?
//!
//! ```no_run
//! # fn main() -> debugger::Result<()> {
//! let mut timeline = debugger::Timeline::open(std::path::Path::new("/tmp/rec"))?;
//! timeline.go_to_end()?;
//! let thread = timeline.state()?.threads[0].thread;
//! timeline.step_back(thread)?;
//! println!("one step before the end: {:#x}", timeline.registers(thread)?.unwrap().rip);
//! # Ok(())
//! # }
//! ```

mod desk;
mod error;
pub mod gdb;
mod timeline;
mod walker;

pub use desk::{Desk, Search};
pub use error::{Error, Result};
pub use timeline::{Met, Stop, Timeline, Wanted};
pub use walker::{Registers, State};
