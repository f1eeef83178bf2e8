//! The reference slicer: slow, small, and independent of the decoder's tables.

pub mod relation;
