//! Leaving history, and coming back to it.

use super::Timeline;
use crate::walker::Walker;
use crate::{Error, Result};
use engine::Instant;
use recording::Ending;
use std::collections::BTreeMap;
use whatif::{Change, Trigger};

/// What is set aside while we are in a branch.
pub struct History {
    /// Where it was left.
    pub(super) left: Instant,
    /// The same, with the first thing changed.
    pub(super) first: Instant,
    /// Kept instants behind that.
    later: BTreeMap<Instant, Walker>,
    end: Option<(Instant, Option<Ending>)>,
}

impl Timeline {
    /// Are we in a run that might have been? Then, where history was left.
    pub fn branch(&self) -> Option<Instant> {
        self.history.as_ref().map(|h| h.left)
    }

    /// Changes something here. Later instants are those of a branch from now on.
    pub fn alter(&mut self, change: &Change) -> Result<()> {
        self.alter_always(change, &[])
    }

    /// The same, and what triggers say whenever the branch comes by.
    pub fn alter_always(&mut self, change: &Change, triggers: &[Trigger]) -> Result<()> {
        // To come back to, before and after.
        let before = self.walker.fork()?;
        let left = before.now();
        if let Err(error) = self.walker.alter(change, triggers) {
            self.walker = before;
            return Err(error);
        }
        let later = self.checkpoints.take_after(left);
        self.checkpoints.keep(before, Default::default());
        let end = self.end.take();
        if self.history.is_none() {
            self.history = Some(History { left, first: self.now(), later, end });
        }
        self.trail = None;
        self.checkpoints.pin(left);
        self.checkpoints.pin(self.now());
        self.checkpoint();
        if self.checkpoints.has(self.now()) { Ok(()) } else { Err(Error::Strange) }
    }

    /// Is the way forward from here through the first change?
    pub(super) fn is_before_branch(&self) -> Option<(Instant, Instant)> {
        let history = self.history.as_ref().filter(|h| self.now() <= h.left)?;
        Some((history.left, history.first))
    }

    /// Goes back to where history was left; it goes on as it was.
    pub fn roll_back(&mut self) -> Result<()> {
        let Some(history) = self.history.take() else { return Ok(()) };
        self.checkpoints.take_after(history.left);
        self.checkpoints.unpin();
        self.checkpoints.put(history.later);
        self.end = history.end;
        self.trail = None;
        self.walker = self.checkpoints.copy(history.left)?;
        if self.now() != history.left {
            self.go_to(history.left)?;
        }
        if self.now() == history.left { Ok(()) } else { Err(Error::Strange) }
    }
}
