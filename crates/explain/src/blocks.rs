//! Which blocks does the heap have at each instant, and what has been put into them?

use crate::accesses::Access;
use crate::filled::Filled;
use crate::heap::{Call, Heap};
use position::Run;
use report::MisuseKind as Kind;
use std::collections::{BTreeMap, VecDeque};
use trace::{Instance, Range};

/// So many bytes behind a block belong to nobody else.
const BEHIND: u64 = 64;
/// System calls that change what memory there is.
const MMAP: u32 = 9;
const MUNMAP: u32 = 11;
const BRK: u32 = 12;
const MREMAP: u32 = 25;

/// What is known of a block.
struct Block {
    len: u64,
    given: Instance,
    taken: Option<Instance>,
    filled: Filled,
}

/// A wrong use of a block.
#[derive(Clone, Copy, Debug)]
pub struct Misuse {
    pub kind: Kind,
    /// The access, or the call that freed the block.
    pub at: Instance,
    /// The call that the block came from, or that it was freed by.
    pub call: Instance,
}

/// The heap as it changes.
pub struct Blocks<'a> {
    run: &'a Run,
    /// Those that are still to come.
    calls: VecDeque<Call>,
    /// Those that have begun and not come back, with what was in the block that they made
    /// another one of.
    pending: Vec<(Call, Option<(Filled, u64)>)>,
    /// Does the program know how large blocks really are?
    tells_sizes: bool,
    /// Where the kernel says that the heap ends.
    brk: u64,
    /// The next system call.
    kernel: usize,
    blocks: BTreeMap<u64, Block>,
    /// All of them, and what is behind the last.
    extent: std::ops::Range<u64>,
}

impl<'a> Blocks<'a> {
    /// Before everything.
    pub fn new(run: &'a Run, heap: Heap) -> Blocks<'a> {
        Blocks {
            run,
            calls: heap.calls.into(),
            pending: Vec::new(),
            tells_sizes: heap.tells_sizes,
            brk: 0,
            kernel: 0,
            blocks: BTreeMap::new(),
            extent: 0..0,
        }
    }

    /// Does some memory belong to the heap, or is it close behind it?
    pub fn is_near(&self, range: Range) -> bool {
        self.extent.contains(&range.start)
    }

    /// What an access does to a block, or what is wrong with it.
    pub fn judge(&mut self, access: &Access) -> Option<Misuse> {
        let misuse = |kind, call| Misuse { kind, at: access.at, call };
        let Range { start, len } = access.range;
        let (from, block) = self.blocks.range_mut(..=start).next_back()?;
        let (offset, inside) = (start - from, block.len);
        if let Some(taken) = block.taken {
            return (offset < inside).then_some(misuse(Kind::Freed, taken));
        }
        if access.writes && offset < inside {
            block.filled.add(offset, len.min(inside - offset));
        }
        if offset + len <= inside {
            let is_unset = !access.writes && block.filled.has_none(offset, len);
            return is_unset.then_some(misuse(Kind::Unset, block.given));
        }
        // What is nearer to the next block may have been meant for that.
        let (given, beyond) = (block.given, offset.saturating_sub(inside));
        let next = self.blocks.range(start + 1..).next().map(|(next, _)| *next);
        let before = next.map_or(u64::MAX, |next| next.saturating_sub(start + len));
        let is_behind = beyond < BEHIND && beyond <= before && !self.tells_sizes;
        is_behind.then_some(misuse(Kind::Behind, given))
    }

    /// What the allocator and the kernel have done up to an instant. Tells of blocks that were
    /// freed and must not have been.
    pub fn go_on(&mut self, at: Instance, tell: &mut dyn FnMut(Misuse)) {
        while let Some(call) = self.calls.pop_front_if(|call| call.entry <= at) {
            self.go_on_outside(call.entry);
            // Some functions of the allocator call others.
            if self.is_inside(call.thread) {
                continue;
            }
            let old = call.taken().filter(|_| call.given().is_some());
            let old = old.and_then(|start| self.blocks.get(&start));
            let old = old.map(|block| (block.filled.clone(), block.len));
            let wrong = call.taken().and_then(|start| self.take(start, call.entry));
            wrong.into_iter().for_each(&mut *tell);
            self.pending.push((call, old));
        }
        self.go_on_outside(at);
    }

    /// Is a thread inside of the allocator?
    pub fn is_inside(&self, thread: u32) -> bool {
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

    /// A block is freed. Is anything wrong with that?
    fn take(&mut self, start: u64, entry: Instance) -> Option<Misuse> {
        let is_cleanup = is_cleanup(self.run, entry);
        let (from, block) = self.blocks.range_mut(..=start).next_back()?;
        if *from == start {
            let before = block.taken.replace(entry).filter(|_| !is_cleanup);
            return before.map(|call| Misuse { kind: Kind::FreedAgain, at: entry, call });
        }
        let is_within = start - from < block.len && block.taken.is_none();
        is_within.then_some(Misuse { kind: Kind::NoBlock, at: entry, call: block.given })
    }
}

/// When a thread ends, the allocator itself frees what waits to be given out again.
fn is_cleanup(run: &Run, entry: Instance) -> bool {
    let image = |at| run.program.image_at(run.address(at)).map(|(n, _)| n);
    let caller = run.call_of(run.trace.control.frame_of(entry.time));
    let is_own = |at| run.is_own(run.trace.instruction(at));
    caller.is_some_and(|caller| !is_own(caller) && image(caller) == image(entry))
}
