//! What was done to the blocks of the heap that must not be done to them?

use crate::accesses::{Access, accesses};
use crate::heap::{self, Call};
use position::{At, PlaceId, Run};
use report::MisuseKind as Kind;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;
use trace::{Instance, InstructionId, Range};

/// So many bytes behind a block belong to nobody else.
const BEHIND: u64 = 64;
/// Of blocks larger than this it is not known which bytes were set.
const LARGE: u64 = 1 << 20;

/// A wrong use of a block.
#[derive(Clone, Copy, Debug)]
pub struct Misuse {
    pub kind: Kind,
    /// The access, or the call that gave the block back.
    pub at: Instance,
    /// The call that the block came from, or that it was given back by.
    pub call: Instance,
}

/// What was found.
#[derive(Default)]
pub struct Misuses {
    /// What is wrong by itself: the first of each kind and line.
    pub certain: Vec<Misuse>,
    /// Reads of bytes that nothing had been put into, and where the block came from. That is
    /// wrong only if something comes of it.
    pub unset: HashMap<Instance, Instance>,
}

/// Goes through all accesses of a run. `None` if there was no time for it, or not all blocks are
/// known.
pub fn misuses(run: &Run, late: Instant) -> Option<Misuses> {
    if !run.trace.is_from_start() {
        return None;
    }
    let calls = heap::calls(run, late)?;
    if calls.is_empty() {
        return Some(Misuses::default());
    }
    let mut blocks = Blocks {
        run,
        calls: calls.into(),
        pending: Vec::new(),
        kernel: 0,
        blocks: BTreeMap::new(),
        extent: 0..0,
        found: Misuses::default(),
        seen: HashSet::new(),
    };
    let done = accesses(run, run.trace.last_instance(), late, &mut |access| blocks.see(&access));
    blocks.go_on(run.trace.last_instance());
    done.then_some(blocks.found)
}

/// Is an instruction part of a line of the program?
fn is_written_out(run: &Run, id: InstructionId) -> bool {
    let place = run.places.at(id).filter(|_| run.is_own(id));
    place.is_some_and(|place| matches!(run.places.get(place).at, At::Line(..)))
}

/// What is known of a block.
struct Block {
    len: u64,
    given: Instance,
    taken: Option<Instance>,
    set: Set,
}

/// The bytes of a block that something was put into.
enum Set {
    All,
    Bits(Vec<u64>),
}

impl Set {
    fn nothing(len: u64) -> Set {
        match len <= LARGE {
            true => Set::Bits(vec![0; (len as usize).div_ceil(64)]),
            false => Set::All,
        }
    }

    fn add(&mut self, from: u64, len: u64) {
        let Set::Bits(bits) = self else { return };
        for n in from..from.saturating_add(len).min(64 * bits.len() as u64) {
            bits[n as usize / 64] |= 1 << (n % 64);
        }
    }

    /// What a block that was made of another has.
    fn inherit(&mut self, old: &Block) {
        match (self, &old.set) {
            (Set::Bits(bits), Set::Bits(known)) => {
                bits.iter_mut().zip(known).for_each(|(bits, known)| *bits = *known);
            }
            (set, _) => set.add(0, old.len),
        }
    }

    /// Is none of these bytes set? Padding is copied along with what it lies between.
    fn has_none(&self, from: u64, len: u64) -> bool {
        let Set::Bits(bits) = self else { return false };
        (from..from + len)
            .all(|n| bits.get(n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 == 0))
    }
}

/// The heap as it changes.
struct Blocks<'a> {
    run: &'a Run,
    /// Those that are still to come.
    calls: std::collections::VecDeque<Call>,
    /// Those that have begun and not come back.
    pending: Vec<Call>,
    /// The next system call.
    kernel: usize,
    blocks: BTreeMap<u64, Block>,
    /// All of them, and what is behind the last.
    extent: std::ops::Range<u64>,
    found: Misuses,
    seen: HashSet<(Kind, PlaceId)>,
}

