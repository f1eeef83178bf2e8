//! What a whole recorded run tells about the outside: which paths there are, what
//! they hold, what was said on standard input.
//!
//! A rehearsal of the run collects it once. A path that the run itself changed
//! tells nothing about how it was before, so what is seen of it later is left out.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A path and whether a symbolic link at its end is followed.
pub type Looked = (Vec<u8>, bool);

/// What a call returned, and what it wrote by argument.
pub type Constant = (i64, Vec<(usize, Vec<u8>)>);

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// `stat` of paths: the bytes, or an error.
    pub stats: BTreeMap<Looked, Result<Vec<u8>, i64>>,
    /// `statx` of paths.
    pub wide_stats: BTreeMap<Looked, Vec<u8>>,
    /// `open` of paths: contents and identity, or an error.
    pub opens: BTreeMap<Vec<u8>, Result<Captured, i64>>,
    /// `access` of paths, by mode.
    pub accesses: BTreeMap<(Vec<u8>, u64), i64>,
    /// `readlink` of paths.
    pub links: BTreeMap<Vec<u8>, Result<Vec<u8>, i64>>,
    /// Entries of folders as `getdents64` gave them, and whether that was all.
    pub listings: BTreeMap<Vec<u8>, (Vec<u8>, bool)>,
    /// What else was read as a stream, and whether that was all.
    pub streams: BTreeMap<Vec<u8>, (Vec<u8>, bool)>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Was its end seen?
    pub stdin_ends: bool,
    /// `fstat` of the three standard streams.
    pub stream_stats: [Option<Vec<u8>>; 3],
    /// `ioctl` on the three: request, result, bytes.
    pub stream_ioctls: [BTreeMap<u64, (i64, Vec<u8>)>; 3],
    /// Calls whose answer does not change: number and arguments that are not
    /// pointers; result and what was written by argument.
    pub constants: BTreeMap<(u32, Vec<u64>), Constant>,
    /// `connect` to addresses that refused, as bytes.
    pub refused: BTreeMap<Vec<u8>, i64>,
    /// How children ended, as `wait4` says it, by process number.
    pub deaths: BTreeMap<i32, Vec<u8>>,
    /// What children executed, by process number.
    pub executions: BTreeMap<i32, super::births::Execution>,
    /// What was outside when they began.
    pub outside: BTreeMap<i32, u64>,
    /// States of the run that an altered one may come back to.
    pub meetings: super::rejoin::Meetings,
    /// Paths that the run changed so far.
    pub changed: BTreeSet<Vec<u8>>,
}

/// A captured file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Its contents.
    pub file: Option<[u8; 16]>,
    /// Device and inode.
    pub identity: (u64, u64),
}

impl Facts {
    /// Is all of standard input known? Its end was seen, or it is a file of which
    /// everything was read.
    pub fn stdin_is_over(&self) -> bool {
        let whole = |stat: &Vec<u8>| {
            super::stat::is_regular(stat) && super::stat::size(stat) == self.stdin.len() as u64
        };
        self.stdin_ends || self.stream_stats[0].as_ref().is_some_and(whole)
    }

    /// Does what is seen of a path now tell how it was before the run?
    pub fn is_original(&self, path: &[u8]) -> bool {
        !self.changed.contains(path)
    }
}
