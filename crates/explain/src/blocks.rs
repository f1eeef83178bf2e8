//! What was done to the blocks of the heap that must not be done to them?

use crate::accesses::{Access, accesses};
use crate::filled::Filled;
use crate::heap::{Call, Heap};
use iced_x86::Mnemonic;
use position::{At, PlaceId, Run};
use report::MisuseKind as Kind;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;
use trace::{Info, Instance, InstructionId, Range};

/// So many bytes behind a block belong to nobody else.
const BEHIND: u64 = 64;
/// So many reads of what was not set are kept.
const READS: usize = 1 << 20;
/// Functions of the C library that write what they are told to where they are told to.
const WRITERS: [&str; 18] = [
    "mem",
    "str",
    "stp",
    "wcs",
    "wmem",
    "bzero",
    "bcopy",
    "sprintf",
    "snprintf",
    "vsprintf",
    "vsnprintf",
    "sscanf",
    "fscanf",
    "scanf",
    "isoc",
    "fread",
    "fgets",
    "qsort",
];

/// System calls that change what memory there is.
const MMAP: u32 = 9;
const MUNMAP: u32 = 11;
const BRK: u32 = 12;
const MREMAP: u32 = 25;

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
    let heap = Heap::of(run, late)?;
    if heap.calls.is_empty() {
        return Some(Misuses::default());
    }
    let mut blocks = Blocks {
        run,
        calls: heap.calls.into(),
        image: heap.image,
        tells_sizes: heap.tells_sizes,
        brk: 0,
        pending: Vec::new(),
        kernel: 0,
        blocks: BTreeMap::new(),
        extent: 0..0,
        found: Misuses::default(),
        seen: HashSet::new(),
    };
    let done = accesses(run, run.trace.last_instance(), late, &mut |access| blocks.see(&access));
    blocks.go_on(run.trace.last_instance());
    if run.trace.code.instructions().any(|(_, info)| scatters(info)) {
        // Where that puts something is not known.
        blocks.found.unset.clear();
    }
    done.then_some(blocks.found)
}

/// Is an instruction part of a line of the program?
fn is_written_out(run: &Run, id: InstructionId) -> bool {
    let place = run.places.at(id).filter(|_| run.is_own(id));
    place.is_some_and(|place| matches!(run.places.get(place).at, At::Line(..)))
}

/// Does an instruction store to many places?
fn scatters(info: &Info) -> bool {
    info.effects.accesses.iter().any(|access| access.writes && access.address.vector_index)
}

/// Does an instruction leave out some of the bytes that it could touch?
fn is_masked(run: &Run, id: InstructionId) -> bool {
    use Mnemonic::*;
    let instruction = &run.trace.code.info(id).instruction;
    let masked =
        [Vmaskmovps, Vmaskmovpd, Vpmaskmovd, Vpmaskmovq, Maskmovdqu, Maskmovq, Vmaskmovdqu];
    instruction.has_op_mask() || masked.contains(&instruction.mnemonic())
}

/// What is known of a block.
struct Block {
    len: u64,
    given: Instance,
    taken: Option<Instance>,
    filled: Filled,
}

