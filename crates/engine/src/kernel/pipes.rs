//! What is inside the guest's pipes and connected pairs of sockets.
//!
//! A log has the order in which calls were *finished*. Calls of two threads on the
//! same pipe may overlap, and then the kernel's own order is not known. A read that
//! is in the log before the write that fed it is settled later; what cannot be
//! settled makes the contents unknown, until the pipe is seen to be empty.

use std::collections::{BTreeMap, VecDeque};

/// Number of a pipe, in the order they were made.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct PipeId(u32);

/// One direction of flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pipe {
    /// Written and not yet read, oldest first.
    held: VecDeque<u8>,
    /// Read, by calls that were in the log before the write that fed them.
    owed: VecDeque<u8>,
    /// Is all of that right?
    unknown: bool,
}

/// Does another thread's call on the same pipe overlap this one?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// One that reads.
    pub reads: bool,
    /// One that writes.
    pub writes: bool,
}

/// All pipes. Contents are followed in a replay only.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Pipes {
    pipes: BTreeMap<PipeId, Pipe>,
    next: u32,
    /// Are contents followed?
    pub followed: bool,
}

impl Pipes {
    /// A new, empty pipe.
    pub fn make(&mut self) -> PipeId {
        let id = PipeId(self.next);
        self.next += 1;
        self.pipes.insert(id, Pipe::default());
        id
    }

    /// What it holds; `None` if that is not known.
    pub fn contents(&self, id: PipeId) -> Option<&VecDeque<u8>> {
        let pipe = self.pipes.get(&id).filter(|_| self.followed)?;
        (!pipe.unknown && pipe.owed.is_empty()).then_some(&pipe.held)
    }

    /// Bytes went in. False if they are not those that were read before.
    #[must_use]
    pub fn put(&mut self, id: PipeId, bytes: &[u8], overlap: Overlap) -> bool {
        let Some(pipe) = self.followed_pipe(id) else { return true };
        if overlap.writes {
            pipe.unknown = true;
        }
        if pipe.unknown {
            return true;
        }
        let settled = bytes.len().min(pipe.owed.len());
        let same = pipe.owed.drain(..settled).eq(bytes[..settled].iter().copied());
        pipe.held.extend(&bytes[settled..]);
        same
    }

    /// Bytes came out. False if they are not those that went in.
    #[must_use]
    pub fn take(&mut self, id: PipeId, bytes: &[u8], overlap: Overlap) -> bool {
        let Some(pipe) = self.followed_pipe(id) else { return true };
        if overlap.reads {
            pipe.unknown = true;
        }
        if pipe.unknown {
            return true;
        }
        let there = bytes.len().min(pipe.held.len());
        let same = pipe.held.drain(..there).eq(bytes[..there].iter().copied());
        pipe.owed.extend(&bytes[there..]);
        same && (pipe.owed.is_empty() || overlap.writes)
    }

    /// It was found empty, with no other call on its way.
    pub fn is_empty_now(&mut self, id: PipeId) {
        if let Some(pipe) = self.followed_pipe(id) {
            *pipe = Pipe::default();
        }
    }

    /// Something happened to it that cannot be followed.
    pub fn forget(&mut self, id: PipeId) {
        if let Some(pipe) = self.followed_pipe(id) {
            *pipe = Pipe { unknown: true, ..Pipe::default() };
        }
    }

    /// Nobody has it any more, or somebody we do not see does.
    pub fn drop(&mut self, id: PipeId) {
        self.pipes.remove(&id);
    }

    /// Any of them may be used in a way that we do not see.
    pub fn drop_all(&mut self) {
        self.pipes.clear();
    }

    fn followed_pipe(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.pipes.get_mut(&id).filter(|_| self.followed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Overlap = Overlap { reads: false, writes: false };
    const READER: Overlap = Overlap { reads: true, writes: false };
    const WRITER: Overlap = Overlap { reads: false, writes: true };

    fn one() -> (Pipes, PipeId) {
        let mut pipes = Pipes { followed: true, ..Pipes::default() };
        let id = pipes.make();
        (pipes, id)
    }

    #[test]
    fn what_goes_in_comes_out() {
        let (mut pipes, id) = one();
        assert!(pipes.put(id, b"abcd", ALONE) && pipes.take(id, b"ab", ALONE));
        assert!(pipes.contents(id).unwrap().iter().eq(b"cd"));
        assert!(!pipes.take(id, b"xy", ALONE));
    }

    #[test]
    fn nothing_comes_out_that_never_went_in() {
        let (mut pipes, id) = one();
        assert!(!pipes.take(id, b"a", ALONE));
    }

    #[test]
    fn a_read_may_be_finished_before_the_write_that_fed_it() {
        let (mut pipes, id) = one();
        assert!(pipes.take(id, b"ab", WRITER));
        assert_eq!(pipes.contents(id), None);
        assert!(pipes.put(id, b"abc", ALONE));
        assert!(pipes.contents(id).unwrap().iter().eq(b"c"));
        assert!(pipes.take(id, b"cx", WRITER));
        assert!(!pipes.put(id, b"y", ALONE));
    }

    #[test]
    fn two_writers_at_once_leave_the_order_unknown_until_it_is_empty() {
        let (mut pipes, id) = one();
        assert!(pipes.put(id, b"one", WRITER) && pipes.put(id, b"two", ALONE));
        assert!(pipes.take(id, b"twoone", ALONE));
        assert_eq!(pipes.contents(id), None);
        pipes.is_empty_now(id);
        assert!(pipes.put(id, b"z", READER) && pipes.take(id, b"z", ALONE));
    }
}
