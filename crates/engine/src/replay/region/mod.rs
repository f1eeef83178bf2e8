//! A region of a run as a recording of its own.
//!
//! Its log begins with what the run consisted of at the region's entry: registers of
//! all threads, memory, the virtual kernel. The events of the region follow as they
//! were.

mod contents;
mod cut;
mod delta;
mod entry;
mod slice_cut;
mod slice_walk;

pub use cut::{Cut, cut};
pub use slice_cut::{Point, cut_slice};
pub use slice_walk::SliceWalk;
