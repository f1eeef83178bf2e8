//! Why did this run at all? For every instance, the branch or call whose outcome
//! brought control there.
//!
//! One pass over the records, with a stack of open branches per activation of a
//! function (Xin and Zhang's online algorithm): a branch is open until control
//! reaches its join, and whatever runs meanwhile runs because of the branch opened
//! last. Where no branch of its own is open, a function runs because of its call.
//!
//! Activations are found by where return addresses lie on the stack, so that
//! `longjmp`, exceptions and tail calls end what they leave.

use crate::code::{Code, Flow, Op, Operand, Path, PathId};
use crate::records::{Records, Time};
use engine::trace::Event;
use program::flow::Flow as Graph;
use std::collections::HashMap;

/// An instruction's execution: the n-th of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// When.
    pub time: Time,
    /// Which instruction of the path.
    pub index: u16,
}

/// Number of an activation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// An activation of a function.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The one that called it.
    pub caller: FrameId,
    /// The call; `None` for a thread's or handler's first.
    pub call: Option<Instance>,
    /// Calls between it and its thread's beginning.
    pub depth: u32,
}

/// Number of a join address; the rest are special.
type JoinId = u32;
/// Nowhere but at the function's end.
const AT_END: JoinId = 0;
/// The entry of a call: closed by the return alone.
const CALL: JoinId = u32::MAX;
/// A jump back into an activation that had called others: closed together with
/// what it jumped into.
const BACK: JoinId = u32::MAX - 1;
const NOBODY: u32 = u32::MAX;

/// What a path does to open branches, in order.
#[derive(Clone, Copy)]
enum Step {
    /// Control reaches a join.
    Join(JoinId),
    /// A branch opens.
    Branch(u16, JoinId),
    /// A jump goes to another function, which takes this one's place.
    Enter(u16, u64),
}

/// From an instruction on, parents are these.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: u16,
    /// A branch of the same record, or a label of it.
    parent: Parent,
}

#[derive(Clone, Copy, Debug)]
enum Parent {
    Here(u16),
    Label(u16),
}

/// How a path ends.
#[derive(Clone, Copy)]
enum End {
    On,
    Call(Operand),
    Return(Operand),
    /// To another function, or to a computed place.
    Jump,
}

struct Shape {
    /// The join it begins at.
    first: Option<JoinId>,
    steps: Vec<Step>,
    groups: Vec<Group>,
    labels: u16,
    end: End,
    function: u64,
    is_entry: bool,
    len: u16,
    captures: u16,
}

/// The answer, for every record.
pub struct Control {
    shapes: Vec<Shape>,
    times: Vec<u32>,
    indices: Vec<u8>,
    frame_of: Vec<FrameId>,
    frames: Vec<Frame>,
    /// Number of labels before every so many records.
    index: Vec<u64>,
}

const INDEX: usize = 512;

impl Control {
    /// Goes through all records once.
    pub fn find(
        code: &Code,
        records: &Records,
        events: &[(Time, Event)],
        graph: &Graph,
    ) -> Control {
        let mut joins = HashMap::new();
        let shapes = code.paths().map(|(_, path)| shape(code, path, graph, &mut joins)).collect();
        let mut pass = Pass::new(shapes);
        pass.run(records, events);
        pass.control
    }

    /// Number of labels that a path has.
    #[inline]
    pub fn labels(&self, path: PathId) -> usize {
        self.shapes[path.0 as usize].labels.into()
    }

    /// Labels before a record.
    pub fn first_label(&self, records: &Records, at: Time) -> usize {
        let at = at.0 as usize;
        let mut n = self.index[at / INDEX] as usize;
        for t in at / INDEX * INDEX..at {
            n += self.labels(records.path(Time(t as u32)));
        }
        n
    }

    /// Number of labels in all.
    pub fn label_count(&self) -> usize {
        self.times.len()
    }

