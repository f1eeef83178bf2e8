//! The guest: its memory, its images, its threads' registers; what is true of it
//! both while recording and in replay.

pub mod image;
pub mod machine;
pub mod memory;
pub mod plain;
mod prefixes;
pub mod start;
pub mod stock;
mod stops;
pub mod task;
