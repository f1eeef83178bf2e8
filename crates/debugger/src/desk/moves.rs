//! Moving, with slices and library breakpoints in mind.

use super::Desk;
use crate::{Error, Met, Result, Stop, Wanted};
use engine::Thread;
use recording::Ending;
use std::ops::Range;

impl Desk {
    /// Runs forward until something is met.
    pub fn forward(&mut self) -> Result<Stop> {
        let wanted = self.all_wanted();
        loop {
            let stop = self.timeline.forward(&wanted)?;
            let thread = stop.thread;
            if let Some(stop) = self.judge(stop)? {
                return Ok(stop);
            }
            if self.timeline.is_interrupted() {
                return Ok(Stop { met: Met::Interrupted, thread });
            }
        }
    }

    /// Runs backward until something is met.
    pub fn backward(&mut self) -> Result<Stop> {
        let wanted = self.all_wanted();
        self.skip_back(&wanted)?;
        loop {
            let stop = self.timeline.backward(&wanted)?;
            let thread = stop.thread;
            if let Some(stop) = self.judge(stop)? {
                return Ok(stop);
            }
            if self.timeline.is_interrupted() {
                return Ok(Stop { met: Met::Interrupted, thread });
            }
        }
    }

    /// Lets a thread make a step forward.
    pub fn step(&mut self, thread: Thread, range: Range<u64>) -> Result<Stop> {
        let wanted = self.all_wanted();
        self.timeline.step(thread, range, &wanted)
    }

    /// Takes back a step of a thread.
    pub fn step_back(&mut self, thread: Thread) -> Result<Stop> {
        self.timeline.step_back(thread)
    }

    /// Address of the running thread's next instruction.
    pub(super) fn pc(&mut self) -> Result<u64> {
        let thread = self.timeline.state()?.threads.first().ok_or(Error::Strange)?.thread;
        Ok(self.timeline.registers(thread)?.ok_or(Error::Strange)?.rip)
    }

    /// What to stop for, with that of slices and libraries.
    fn all_wanted(&mut self) -> Wanted {
        let mut wanted = self.wanted.clone();
        if self.is_slice {
            wanted.stops.breaks = self.breaks_in_slice(&wanted.stops.breaks);
        }
        for step in self.slices.values().flat_map(|s| s.stops()) {
            // Only these instances are meant, not every execution of the address.
            wanted.stops.breaks.remove(&step.address);
            wanted.marks.insert(step.number);
        }
        wanted.stops.breaks.extend(self.library.values().flat_map(|b| &b.entries));
        wanted
    }

    /// Is a stop one that was asked for?
    fn judge(&mut self, stop: Stop) -> Result<Option<Stop>> {
        match stop.met {
            Met::Break => {
                let pc = self.pc()?;
                let met = self.library_met(pc, stop.thread)?;
                let asked = self.wanted.stops.breaks.contains(&pc) && !self.is_sliced(pc);
                if asked && (self.passing.contains(&pc) || self.is_meant(pc)) {
                    return Ok(Some(stop));
                }
                let moved = if met { None } else { self.moved_break(pc) };
                let met = met || moved.is_some();
                self.notice = moved.or(self.notice.take());
                // gdb would not believe in a breakpoint that it did not set.
                Ok(met.then_some(Stop { met: Met::Mark, ..stop }))
            }
            Met::Mark => {
                self.notice = self.slice_here();
                // Whoever has a breakpoint there knows what to say about it.
                let pc = self.pc()?;
                let known = self.wanted.stops.breaks.contains(&pc);
                Ok(Some(if known { Stop { met: Met::Break, ..stop } } else { stop }))
            }
            Met::Stuck(ref why) => {
                self.notice = Some(format!("the branch cannot go on: {why}"));
                Ok(Some(stop))
            }
            Met::End(ending) => {
                self.notice = Some(match ending {
                    _ if self.is_slice => "the slice ends here".to_owned() + &self.missed_breaks(),
                    Some(ending @ Ending::Killed { .. }) => {
                        format!("the run ends here: it was {ending}")
                    }
                    Some(ending) => format!("the run ends here: it {ending}"),
                    None => "the recording breaks off here".to_owned(),
                });
                Ok(Some(stop))
            }
            _ => Ok(Some(stop)),
        }
    }

    fn is_sliced(&self, address: u64) -> bool {
        self.slices.values().flat_map(|s| s.stops()).any(|s| s.address == address)
    }
}
