//! Why did each instruction run? By search, not by an algorithm.
//!
//! A branch decides whether an instruction runs until control comes to a place that
//! every way on from the branch leads to. That place is found by taking places away
//! one by one and looking whether the end can still be reached. Among the branches
//! of the same activation that still decide, the latest is the reason; if there is
//! none, the call.

use super::run::{Run, Step};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use program::flow::Boundary;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use trace::{Event, Instance, Trace};

/// The instruction, by its number in the run, that an instruction runs because of.
pub type Parents = Vec<Option<usize>>;

/// Where control can go.
pub struct Ways<'a> {
    trace: &'a Trace,
    /// Targets that were seen, by the address of an indirect jump.
    seen: HashMap<u64, BTreeSet<u64>>,
    generated: HashMap<u64, Vec<u8>>,
    known: HashMap<u64, Option<Meeting>>,
}

/// Where the ways out of a branch meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Here.
    At(u64),
    /// Only at the function's end.
    End,
}

/// The ways on from one instruction within its function.
struct Next {
    targets: BTreeSet<u64>,
    leaves: bool,
}

impl<'a> Ways<'a> {
    /// Collects what was seen in a run.
    pub fn new(trace: &'a Trace, run: &Run, events: &HashSet<usize>) -> Ways<'a> {
        let mut seen: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for (n, pair) in run.steps.windows(2).enumerate() {
            let i = &trace.code.info(pair[0].instruction).instruction;
            let indirect = i.flow_control() == FlowControl::IndirectBranch;
            if indirect && switched_stack(trace, &run.steps[..n]) {
                continue;
            }
            if indirect && pair[0].thread == pair[1].thread && !events.contains(&(n + 1)) {
                seen.entry(i.ip()).or_default().insert(pair[1].address);
            }
        }
        let infos = trace.code.instructions().map(|(_, info)| info);
        let generated = infos
            .filter(|info| trace.images.bytes(info.address()).is_empty())
            .map(|info| (info.address(), info.bytes().to_vec()))
            .collect();
        Ways { trace, seen, generated, known: HashMap::new() }
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let bytes = match self.trace.images.bytes(at) {
            [] => self.generated.get(&at)?,
            bytes => bytes,
        };
        let i = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!i.is_invalid()).then_some(i)
    }

    /// Does a jump there stay in the function? A conditional one does also in a part
    /// of it that was moved away.
    fn stays(&self, target: u64, own: u64, conditional: bool) -> bool {
        let begins = match self.trace.program.boundary(target) {
            Boundary::None => false,
            Boundary::Part => !conditional,
            Boundary::Function => true,
        };
        target == own || !self.trace.graph.is_entry(target) && !begins
    }

    /// Is the target in another function, by symbols or call frames?
    fn is_elsewhere(&self, at: u64, target: u64) -> bool {
        let program = &self.trace.program;
        match (program.extent_start(at), program.extent_start(target)) {
            (Some(from), Some(to)) => {
                from != to
                    && (program.boundary(to) != Boundary::Part || self.trace.graph.is_entry(to))
            }
            _ => false,
        }
    }

    /// Does a call come back? Not if it is known not to, nor where the function ends with it.
    fn comes_back(&self, call: &Instruction) -> bool {
        let program = &self.trace.program;
        let own = program.extent_start(call.ip());
        let ends = own.is_some() && own != program.extent_start(call.next_ip());
        !ends && !program.is_noreturn(call.near_branch_target())
    }

