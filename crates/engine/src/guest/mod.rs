//! The guest: its memory, its images, its threads' registers; what is true of it
//! both while recording and in replay.

mod faults;
pub mod image;
pub mod machine;
pub mod memory;
pub mod plain;
mod prefixes;
pub mod start;
mod stepping;
pub mod stock;
mod stops;
pub mod task;
mod units;
