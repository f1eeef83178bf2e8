//! Which instant does a person mean?
//!
//! One grammar for positions and criteria, used by every verb, and the way from
//! there to an instance of the trace.
//!
//! ```
//! use position::{Position, Which};
//! let position = Position::parse("f.c:15#4")?;
//! assert!(matches!(position, Position::Execution { which: Which::Nth(4), .. }));
//! # Ok::<(), position::Misread>(())
//! ```

mod error;
mod executions;
mod grammar;
mod resolve;
mod run;

pub use error::Error;
pub use executions::{Executions, Target};
pub use grammar::{Criterion, Misread, Of, Offset, Position, Stream, What, Which};
pub use resolve::{Resolved, crash, resolve, target, written};
pub use run::{Instant, Run, States};
