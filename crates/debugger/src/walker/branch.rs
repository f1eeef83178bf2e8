//! A run that left its log, with what is changed whenever it comes by.

use engine::sandbox::Sandbox;
use engine::{Error, Goal, Instant, Report, Stopped, Stops, To};
use std::collections::BTreeSet;
use whatif::{Change, Trigger};

/// See the module.
pub struct Branch {
    /// The run.
    pub sandbox: Sandbox,
    triggers: Vec<Trigger>,
    /// How often each of them has come by.
    counts: Vec<u64>,
    /// The instant behind the last look at the triggers: they are done here.
    done: Option<Instant>,
    /// What somebody else stops for.
    breaks: BTreeSet<u64>,
}

impl Branch {
    /// One that just left history.
    pub fn new(sandbox: Sandbox) -> Branch {
        Branch {
            sandbox,
            triggers: Vec::new(),
            counts: Vec::new(),
            done: None,
            breaks: BTreeSet::new(),
        }
    }

    /// Sets what it stops for.
    pub fn set_stops(&mut self, stops: &Stops) {
        self.breaks.clone_from(&stops.breaks);
        let mut all = stops.clone();
        all.breaks.extend(self.triggers.iter().map(|trigger| trigger.pc));
        self.sandbox.set_stops(&all);
    }

    /// Changes something here, and from now on where triggers say.
    pub fn alter(&mut self, change: &Change, triggers: Vec<Trigger>) -> Result<(), Error> {
        apply(&mut self.sandbox, change)?;
        self.sandbox.altered();
        self.counts.extend(triggers.iter().map(|_| 0));
        self.triggers.extend(triggers);
        self.done = Some(self.sandbox.now());
        self.set_stops(&Stops::default());
        Ok(())
    }

    /// Moves forward.
    pub fn advance(&mut self, goal: &Goal) -> Result<Report, Error> {
        let mut goal = goal.clone();
        let end = self.sandbox.now().instructions.saturating_add(goal.most);
        if !goal.here && !self.is_there(&goal) && self.fire()? {
            goal.here = true;
        }
        loop {
            let report = self.sandbox.advance(&goal);
            let asked = self.breaks.contains(&self.sandbox.registers().rip);
            if report.stopped != Stopped::Break || asked {
                return Ok(report);
            }
            if self.is_there(&goal) {
                return Ok(Report { stopped: Stopped::There, ..report });
            }
            let at = self.sandbox.registers().rip;
            self.fire()?;
            // Who was moved elsewhere may stop there; the rest goes on from here.
            goal.here = self.sandbox.registers().rip != at;
            goal.most = end.saturating_sub(self.sandbox.now().instructions);
        }
    }

    fn is_there(&self, goal: &Goal) -> bool {
        let now = self.sandbox.now();
        match goal.to {
            To::End => false,
            To::Instant(instant) => now >= instant,
            To::Number(number) => now.instructions >= number,
        }
    }

    /// Makes the changes that are due here, once. True if that led elsewhere.
    fn fire(&mut self) -> Result<bool, Error> {
        if self.done == Some(self.sandbox.now()) {
            return Ok(false);
        }
        let at = self.sandbox.registers().rip;
        for n in 0..self.triggers.len() {
            if self.triggers[n].pc != at {
                continue;
            }
            self.counts[n] += 1;
            if self.triggers[n].nth == 0 || self.triggers[n].nth == self.counts[n] {
                let change = self.triggers[n].change.clone();
                apply(&mut self.sandbox, &change)?;
                self.sandbox.altered();
            }
        }
        self.done = Some(self.sandbox.now());
        Ok(self.sandbox.registers().rip != at)
    }
}

/// Who wants to know something looks, and who wants no more leaves.
fn apply(sandbox: &mut Sandbox, change: &Change) -> Result<(), Error> {
    match whatif::apply(sandbox, change) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::CannotGoOn(error.to_string())),
    }
}
