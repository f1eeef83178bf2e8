//! The reference slicer: slow, small, and independent of the decoder's tables.
//!
//! A run is replayed instruction by instruction. What each instruction defines and
//! from what comes from the processor itself ([`relation`], by `lockstep::probe`),
//! why it ran from a search over all paths ([`control`]), and a slice from one walk
//! back over all of it that keeps nothing but sets ([`slicer`]).

pub mod bypass;
pub mod control;
pub mod knowledge;
pub mod relation;
pub mod run;
pub mod slicer;
pub mod wanted;
