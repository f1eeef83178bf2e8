//! Going back.

use super::scouts::{self, Scouts};
use super::{Met, SLICE, Stop, Timeline, Wanted};
use crate::walker::{Look, Scanned};
use crate::{Error, Result};
use engine::{Goal, Instant, Stops, Thread, To};

/// How far before the present instants are kept when we go back, so that the next
/// step back is short, and so that a search for what is near stays near.
const RUNGS: [u64; 4] = [30_000_000, 1_000_000, 60_000, 4_000];

impl Timeline {
    /// Runs backward to the latest earlier instant at which something is met.
    pub fn backward(&mut self, wanted: &Wanted) -> Result<Stop> {
        let mut upper = self.now();
        let mark = wanted.marks.range(..upper.instructions).next_back().copied();
        let counts = self.history.is_none() && !wanted.stops.watches.is_empty();
        let mut scouts = Scouts::new(if counts { Look::FromAfar } else { Look::Closely });
        let mut is_near = false;
        let now = upper;
        loop {
            // What is near is found soonest by a look at little.
            let part =
                if upper == now { self.checkpoints.before(now) } else { self.part_before(upper) };
            let Some(from) = part else { break };
            if self.is_change(from, upper) {
                upper = from;
                continue;
            }
            if scouts.look_closely() && !is_near {
                // What is searched for may be near, and be met all the time: so little is
                // looked at first.
                is_near = true;
                self.copy_from(from)?;
                self.climb(upper)?;
                continue;
            }
            let surveyed = self.survey((from, upper), wanted, &mut scouts)?;
            if scouts.look_closely() && !is_near {
                continue;
            }
            let last = match surveyed {
                Some(last) => last,
                None => self.scan(from, upper, wanted, None)?.last,
            };
            let met = last.filter(|r| mark.is_none_or(|m| r.before.instructions >= m));
            if let Some(mark) = mark.filter(|m| *m >= from.instructions && met.is_none()) {
                self.go_to_number(mark)?;
                return self.stop(Met::Mark);
            }
            if let Some(report) = met {
                self.go_to(report.before)?;
                return self.reported(&report);
            }
            upper = from;
        }
        self.go_to(upper)?;
        self.stop(Met::Begin)
    }

    /// Takes back the last step of a thread.
    pub fn step_back(&mut self, thread: Thread) -> Result<Stop> {
        let now = self.now();
        if let Some(from) = self.checkpoints.before(now).filter(|from| self.is_change(*from, now)) {
            self.go_to(from)?;
            return Ok(Stop { met: Met::There, thread });
        }
        let before = match self.known_step(thread, now) {
            Some(before) => before,
            None => {
                let Some(from) = self.checkpoints.before(now) else { return self.stop(Met::Begin) };
                self.copy_from(from)?;
                self.climb(now)?;
                let from = self.checkpoints.before(now).unwrap_or(from);
                let scanned = self.scan(from, now, &Wanted::default(), Some(thread))?;
                self.trail = scanned.trail.map(|trail| (thread, trail));
                let Some(trail) = scanned.trail else {
                    self.go_to(self.first())?;
                    return self.stop(Met::Begin);
                };
                trail.last
            }
        };
        self.go_to(before)?;
        Ok(Stop { met: Met::There, thread })
    }

    /// Is there nothing between two instants but that history was left?
    fn is_change(&self, from: Instant, to: Instant) -> bool {
        self.history.as_ref().is_some_and(|h| (h.left, h.first) == (from, to))
    }

    /// The instant before the last step of a thread, if it is known to be its own.
    fn known_step(&self, thread: Thread, now: Instant) -> Option<Instant> {
        let (_, trail) = self.trail.filter(|(t, _)| *t == thread)?;
        let within = now.happened == trail.last.happened
            && now.instructions > trail.first.instructions
            && now.instructions <= trail.last.instructions + 1;
        within.then(|| Instant { instructions: now.instructions - 1, ..now })
    }

    /// On the way to an instant, keeps some instants before it.
    pub(super) fn climb(&mut self, to: Instant) -> Result<()> {
        for rung in RUNGS {
            let at = to.instructions.saturating_sub(rung);
            let ahead = at.saturating_sub(self.now().instructions);
            // A rung close to where we begin would be of no use.
            if ahead > rung / 2 {
                self.walk_to(To::Number(at))?;
                self.checkpoint();
            }
        }
        Ok(())
    }

    /// Looks at all there is to stop for between two instants, the first of which is
    /// kept.
    pub(super) fn scan(
        &mut self,
        from: Instant,
        to: Instant,
        wanted: &Wanted,
        thread: Option<Thread>,
    ) -> Result<Scanned> {
        let mut scout = self.checkpoints.copy(from)?;
        let stops = if thread.is_some() { Stops::default() } else { wanted.stops.clone() };
        scout.set_stops(&stops)?;
        let goal = Goal { most: SLICE, ..scouts::goal(to, wanted) };
        let mut last = None;
        loop {
            let scanned = scout.scan(&goal, thread)?;
            last = scanned.last.clone().or(last);
            if scanned.there {
                return Ok(Scanned { last, ..scanned });
            }
            if (self.interrupted)() {
                return Err(Error::Interrupted);
            }
        }
    }
}
