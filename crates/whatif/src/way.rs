//! Finding the crash point of the recorded run in another one.

use crate::experiment::{CrashPoint, Step, Way};
use engine::sandbox::{Sandbox, Stopped};

/// How a trial stands with the crash point.
pub struct Point<'a> {
    point: &'a CrashPoint,
    way: Way,
    /// Instructions executed when the run came to the point.
    came: Option<u64>,
}

impl<'a> Point<'a> {
    /// At the instant a trial begins.
    pub fn new(point: &'a CrashPoint, way: &Way) -> Point<'a> {
        let mut way = way.clone();
        way.calls.resize(point.calls.len(), 0);
        Point { point, way, came: None }
    }

    /// Instructions that the trial must stop at for it.
    pub fn stops(&self) -> impl Iterator<Item = u64> + '_ {
        let wanted = self.came.is_none();
        let calls = self.point.calls.iter().map(|step| step.pc);
        calls.chain([self.point.pc]).filter(move |_| wanted)
    }

    /// The run stands at one of them. True if it is the point itself.
    pub fn see(&mut self, sandbox: &Sandbox) -> bool {
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
        if self.came.is_some() || pc != self.point.pc || !self.is_by_same_calls(sandbox) {
            return false;
        }
        self.way.here += 1;
        let same = self.point.calls.iter().map(|step| step.nth).eq(self.way.calls.iter().copied());
        if same && self.way.here == self.point.nth {
            self.came = Some(sandbox.steps());
        }
        self.came.is_some()
    }

    fn is_by_same_calls(&self, sandbox: &Sandbox) -> bool {
        sandbox.registers().gpr[4] == self.point.sp && led_here(sandbox, &self.point.calls)
    }

    /// Did the run die at the crash point itself? At the same place another time is
    /// elsewhere.
    pub fn died_there(&self, sandbox: &Sandbox, stopped: &Stopped) -> bool {
        let Stopped::Killed { pc, .. } = *stopped else { return false };
        match self.point.inside {
            None => pc == self.point.pc && self.came == Some(sandbox.steps()),
            // The call that was made then has not returned.
            Some(returns_to) => {
                let call = Step { pc, sp: self.point.sp, returns_to, nth: 0 };
                let below = sandbox.registers().gpr[4] < self.point.sp;
                self.came() && below && led_here(sandbox, &[call])
            }
        }
    }

    /// Did the run come to the point?
    pub fn came(&self) -> bool {
        self.came.is_some()
    }
}

/// Are these calls under way?
fn led_here(sandbox: &Sandbox, calls: &[Step]) -> bool {
    calls.iter().all(|step| {
        let slot = sandbox.read_memory(step.sp.wrapping_sub(8), 8);
        slot.is_some_and(|bytes| bytes == step.returns_to.to_le_bytes())
    })
}