    fn next(&self, at: u64, own: u64) -> Option<Next> {
        let i = self.decode(at)?;
        let mut next = Next { targets: BTreeSet::new(), leaves: false };
        let mut jumps: BTreeSet<u64> = BTreeSet::new();
        let conditional = i.flow_control() == FlowControl::ConditionalBranch;
        match i.flow_control() {
            FlowControl::Return | FlowControl::Exception => next.leaves = true,
            _ if i.mnemonic() == Mnemonic::Hlt => next.leaves = true,
            FlowControl::ConditionalBranch => {
                next.targets.insert(i.next_ip());
                jumps.insert(i.near_branch_target());
            }
            FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                jumps.insert(i.near_branch_target());
            }
            FlowControl::IndirectBranch => match self.seen.get(&at) {
                Some(seen) => jumps.extend(seen),
                None => next.leaves = true,
            },
            _ if is_call(&i) && !self.comes_back(&i) => next.leaves = true,
            _ => _ = next.targets.insert(i.next_ip()),
        }
        let indirect = i.flow_control() == FlowControl::IndirectBranch;
        for target in jumps {
            let elsewhere = indirect && self.is_elsewhere(at, target);
            if self.stays(target, own, conditional) && !elsewhere {
                next.targets.insert(target);
            } else {
                next.leaves = true;
            }
        }
        Some(next)
    }

    /// Where the ways out of an instruction meet; `None` if it has but one.
    pub fn meeting(&mut self, branch: u64) -> Option<Meeting> {
        if let Some(known) = self.known.get(&branch) {
            return *known;
        }
        let found = self.find(branch);
        self.known.insert(branch, found);
        found
    }

    fn find(&self, branch: u64) -> Option<Meeting> {
        let own = self.trace.function_of(branch)?;
        let next = self.next(branch, own)?;
        if next.targets.len() + usize::from(next.leaves) < 2 {
            return None;
        }
        let ends = self.endless(branch, own);
        let way = self.way_out(branch, own, None, &ends)?;
        let around = |place: &&u64| self.way_out(branch, own, Some(**place), &ends).is_none();
        Some(way.iter().find(around).map_or(Meeting::End, |place| Meeting::At(*place)))
    }

    /// A loop without an end is taken to end at its last block. The first addresses of
    /// those.
    fn endless(&self, branch: u64, own: u64) -> BTreeSet<u64> {
        let (mut before, mut leaders) = (HashMap::<u64, Vec<u64>>::new(), BTreeSet::new());
        let (mut reached, mut good) = (HashSet::from([branch]), Vec::new());
        let mut work = vec![branch];
        while let Some(at) = work.pop() {
            let next = self.next(at, own);
            if next.as_ref().is_none_or(|n| n.leaves || n.targets.is_empty()) {
                good.push(at);
            }
            let targets = next.map_or(BTreeSet::new(), |n| n.targets);
            let behind = self.decode(at).map_or(0, |i| i.next_ip());
            for target in &targets {
                before.entry(*target).or_default().push(at);
                if targets.len() > 1 || *target != behind {
                    leaders.insert(*target);
                }
                if reached.insert(*target) {
                    work.push(*target);
                }
            }
        }
        let mut ends = BTreeSet::new();
        let mut leaves: HashSet<u64> = HashSet::new();
        loop {
            while let Some(at) = good.pop() {
                if leaves.insert(at) {
                    good.extend(before.get(&at).into_iter().flatten());
                }
            }
            let Some(last) = leaders.iter().rev().find(|at| !leaves.contains(at)) else {
                return ends;
            };
            ends.insert(*last);
            good.push(*last);
        }
    }

    /// The places on a shortest way from behind a branch to the function's end that
    /// does not pass `without`.
    fn way_out(
        &self,
        branch: u64,
        own: u64,
        without: Option<u64>,
        ends: &BTreeSet<u64>,
    ) -> Option<Vec<u64>> {
        let mut before: HashMap<u64, u64> = HashMap::new();
        let mut queue = VecDeque::from([branch]);
        while let Some(at) = queue.pop_front() {
            // Where no code is, the function ends too.
            let next = self.next(at, own);
            let over = next.as_ref().is_none_or(|n| n.leaves || n.targets.is_empty());
            if over || ends.contains(&at) {
                let mut way = Vec::new();
                let mut place = at;
                while place != branch || way.is_empty() {
                    way.push(place);
                    match before.get(&place) {
                        Some(earlier) => place = *earlier,
                        None => break,
                    }
                }
                way.retain(|place| *place != branch);
                way.reverse();
                return Some(way);
            }
            for target in next.map_or(BTreeSet::new(), |n| n.targets) {
                if Some(target) != without && target != branch && !before.contains_key(&target) {
                    before.insert(target, at);
                    queue.push_back(target);
                }
            }
        }
        None
    }
}

/// An activation of a function.
struct Activation {
    number: usize,
    /// Where its return address lies.
    slot: u64,
    function: u64,
    why: Option<usize>,
    /// Branches that still decide: which, and where they end.
    open: Vec<(usize, Option<Meeting>)>,
    handler: bool,
}

#[derive(Default)]
struct Thread {
    live: Vec<Activation>,
    last: Option<usize>,
}

