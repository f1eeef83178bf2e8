//! How long is memory on a stack the same variable's?

use crate::Error;
use crate::run::Run;
use program::debug::{Register, State};
use trace::{Flow, FrameId, Instance, Time};

/// How long an activation of a function lasted, whose memory is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its first instance.
    pub begins: Instance,
    /// The first instant at which it is over, if it ended.
    pub ends: Option<Instance>,
}

impl Lifetime {
    /// Does what is seen from an instant on belong to it?
    pub fn has(&self, seen: Instance) -> bool {
        self.begins < seen && self.ends.is_none_or(|end| seen < end)
    }
}

/// Below the stack pointer, functions may use so many bytes, by the ABI.
const RED_ZONE: u64 = 128;

/// No function takes as much room. What looks so has changed to another stack.
const LARGEST: u64 = 1 << 30;

impl Run {
    /// How long an address belongs to the activation in whose part of the stack it is before an
    /// instant. Nothing is said of memory that is nowhere on the stack of the thread.
    pub fn lifetime(&self, at: Instance, address: u64) -> Result<Option<Lifetime>, Error> {
        let frame = self.trace.control.frame_of(at.time);
        if self.end_of_room(frame).is_none_or(|end| address.abs_diff(end) > LARGEST) {
            return Ok(None);
        }
        let sp = self.states()?.before(at)?.register(Register::RSP);
        let from = sp.unwrap_or(u64::MAX).saturating_sub(RED_ZONE);
        let owner = self.owner(frame, from, address);
        Ok(owner.map(|frame| self.lasts(frame, at.time)))
    }

    /// Which activation, or one that it was called from, has an address in its part of the
    /// stack?
    fn owner(&self, innermost: FrameId, from: u64, address: u64) -> Option<FrameId> {
        let (mut frame, mut from) = (innermost, from);
        while address >= from {
            let end = self.end_of_room(frame)?;
            if !(from..from.saturating_add(LARGEST)).contains(&end) {
                return None;
            }
            if address < end {
                return Some(frame);
            }
            from = end;
            frame = self.trace.control.frame(frame).caller;
        }
        None
    }

    /// Where an activation's part of the stack ends: at the return address that its call left.
    fn end_of_room(&self, frame: FrameId) -> Option<u64> {
        let call = self.call_of(frame)?;
        let info = self.trace.code.info(self.trace.instruction(call));
        let pushed = self.trace.stored(call);
        pushed.first().filter(|_| info.flow == Flow::Call).map(|range| range.start)
    }

    /// From when to when an activation lasted that is not over at a time.
    fn lasts(&self, frame: FrameId, at: Time) -> Lifetime {
        let control = &self.trace.control;
        let thread = self.trace.thread(at);
        let called = self.call_of(frame).map_or(Time::START, |call| call.time);
        let mut records = control.frames_from(called);
        let first = records.find(|(_, of)| *of == frame).map_or(called, |(time, _)| time);
        let depth = control.frame(frame).depth;
        let mut last = at;
        let mut ends = false;
        for (time, of) in control.frames_from(at).filter(|(t, _)| self.trace.thread(*t) == thread) {
            ends = of != frame && control.frame(of).depth <= depth;
            if ends {
                break;
            }
            last = time;
        }
        let behind = |time: Time| Instance { time: Time(time.0 + 1), index: 0 };
        Lifetime { begins: Instance { time: first, index: 0 }, ends: ends.then(|| behind(last)) }
    }
}
