//! Making a recording of nothing but a slice's instructions.
//!
//! Between them, what the others did to registers and memory is put in. So at every
//! instruction of the slice the whole state is that of the run.

use super::cut::{End, create, finish, write_entry};
use super::delta::Delta;
use crate::Error;
use crate::code::Profile;
use crate::code::translate::performed_by_engine;
use crate::context::Registers;
use crate::guest::memory::Change;
use crate::guest::task::Thread;
use crate::hash;
use crate::kernel::calls::gs;
use crate::layout::PAGE;
use crate::replay::{Goal, Instant, Replayer, SILENT, Stopped, To};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use recording::event::{Effect, Encoder, When};
use recording::{Recording, Region};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// An instruction of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Instructions that the run executed before it.
    pub number: u64,
    /// Its address.
    pub pc: u64,
}

/// Memory: where it begins, and its length.
type Piece = (u64, u64);

/// Makes a recording in `dir`, a new or empty folder, of these instructions, in order.
/// `stored` says what memory the instructions between two numbers wrote by themselves.
pub fn cut_slice(
    recording: &Recording,
    points: &[Point],
    stored: &mut dyn FnMut(Range<u64>) -> Vec<Piece>,
    dir: &Path,
) -> Result<(), Error> {
    let Some(first) = points.first() else {
        return Err(Error::CannotGoOn("a slice without instructions cannot be cut".to_owned()));
    };
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.go_to(first.number)?;
    let mut writer = create(recording, dir, Region { from: first.number, slice: true })?;
    write_entry(&mut replayer, &mut writer)?;
    replayer.process.machine.memory.take_changes();
    let mut relogger = Relogger { known: replayer.all_registers(), done: first.number, replayer };
    let mut rest = points;
    let mut stretches = 0;
    while let Some(point) = rest.first() {
        let left_out = stored(relogger.done..point.number);
        let taken = relogger.stretch(rest, left_out)?;
        writer.append(relogger.encoded(&taken).bytes())?;
        stretches += 1;
        rest = &rest[taken.points..];
    }
    let counters = [("instructions", points.len() as u64), ("stretches", stretches)];
    let counters = counters.map(|(name, n)| (name.to_owned(), n)).into();
    finish(recording, writer, End::Before(When::Here), counters)
}

/// How a range is mapped now.
struct Mapped {
    range: Range<u64>,
    protection: Option<u32>,
    /// Were its contents replaced as a whole?
    fresh: bool,
}

struct Relogger {
    replayer: Replayer,
    /// Registers as a replay of the slice has them.
    known: BTreeMap<Thread, Registers>,
    /// Number of the first instruction whose effects are still to be put in.
    done: u64,
}

/// A stretch of the slice.
struct Taken {
    thread: Thread,
    number: u64,
    /// Instructions that a replay executes.
    count: u64,
    /// Points that it is, one more than those if the last cannot be executed.
    points: usize,
    delta: Delta,
    written: Vec<(u64, Vec<u8>)>,
    mapped: Vec<Mapped>,
    state: u32,
}

impl Relogger {
    /// Goes to the first of these points, and along them as far as they follow each
    /// other.
    fn stretch(&mut self, points: &[Point], left_out: Vec<Piece>) -> Result<Taken, Error> {
        let first = points[0];
        self.replayer.go_to(first.number)?;
        self.expect(&first)?;
        let thread = self.replayer.current;
        let (mapped, mut pieces) = self.replayer.mapped_since();
        pieces.extend(left_out);
        let mut written = self.replayer.contents_of(pieces);
        for map in mapped.iter().filter(|map| map.fresh && map.protection.is_some()) {
            let whole = (map.range.start, map.range.end - map.range.start);
            let pages = self.replayer.contents_of(vec![whole]);
            written.extend(pages.into_iter().filter(|(_, page)| page.iter().any(|b| *b != 0)));
        }
        let before = self.replayer.present_registers();
        let old = self.known.get(&thread).cloned().unwrap_or_default();
        let delta = Delta::between(&old, &before);
        let mut count = 0;
        let follows = points.iter().zip(first.number..);
        for (point, number) in follows {
            let goes_on = point.number == number
                && self.replayer.registers().rip == point.pc
                && self.replayer.current == thread
                && (count == 0 || self.replayer.is_next())
                && self.replayer.is_plain();
            if !goes_on || !self.execute()? {
                break;
            }
            count += 1;
        }
        // What cannot be executed here is a point all the same.
        self.done = first.number + count;
        let now = self.replayer.registers_after(thread).unwrap_or(before);
        let state = hash::registers(&now);
        self.known.insert(thread, now);
        let points = (count as usize).max(1);
        Ok(Taken { thread, number: first.number, count, points, delta, written, mapped, state })
    }

