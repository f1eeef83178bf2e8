//! Finding the crash point of the recorded run in another one.

use crate::experiment::{CrashPoint, Step, Way};
use engine::Thread;
use engine::sandbox::{Sandbox, Stopped};

/// Where a run died, as seen from the crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// There.
    ThePoint,
    /// At that instruction, in another execution of it.
    SamePlace,
    /// At another instruction, or not at all.
    Elsewhere,
}

/// How a trial stands with the crash point.
pub struct Point<'a> {
    point: &'a CrashPoint,
    way: Way,
    at: At,
}

/// Where a run is, seen from the crash point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Not there yet.
    Before,
    /// This thread came to it, and has not come to the same instruction again.
    There(Thread),
    /// Behind it.
    Past,
}

impl<'a> Point<'a> {
    /// At the instant a trial begins.
    pub fn new(point: &'a CrashPoint, way: &Way) -> Point<'a> {
        let mut way = way.clone();
        way.calls.resize(point.calls.len(), 0);
        Point { point, way, at: At::Before }
    }

    /// Instructions that the trial must stop at for it.
    pub fn stops(&self) -> Vec<u64> {
        let calls = self.point.calls.iter().map(|step| step.pc);
        match self.at {
            At::Before => calls.chain([self.point.pc]).collect(),
            At::There(_) => vec![self.point.pc],
            At::Past => Vec::new(),
        }
    }

    /// The run stands at one of them. True if others are to be stopped at from now
    /// on.
    pub fn see(&mut self, sandbox: &Sandbox) -> bool {
        let before = self.at;
        self.at = match before {
            At::Before if self.is_here(sandbox) => match self.point.inside {
                None => At::There(sandbox.thread()),
                Some(_) => At::Past,
            },
            At::There(thread)
                if sandbox.thread() == thread && sandbox.registers().rip == self.point.pc =>
            {
                At::Past
            }
            other => other,
        };
        self.at != before
    }

    /// Counts the steps of the way. Is this the point itself?
    fn is_here(&mut self, sandbox: &Sandbox) -> bool {
        let pc = sandbox.registers().rip;
        let sp = sandbox.registers().gpr[4];
        for (n, step) in self.point.calls.iter().enumerate() {
            if step.pc == pc && step.sp == sp && led_here(sandbox, &self.point.calls[..n]) {
                self.way.calls[n] += 1;
                // A new activation begins.
                self.way.calls[n + 1..].fill(0);
                self.way.here = 0;
            }
        }
        if pc != self.point.pc || !self.is_by_same_calls(sandbox) {
            return false;
        }
        self.way.here += 1;
        let same = self.point.calls.iter().map(|step| step.nth).eq(self.way.calls.iter().copied());
        same && self.way.here == self.point.nth
    }

    fn is_by_same_calls(&self, sandbox: &Sandbox) -> bool {
        sandbox.registers().gpr[4] == self.point.sp && led_here(sandbox, &self.point.calls)
    }

    /// Where did the run die, if it did?
    pub fn death(&self, sandbox: &Sandbox, stopped: &Stopped) -> Death {
        match *stopped {
            _ if self.died_there(sandbox, stopped) => Death::ThePoint,
            Stopped::Killed { pc, .. } if self.point.inside.is_none() && pc == self.point.pc => {
                Death::SamePlace
            }
            _ => Death::Elsewhere,
        }
    }

    /// Did the run die at the crash point itself? At the same place another time is
    /// elsewhere.
    fn died_there(&self, sandbox: &Sandbox, stopped: &Stopped) -> bool {
        let Stopped::Killed { pc, .. } = *stopped else { return false };
        match self.point.inside {
            None => pc == self.point.pc && self.at == At::There(sandbox.thread()),
            // The call that was made then has not returned.
            Some(returns_to) => {
                let call = Step { pc, sp: self.point.sp, returns_to, intact: true, nth: 0 };
                let below = sandbox.registers().gpr[4] < self.point.sp;
                self.came() && below && led_here(sandbox, &[call])
            }
        }
    }

    /// Did the run come to the point?
    pub fn came(&self) -> bool {
        self.at != At::Before
    }
}

/// Are these calls under way?
fn led_here(sandbox: &Sandbox, calls: &[Step]) -> bool {
    calls.iter().filter(|step| step.intact).all(|step| {
        let slot = sandbox.read_memory(step.sp.wrapping_sub(8), 8);
        slot.is_some_and(|bytes| bytes == step.returns_to.to_le_bytes())
    })
}
