//! What a walker is: a replay that follows its log, or one that left it.

use engine::sandbox::Sandbox;
use engine::{Error, Forked, Goal, Instant, Replayer, Report, Stops, Thread, Trail};
use whatif::{Change, Target};

/// One or the other. Nobody, while history is being left.
pub enum Body {
    /// In history.
    History(Box<Replayer>),
    /// In a branch.
    Branch(Box<Sandbox>),
    /// Neither.
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
            Body::Branch(sandbox) => Ok(sandbox.replayer()),
            Body::Nobody => Err(nobody()),
        }
    }

    /// Where it stands.
    pub fn now(&self) -> Instant {
        match self {
            Body::History(replayer) => replayer.now(),
            Body::Branch(sandbox) => sandbox.now(),
            Body::Nobody => Instant::default(),
        }
    }

    /// Sets what it stops for.
    pub fn set_stops(&mut self, stops: &Stops) -> Result<(), Error> {
        match self {
            Body::History(replayer) => replayer.set_stops(stops),
            Body::Branch(sandbox) => {
                sandbox.set_stops(stops);
                Ok(())
            }
            Body::Nobody => Err(nobody()),
        }
    }

    /// Moves forward.
    pub fn advance(&mut self, goal: &Goal) -> Result<Report, Error> {
        match self {
            Body::History(replayer) => replayer.advance(goal),
            Body::Branch(sandbox) => Ok(sandbox.advance(goal)),
            Body::Nobody => Err(nobody()),
        }
    }

    /// What a thread executed last.
    pub fn trail(&self, thread: Thread) -> Option<Trail> {
        match self {
            Body::History(replayer) => replayer.trail(thread),
            Body::Branch(sandbox) => sandbox.trail(thread),
            Body::Nobody => None,
        }
    }

    /// Makes a copy.
    pub fn fork(&mut self) -> Result<Forked, Error> {
        match self {
            Body::History(replayer) => replayer.fork(),
            Body::Branch(sandbox) => sandbox.fork(),
            Body::Nobody => Err(nobody()),
        }
    }

    /// Changes something; history is left if it has not been.
    pub fn alter(&mut self, change: &Change) -> Result<(), Error> {
        if let Body::History(_) = self
            && let Body::History(replayer) = std::mem::replace(self, Body::Nobody)
        {
            *self = Body::Branch(Box::new(Sandbox::depart(*replayer)?));
        }
        let Body::Branch(sandbox) = self else { return Err(nobody()) };
        apply(sandbox, change)?;
        sandbox.altered();
        Ok(())
    }
}

fn apply(sandbox: &mut Sandbox, change: &Change) -> Result<(), Error> {
    match change {
        Change::Switch => {
            sandbox.switch().map_err(|e| Error::CannotGoOn(e.to_string()))?;
        }
        Change::Set { target: Target::Register(n), bytes } => {
            let n = usize::from(*n);
            let now = if n < 16 { sandbox.registers().gpr[n] } else { 0 };
            let mut value = now.to_le_bytes();
            let len = bytes.len().min(8);
            value[..len].copy_from_slice(&bytes[..len]);
            sandbox.set_register(n, u64::from_le_bytes(value));
        }
        Change::Set { target: Target::Vector(n), bytes } => {
            sandbox.set_vector(usize::from(*n), bytes);
        }
        Change::Set { target: Target::Memory(address), bytes } => {
            if !sandbox.set_memory(*address, bytes) {
                return Err(Error::CannotGoOn(format!("memory at {address:#x} cannot be written")));
            }
        }
        Change::Skip { to, value } => sandbox.skip_to(*to, *value),
        // Who wants to know looks, and who wants no more leaves.
        Change::Tell { .. } | Change::End => {}
        Change::Code { address, bytes } => {
            if !sandbox.set_code(*address, bytes) {
                return Err(Error::CannotGoOn(format!("there is no code at {address:#x}")));
            }
        }
    }
    Ok(())
}