/// Goes through a run.
struct Search<'a> {
    run: &'a Run,
    trace: &'a Trace,
    ways: Ways<'a>,
    threads: HashMap<u32, Thread>,
    spawned: HashMap<u32, usize>,
    /// The step before this one asked for this signal.
    sent: Option<(usize, u64)>,
    parents: Parents,
    /// The number of the activation that each step belongs to.
    activations: Vec<usize>,
    begun: usize,
}

const RT_SIGRETURN: u32 = 15;
const EXECVE: u32 = 59;
/// No stack is larger.
const STACK: u64 = 1 << 30;

/// Finds the reason of every step, and its activation.
pub fn parents(trace: &Trace, run: &Run) -> (Parents, Vec<usize>) {
    let number = |at: &trace::Time| run.numbers.step(Instance { time: *at, index: 0 });
    let events: Vec<(usize, &Event)> = trace
        .events
        .iter()
        .filter(|(at, _)| at.0 < trace.records.len())
        .map(|(at, event)| (number(at), event))
        .collect();
    let places = events.iter().map(|(n, _)| *n).collect();
    let mut search = Search {
        run,
        trace,
        ways: Ways::new(trace, run, &places),
        threads: HashMap::new(),
        spawned: HashMap::new(),
        sent: None,
        parents: Vec::new(),
        activations: Vec::new(),
        begun: 0,
    };
    let mut events = events.into_iter().peekable();
    let mut current = 0;
    for n in 0..run.steps.len() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= n) {
            if let Event::Thread(to) = event {
                current = *to;
            }
            search.event(current, event);
        }
        search.step(n);
    }
    (search.parents, search.activations)
}

