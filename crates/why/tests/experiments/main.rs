//! Experiments with recorded runs, and searches made of them.

mod critical;
mod lab;
#[path = "../support/promises.rs"]
mod promises;
mod rows;
mod what_if;
