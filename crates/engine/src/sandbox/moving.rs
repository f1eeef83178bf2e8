//! A run that left its log, under a debugger.
//!
//! Its instants go on counting where history was left; each alteration is an
//! instant of its own.

use super::facts::Facts;
use super::{Limits, Sandbox, Stopped as Ended};
use crate::code::stops::{Stops, Watch};
use crate::record::beginning::Beginning;
use crate::replay::{Forked, Goal, Instant, Replayer, Report, Stopped, To, Trail, Until};
use crate::{Error, Thread};
use recording::{Ending, Recording};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Nothing that a person steps through takes longer.
const LIMITS: Limits = Limits { steps: u64::MAX / 4, memory: 8 << 30 };

/// What a run that left its log knows of its past.
#[derive(Default)]
pub(super) struct Past {
    left: Instant,
    altered: u64,
    stops: Stops,
}

impl Replayer {
    /// Keeps the outside in step from the first instruction on, so that the run can
    /// leave its log anywhere.
    pub fn keep_world(&mut self, recording: &Recording) -> Result<(), Error> {
        if self.world.is_some() {
            return Ok(());
        }
        let beginning: Beginning = serde_json::from_value(recording.manifest().start.clone())
            .map_err(|_| Error::CannotGoOn("the manifest does not say how it began".to_owned()))?;
        let manifest = recording.manifest();
        let world = super::World::new(
            &manifest.directory.0,
            &beginning.descriptors,
            manifest.created,
            beginning.start.ids,
        );
        self.world = Some(Box::new(world));
        Ok(())
    }

    /// What the rest of the run tells about the outside.
    fn look_ahead(&mut self) -> Result<Facts, Error> {
        let (mut ours, mut theirs) =
            UnixStream::pair().map_err(Error::io("cannot make a socket"))?;
        if let Forked::Child = self.fork()? {
            drop(ours);
            let ran = self.run(Until::End).map(|_| ());
            let facts = ran.ok().and_then(|()| self.world.take()).map(|world| world.facts);
            let bytes = postcard::to_allocvec(&facts).unwrap_or_default();
            let _ = theirs.write_all(&bytes);
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        drop(theirs);
        let mut bytes = Vec::new();
        ours.read_to_end(&mut bytes).map_err(Error::io("the rehearsal died"))?;
        let facts: Option<Facts> = postcard::from_bytes(&bytes).ok().flatten();
        facts.ok_or_else(|| Error::CannotGoOn("the rest of the run cannot be replayed".to_owned()))
    }
}

impl Sandbox {
    /// Leaves the log where a replay stands, which has kept its world.
    pub fn depart(mut replayer: Replayer) -> Result<Sandbox, Error> {
        replayer.set_stops(&Stops::default())?;
        let left = replayer.now();
        let facts = replayer.look_ahead()?;
        if let Some(world) = &mut replayer.world {
            let changed = std::mem::take(&mut world.facts.changed);
            world.facts = Facts { changed, ..facts };
        }
        let mut sandbox = Sandbox::leave(replayer, LIMITS);
        sandbox.past.left = left;
        Ok(sandbox)
    }

    /// Where the run stands.
    pub fn now(&self) -> Instant {
        Instant {
            instructions: self.past.left.instructions + self.steps(),
            happened: self.past.left.happened + 1 + self.past.altered,
        }
    }

    /// Something was changed: another instant.
    pub fn altered(&mut self) {
        self.past.altered += 1;
    }

    /// To look at it.
    pub fn replayer(&self) -> &Replayer {
        &self.replayer
    }

    /// Makes a copy of it in a child process.
    pub fn fork(&mut self) -> Result<Forked, Error> {
        self.replayer.fork()
    }

    /// Sets breakpoints and watched memory.
    pub fn set_stops(&mut self, stops: &Stops) {
        if self.past.stops.breaks != stops.breaks {
            let breaks: Vec<u64> = stops.breaks.iter().copied().collect();
            self.stop_at(&breaks);
        }
        self.past.stops = stops.clone();
    }

