//! The branches that are open, latest last.

use super::shape::JoinId;

/// A branch, or whatever else decided that control came here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    /// Where it is closed.
    pub join: JoinId,
    pub time: u32,
    pub index: u8,
}

/// All that are open. No two neighbours are closed at the same join: the later one takes the
/// earlier one's place.
///
/// Doing without branches here was tried and took longer: the processor guesses most of them
/// right and goes on, where it would have to wait for one record's entry to begin with the next.
#[derive(Clone, Default)]
pub(super) struct Stack(Vec<Open>);

impl Stack {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    pub fn extend(&mut self, open: &[Open]) {
        self.0.extend_from_slice(open);
    }

    /// From the n-th on.
    pub fn from(&self, n: usize) -> &[Open] {
        &self.0[n..]
    }

    /// The latest. An activation has a first entry, so there is one while code runs.
    #[inline]
    pub fn last(&self) -> &Open {
        self.0.last().expect("an activation has a first entry")
    }

    #[inline]
    pub fn push(&mut self, open: Open) {
        self.0.push(open);
    }

    /// Control is at a join: closes the latest, if it is closed there.
    #[inline]
    pub fn close(&mut self, join: JoinId) {
        if self.last().join == join {
            self.0.pop();
        }
    }

    /// A branch opens. If the latest closes at the same place, nothing can belong to that alone
    /// any more.
    #[inline]
    pub fn branch(&mut self, open: Open) {
        match self.0.last_mut() {
            Some(last) if last.join == open.join => *last = open,
            _ => self.0.push(open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(join: JoinId, time: u32) -> Open {
        Open { join, time, index: 0 }
    }

    fn times(stack: &Stack) -> Vec<u32> {
        stack.from(0).iter().map(|open| open.time).collect()
    }

    #[test]
    fn a_branch_that_closes_where_the_latest_does_takes_its_place() {
        let mut stack = Stack::default();
        stack.push(open(9, 0));
        stack.branch(open(5, 1));
        stack.branch(open(5, 2));
        stack.branch(open(6, 3));
        assert_eq!(times(&stack), [0, 2, 3]);
        stack.close(5);
        assert_eq!(times(&stack), [0, 2, 3], "5 is not the latest");
        stack.close(6);
        stack.close(5);
        assert_eq!(times(&stack), [0]);
    }
}
