//! The pass over all records, with a stack of open branches per activation.

use super::open::{Open, Stack};
use super::runs::Runs;
use super::shape::{End, FunctionId, Gait, Gaits, JoinId, NO_FUNCTION, NO_JOIN, Step};
use super::{Control, Frame, FrameId, INDEX, Instance, NOBODY, Shape};
use crate::code::PathId;
use crate::records::{Records, Time};
use engine::large::{Ahead, Room};
use engine::trace::{Call, Event};
use std::collections::HashMap;

/// The entry of a call: closed by the return alone.
const CALL: JoinId = u32::MAX;
/// A jump back into an activation that had called others: closed together with
/// what it jumped into.
const BACK: JoinId = u32::MAX - 1;

struct Live {
    frame: FrameId,
    /// First of its open branches.
    base: usize,
    /// Where its return address lies.
    slot: u64,
    function: FunctionId,
    /// The one that was called, and the one before the last jump to another.
    earlier: [FunctionId; 2],
    handler: bool,
}

#[derive(Default)]
struct Thread {
    open: Stack,
    live: Vec<Live>,
    /// The last record ended in a jump that may leave the function.
    jumped: Option<Instance>,
}

pub(super) struct Pass {
    pub control: Control,
    threads: HashMap<u32, Thread>,
    current: u32,
    thread: Thread,
    /// The call that started each thread.
    spawned: HashMap<u32, Instance>,
    /// The signal that a thread asked for last, and where.
    sent: Option<(i32, Instance)>,
    /// Calls that were made before the first record are not known.
    late: bool,
}

impl Pass {
    pub fn new(shapes: Vec<Shape>, late: bool) -> Pass {
        let control = Control {
            shapes,
            times: Vec::new(),
            indices: Vec::new(),
            frame_of: Runs::default(),
            frames: Vec::new(),
            index: Vec::new(),
        };
        Pass {
            control,
            threads: HashMap::new(),
            current: u32::MAX,
            thread: Thread::default(),
            spawned: HashMap::new(),
            sent: None,
            late,
        }
    }

    pub fn run(&mut self, gaits: &Gaits, records: &Records, events: &[(Time, Event)]) {
        let ahead = self.reserve(records);
        let mut events = events.iter().peekable();
        let mut now = 0u32;
        let mut last = None;
        for n in 0..records.segments().len() {
            let all = records.captured(n);
            let mut captured = &all[..];
            let mut next_event = events.peek().map_or(NOBODY, |(at, _)| at.0);
            for &path in records.paths_of(n) {
                let gait = &gaits.of[path.0 as usize];
                if next_event <= now {
                    let last = last.map(|path: PathId| gaits.of[path.0 as usize].last(now - 1));
                    while let Some((_, event)) = events.next_if(|(at, _)| at.0 <= now) {
                        self.event(event, last);
                    }
                    next_event = events.peek().map_or(NOBODY, |(at, _)| at.0);
                }
                if now.is_multiple_of(INDEX as u32) {
                    self.control.mark();
                }
                self.record(gaits, path, gait, now, captured);
                captured = &captured[usize::from(gait.captures)..];
                last = Some(path);
                now += 1;
            }
            self.note(&ahead);
        }
    }

    /// Makes room once: growing on the way would copy most of it several times. How many labels
    /// and activations there will be is a guess that is seldom too low; what is not used is never touched.
    fn reserve(&mut self, records: &Records) -> Ahead {
        let control = &mut self.control;
        let records = records.len() as usize;
        control.frame_of.reserve(records);
        engine::large::reserve(&mut control.times, 2 * records);
        engine::large::reserve(&mut control.indices, 2 * records);
        engine::large::reserve(&mut control.frames, records / 4);
        Ahead::begin(vec![
            control.frame_of.room(),
            Room::of(&control.times),
            Room::of(&control.indices),
            Room::of(&control.frames),
        ])
    }

    fn note(&self, ahead: &Ahead) {
        self.control.frame_of.note(ahead, 0);
        ahead.filled(1, &self.control.times);
        ahead.filled(2, &self.control.indices);
        ahead.filled(3, &self.control.frames);
    }

    #[inline]
    fn record(&mut self, gaits: &Gaits, path: PathId, gait: &Gait, now: u32, captured: &[u64]) {
        self.arrive(gait, || gaits.stacks[path.0 as usize].map(|slot| slot.address(captured)));
        self.walk(gaits, gait, now);
        self.leave(gaits, gait, now, captured);
    }

    /// Control comes to a path: is it still in the same activation?
    #[inline]
    fn arrive(&mut self, gait: &Gait, sp: impl Fn() -> Option<u64>) {
        let jumped = self.thread.jumped.take();
        if self.thread.live.is_empty() {
            self.begin_thread(gait.function);
        }
        let top = self.thread.live.last_mut().expect("just made");
        if top.function == NO_FUNCTION {
            top.function = gait.function;
            top.earlier = [gait.function; 2];
        } else if top.function != gait.function
            && let Some(from) = jumped
        {
            self.jump_between(gait, from, sp());
        }
    }

    fn begin_thread(&mut self, function: FunctionId) {
        let call = self.spawned.get(&self.current).copied();
        self.push_frame(call, call, u64::MAX, false);
        let top = self.thread.live.last_mut().expect("just pushed");
        (top.function, top.earlier) = (function, [function; 2]);
    }

