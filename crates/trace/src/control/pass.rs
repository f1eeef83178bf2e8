//! The pass over all records, with a stack of open branches per activation.

use super::hops::Hop;
use super::live::Live;
use super::open::Open;
use super::shape::{End, FunctionId, Gait, Gaits, JoinId, NO_FUNCTION, NO_JOIN, Step};
use super::state::State;
use super::tell::Tell;
use super::{Frame, FrameId, Instance, NOBODY};
use crate::captured::Captured;
use crate::records::{Records, SEGMENT, Time};
use engine::trace::{Call, Event};

/// The entry of a call: closed by the return alone.
const CALL: JoinId = u32::MAX;
/// A jump back into an activation that had called others: closed together with
/// what it jumped into.
const BACK: JoinId = u32::MAX - 1;

pub(super) struct Pass<T> {
    pub tell: T,
    pub state: State,
    /// Calls that were made before the first record are not known.
    pub late: bool,
}

impl<T: Tell> Pass<T> {
    /// Goes through a segment, given all events. With hops, not every record is gone through.
    pub fn segment(
        &mut self,
        gaits: &Gaits,
        records: &Records,
        events: &[(Time, Event)],
        n: usize,
        hops: &[Hop],
    ) {
        let start = (n * SEGMENT) as u32;
        let first = events.partition_point(|(at, _)| at.0 < start);
        let mut events = events[first..].iter().peekable();
        let mut next_event = events.peek().map_or(NOBODY, |(at, _)| at.0);
        let mut hops = hops.iter();
        let mut next_hop = hops.next();
        let (whole, paths) = (records.captured(n), records.paths_of(n));
        let all = whole.all();
        let (mut within, mut used) = (0, 0);
        while let Some(&path) = paths.get(within) {
            let (gait, now) = (gaits.gait(path), start + within as u32);
            if next_event <= now {
                let last = now.checked_sub(1).map(Time);
                let last = last.map(|at| gaits.gait(records.path(at)).last(at.0));
                while let Some((_, event)) = events.next_if(|(at, _)| at.0 <= now) {
                    self.event(event, last);
                }
                next_event = events.peek().map_or(NOBODY, |(at, _)| at.0);
            }
            let captured = all.from(used);
            self.arrive(gait, || gaits.stack(path).map(|slot| slot.address(captured)));
            self.walk(gaits, gait, now);
            (within, used) = (within + 1, used + usize::from(gait.captures));
            if let Some(hop) = next_hop
                && hop.from + 1 == within as u32
            {
                next_hop = hops.next();
                self.leave_dead_frames(hop.slot);
                self.hop(hop);
                (within, used) = (hop.to as usize, hop.captured as usize);
                continue;
            }
            self.leave(gaits, gait, now, captured);
        }
    }

    /// Passes by all that a call did.
    fn hop(&mut self, hop: &Hop) {
        self.state.next_frame += hop.frames;
        self.tell.hop(hop);
    }

    /// Control comes to a path: is it still in the same activation?
    #[inline]
    fn arrive(&mut self, gait: &Gait, sp: impl Fn() -> Option<u64>) {
        let jumped = self.state.thread.jumped.take();
        let Some(top) = self.state.thread.top() else { return self.begin_thread(gait.function) };
        if top.function == NO_FUNCTION {
            top.function = gait.function;
            top.earlier = [gait.function; 2];
        } else if top.function != gait.function
            && let Some(from) = jumped
        {
            self.jump_between(gait, from, sp());
        }
    }

    #[cold]
    fn begin_thread(&mut self, function: FunctionId) {
        let call = self.state.spawned_by();
        self.push_frame(call, call, u64::MAX, false);
        let top = self.state.thread.top().expect("just pushed");
        (top.function, top.earlier) = (function, [function; 2]);
    }