    fn expect(&self, point: &Point) -> Result<(), Error> {
        if self.replayer.registers().rip == point.pc {
            return Ok(());
        }
        let what = "a slice through the handler of a fault cannot be cut";
        Err(Error::CannotGoOn(what.to_owned()))
    }

    /// Executes one instruction. False if it faults.
    fn execute(&mut self) -> Result<bool, Error> {
        let now = self.replayer.now();
        let behind = Instant { instructions: now.instructions + 1, ..now };
        let report = self.replayer.advance(&Goal::to(To::Instant(behind)))?;
        Ok(report.stopped == Stopped::There && self.replayer.now() == behind)
    }

    fn encoded(&self, taken: &Taken) -> Encoder {
        let mut encoder = Encoder::default();
        let registers = postcard::to_allocvec(&taken.delta).unwrap_or_default();
        let place = (taken.thread.0, taken.number, taken.count);
        encoder.stretch(place, taken.state, &registers);
        for Mapped { range, protection, fresh } in &taken.mapped {
            let (address, len) = (range.start, range.end - range.start);
            let (protection, fresh) = (*protection, *fresh);
            encoder.effect(&Effect::Mapped { address, len, protection, fresh });
        }
        for (address, data) in &taken.written {
            encoder.effect(&Effect::Write { address: *address, data });
        }
        encoder
    }
}

impl Replayer {
    fn present_registers(&self) -> Registers {
        let mut registers = self.context().regs.clone();
        registers.gs = gs();
        registers
    }

    fn registers_after(&self, thread: Thread) -> Option<Registers> {
        match thread == self.current {
            true => Some(self.present_registers()),
            false => self.tasks.get(&thread).map(|task| (*task.regs).clone()),
        }
    }

    fn all_registers(&self) -> BTreeMap<Thread, Registers> {
        let threads = self.tasks.keys();
        threads.filter_map(|t| Some((*t, self.registers_after(*t)?))).collect()
    }

    /// Is the next thing that happens the next instruction?
    fn is_next(&mut self) -> bool {
        matches!(self.due(), Ok(None))
    }

    /// Does the processor itself execute the next instruction?
    fn is_plain(&self) -> bool {
        let pc = self.registers().rip;
        let code = self.process.machine.memory.code(pc);
        let i = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        !i.is_invalid() && i.mnemonic() != Mnemonic::Syscall && !performed_by_engine(&i)
    }

    /// What the kernel did to memory since the last time: how ranges are mapped now, and
    /// where bytes changed.
    fn mapped_since(&mut self) -> (Vec<Mapped>, Vec<Piece>) {
        let (mut mapped, mut written) = (Vec::new(), Vec::new());
        for change in self.process.machine.memory.take_changes() {
            match change {
                Change::Written(range) => written.push((range.start, range.end - range.start)),
                Change::Mapped(range) => mapped.extend(self.now_mapped(range, true)),
                Change::Protected(range) => mapped.extend(self.now_mapped(range, false)),
            }
        }
        // What is new has to be there before its protection changes.
        mapped.sort_by_key(|map| !map.fresh);
        (mapped, written)
    }

    fn now_mapped(&self, range: Range<u64>, fresh: bool) -> Vec<Mapped> {
        let memory = &self.process.machine.memory;
        let mut all = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let region = memory.region(at).map(|(_, region)| (region.end, region.prot as u32));
            let next = memory.regions().map(|(start, _)| start).find(|start| *start > at);
            let (end, protection) = match region {
                Some((end, prot)) => (end, Some(prot)),
                None => (next.unwrap_or(range.end), None),
            };
            let end = end.min(range.end);
            all.push(Mapped { range: at..end, protection, fresh });
            at = end;
        }
        all
    }

    /// What is at these places, as far as anything is.
    fn contents_of(&self, mut pieces: Vec<Piece>) -> Vec<(u64, Vec<u8>)> {
        pieces.sort_unstable();
        let mut merged: Vec<Range<u64>> = Vec::new();
        for (start, len) in pieces {
            let end = start.saturating_add(len);
            match merged.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => merged.push(start..end),
            }
        }
        let mut contents = Vec::new();
        for Range { start, end } in merged {
            let mut at = start;
            while at < end {
                let until = (at / PAGE * PAGE + PAGE).min(end);
                let bytes = self.peek(at, (until - at) as usize);
                if !bytes.is_empty() {
                    contents.push((at, bytes));
                }
                at = until;
            }
        }
        contents
    }
}
