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

pub use cut::{Cut, Progress, cut};
pub use entry::slice_addresses;
pub use slice_cut::{Pieces, SliceSource, Stretch, cut_slice};
pub use slice_walk::SliceWalk;
