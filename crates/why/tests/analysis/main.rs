//! The analysis verbs, run as a user runs them, on programs compiled here.

mod answers;
mod criteria;
mod duality;
mod in_time;
mod languages;
mod memory;
mod page;
mod parts;
mod positions;
mod promised;
#[path = "../support/promises.rs"]
mod promises;
mod queries;
mod reasons;
mod refusals;
mod relevant;
mod rows;
mod sarif;
mod slices;
mod steps;
mod stories;
mod support;
mod suspicions;
mod writes;