impl Blocks<'_> {
    fn see(&mut self, access: &Access) {
        self.go_on(access.at);
        if !self.extent.contains(&access.range.start) {
            return;
        }
        // What the allocator does to blocks is right.
        if self.pending.iter().any(|call| call.thread == access.thread) {
            return;
        }
        // Libraries read more than they need, where it does no harm.
        if !access.writes && !is_written_out(self.run, access.instruction) {
            return;
        }
        let Range { start, len } = access.range;
        let Some((from, block)) = self.blocks.range_mut(..=start).next_back() else { return };
        let (offset, block_len) = (start - from, block.len);
        match block.taken {
            Some(taken) if offset < block_len => self.tell(Kind::Freed, access.at, taken),
            None if offset + len <= block_len => match access.writes {
                true => block.set.add(offset, len),
                false if block.set.has_none(offset, len) => {
                    let given = block.given;
                    self.found.unset.insert(access.at, given);
                }
                false => {}
            },
            None if offset < block_len + BEHIND => {
                let given = block.given;
                self.tell(Kind::Behind, access.at, given);
            }
            _ => {}
        }
    }

    fn tell(&mut self, kind: Kind, at: Instance, call: Instance) {
        let own = self.run.own_instance(at);
        let place = own.and_then(|own| self.run.places.at(self.run.trace.instruction(own)));
        if place.is_some_and(|place| self.seen.insert((kind, place))) {
            self.found.certain.push(Misuse { kind, at, call });
        }
    }

    /// What the allocator and the kernel have done up to an instant.
    fn go_on(&mut self, at: Instance) {
        while let Some(call) = self.calls.pop_front_if(|call| call.entry <= at) {
            self.come_back(call.entry);
            // Some functions of the allocator call others.
            if self.pending.iter().any(|outer| outer.thread == call.thread) {
                continue;
            }
            if let Some(start) = call.taken() {
                self.take(start, call.entry);
            }
            self.pending.push(call);
        }
        self.come_back(at);
        let sites = &self.run.trace.spans.calls;
        while let Some(site) = sites.get(self.kernel).filter(|site| site.at <= at.time) {
            self.kernel += 1;
            for &(start, len) in &self.run.trace.call(site).written {
                self.put(start, len);
            }
        }
    }

    /// Something was put there.
    fn put(&mut self, start: u64, len: u64) {
        let first = self.blocks.range(..start).next_back().map_or(start, |(from, _)| *from);
        for (from, block) in self.blocks.range_mut(first..start.saturating_add(len)) {
            let begin = start.max(*from);
            block.set.add(begin - from, (start + len) - begin);
        }
    }

    /// Calls that have come back by now.
    fn come_back(&mut self, at: Instance) {
        if self.pending.is_empty() {
            return;
        }
        let is_back = |call: &mut Call| call.back.is_some_and(|back| back <= at.time);
        let back: Vec<Call> = self.pending.extract_if(.., is_back).collect();
        back.iter().for_each(|call| self.give(call));
    }

    fn give(&mut self, call: &Call) {
        let Some(Range { start, len }) = call.given() else { return };
        let mut set = if call.sets() { Set::All } else { Set::nothing(len) };
        if let Some(old) = call.taken() {
            match self.blocks.get(&old) {
                Some(old) => set.inherit(old),
                None => set = Set::All,
            }
        }
        // What was there before is no more.
        if let Some((from, block)) = self.blocks.range_mut(..start).next_back() {
            block.len = block.len.min(start - from);
        }
        let end = start.saturating_add(len.max(1));
        let over: Vec<u64> = self.blocks.range(start..end).map(|(start, _)| *start).collect();
        over.iter().for_each(|start| drop(self.blocks.remove(start)));
        let first = if self.extent.is_empty() { start } else { self.extent.start.min(start) };
        self.extent = first..self.extent.end.max(end.saturating_add(BEHIND));
        self.blocks.insert(start, Block { len, given: call.entry, taken: None, set });
    }

    fn take(&mut self, start: u64, entry: Instance) {
        let Some((from, block)) = self.blocks.range_mut(..=start).next_back() else { return };
        if *from == start {
            // What waits to be given out again, the allocator itself frees when a thread ends.
            let caller = self.run.call_of(self.run.trace.control.frame_of(entry.time));
            let image = |at| self.run.program.image_at(self.run.address(at)).map(|(n, _)| n);
            let is_own = |at| self.run.is_own(self.run.trace.instruction(at));
            let is_inside =
                caller.is_some_and(|caller| !is_own(caller) && image(caller) == image(entry));
            if let Some(before) = block.taken.replace(entry).filter(|_| !is_inside) {
                self.tell(Kind::FreedAgain, entry, before);
            }
        } else if start - from < block.len && block.taken.is_none() {
            let given = block.given;
            self.tell(Kind::NoBlock, entry, given);
        }
    }
}
