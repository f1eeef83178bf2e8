//! Guest code, translated: what a unit of it looks like in the cache and how
//! units find each other.
//!
//! A *unit* is a straight run of guest instructions with side exits, copied into
//! the cache with only control flow and RIP-relative operands rewritten
//! ([`translate`]). Direct branches are linked to each other by patching once
//! their targets exist; indirect ones look their target up in a table of
//! *landings* ([`cache`]).

pub mod cache;
pub mod captures;
pub mod dense;
pub mod emit;
pub mod flags;
pub mod loops;
pub mod profile;
pub mod stock;
pub mod stops;
pub mod tracing;
pub mod translate;

pub use cache::{Cache, UnitId};
pub use profile::Profile;
pub use stops::Stops;