    /// A jump to another function: a tail call, or the way out of several. From a part that
    /// was moved away from a function, control comes back to the same activation, though there
    /// may be others of that function below it. Of several, it is the innermost that the stack
    /// pointer has not left.
    #[cold]
    fn jump_between(&mut self, gait: &Gait, from: Instance, sp: Option<u64>) {
        let left = |slot: u64| sp.is_some_and(|sp| slot < sp && !far_apart(slot, sp));
        let live = self.state.thread.live();
        // An exception may be caught in a part that was moved away, and there is no activation
        // of that: it takes the place of the one that caught it.
        let over = live.iter().rev().take_while(|l| left(l.slot)).count();
        let own = |l: &Live| l.function == gait.function && !left(l.slot);
        let known = live.iter().rposition(own);
        let top = live.last().expect("a thread has an activation");
        let comes_back = top.earlier.contains(&gait.function);
        match known.filter(|_| !gait.is_entry && !comes_back) {
            Some(n) => {
                // What the activations above had open is closed; what this one had
                // open is closed when control reaches a join of it.
                self.state.thread.truncate(n + 1);
                self.open(BACK, Some(from));
            }
            None => {
                let kept = (live.len() - over).max(1);
                self.state.thread.truncate(kept);
                self.enter(from, gait.function);
            }
        }
    }

    /// A function takes the place of the one that jumped to it.
    fn enter(&mut self, from: Instance, function: FunctionId) {
        let top = self.state.thread.top().expect("a thread has an activation");
        top.earlier[1] = std::mem::replace(&mut top.function, function);
        let base = top.base;
        self.state.thread.open.truncate(base);
        self.open(CALL, Some(from));
    }

    fn open(&mut self, join: JoinId, at: Option<Instance>) {
        self.state.thread.open.push(Open {
            join,
            time: at.map_or(NOBODY, |i| i.time.0),
            index: at.map_or(0, |i| i.index as u8),
        });
    }

    fn push_frame(
        &mut self,
        call: Option<Instance>,
        why: Option<Instance>,
        slot: u64,
        handler: bool,
    ) {
        let id = FrameId(self.state.next_frame);
        self.state.next_frame += 1;
        let (caller, depth) = match self.state.thread.live().last() {
            Some(l) => (l.frame, l.depth + 1),
            None => (id, 0),
        };
        self.tell.frame(Frame { caller, call, depth });
        let base = self.state.thread.open.len();
        self.state.thread.push(Live {
            frame: id,
            depth,
            base,
            slot,
            function: NO_FUNCTION,
            earlier: [NO_FUNCTION; 2],
            handler,
        });
        self.open(CALL, why);
    }

    #[inline]
    fn walk(&mut self, gaits: &Gaits, gait: &Gait, now: u32) {
        let frame = self.state.thread.live().last().expect("arrived").frame;
        self.tell.record(now, frame);
        if gait.first != NO_JOIN {
            self.close(gait.first);
        }
        self.label();
        for step in gaits.steps(gait) {
            match *step {
                Step::Join(join) => {
                    self.close(join);
                    self.label();
                }
                Step::JoinWithin(join) => self.close(join),
                Step::Branch(index, join) => self.branch(join, now, index as u8),
                Step::Enter(index, function) => {
                    self.enter(Instance { time: Time(now), index }, function);
                }
            }
        }
        if gait.branch != NO_JOIN {
            self.branch(gait.branch, now, gait.branch_index);
        }
    }

    #[inline]
    fn label(&mut self) {
        let top = self.state.thread.open.last();
        self.tell.label(top.time, top.index);
    }

    #[inline]
    fn branch(&mut self, join: JoinId, time: u32, index: u8) {
        self.state.thread.open.branch(Open { join, time, index });
    }

    #[inline]
    fn close(&mut self, join: JoinId) {
        self.state.thread.open.close(join);
        if self.state.thread.open.last().join == BACK {
            self.close_below(join);
        }
    }

    /// A join of what was open when control jumped back: all up to it is closed.
    #[cold]
    fn close_below(&mut self, join: JoinId) {
        let base = self.state.thread.live().last().map_or(0, |l| l.base);
        let lowest = self.state.thread.open.from(base).iter().position(|o| o.join == join);
        if let Some(n) = lowest {
            self.state.thread.open.truncate(base + n);
        }
    }

