//! The system as the guest sees it: one table of calls, and the state behind
//! them that recording and replay both keep.

pub mod calls;
pub mod check;
pub mod files;
pub mod forks;
pub mod memory;
pub mod observe;
pub mod pipes;
pub mod process;
pub mod table;
pub mod threads;
pub mod timers;

pub use process::Process;
