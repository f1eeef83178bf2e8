//! What do we know of the binary without running it: symbols, lines, variables,
//! control flow, and what an instruction reads and writes?

pub mod debug;
pub mod effects;
pub mod flow;