    #[inline]
    fn leave(&mut self, gaits: &Gaits, gait: &Gait, now: u32, captured: Captured<'_>) {
        let last = gait.last(now);
        let address = |slot: u32| gaits.slot(slot).address(captured);
        match gait.end {
            End::On => {}
            End::Jump => self.state.thread.jumped = Some(last),
            End::Call(slot) => {
                let slot = address(slot);
                self.leave_dead_frames(slot);
                self.push_frame(Some(last), Some(last), slot, false);
            }
            End::Return(slot) => self.ret(address(slot), last),
        }
    }

    /// Activations whose return address is below the stack pointer are over,
    /// though they never returned.
    #[inline]
    fn leave_dead_frames(&mut self, slot: u64) {
        while let [.., _, top] = self.state.thread.live() {
            if top.slot > slot || far_apart(top.slot, slot) {
                break;
            }
            self.state.thread.pop();
        }
    }

    fn ret(&mut self, slot: u64, from: Instance) {
        if let [.., _, top] = self.state.thread.live()
            && top.slot == slot
        {
            return self.state.thread.pop();
        }
        self.leave_dead_frames(slot);
        let outermost = self.state.thread.live().len() == 1;
        if self.late && outermost && self.state.spawned_by().is_none() {
            // Back to whoever called before the first record: another activation, of
            // which nobody knows why it runs.
            return self.state.thread.truncate(0);
        }
        // A return to where no call was: as a jump.
        self.state.thread.jumped = Some(from);
    }

    /// Something that happened behind the last instruction.
    #[cold]
    fn event(&mut self, event: &Event, last: Option<Instance>) {
        match event {
            Event::Thread(to) => {
                self.state.sent = None;
                self.state.switch(*to);
            }
            Event::Signal { signal, sp, .. } => {
                self.state.thread.jumped = None;
                // One that comes with the return from the call that asked for it is its.
                let sent = self.state.sent.filter(|sent| sent.0 == *signal && Some(sent.1) == last);
                self.push_frame(None, sent.map(|(_, call)| call), *sp, true);
            }
            Event::Call(call) => {
                self.state.sent = sends(call).zip(last);
                if let (Some(thread), Some(last)) = (call.spawned, last) {
                    self.state.spawned.insert(thread, last);
                }
                if call.number == RT_SIGRETURN {
                    self.end_handler(call.sp);
                }
                if call.number == EXECVE && call.result == 0 {
                    self.state.thread.truncate(0);
                }
            }
            Event::FsBase(_) | Event::GsBase(_) | Event::Gather(_) | Event::Mapped(_) => {}
            Event::CallWaits | Event::Fault { .. } => {}
        }
    }

    /// A handler is over, unless it has returned: by its frame on the stack it is told from those
    /// that it interrupted.
    fn end_handler(&mut self, sp: u64) {
        let ends = |l: &Live| l.handler && l.slot == sp.wrapping_sub(8);
        if let Some(n) = self.state.thread.live().iter().rposition(ends) {
            self.state.thread.truncate(n);
        }
    }
}

const RT_SIGRETURN: u32 = 15;
const EXECVE: u32 = 59;
const KILL: u32 = 62;
const RT_SIGQUEUEINFO: u32 = 129;
const TKILL: u32 = 200;
const TGKILL: u32 = 234;
const RT_TGSIGQUEUEINFO: u32 = 297;

/// The signal that a call asks for, if it does.
fn sends(call: &Call) -> Option<i32> {
    let signal = match call.number {
        KILL | TKILL | RT_SIGQUEUEINFO => call.args[1],
        TGKILL | RT_TGSIGQUEUEINFO => call.args[2],
        _ => return None,
    };
    (call.result == 0).then_some(signal as i32)
}

/// Two addresses that cannot be on one stack.
fn far_apart(a: u64, b: u64) -> bool {
    a != u64::MAX && a.abs_diff(b) > 1 << 30
}
