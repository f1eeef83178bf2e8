//! Searching backward: several walkers at once go over parts of the run. Where the processor
//! counts accesses to watched memory, they do so at full speed, and tell where to look more
//! closely.

use super::{Timeline, Wanted};
use crate::walker::{Look, Surveyed, Walker};
use crate::{Error, Result};
use engine::{Goal, Instant, Report, Survey, To};
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::time::Duration;

/// A part this short is looked at closely at once: to send somebody would take as long.
const SHORT: u64 = 1_500_000;
/// Between two looks at whether somebody asked to stop.
const PATIENCE: Duration = Duration::from_millis(20);

/// Most of them at once.
static CORES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Surveys under way, those of the latest parts first.
pub(super) struct Scouts {
    look: Look,
    sent: VecDeque<(Instant, Instant, Walker)>,
}

impl Scouts {
    /// None yet.
    pub fn new(look: Look) -> Scouts {
        Scouts { look, sent: VecDeque::new() }
    }

    /// Do they look at everything there is to stop for?
    pub fn look_closely(&self) -> bool {
        self.look == Look::Closely
    }
}

/// Is a part worth a survey?
fn is_long(from: Instant, to: Instant) -> bool {
    to.instructions - from.instructions > SHORT
}

impl Timeline {
    /// The last thing to stop for between two instants, the first of which is kept; nothing
    /// if no survey can tell.
    pub(super) fn survey(
        &mut self,
        (from, to): (Instant, Instant),
        wanted: &Wanted,
        scouts: &mut Scouts,
    ) -> Result<Option<Option<Report>>> {
        // In a branch, there is nobody to send.
        if self.history.is_some() || !is_long(from, to) {
            return Ok(None);
        }
        if scouts.sent.front().is_some_and(|(a, b, _)| (*a, *b) != (from, to)) {
            // Other instants are kept by now.
            scouts.sent.clear();
        }
        self.send(to, wanted, scouts)?;
        let Some((.., mut scout)) = scouts.sent.pop_front() else { return Err(Error::Strange) };
        let surveyed = loop {
            if let Some(surveyed) = scout.surveyed(PATIENCE)? {
                break surveyed;
            }
            if (self.interrupted)() {
                return Err(Error::Interrupted);
            }
        };
        match surveyed {
            Surveyed::Done(survey) => self.look_closely(survey, wanted).map(Some),
            Surveyed::Impossible => {
                *scouts = Scouts::new(Look::Closely);
                Ok(None)
            }
        }
    }

    /// Where the part begins that is looked at next: several that are short are one.
    pub(super) fn part_before(&self, to: Instant) -> Option<Instant> {
        if self.history.is_some() {
            return self.checkpoints.before(to);
        }
        self.checkpoints.before_within(to, SHORT)
    }

    /// Sends out scouts for the latest parts before an instant that have none.
    fn send(&mut self, before: Instant, wanted: &Wanted, scouts: &mut Scouts) -> Result<()> {
        let mut to = scouts.sent.back().map_or(before, |(from, ..)| *from);
        while scouts.sent.len() < *CORES
            && let Some(from) = self.part_before(to)
        {
            if is_long(from, to) {
                let mut scout = self.checkpoints.copy(from)?;
                scout.begin_survey(&wanted.stops, &goal(to, wanted), scouts.look)?;
                scouts.sent.push_back((from, to, scout));
            }
            to = from;
        }
        Ok(())
    }

    /// Where memory was touched, looks when; latest first.
    fn look_closely(&mut self, survey: Survey, wanted: &Wanted) -> Result<Option<Report>> {
        let Survey { last, suspects } = survey;
        for (from, to) in suspects.into_iter().rev() {
            if last.as_ref().is_some_and(|last| last.before >= to) {
                break;
            }
            if !self.checkpoints.has(from) {
                self.go_to(from)?;
                self.checkpoint();
            }
            let found = self.scan(from, to, wanted, None)?.last;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(last)
    }
}

/// To go over everything there is to stop for, up to an instant.
pub(super) fn goal(to: Instant, wanted: &Wanted) -> Goal {
    Goal {
        here: true,
        calls: wanted.calls.clone(),
        signals: wanted.signals,
        ..Goal::to(To::Instant(to))
    }
}