    /// Moves forward. System calls and signals are not stopped for; memory that is
    /// watched is looked at after every instruction.
    pub fn advance(&mut self, goal: &Goal) -> Report {
        let pauses_at = self.now().instructions.saturating_add(goal.most);
        self.at_stop = !goal.here && self.past.stops.breaks_at(self.registers().rip);
        let watched: Vec<Watch> = self.past.stops.watches.iter().copied().collect();
        let values = |s: &Sandbox| -> Vec<Vec<u8>> {
            watched.iter().map(|w| s.replayer.peek(w.address, w.len as usize)).collect()
        };
        let mut before_values = values(self);
        loop {
            let (before, thread) = (self.now(), self.thread());
            let limit = match goal.to {
                To::End => u64::MAX,
                To::Instant(instant) if before >= instant => {
                    return Report { stopped: Stopped::There, before, thread };
                }
                To::Instant(Instant { instructions: n, .. }) | To::Number(n) => n,
            };
            if before.instructions >= limit {
                return Report { stopped: Stopped::There, before, thread };
            }
            if before.instructions >= pauses_at {
                return Report { stopped: Stopped::Paused, before, thread };
            }
            let single = goal.step.is_some() || !watched.is_empty();
            let most = if single { 1 } else { limit.min(pauses_at) - before.instructions };
            let ended = self.stretch_at_most(most);
            self.replayer.leave_trail_of(thread, before, self.now());
            let report = |stopped| Report { stopped, before, thread };
            if let Some(stopped) = ended {
                return self.ended(stopped, before, thread);
            }
            let values_now = values(self);
            if let Some(n) = (0..watched.len()).find(|n| before_values[*n] != values_now[*n]) {
                return report(Stopped::Watched(watched[n]));
            }
            before_values = values_now;
            let made = self.now() > before
                && goal.step.as_ref().is_some_and(|(t, range)| {
                    *t == thread && !range.contains(&self.registers().rip)
                });
            if made {
                return report(Stopped::Stepped);
            }
        }
    }

    /// What ended the run, in a debugger's words.
    fn ended(&self, ended: Ended, then: Instant, thread: Thread) -> Report {
        let now = self.now();
        let last = Instant { instructions: now.instructions.saturating_sub(1), ..now };
        let (stopped, before) = match ended {
            Ended::At(_) => (Stopped::Break, now),
            Ended::Exited(status) => {
                (Stopped::Ended(Ending::Exited(status)), last.max(self.first()))
            }
            Ended::Killed { signal, address: Some(_), .. } => {
                (Stopped::Ended(Ending::Killed { signal }), now)
            }
            Ended::Killed { signal, .. } => {
                (Stopped::Ended(Ending::Killed { signal }), last.max(self.first()))
            }
            Ended::Unserved(what) => (Stopped::Stuck(what), then),
            Ended::NeedsChild => (Stopped::Stuck("it wants another process".to_owned()), then),
            Ended::StepLimit => (Stopped::Paused, then),
            Ended::MemoryLimit => (Stopped::Stuck("it takes too much memory".to_owned()), then),
            Ended::Deadlock => (Stopped::Stuck("all its threads wait".to_owned()), then),
            Ended::Enough | Ended::Rejoined => (Stopped::There, now),
        };
        Report { stopped, before, thread }
    }

    /// The first instant behind the last alteration.
    fn first(&self) -> Instant {
        Instant { instructions: self.past.left.instructions, ..self.now() }
    }

    fn stretch_at_most(&mut self, most: u64) -> Option<Ended> {
        let kept = self.left.saturating_sub(most);
        self.left -= kept;
        let ended = self.stretch(&mut ());
        self.left += kept;
        ended.filter(|ended| *ended != Ended::StepLimit)
    }

    /// What a thread executed last.
    pub fn trail(&self, thread: Thread) -> Option<Trail> {
        self.replayer.trail(thread)
    }
}
