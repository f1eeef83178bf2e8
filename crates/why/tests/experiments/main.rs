//! Experiments with recorded runs, and searches made of them.

mod children;
mod critical;
mod lab;
mod other_code;
#[path = "../support/promises.rs"]
mod promises;
mod rows;
mod what_if;
mod world;
