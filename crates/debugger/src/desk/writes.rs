//! Where watched memory was written last: the trace knows, if there is one.

use super::Desk;
use crate::{Result, Wanted};
use engine::Calls;
use position::{Criterion, Position, What, before};
use slice::{Options, Slicer};
use trace::{Instance, Trace};

impl Desk {
    /// Before a search backward for nothing but writes: goes to just behind the last
    /// one, if there is a trace that tells. The search itself is made as always, so
    /// that it stops as always.
    pub(super) fn skip_back(&mut self, wanted: &Wanted) -> Result<()> {
        let stops = &wanted.stops;
        let only_writes = stops.breaks.is_empty()
            && !stops.watches.is_empty()
            && stops.watches.iter().all(|watch| watch.writes && !watch.reads)
            && wanted.marks.is_empty()
            && wanted.calls == Calls::None;
        if !only_writes || self.timeline.branch().is_some() || !self.has_trace()? {
            return Ok(());
        }
        let now = self.timeline.now().instructions;
        let Some(behind) = self.last_write(wanted, now)? else { return Ok(()) };
        if behind < now && !(wanted.signals && self.may_have_signals()?) {
            self.timeline.go_to_number(behind)?;
        }
        Ok(())
    }

    fn has_trace(&self) -> Result<bool> {
        Ok(self.run.is_some() || Trace::stored_size(&self.recording()?).is_some())
    }

    /// Signals are stopped for as well, and the search must not pass over one.
    fn may_have_signals(&mut self) -> Result<bool> {
        let counted = self.recording()?.outcome().map(|outcome| outcome.counters.clone());
        let none = counted.and_then(|counters| counters.get("signals").copied()) == Some(0);
        Ok(!none || !self.run()?.trace.spans.signals.is_empty())
    }

    /// How many instructions had been executed before another when the last write of what is
    /// watched was done.
    fn last_write(&mut self, wanted: &Wanted, now: u64) -> Result<Option<u64>> {
        let run = self.run()?;
        let position = match run.trace.at_number(now) {
            Some(_) => Position::Number(now),
            None => Position::Exit,
        };
        let slicer = Slicer::new(&run.trace);
        let options = Options { bookkeeping: true, ..Options::default() };
        let mut last = None;
        for watch in &wanted.stops.watches {
            let what = What::Memory(watch.address, watch.len);
            let starts = before(run, &Criterion { position: position.clone(), what })?;
            let (direct, _) = slicer.direct(&starts, &options, &|_, _| false);
            let writes = direct.dependences().map(|(_, at, _)| behind(&run.trace, at));
            last = last.max(writes.max());
        }
        Ok(last)
    }
}

/// A number of instructions at which a write is done. A call that waited returns when its thread
/// has the turn again, which is between two instructions: behind the next one it has.
fn behind(trace: &Trace, write: Instance) -> u64 {
    let (made, done) = (trace.number(write) + 1, trace.number(trace.seen(write)));
    if done == made { made } else { done + 1 }
}
