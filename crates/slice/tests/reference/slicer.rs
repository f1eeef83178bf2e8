//! Slices by one walk back over all steps, with nothing but sets.

use super::bypass::{Bypasses, Pairs};
use super::control;
use super::run::{Run, Step};
use engine::lockstep::probe::Place;
use iced_x86::Instruction;
use program::effects::{Cell, Cells};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use trace::{Direction, Event, Instance, Trace};

/// A place in a run: a register of a thread, a byte of memory, or one that the
/// kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spot {
    /// Thread and cell.
    Register(u32, u16),
    /// Address.
    Memory(u64),
    /// Object and offset.
    Kept(u32, u64),
}

/// Answers questions about one run.
pub struct Reference<'a> {
    pub trace: &'a Trace,
    pub run: &'a Run,
    parents: control::Parents,
    /// System calls, by the number of the step before which their effects are there.
    pub calls: BTreeMap<usize, Vec<usize>>,
    /// Signals, by the number of the handler's first step.
    signals: BTreeMap<usize, usize>,
    /// Saved registers and bound symbols, unless bookkeeping is followed too.
    bypasses: Option<Bypasses>,
}

/// What is still looked for.
#[derive(Default)]
struct Wanted {
    spots: HashSet<Spot>,
    branches: BTreeSet<usize>,
    found: BTreeSet<usize>,
    /// Registers as they are before a step that saved them.
    saved: HashMap<usize, Vec<Spot>>,
    /// What is wanted as it was when a signal came, by thread and frame.
    interrupted: HashMap<(u32, u64), Vec<Spot>>,
    /// Registers as they are before a symbol's binding, by its first step.
    unbound: HashMap<usize, Vec<Spot>>,
}