    /// The instances that a record's labels name.
    #[inline]
    pub fn label_instances(
        &self,
        path: PathId,
        first_label: usize,
    ) -> impl Iterator<Item = Option<Instance>> + '_ {
        (first_label..first_label + self.labels(path)).map(|n| {
            let (time, index) = (self.times[n], u16::from(self.indices[n]));
            (time != NOBODY).then_some(Instance { time: Time(time), index })
        })
    }

    /// Bytes in memory.
    pub fn size(&self) -> u64 {
        let frames = self.frames.len() * std::mem::size_of::<Frame>();
        (5 * self.times.len() + 4 * self.frame_of.len() + frames + 8 * self.index.len()) as u64
    }

    /// Number of activations.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The parent of an instruction of a record, given the record's first label.
    #[inline]
    pub fn parent(&self, path: PathId, at: Instance, first_label: usize) -> Option<Instance> {
        let shape = &self.shapes[path.0 as usize];
        let group = shape.groups.iter().rev().find(|g| g.first <= at.index)?;
        match group.parent {
            Parent::Here(index) => Some(Instance { time: at.time, index }),
            Parent::Label(n) => {
                let n = first_label + usize::from(n);
                let time = self.times[n];
                let index = self.indices[n].into();
                (time != NOBODY).then_some(Instance { time: Time(time), index })
            }
        }
    }

    /// The activation that a record belongs to.
    #[inline]
    pub fn frame_of(&self, at: Time) -> FrameId {
        self.frame_of[at.0 as usize]
    }

    /// An activation.
    #[inline]
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }
}

fn shape(code: &Code, path: &Path, graph: &Graph, joins: &mut HashMap<u64, JoinId>) -> Shape {
    if joins.is_empty() {
        let all = graph.joins().filter_map(|(_, join)| join);
        for join in all {
            let next = joins.len() as JoinId + 1;
            joins.entry(join).or_insert(next);
        }
        // Never empty again, even without joins.
        joins.insert(0, AT_END);
    }
    let start = code.start(path);
    let mut shape = Shape {
        first: None,
        steps: Vec::new(),
        groups: vec![Group { first: 0, parent: Parent::Label(0) }],
        labels: 1,
        end: End::On,
        function: graph.function_of(start).unwrap_or(start),
        is_entry: graph.is_entry(start),
        len: path.len,
        captures: path.captures,
    };
    let ops: Vec<&Op> = code.ops(path).iter().chain(code.faulting(path)).collect();
    let mut function = shape.function;
    for (n, op) in ops.iter().enumerate() {
        let info = code.info(op.instruction);
        if let Some(join) = joins.get(&info.address()).filter(|j| **j != AT_END) {
            if n == 0 {
                shape.first = Some(*join);
            } else {
                shape.steps.push(Step::Join(*join));
                let parent = Parent::Label(shape.labels);
                shape.groups.push(Group { first: n as u16, parent });
                shape.labels += 1;
            }
        }
        if n < path.len.into()
            && let Some(join) = graph.join(info.address())
        {
            let join = join.and_then(|j| joins.get(&j).copied()).unwrap_or(AT_END);
            shape.steps.push(Step::Branch(n as u16, join));
            shape.groups.push(Group { first: n as u16 + 1, parent: Parent::Here(n as u16) });
        }
        let next = ops.get(n + 1).map(|op| code.info(op.instruction).address());
        if info.flow == Flow::Jump
            && let Some(next) = next.filter(|next| begins_function(graph, *next))
            && next != function
        {
            function = next;
            shape.steps.push(Step::Enter(n as u16, function));
            shape.groups.push(Group { first: n as u16 + 1, parent: Parent::Here(n as u16) });
        }
    }
    shape.end = end(code, path, graph, function);
    shape
}

/// Does a function, or a part that was moved away from one, begin here? Code that
/// several share is not another function to any of them.
fn begins_function(graph: &Graph, address: u64) -> bool {
    graph.function_of(address) == Some(address)
}

fn end(code: &Code, path: &Path, graph: &Graph, function: u64) -> End {
    let Some(last) = code.ops(path).last() else { return End::On };
    let info = code.info(last.instruction);
    let slot = || code.operands(last).iter().find(|o| is_return_slot(o)).copied();
    match info.flow {
        Flow::Call => slot().map_or(End::On, End::Call),
        Flow::Return => slot().map_or(End::On, End::Return),
        Flow::Indirect => End::Jump,
        Flow::Jump | Flow::Branch => {
            let target = info.instruction.near_branch_target();
            let leaves = begins_function(graph, target) && target != function;
            if leaves { End::Jump } else { End::On }
        }
        Flow::Next | Flow::System => End::On,
    }
}

