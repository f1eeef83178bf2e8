//! Experiments with recorded runs, and searches made of them.

mod critical;
mod lab;
mod what_if;