/// The heap as it changes.
struct Blocks<'a> {
    run: &'a Run,
    /// Those that are still to come.
    calls: std::collections::VecDeque<Call>,
    /// Those that have begun and not come back, with what was in the block that they got back.
    pending: Vec<(Call, Option<(Filled, u64)>)>,
    /// The file of the allocator.
    image: usize,
    /// Does the program know how large blocks really are?
    tells_sizes: bool,
    /// Where the kernel says that the heap ends.
    brk: u64,
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
        if self.is_inside(access.thread) {
            return;
        }
        // Libraries read more than they need, where it does no harm.
        if !access.writes && !is_written_out(self.run, access.instruction) {
            return;
        }
        if let Some((kind, call)) = self.judge(access)
            && !is_masked(self.run, access.instruction)
            && self.is_meant(access)
        {
            self.tell(kind, access.at, call);
        }
    }

    /// What is wrong with an access, and the call that it is about.
    fn judge(&mut self, access: &Access) -> Option<(Kind, Instance)> {
        let Range { start, len } = access.range;
        let (from, block) = self.blocks.range_mut(..=start).next_back()?;
        let (offset, inside) = (start - from, block.len);
        if let Some(taken) = block.taken {
            return (offset < inside).then_some((Kind::Freed, taken));
        }
        if access.writes && offset < inside {
            block.filled.add(offset, len.min(inside - offset));
        }
        if offset + len <= inside {
            let is_unset = !access.writes && block.filled.has_none(offset, len);
            if is_unset && self.found.unset.len() < READS {
                self.found.unset.insert(access.at, block.given);
            }
            return None;
        }
        // What is nearer to the next block may have been meant for that.
        let (given, beyond) = (block.given, offset.saturating_sub(inside));
        let next = self.blocks.range(start + 1..).next().map(|(next, _)| *next);
        let before = next.map_or(u64::MAX, |next| next.saturating_sub(start + len));
        let is_behind = beyond < BEHIND && beyond <= before && !self.tells_sizes;
        is_behind.then_some((Kind::Behind, given))
    }

    /// Was it the program that wanted this access, and not the library for itself?
    fn is_meant(&self, access: &Access) -> bool {
        let run = self.run;
        let image = |at| run.program.image_at(run.address(at)).map(|(n, _)| n);
        if run.is_own(access.instruction) || image(access.at) != Some(self.image) {
            return true;
        }
        let mut frame = run.trace.control.frame_of(access.at.time);
        while let Some(call) = run.call_of(frame) {
            if image(call) != Some(self.image) {
                let target = run.trace.code.info(run.trace.instruction(call)).instruction;
                let name = run.program.plt_target(target.near_branch_target());
                let name = name.map(|name| name.trim_start_matches('_'));
                return name.is_some_and(|name| WRITERS.iter().any(|w| name.starts_with(w)));
            }
            frame = run.trace.control.frame(frame).caller;
        }
        false
    }

    fn tell(&mut self, kind: Kind, at: Instance, call: Instance) {
        let own = self.run.own_instance(at).filter(|_| self.run.own_instance(call).is_some());
        let place = own.and_then(|own| self.run.places.at(self.run.trace.instruction(own)));
        if place.is_some_and(|place| self.seen.insert((kind, place))) {
            self.found.certain.push(Misuse { kind, at, call });
        }
    }

    /// What the allocator and the kernel have done up to an instant.
    fn go_on(&mut self, at: Instance) {
        while let Some(call) = self.calls.pop_front_if(|call| call.entry <= at) {
            self.go_on_outside(call.entry);
            // Some functions of the allocator call others.
            if self.is_inside(call.thread) {
                continue;
            }
            let old = call.taken().and_then(|start| self.blocks.get(&start));
            let old = old.map(|block| (block.filled.clone(), block.len));
            if let Some(start) = call.taken() {
                self.take(start, call.entry);
            }
            self.pending.push((call, old));
        }
        self.go_on_outside(at);
    }

    /// Is a thread inside of the allocator?
    fn is_inside(&self, thread: u32) -> bool {
        self.pending.iter().any(|(call, _)| call.thread == thread)
    }

    /// What the kernel has done, and calls that have come back by now.
    fn go_on_outside(&mut self, at: Instance) {
        let sites = &self.run.trace.spans.calls;
        while let Some(site) = sites.get(self.kernel).filter(|site| site.at <= at.time) {
            self.kernel += 1;
            let call = self.run.trace.call(site);
            for &(start, len) in &call.written {
                self.put(start, len);
            }
            self.map(call);
        }
        if self.pending.is_empty() {
            return;
        }
        let is_back = |(call, _): &mut (Call, _)| call.back.is_some_and(|back| back <= at.time);
        let back: Vec<_> = self.pending.extract_if(.., is_back).collect();
        for (call, old) in back {
            self.give(&call, old);
        }
    }

    /// Something was put there.
    fn put(&mut self, start: u64, len: u64) {
        let first = self.blocks.range(..start).next_back().map_or(start, |(from, _)| *from);
        for (from, block) in self.blocks.range_mut(first..start.saturating_add(len)) {
            let begin = start.max(*from);
            block.filled.add(begin - from, start.saturating_add(len) - begin);
        }
    }

    /// Blocks whose memory the kernel takes away, or gives to somebody else, are no more.
    fn map(&mut self, call: &trace::Call) {
        let [first, second, third, ..] = call.args;
        let result = call.result as u64;
        match call.number {
            _ if call.result < 0 => {}
            MMAP => self.drop(result, second),
            MUNMAP => self.drop(first, second),
            MREMAP => {
                self.drop(first, second);
                self.drop(result, third);
            }
            BRK => {
                self.drop(result, self.brk.saturating_sub(result));
                self.brk = result;
            }
            _ => {}
        }
    }

    fn drop(&mut self, start: u64, len: u64) {
        let first = self.blocks.range(..start).next_back();
        let reaches = |(from, block): &(&u64, &Block)| **from + block.len > start;
        let first = first.filter(reaches).map_or(start, |(from, _)| *from);
        let end = start.saturating_add(len);
        if first >= end {
            return;
        }
        let over: Vec<u64> = self.blocks.range(first..end).map(|(start, _)| *start).collect();
        over.iter().for_each(|start| drop(self.blocks.remove(start)));
    }

    fn give(&mut self, call: &Call, old: Option<(Filled, u64)>) {
        let Some(Range { start, len }) = call.given() else { return };
        let mut filled = match call.sets() || call.taken().is_some() && old.is_none() {
            true => Filled::All,
            false => Filled::nothing(len),
        };
        if let Some((old, len)) = old {
            filled.inherit(&old, len);
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
        self.blocks.insert(start, Block { len, given: call.entry, taken: None, filled });
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