/// The operand through RSP, 8 bytes: where the return address is.
fn is_return_slot(o: &Operand) -> bool {
    let a = o.access();
    a.size == 8 && a.address.base == Some(4) && a.address.index.is_none()
}

struct Open {
    join: JoinId,
    time: u32,
    index: u8,
}

struct Live {
    frame: FrameId,
    /// First of its open branches.
    base: usize,
    /// Where its return address lies.
    slot: u64,
    function: u64,
    handler: bool,
}

#[derive(Default)]
struct Thread {
    open: Vec<Open>,
    live: Vec<Live>,
    bases: crate::code::Bases,
    /// The last record ended in a jump that may leave the function.
    jumped: Option<Instance>,
}

struct Pass {
    control: Control,
    threads: HashMap<u32, Thread>,
    current: u32,
    thread: Thread,
    /// The call that started each thread.
    spawned: HashMap<u32, Instance>,
    last: Option<Instance>,
}

impl Pass {
    fn new(shapes: Vec<Shape>) -> Pass {
        let control = Control {
            shapes,
            times: Vec::new(),
            indices: Vec::new(),
            frame_of: Vec::new(),
            frames: Vec::new(),
            index: Vec::new(),
        };
        Pass {
            control,
            threads: HashMap::new(),
            current: u32::MAX,
            thread: Thread::default(),
            spawned: HashMap::new(),
            last: None,
        }
    }

    fn run(&mut self, records: &Records, events: &[(Time, Event)]) {
        self.control.frame_of.reserve(records.len() as usize);
        let mut events = events.iter().peekable();
        let mut now = 0u32;
        for (n, segment) in records.segments().iter().enumerate() {
            let all = records.captured(n);
            let mut captured = &all[..];
            for &path in &segment.paths {
                while let Some((_, event)) = events.next_if(|(at, _)| at.0 <= now) {
                    self.event(event);
                }
                captured = self.record(path, now, captured);
                now += 1;
            }
        }
    }

