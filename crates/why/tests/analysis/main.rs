//! The analysis verbs, run as a user runs them, on programs compiled here.

mod answers;
#[path = "../checker/mod.rs"]
mod checker;
mod duality;
mod languages;
mod page;
mod positions;
mod promises;
mod queries;
mod refusals;
mod relevant;
mod rows;
mod slices;
mod support;
