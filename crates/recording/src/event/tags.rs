//! Numbers by which events and effects are told from each other in a log.

pub const CALL: u8 = 1;
pub const VALUE: u8 = 2;
pub const SIGNAL: u8 = 3;
pub const SWITCH: u8 = 4;
pub const MEMORY: u8 = 5;
pub const END: u8 = 6;
pub const SHARED: u8 = 7;
pub const ENTRY: u8 = 8;
pub const CONTENTS: u8 = 9;
pub const CUT: u8 = 10;
pub const STRETCH: u8 = 11;

pub const WRITE: u8 = 1;
pub const COPY: u8 = 2;
pub const OPENED: u8 = 3;
pub const SPAWNED: u8 = 4;
pub const OUTPUT: u8 = 5;
pub const FOUND: u8 = 6;
pub const CHANGED: u8 = 7;
pub const FORKED: u8 = 8;
pub const EXECUTED: u8 = 9;
pub const ORDER: u8 = 10;
pub const EMPTIED: u8 = 11;
pub const MAPPED: u8 = 12;
pub const BETWEEN: u8 = 13;