    fn record<'a>(&mut self, path: PathId, now: u32, captured: &'a [u64]) -> &'a [u64] {
        if (now as usize).is_multiple_of(INDEX) {
            self.control.index.push(self.control.times.len() as u64);
        }
        let shapes = std::mem::take(&mut self.control.shapes);
        let shape = &shapes[path.0 as usize];
        self.arrive(shape);
        self.walk(shape, now);
        let used = self.leave(shape, now, captured);
        self.control.shapes = shapes;
        &captured[used..]
    }

    /// Control comes to a path: is it still in the same activation?
    #[inline]
    fn arrive(&mut self, shape: &Shape) {
        let jumped = self.thread.jumped.take();
        if self.thread.live.is_empty() {
            self.begin_thread(shape.function);
        }
        let top = self.thread.live.last_mut().expect("just made");
        if top.function == 0 {
            top.function = shape.function;
        } else if top.function != shape.function
            && let Some(from) = jumped
        {
            self.jump_between(shape, from);
        }
    }

    fn begin_thread(&mut self, function: u64) {
        let call = self.spawned.get(&self.current).copied();
        self.push_frame(call, call, u64::MAX, false);
        self.thread.live.last_mut().expect("just pushed").function = function;
    }

    /// A jump to another function: a tail call, or the way out of several.
    fn jump_between(&mut self, shape: &Shape, from: Instance) {
        let known = self.thread.live.iter().rposition(|l| l.function == shape.function);
        match known.filter(|_| !shape.is_entry) {
            Some(n) => {
                // What the activations above had open is closed; what this one had
                // open is closed when control reaches a join of it.
                if let Some(above) = self.thread.live.get(n + 1) {
                    self.thread.open.truncate(above.base);
                }
                self.thread.live.truncate(n + 1);
                self.open(BACK, Some(from));
            }
            None => self.enter(from, shape.function),
        }
    }

    /// A function takes the place of the one that jumped to it.
    fn enter(&mut self, from: Instance, function: u64) {
        let top = self.thread.live.last_mut().expect("a thread has an activation");
        top.function = function;
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
        self.thread.live.push(Live { frame: id, base, slot, function: 0, handler });
        self.open(CALL, why);
    }

    #[inline]
    fn walk(&mut self, shape: &Shape, now: u32) {
        let frame = self.thread.live.last().expect("arrived").frame;
        self.control.frame_of.push(frame);
        if let Some(join) = shape.first {
            self.close(join);
        }
        self.label();
        for step in &shape.steps {
            match *step {
                Step::Join(join) => {
                    self.close(join);
                    self.label();
                }
                Step::Branch(index, join) => self.branch(join, now, index),
                Step::Enter(index, function) => {
                    self.enter(Instance { time: Time(now), index }, function);
                }
            }
        }
    }

    #[inline]
    fn label(&mut self) {
        let top = self.thread.open.last().expect("an activation has a first entry");
        self.control.times.push(top.time);
        self.control.indices.push(top.index);
    }

    #[inline]
    fn close(&mut self, join: JoinId) {
        while self.thread.open.last().is_some_and(|o| o.join == join) {
            self.thread.open.pop();
        }
        if self.thread.open.last().is_some_and(|o| o.join == BACK) {
            self.close_below(join);
        }
    }

    /// A join of what was open when control jumped back: all up to it is closed.
    fn close_below(&mut self, join: JoinId) {
        let base = self.thread.live.last().map_or(0, |l| l.base);
        let lowest = self.thread.open[base..].iter().position(|o| o.join == join);
        if let Some(n) = lowest {
            self.thread.open.truncate(base + n);
        }
    }

    #[inline]
    fn branch(&mut self, join: JoinId, time: u32, index: u16) {
        let index = index as u8;
        match self.thread.open.last_mut() {
            // Both close at the same place: nothing can belong to the older one
            // alone any more.
            Some(top) if top.join == join => *top = Open { join, time, index },
            _ => self.thread.open.push(Open { join, time, index }),
        }
    }

    #[inline]
    fn leave(&mut self, shape: &Shape, now: u32, captured: &[u64]) -> usize {
        let last = Instance { time: Time(now), index: shape.len.saturating_sub(1) };
        self.last = Some(last);
        match &shape.end {
            End::On => {}
            End::Jump => self.thread.jumped = Some(last),
            End::Call(slot) => {
                let slot = slot.address(captured, self.thread.bases).unwrap_or(0);
                self.leave_dead_frames(slot);
                self.push_frame(Some(last), Some(last), slot, false);
            }
            End::Return(slot) => {
                let slot = slot.address(captured, self.thread.bases).unwrap_or(0);
                self.ret(slot, last);
            }
        }
        shape.captures.into()
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
        // A return to where no call was: as a jump.
        self.thread.jumped = Some(from);
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Thread(to) => self.switch(*to),
            Event::FsBase(base) => self.thread.bases.fs = *base,
            Event::GsBase(base) => self.thread.bases.gs = *base,
            Event::Signal { sp, .. } => {
                self.thread.jumped = None;
                self.push_frame(None, None, *sp, true);
            }
            Event::Call(call) => {
                if let (Some(thread), Some(last)) = (call.spawned, self.last) {
                    self.spawned.insert(thread, last);
                }
                if call.number == RT_SIGRETURN {
                    self.end_handler();
                }
                if call.number == EXECVE && call.result == 0 {
                    self.thread.live.clear();
                    self.thread.open.clear();
                }
            }
            Event::CallWaits | Event::Fault { .. } | Event::Gather(_) | Event::Mapped(_) => {}
        }
    }

    fn end_handler(&mut self) {
        if let Some(n) = self.thread.live.iter().rposition(|l| l.handler) {
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

/// Two addresses that cannot be on one stack.
fn far_apart(a: u64, b: u64) -> bool {
    a != u64::MAX && a.abs_diff(b) > 1 << 30
}