impl Search<'_> {
    fn step(&mut self, n: usize) {
        let run = self.run;
        let step = &run.steps[n];
        let mut thread = self.threads.remove(&step.thread).unwrap_or_default();
        self.arrive(&mut thread, step);
        let top = thread.live.last_mut().expect("arrived");
        // What joins here, and all that was opened since, is over; of what was open before a
        // jump back only if nothing is that was opened behind it.
        let joins = |open: &(usize, Option<Meeting>)| open.1 == Some(Meeting::At(step.address));
        let back = top.open.iter().rposition(|open| open.1.is_none()).map_or(0, |back| back + 1);
        if let Some(first) = top.open[back..].iter().position(joins) {
            top.open.truncate(back + first);
        }
        if top.open.len() == back
            && let Some(first) = top.open.iter().position(joins)
        {
            top.open.truncate(first);
        }
        self.parents.push(top.open.last().map_or(top.why, |open| Some(open.0)));
        self.activations.push(top.number);
        let i = &self.trace.code.info(step.instruction).instruction;
        // Other code may have lain there at another time.
        let branches = matches!(
            i.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::IndirectBranch
        );
        if let Some(meeting) = branches.then(|| self.ways.meeting(step.address)).flatten() {
            // Of those that end at the same place the latest decides; but not of those
            // before a jump back, which ends with them.
            let back = top.open.iter().rposition(|open| open.1.is_none());
            let mut since = top.open.split_off(back.map_or(0, |back| back + 1));
            since.retain(|open| open.1 != Some(meeting));
            top.open.extend(since);
            top.open.push((n, Some(meeting)));
        }
        if is_call(i) {
            let slot = step.sp.wrapping_sub(8);
            self.push(&mut thread, slot, Some(n), false);
        }
        thread.last = Some(n);
        self.threads.insert(step.thread, thread);
    }

    fn push(&mut self, thread: &mut Thread, slot: u64, why: Option<usize>, handler: bool) {
        self.begun += 1;
        let (number, open) = (self.begun, Vec::new());
        thread.live.push(Activation { number, slot, function: 0, why, open, handler });
    }

    /// Which activation does the step belong to?
    fn arrive(&mut self, thread: &mut Thread, step: &Step) {
        let function = self.trace.function_of(step.address).unwrap_or(step.address);
        if thread.live.is_empty() {
            let why = self.spawned.get(&step.thread).copied();
            self.push(thread, u64::MAX, why, false);
        }
        let from = thread.last.filter(|last| self.transfers(*last, step));
        let before = thread.live.len();
        if from.is_some() {
            while thread.live.len() > 1 && over(thread.live.last().expect("some"), step.sp) {
                thread.live.pop();
            }
        }
        let top = thread.live.last_mut().expect("some");
        if top.function == 0 {
            top.function = function;
        }
        let Some(from) = from else { return };
        let jumps = self.instruction(from).near_branch_target() != 0;
        if jumps && function != step.address {
            // Code that several functions share.
            return;
        }
        let left = before - thread.live.len();
        let returns = self.instruction(from).flow_control() == FlowControl::Return;
        let top = thread.live.last_mut().expect("some");
        if returns && left == 1 || left == 0 && top.function == function {
            return;
        }
        let known = thread.live.iter().rposition(|a| a.function == function);
        let known = known.filter(|_| function != step.address);
        if left > 0 && thread.live.last().is_some_and(|top| top.function == function) {
            // Back into an activation that had called others.
            thread.live.last_mut().expect("some").open.push((from, None));
        } else if let Some(n) = known.filter(|_| self.is_elsewhere(thread, step)) {
            // The same, from another stack.
            thread.live.truncate(n + 1);
            thread.live[n].open.push((from, None));
        } else {
            let top = thread.live.last_mut().expect("some");
            // A call that takes the place of the one before.
            top.function = function;
            top.open.clear();
            top.why = Some(from);
        }
    }

    /// Does the step use another stack than the latest activation?
    fn is_elsewhere(&self, thread: &Thread, step: &Step) -> bool {
        thread.live.last().is_some_and(|top| step.sp.abs_diff(top.slot) >= STACK)
    }

    /// May the step have been reached from another activation or function?
    fn transfers(&self, last: usize, step: &Step) -> bool {
        let i = self.instruction(last);
        match i.flow_control() {
            FlowControl::Return | FlowControl::IndirectBranch => true,
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                step.address == i.near_branch_target()
            }
            _ => false,
        }
    }

    fn instruction(&self, n: usize) -> &Instruction {
        &self.trace.code.info(self.run.steps[n].instruction).instruction
    }

    /// What has returned is over, though no step of its caller follows.
    fn end_returned(&self, thread: &mut Thread) {
        let Some(last) = thread.last else { return };
        let slot = self.run.steps[last].sp;
        let returned = self.instruction(last).flow_control() == FlowControl::Return;
        if returned && thread.live.len() > 1 {
            thread.live.pop_if(|top| top.slot == slot);
        }
    }

    fn event(&mut self, current: u32, event: &Event) {
        let mut thread = self.threads.remove(&current).unwrap_or_default();
        match event {
            Event::Signal { sp, signal, .. } => {
                self.end_returned(&mut thread);
                let asked = self.sent == Some((self.parents.len(), *signal as u64));
                let why = thread.last.filter(|last| asked && last + 1 == self.parents.len());
                self.push(&mut thread, *sp, why, true);
                thread.last = None;
            }
            Event::Call(call) => {
                let which = match call.number {
                    62 | 129 | 200 => Some(1),
                    234 | 297 => Some(2),
                    _ => None,
                };
                let asked = which.filter(|_| call.result == 0).map(|n: usize| call.args[n]);
                self.sent = asked.map(|signal| (self.parents.len(), signal));
                if let (Some(new), Some(last)) = (call.spawned, thread.last) {
                    self.spawned.insert(new, last);
                }
                if call.number == RT_SIGRETURN {
                    // The frame begins where the handler's return address was.
                    let frame = call.sp.wrapping_sub(8);
                    let left = |a: &Activation| a.handler && a.slot == frame;
                    if let Some(n) = thread.live.iter().rposition(left) {
                        thread.live.truncate(n);
                    }
                    thread.last = None;
                }
                if call.number == EXECVE && call.result == 0 {
                    thread = Thread::default();
                }
            }
            _ => {}
        }
        self.threads.insert(current, thread);
    }
}

/// Was the stack pointer set in the block that these steps end with? Then it jumps to another
/// function's middle, whatever else is known.
fn switched_stack(trace: &Trace, steps: &[Step]) -> bool {
    let instructions = steps.iter().rev().map(|s| &trace.code.info(s.instruction).instruction);
    instructions
        .take_while(|i| i.flow_control() == FlowControl::Next)
        .any(|i| i.mnemonic() == Mnemonic::Mov && i.op0_register() == Register::RSP)
}

fn is_call(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        && i.mnemonic() != Mnemonic::Syscall
}

/// Its return address is below the stack pointer.
fn over(activation: &Activation, sp: u64) -> bool {
    activation.slot < sp && sp - activation.slot < STACK
}