impl<'a> Reference<'a> {
    /// Prepares.
    pub fn new(trace: &'a Trace, run: &'a Run, pairs: Option<&dyn Pairs>) -> Reference<'a> {
        let (parents, activations) = control::parents(trace, run);
        let mut calls: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, site) in trace.spans.calls.iter().enumerate() {
            let at = if site.at.0 < trace.records.len() {
                trace.number(Instance { time: site.at, index: 0 }) as usize
            } else {
                run.steps.len()
            };
            calls.entry(at).or_default().push(n);
        }
        let first =
            |s: &trace::SignalSite| trace.number(Instance { time: s.at, index: 0 }) as usize;
        let sites = trace.spans.signals.iter().filter(|s| s.at.0 < trace.records.len());
        let signals = sites.enumerate().map(|(n, s)| (first(s), n)).collect();
        let mut all = Reference { trace, run, parents, calls, signals, bypasses: None };
        all.bypasses = pairs.map(|pairs| Bypasses::find(&all, &activations, pairs));
        all
    }

    /// The reason that a step ran.
    pub fn parent(&self, step: usize) -> Option<usize> {
        self.parents[step]
    }

    /// The numbers of all steps that a step depends on, and its own.
    pub fn slice(&self, criterion: usize) -> BTreeSet<usize> {
        let mut wanted = Wanted::default();
        self.begin(&mut wanted, criterion);
        for n in (0..criterion).rev() {
            // What the kernel did before the next step.
            if let Some(signal) = self.signals.get(&(n + 1)) {
                self.signal(&mut wanted, *signal);
            }
            for call in self.calls.get(&(n + 1)).into_iter().flatten().rev() {
                self.call(&mut wanted, *call);
            }
            self.step(&mut wanted, n);
        }
        wanted.found
    }

    fn begin(&self, wanted: &mut Wanted, criterion: usize) {
        // What the kernel did before the criterion is walked over first of all.
        wanted.found.insert(criterion);
        let step = &self.run.steps[criterion];
        let outputs: Vec<Place> = self.from(step).keys().copied().collect();
        for element in 0..step.elements.max(1) {
            for place in &outputs {
                self.want_sources(wanted, step, place, element);
            }
        }
        wanted.branches.extend(self.parents[criterion]);
        let site = |n: &usize| self.trace.number(self.trace.spans.calls[*n].instance);
        let calls = self.trace.spans.calls.len();
        if let Some(n) = (0..calls).find(|n| site(n) as usize == criterion) {
            self.begin_call(wanted, n);
        }
    }

    /// A system call as a criterion.
    fn begin_call(&self, wanted: &mut Wanted, n: usize) {
        let site = &self.trace.spans.calls[n];
        let call = self.trace.call(site);
        for cell in slice::arguments(call.number).iter() {
            self.want(wanted, Spot::Register(site.thread, cell.number()));
        }
        let transfer = self.trace.objects.transfer(n);
        for (start, len) in
            transfer.filter(|t| t.direction == Direction::Write).iter().flat_map(|t| &t.pieces)
        {
            wanted.spots.extend((*start..start + len).map(Spot::Memory));
        }
        wanted.spots.extend(path_of(call));
    }

    pub fn from(&self, step: &Step) -> &super::relation::From {
        let known = self.run.known[step.instruction.0 as usize].as_ref();
        &known.unwrap_or_else(|| panic!("nothing is known of {:#x}", step.address)).from
    }

    /// Where an instruction's place is in one of its executions.
    pub fn spot(&self, step: &Step, place: &Place, element: u64) -> Option<Spot> {
        match place {
            Place::Register(n) => Some(Spot::Register(step.thread, *n)),
            Place::Memory(operand, offset) => {
                let known = self.run.known[step.instruction.0 as usize].as_ref()?;
                let size = u64::from(known.operands[usize::from(*operand)].size);
                let moved = (size * element) as i64 * if step.down { -1 } else { 1 };
                let start = step.operands[usize::from(*operand)].wrapping_add_signed(moved);
                Some(Spot::Memory(start.wrapping_add_signed((*offset).into())))
            }
            Place::Next => None,
        }
    }

    fn want_sources(&self, wanted: &mut Wanted, step: &Step, place: &Place, element: u64) {
        for source in &self.from(step)[place] {
            if let Some(spot) = self.spot(step, source, element) {
                self.want(wanted, spot);
            }
        }
    }

    fn want(&self, wanted: &mut Wanted, spot: Spot) {
        let never = Cells::gpr(4, 8).union(Cell::FS.into()).union(Cell::GS.into());
        if let Spot::Register(_, cell) = spot
            && self.bypasses.is_some()
            && never.contains(Cell::new(cell))
        {
            return;
        }
        wanted.spots.insert(spot);
    }

    fn is_linkage(&self, n: usize) -> bool {
        self.bypasses.as_ref().is_some_and(|bypasses| bypasses.linkage.contains(&n))
    }

    /// Saved registers and bound symbols: what is wanted behind is wanted before.
    fn bypass(&self, wanted: &mut Wanted, bypasses: &Bypasses, n: usize) {
        let thread = self.run.steps[n].thread;
        if let Some((save, register)) = bypasses.saves.get(&n) {
            let cells = (0..8).map(|b| Spot::Register(thread, u16::from(*register) * 8 + b));
            let taken: Vec<Spot> = cells.filter(|spot| wanted.spots.remove(spot)).collect();
            wanted.saved.entry(*save).or_default().extend(taken);
        }
        if let Some(first) = bypasses.bindings.get(&n) {
            let own = |spot: &Spot| matches!(spot, Spot::Register(t, _) if *t == thread);
            let taken: Vec<Spot> = wanted.spots.iter().copied().filter(own).collect();
            wanted.spots.retain(|spot| !own(spot));
            wanted.unbound.insert(*first, taken);
        }
    }

    fn step(&self, wanted: &mut Wanted, n: usize) {
        if let Some(bypasses) = &self.bypasses {
            self.bypass(wanted, bypasses, n);
        }
        if self.bypasses.as_ref().is_some_and(|b| b.frames.contains(&n)) {
            let thread = self.run.steps[n].thread;
            (40..48).for_each(|cell| _ = wanted.spots.remove(&Spot::Register(thread, cell)));
        }
        self.define(wanted, n);
        let back = [wanted.saved.remove(&n), wanted.unbound.remove(&n)];
        wanted.spots.extend(back.into_iter().flatten().flatten());
    }

    fn define(&self, wanted: &mut Wanted, n: usize) {
        let step = &self.run.steps[n];
        let demanded = wanted.branches.remove(&n);
        let mut included = demanded;
        let i = &self.trace.code.info(step.instruction).instruction;
        let repeats = is_string(i) && (i.has_rep_prefix() || i.has_repne_prefix());
        let compares = stops_early(i);
        for element in (0..step.elements.max(1)).rev() {
            let nothing = repeats && step.elements == 0;
            let outputs: Vec<&Place> = self
                .from(step)
                .keys()
                .filter(|place| !(nothing && matches!(place, Place::Memory(..))))
                .filter(|place| {
                    self.spot(step, place, element).is_some_and(|s| wanted.spots.contains(&s))
                })
                .collect();
            for place in &outputs {
                let spot = self.spot(step, place, element).expect("it was wanted");
                wanted.spots.remove(&spot);
            }
            for place in &outputs {
                included = true;
                // It ends at zero wherever it began.
                let counter = matches!(place, Place::Register(8..16));
                let last = element + 1 >= step.elements;
                if repeats && counter && last && !compares {
                    continue;
                }
                self.want_sources(wanted, step, place, element);
            }
        }
        if !included {
            return;
        }
        if repeats && compares {
            // How many elements there were depends on what each was.
            for element in 0..step.elements {
                self.want_sources(wanted, step, &ZERO_FLAG, element);
            }
        }
        wanted.found.insert(n);
        if demanded && self.from(step).contains_key(&Place::Next) && !self.is_linkage(n) {
            self.want_sources(wanted, step, &Place::Next, 0);
        }
        wanted.branches.extend(self.parents[n]);
    }

    /// What the kernel did: its result, memory it wrote, bytes it keeps.
    fn call(&self, wanted: &mut Wanted, n: usize) {
        let site = &self.trace.spans.calls[n];
        let call = self.trace.call(site);
        let at = self.trace.number(site.instance) as usize;
        let transfer = self.trace.objects.transfer(n);
        let memory = call.written.iter().chain(&call.mapped);
        let mut defined: Vec<Spot> = memory
            .flat_map(|(start, len)| (*start..start + len).map(Spot::Memory))
            .filter(|spot| wanted.spots.contains(spot))
            .collect();
        if let Some(t) = transfer.filter(|t| t.direction == Direction::Write) {
            let kept = (t.offset..t.offset + t.len()).map(|o| Spot::Kept(t.object.0, o));
            defined.extend(kept.filter(|spot| wanted.spots.contains(spot)));
        }
        let moves = self.trace.objects.moves(n);
        if let Some(moves) = moves {
            let position = Spot::Kept(moves.object.0, u64::MAX);
            defined.extend(Some(position).filter(|spot| wanted.spots.contains(spot)));
        }
        if call.number == RT_SIGRETURN {
            self.signal_return(wanted, site.thread, call.sp);
        }
        let result: Vec<Spot> = (0..8).map(|b| Spot::Register(site.thread, b)).collect();
        let result_wanted = result.iter().any(|spot| wanted.spots.contains(spot));
        defined.iter().chain(&result).for_each(|spot| _ = wanted.spots.remove(spot));
        if let Some(thread) = call.spawned {
            self.inherit(wanted, thread, site.thread);
        }
        if defined.is_empty() && !result_wanted {
            return;
        }
        wanted.found.insert(at);
        wanted.branches.extend(self.parents[at]);
        for cell in slice::arguments(call.number).iter() {
            self.want(wanted, Spot::Register(site.thread, cell.number()));
        }
        if let Some(moves) = moves.filter(|moves| moves.uses) {
            wanted.spots.insert(Spot::Kept(moves.object.0, u64::MAX));
        }
        for spot in &defined {
            let other = transfer.and_then(|t| match spot {
                Spot::Memory(a) if t.direction == Direction::Read => {
                    t.offset_of(*a).map(|o| Spot::Kept(t.object.0, o))
                }
                Spot::Kept(_, o) => t.address_of(*o).map(Spot::Memory),
                _ => None,
            });
            wanted.spots.extend(other);
            if let (MREMAP, Spot::Memory(a)) = (call.number, spot) {
                let offset = a.wrapping_sub(call.result as u64);
                if offset < call.args[1] && call.result as u64 != call.args[0] {
                    wanted.spots.insert(Spot::Memory(call.args[0] + offset));
                }
            }
        }
        if result_wanted {
            wanted.spots.extend(path_of(call));
        }
    }

    /// A handler ends. General registers are in its frame; the rest is as it was.
    fn signal_return(&self, wanted: &mut Wanted, thread: u32, sp: u64) {
        for spot in wanted.spots.clone() {
            let Spot::Register(of, cell) = spot else { continue };
            if of != thread {
                continue;
            }
            if let Some(place) = GREGS.iter().position(|r| u16::from(*r) == cell / 8) {
                wanted.spots.remove(&spot);
                let at = sp + 40 + 8 * place as u64 + u64::from(cell % 8);
                wanted.spots.insert(Spot::Memory(at));
            } else if cell <= Cell::X87.number() {
                wanted.spots.remove(&spot);
                wanted.interrupted.entry((thread, sp)).or_default().push(spot);
            }
        }
    }

    /// A handler begins. Registers go to its frame, and it gets arguments.
    fn signal(&self, wanted: &mut Wanted, n: usize) {
        let site = &self.trace.spans.signals[n];
        let Event::Signal { written, sp, .. } = &self.trace.events[site.event].1 else {
            panic!("a signal is a signal");
        };
        let register = |cell: u16| Spot::Register(site.thread, cell);
        for first in [0, 16, 48, 56] {
            (first..first + 8).for_each(|cell| _ = wanted.spots.remove(&register(cell)));
        }
        wanted.spots.remove(&register(Cell::DF.number()));
        let kept = wanted.interrupted.remove(&(site.thread, sp + 8));
        wanted.spots.extend(kept.into_iter().flatten());
        for address in written.iter().flat_map(|(start, len)| *start..start + len) {
            if !wanted.spots.remove(&Spot::Memory(address)) {
                continue;
            }
            let offset = address.wrapping_sub(sp + 48);
            if let Some(r) = GREGS.get((offset / 8) as usize) {
                self.want(wanted, register(u16::from(*r) * 8 + (offset % 8) as u16));
            }
        }
    }

    /// A new thread has its parent's registers, but for the result.
    fn inherit(&self, wanted: &mut Wanted, child: u32, parent: u32) {
        let own: Vec<Spot> = wanted.spots.iter().copied().collect();
        for spot in own {
            if let Spot::Register(thread, cell) = spot
                && thread == child
            {
                wanted.spots.remove(&spot);
                if cell >= 8 {
                    wanted.spots.insert(Spot::Register(parent, cell));
                }
            }
        }
    }
}

const RT_SIGRETURN: u32 = 15;
const MREMAP: u32 = 25;
/// General registers in the order of a signal's frame.
const GREGS: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];

const ZERO_FLAG: Place = Place::Register(Cell::ZF.number());

fn is_string(i: &Instruction) -> bool {
    i.is_string_instruction()
}

/// Does it end when it has found something?
fn stops_early(i: &Instruction) -> bool {
    use iced_x86::Mnemonic::*;
    let compares =
        matches!(i.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq);
    is_string(i) && compares
}

/// The bytes of the path that a call names.
fn path_of(call: &trace::Call) -> impl Iterator<Item = Spot> {
    let second = matches!(call.number, 257 | 263 | 437);
    let start = call.args[usize::from(second)];
    let len = call.path.as_ref().map_or(0, |path| path.len() as u64 + 1);
    (start..start + len).map(Spot::Memory)
}

/// The steps of a fast slice.
pub fn numbers(trace: &Trace, instances: &slice::Instances) -> BTreeSet<usize> {
    instances.0.iter().map(|(at, ..)| trace.number(*at) as usize).collect()
}