    /// A jump to another function: a tail call, or the way out of several. From a part that
    /// was moved away from a function, control comes back to the same activation, though there
    /// may be others of that function below it. Of several, it is the innermost that the stack
    /// pointer has not left.
    #[cold]
    fn jump_between(&mut self, gait: &Gait, from: Instance, sp: Option<u64>) {
        let left = |slot: u64| sp.is_some_and(|sp| slot < sp && !far_apart(slot, sp));
        // An exception may be caught in a part that was moved away, and there is no activation
        // of that: it takes the place of the one that caught it.
        let over = self.thread.live.iter().rev().take_while(|l| left(l.slot)).count();
        let own = |l: &Live| l.function == gait.function && !left(l.slot);
        let known = self.thread.live.iter().rposition(own);
        let top = self.thread.live.last().expect("a thread has an activation");
        let comes_back = top.earlier.contains(&gait.function);
        match known.filter(|_| !gait.is_entry && !comes_back) {
            Some(n) => {
                // What the activations above had open is closed; what this one had
                // open is closed when control reaches a join of it.
                if let Some(above) = self.thread.live.get(n + 1) {
                    self.thread.open.truncate(above.base);
                }
                self.thread.live.truncate(n + 1);
                self.open(BACK, Some(from));
            }
            None => {
                let kept = (self.thread.live.len() - over).max(1);
                if let Some(above) = self.thread.live.get(kept) {
                    self.thread.open.truncate(above.base);
                }
                self.thread.live.truncate(kept);
                self.enter(from, gait.function);
            }
        }
    }

    /// A function takes the place of the one that jumped to it.
    fn enter(&mut self, from: Instance, function: FunctionId) {
        let top = self.thread.live.last_mut().expect("a thread has an activation");
        top.earlier[1] = std::mem::replace(&mut top.function, function);
        let base = top.base;
        self.thread.open.truncate(base);
        self.open(CALL, Some(from));
    }

    fn open(&mut self, join: JoinId, at: Option<Instance>) {
        self.thread.open.push(Open {
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
        let id = FrameId(self.control.frames.len() as u32);
        let (caller, depth) = match self.thread.live.last() {
            Some(l) => (l.frame, self.control.frames[l.frame.0 as usize].depth + 1),
            None => (id, 0),
        };
        self.control.frames.push(Frame { caller, call, depth });
        let base = self.thread.open.len();
        self.thread.live.push(Live {
            frame: id,
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
        let frame = self.thread.live.last().expect("arrived").frame;
        self.control.frame_of.push(now, frame);
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
        let top = self.thread.open.last();
        self.control.times.push(top.time);
        self.control.indices.push(top.index);
    }

    #[inline]
    fn branch(&mut self, join: JoinId, time: u32, index: u8) {
        self.thread.open.branch(Open { join, time, index });
    }

    #[inline]
    fn close(&mut self, join: JoinId) {
        self.thread.open.close(join);
        if self.thread.open.last().join == BACK {
            self.close_below(join);
        }
    }

    /// A join of what was open when control jumped back: all up to it is closed.
    #[cold]
    fn close_below(&mut self, join: JoinId) {
        let base = self.thread.live.last().map_or(0, |l| l.base);
        let lowest = self.thread.open.from(base).iter().position(|o| o.join == join);
        if let Some(n) = lowest {
            self.thread.open.truncate(base + n);
        }
    }

    #[inline]
    fn leave(&mut self, gaits: &Gaits, gait: &Gait, now: u32, captured: &[u64]) {
        let last = gait.last(now);
        let address = |slot: u32| gaits.slots[slot as usize].address(captured);
        match gait.end {
            End::On => {}
            End::Jump => self.thread.jumped = Some(last),
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
        while let [.., _, top] = &self.thread.live[..] {
            if top.slot > slot || far_apart(top.slot, slot) {
                break;
            }
            let base = top.base;
            self.thread.live.pop();
            self.thread.open.truncate(base);
        }
    }

    fn ret(&mut self, slot: u64, from: Instance) {
        if let [.., _, top] = &self.thread.live[..]
            && top.slot == slot
        {
            let base = top.base;
            self.thread.live.pop();
            self.thread.open.truncate(base);
            return;
        }
        self.leave_dead_frames(slot);
        if self.late && self.thread.live.len() == 1 && !self.spawned.contains_key(&self.current) {
            // Back to whoever called before the first record: another activation, of
            // which nobody knows why it runs.
            self.thread.live.clear();
            self.thread.open.clear();
            return;
        }
        // A return to where no call was: as a jump.
        self.thread.jumped = Some(from);
    }

    /// Something that happened behind the last instruction.
    #[cold]
    fn event(&mut self, event: &Event, last: Option<Instance>) {
        match event {
            Event::Thread(to) => {
                self.sent = None;
                self.switch(*to);
            }
            Event::Signal { signal, sp, .. } => {
                self.thread.jumped = None;
                // One that comes with the return from the call that asked for it is its.
                let sent = self.sent.filter(|sent| sent.0 == *signal && Some(sent.1) == last);
                self.push_frame(None, sent.map(|(_, call)| call), *sp, true);
            }
            Event::Call(call) => {
                self.sent = sends(call).zip(last);
                if let (Some(thread), Some(last)) = (call.spawned, last) {
                    self.spawned.insert(thread, last);
                }
                if call.number == RT_SIGRETURN {
                    self.end_handler(call.sp);
                }
                if call.number == EXECVE && call.result == 0 {
                    self.thread.live.clear();
                    self.thread.open.clear();
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
        if let Some(n) = self.thread.live.iter().rposition(ends) {
            let base = self.thread.live[n].base;
            self.thread.live.truncate(n);
            self.thread.open.truncate(base);
        }
    }

    fn switch(&mut self, to: u32) {
        let next = self.threads.remove(&to).unwrap_or_default();
        let before = std::mem::replace(&mut self.thread, next);
        self.threads.insert(self.current, before);
        self.current = to;
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
