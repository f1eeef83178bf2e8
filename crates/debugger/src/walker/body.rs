//! What a walker is: a replay that follows its log, or one that left it.

use super::branch::Branch;
use engine::sandbox::Sandbox;
use engine::{Error, Forked, Goal, Instant, Replayer, Report, SliceWalk, Stops, Thread, Trail};
use whatif::{Change, Trigger};

/// One or the other. Nobody, while history is being left.
pub enum Body {
    /// In history.
    History(Box<Replayer>),
    /// In a branch.
    Branch(Box<Branch>),
    /// Along a slice.
    Slice(Box<SliceWalk>),
    /// None of these.
    Nobody,
}

fn nobody() -> Error {
    Error::CannotGoOn("this run could not leave its history".to_owned())
}

impl Body {
    /// To look at.
    pub fn replayer(&self) -> Result<&Replayer, Error> {
        match self {
            Body::History(replayer) => Ok(replayer),
            Body::Branch(branch) => Ok(branch.sandbox.replayer()),
            Body::Slice(walk) => Ok(walk.replayer()),
            Body::Nobody => Err(nobody()),
        }
    }

    /// Where it stands.
    pub fn now(&self) -> Instant {
        match self {
            Body::History(replayer) => replayer.now(),
            Body::Branch(branch) => branch.sandbox.now(),
            Body::Slice(walk) => walk.now(),
            Body::Nobody => Instant::default(),
        }
    }

    /// Sets what it stops for.
    pub fn set_stops(&mut self, stops: &Stops) -> Result<(), Error> {
        match self {
            Body::History(replayer) => replayer.set_stops(stops),
            Body::Branch(branch) => {
                branch.set_stops(stops);
                Ok(())
            }
            Body::Slice(walk) => {
                walk.set_stops(stops);
                Ok(())
            }
            Body::Nobody => Err(nobody()),
        }
    }

    /// Moves forward.
    pub fn advance(&mut self, goal: &Goal) -> Result<Report, Error> {
        match self {
            Body::History(replayer) => replayer.advance(goal),
            Body::Branch(branch) => branch.advance(goal),
            Body::Slice(walk) => walk.advance(goal),
            Body::Nobody => Err(nobody()),
        }
    }

    /// What a thread executed last.
    pub fn trail(&self, thread: Thread) -> Option<Trail> {
        match self {
            Body::History(replayer) => replayer.trail(thread),
            Body::Branch(branch) => branch.sandbox.trail(thread),
            Body::Slice(walk) => walk.trail(thread),
            Body::Nobody => None,
        }
    }

    /// Makes a copy.
    pub fn fork(&mut self) -> Result<Forked, Error> {
        match self {
            Body::History(replayer) => replayer.fork(),
            Body::Branch(branch) => branch.sandbox.fork(),
            Body::Slice(walk) => walk.fork(),
            Body::Nobody => Err(nobody()),
        }
    }

    /// Changes something, and what triggers say whenever it comes by; history is left if
    /// it has not been.
    pub fn alter(&mut self, change: &Change, triggers: Vec<Trigger>) -> Result<(), Error> {
        if let Body::Slice(_) = self {
            let what = "a slice cannot be altered; alter the recording it was cut from";
            return Err(Error::CannotGoOn(what.to_owned()));
        }
        if let Body::History(_) = self
            && let Body::History(replayer) = std::mem::replace(self, Body::Nobody)
        {
            let sandbox = Sandbox::depart(*replayer)?;
            *self = Body::Branch(Box::new(Branch::new(sandbox)));
        }
        let Body::Branch(branch) = self else { return Err(nobody()) };
        branch.alter(change, triggers)
    }
}
