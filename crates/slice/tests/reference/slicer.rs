//! Slices by one walk back over all steps, with nothing but sets.
//!
//! Several slices are made in one walk: beside everything that is looked for stands
//! for which of them, as a set of bits. No bit ever changes what another one gets.

use super::bypass::{Bypasses, Pairs};
use super::control;
use super::run::{Run, Step};
use super::wanted::{AT_ONCE, Slices, Spot, Wanted};
use engine::lockstep::probe::Place;
use iced_x86::Instruction;
use program::effects::{Cell, Cells};
use std::collections::{BTreeMap, BTreeSet};
use trace::{Direction, Event, Instance, Trace};

/// Answers questions about one run.
pub struct Reference<'a> {
    pub trace: &'a Trace,
    pub run: &'a Run,
    parents: control::Parents,
    /// System calls, by the number of the step before which their effects are there.
    pub calls: BTreeMap<usize, Vec<usize>>,
    /// Signals, by the number of the first step behind them: several may come at once.
    signals: BTreeMap<usize, Vec<usize>>,
    /// Saved registers and bound symbols, unless bookkeeping is followed too.
    bypasses: Option<Bypasses>,
}

impl<'a> Reference<'a> {
    /// Prepares.
    pub fn new(trace: &'a Trace, run: &'a Run, pairs: Option<&dyn Pairs>) -> Reference<'a> {
        let (parents, activations) = control::parents(trace, run);
        let mut calls: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, site) in trace.spans.calls.iter().enumerate() {
            let at = if site.at.0 < trace.records.len() {
                run.numbers.step(Instance { time: site.at, index: 0 })
            } else {
                run.steps.len()
            };
            calls.entry(at).or_default().push(n);
        }
        let first = |s: &trace::SignalSite| run.numbers.step(Instance { time: s.at, index: 0 });
        let mut signals: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, site) in trace.spans.signals.iter().enumerate() {
            if site.at.0 < trace.records.len() {
                signals.entry(first(site)).or_default().push(n);
            }
        }
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
        self.slices(&[criterion]).remove(0)
    }

    /// The same for several steps.
    pub fn slices(&self, criteria: &[usize]) -> Vec<BTreeSet<usize>> {
        criteria.chunks(AT_ONCE).flat_map(|some| self.slices_at_once(some)).collect()
    }

    fn slices_at_once(&self, criteria: &[usize]) -> Vec<BTreeSet<usize>> {
        let mut wanted = Wanted::default();
        let last = criteria.iter().max().map_or(0, |last| last + 1);
        for n in (0..last).rev() {
            self.kernel(&mut wanted, n + 1);
            self.step(&mut wanted, n);
            for (bit, _) in criteria.iter().enumerate().filter(|(_, c)| **c == n) {
                self.begin(&mut wanted, n, 1 << bit);
            }
        }
        let of = |bit: usize| {
            let own = wanted.found.iter().filter(|(_, slices)| **slices >> bit & 1 != 0);
            own.map(|(n, _)| *n).collect()
        };
        (0..criteria.len()).map(of).collect()
    }

    /// What the kernel did before a step, the latest first.
    fn kernel(&self, wanted: &mut Wanted, step: usize) {
        let spans = &self.trace.spans;
        let calls = self.calls.get(&step).into_iter().flatten();
        let signals = self.signals.get(&step).into_iter().flatten();
        let mut done: Vec<(usize, Option<usize>, Option<usize>)> = calls
            .map(|n| (spans.calls[*n].event, Some(*n), None))
            .chain(signals.map(|n| (spans.signals[*n].event, None, Some(*n))))
            .collect();
        done.sort_unstable_by_key(|(event, ..)| std::cmp::Reverse(*event));
        for (_, call, signal) in done {
            call.into_iter().for_each(|n| self.call(wanted, n));
            signal.into_iter().for_each(|n| self.signal(wanted, n));
        }
    }

    fn begin(&self, wanted: &mut Wanted, criterion: usize, slice: Slices) {
        wanted.include(criterion, slice, self.parents[criterion]);
        let step = &self.run.steps[criterion];
        let outputs: Vec<Place> = self.from(step).keys().copied().collect();
        for element in 0..step.elements.max(1) {
            for place in &outputs {
                self.want_sources(wanted, step, place, element, slice);
            }
        }
        let site = |n: &usize| self.run.numbers.step(self.trace.spans.calls[*n].instance);
        let calls = self.trace.spans.calls.len();
        if let Some(n) = (0..calls).find(|n| site(n) == criterion) {
            self.begin_call(wanted, n, slice);
        }
    }

    /// A system call as a criterion.
    fn begin_call(&self, wanted: &mut Wanted, n: usize, slice: Slices) {
        let site = &self.trace.spans.calls[n];
        let call = self.trace.call(site);
        for cell in slice::arguments(call.number).iter() {
            self.want(wanted, Spot::Register(site.thread, cell.number()), slice);
        }
        if let Some(t) = self.trace.objects.transfer(n) {
            if t.direction == Direction::Write {
                let pieces = t.pieces.iter().flat_map(|(start, len)| *start..start + len);
                wanted.add_all(pieces.map(Spot::Memory), slice);
            } else {
                let bytes = (t.offset..t.offset + t.len()).map(|o| Spot::Kept(t.object.0, o));
                wanted.add_all(bytes, slice);
            }
        }
        if let Some(moves) = self.trace.objects.moves(n).filter(|moves| moves.uses) {
            wanted.add(Spot::Kept(moves.object.0, u64::MAX), slice);
        }
        let [old, old_len, new_len, ..] = call.args;
        if call.number == MREMAP && call.result > 0 && call.result as u64 != old {
            wanted.add_all((old..old + old_len.min(new_len)).map(Spot::Memory), slice);
        }
        wanted.add_all(path_of(call), slice);
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
                let size = u64::from(known.operands[usize::from(*operand)].size());
                let moved = (size * element) as i64 * if step.down { -1 } else { 1 };
                let start = step.operands[usize::from(*operand)].wrapping_add_signed(moved);
                Some(Spot::Memory(start.wrapping_add_signed((*offset).into())))
            }
            Place::Next => None,
        }
    }

    fn want_sources(
        &self,
        wanted: &mut Wanted,
        step: &Step,
        place: &Place,
        element: u64,
        slices: Slices,
    ) {
        let i = &self.trace.code.info(step.instruction).instruction;
        let repeats = is_string(i) && (i.has_rep_prefix() || i.has_repne_prefix());
        for source in &self.from(step)[place] {
            // Memory would keep what it has if there were no element: this one there was.
            if repeats && source == place && matches!(place, Place::Memory(..)) {
                continue;
            }
            if let Some(spot) = self.spot(step, source, element) {
                self.want(wanted, spot, slices);
            }
        }
    }

    fn want(&self, wanted: &mut Wanted, spot: Spot, slices: Slices) {
        let never = Cells::gpr(4, 8).union(Cell::FS.into()).union(Cell::GS.into());
        if let Spot::Register(_, cell) = spot
            && self.bypasses.is_some()
            && never.contains(Cell::new(cell))
        {
            return;
        }
        wanted.add(spot, slices);
    }

    fn is_linkage(&self, n: usize) -> bool {
        self.bypasses.as_ref().is_some_and(|bypasses| bypasses.linkage.contains(&n))
    }

    /// Saved registers and bound symbols: what is wanted behind is wanted before.
    fn bypass(&self, wanted: &mut Wanted, bypasses: &Bypasses, n: usize) {
        let thread = self.run.steps[n].thread;
        if let Some((save, register)) = bypasses.saves.get(&n) {
            for spot in (0..8).map(|b| Spot::Register(thread, u16::from(*register) * 8 + b)) {
                let slices = wanted.take(&spot);
                wanted.saved.entry(*save).or_default().push((spot, slices));
            }
        }
        if let Some(first) = bypasses.bindings.get(&n) {
            let taken = wanted.take_thread(thread);
            wanted.unbound.insert(*first, taken);
        }
    }

    fn step(&self, wanted: &mut Wanted, n: usize) {
        if let Some(bypasses) = &self.bypasses {
            self.bypass(wanted, bypasses, n);
        }
        if self.bypasses.as_ref().is_some_and(|b| b.frames.contains(&n)) {
            let thread = self.run.steps[n].thread;
            (40..48).for_each(|cell| _ = wanted.take(&Spot::Register(thread, cell)));
        }
        self.define(wanted, n);
        let back = [wanted.saved.remove(&n), wanted.unbound.remove(&n)];
        wanted.give_back(back.into_iter().flatten().flatten());
    }

    fn define(&self, wanted: &mut Wanted, n: usize) {
        let step = &self.run.steps[n];
        let demanded = wanted.branches.remove(&n).unwrap_or(0);
        let mut included = demanded;
        let i = &self.trace.code.info(step.instruction).instruction;
        let repeats = is_string(i) && (i.has_rep_prefix() || i.has_repne_prefix());
        let compares = stops_early(i);
        for element in (0..step.elements.max(1)).rev() {
            let nothing = repeats && step.elements == 0;
            let mut outputs: Vec<(&Place, Slices)> = Vec::new();
            for place in self.from(step).keys() {
                if nothing && matches!(place, Place::Memory(..)) {
                    continue;
                }
                let slices = self.spot(step, place, element).map_or(0, |spot| wanted.take(&spot));
                if slices != 0 {
                    outputs.push((place, slices));
                }
            }
            for (place, slices) in outputs {
                included |= slices;
                // It ends at zero wherever it began.
                let counter = matches!(place, Place::Register(8..16));
                let last = element + 1 >= step.elements;
                if repeats && counter && last && !compares {
                    continue;
                }
                self.want_sources(wanted, step, place, element, slices);
            }
        }
        if included == 0 {
            return;
        }
        if repeats && compares {
            // How many elements there were depends on what each was.
            for element in 0..step.elements {
                self.want_sources(wanted, step, &ZERO_FLAG, element, included);
            }
        }
        if self.from(step).contains_key(&Place::Next) && !self.is_linkage(n) {
            self.want_sources(wanted, step, &Place::Next, 0, demanded);
        }
        wanted.include(n, included, self.parents[n]);
    }

    /// What the kernel did: its result, memory it wrote, bytes it keeps.
    fn call(&self, wanted: &mut Wanted, n: usize) {
        let site = &self.trace.spans.calls[n];
        let call = self.trace.call(site);
        let at = self.run.numbers.step(site.instance);
        let transfer = self.trace.objects.transfer(n);
        let moves = self.trace.objects.moves(n);
        let mut defined = self.take_defined(wanted, n);
        if call.number == RT_SIGRETURN {
            self.signal_return(wanted, site.thread, call.sp);
        }
        let result = (0..8).fold(0, |all, b| all | wanted.take(&Spot::Register(site.thread, b)));
        if let Some(thread) = call.spawned {
            self.inherit(wanted, thread, site.thread);
        }
        defined.retain(|(_, slices)| *slices != 0);
        let included = defined.iter().fold(result, |all, (_, slices)| all | slices);
        if included == 0 {
            return;
        }
        wanted.include(at, included, self.parents[at]);
        for cell in slice::arguments(call.number).iter() {
            self.want(wanted, Spot::Register(site.thread, cell.number()), included);
        }
        if let Some(moves) = moves.filter(|moves| moves.uses) {
            wanted.add(Spot::Kept(moves.object.0, u64::MAX), included);
        }
        for (spot, slices) in &defined {
            let other = transfer.and_then(|t| match spot {
                Spot::Memory(a) if t.direction == Direction::Read => {
                    t.offset_of(*a).map(|o| Spot::Kept(t.object.0, o))
                }
                Spot::Kept(_, o) => t.address_of(*o).map(Spot::Memory),
                _ => None,
            });
            wanted.add_all(other, *slices);
            if let (MREMAP, Spot::Memory(a)) = (call.number, spot) {
                let offset = a.wrapping_sub(call.result as u64);
                if offset < call.args[1].min(call.args[2]) && call.result as u64 != call.args[0] {
                    wanted.add(Spot::Memory(call.args[0] + offset), *slices);
                }
            }
        }
        wanted.add_all(path_of(call), result);
    }

    /// What is wanted of all that a call defines but its result.
    fn take_defined(&self, wanted: &mut Wanted, n: usize) -> Vec<(Spot, Slices)> {
        let call = self.trace.call(&self.trace.spans.calls[n]);
        let memory = call.written.iter().chain(&call.mapped);
        let mut spots: Vec<Spot> =
            memory.flat_map(|(start, len)| wanted.within(*start, *len)).collect();
        let transfer = self.trace.objects.transfer(n);
        if let Some(t) = transfer.filter(|t| t.direction == Direction::Write) {
            spots.extend((t.offset..t.offset + t.len()).map(|o| Spot::Kept(t.object.0, o)));
        }
        let moves = self.trace.objects.moves(n);
        spots.extend(moves.map(|moves| Spot::Kept(moves.object.0, u64::MAX)));
        spots.into_iter().map(|spot| (spot, wanted.take(&spot))).collect()
    }

    /// A handler ends. General registers are in its frame; the rest is as it was.
    fn signal_return(&self, wanted: &mut Wanted, thread: u32, sp: u64) {
        for (spot, slices) in wanted.take_thread(thread) {
            let Spot::Register(_, cell) = spot else { continue };
            if let Some(place) = GREGS.iter().position(|r| u16::from(*r) == cell / 8) {
                let at = sp + 40 + 8 * place as u64 + u64::from(cell % 8);
                wanted.add(Spot::Memory(at), slices);
            } else if cell <= Cell::X87.number() {
                wanted.interrupted.entry((thread, sp)).or_default().push((spot, slices));
            } else {
                wanted.add(spot, slices);
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
            (first..first + 8).for_each(|cell| _ = wanted.take(&register(cell)));
        }
        wanted.take(&register(Cell::DF.number()));
        let kept = wanted.interrupted.remove(&(site.thread, sp + 8));
        wanted.give_back(kept.into_iter().flatten());
        for address in written.iter().flat_map(|(start, len)| *start..start + len) {
            let slices = wanted.take(&Spot::Memory(address));
            let offset = address.wrapping_sub(sp + 48);
            if let Some(r) = GREGS.get((offset / 8) as usize) {
                let cell = u16::from(*r) * 8 + (offset % 8) as u16;
                self.want(wanted, register(cell), slices);
            }
        }
    }

    /// A new thread has its parent's registers, but for the result.
    fn inherit(&self, wanted: &mut Wanted, child: u32, parent: u32) {
        for (spot, slices) in wanted.take_thread(child) {
            if let Spot::Register(_, cell @ 8..) = spot {
                wanted.add(Spot::Register(parent, cell), slices);
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
pub fn numbers(run: &Run, instances: &slice::Instances) -> BTreeSet<usize> {
    instances.0.iter().map(|(at, ..)| run.numbers.step(*at)).collect()
}
