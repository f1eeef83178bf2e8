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

mod beginning;
mod beginnings;
mod counts;
mod criterion;
mod error;
mod executions;
mod grammar;
mod lifetime;
mod names;
mod places;
mod resolve;
mod run;

pub use criterion::{Meant, before, following, meant, pruned, writer};
pub use error::Error;
pub use executions::{Targets, executions, statement, statement_at};
pub use grammar::{Criterion, Misread, Of, Offset, Position, Stream, What, Which};
pub use lifetime::Lifetime;
pub use names::{Named, Names};
pub use places::{Also, At, Place, PlaceId, Places};
pub use resolve::{Resolved, answers_for, crash, last_output, resolve, targets, thread, written};
pub use run::{Instant, Run, States};
