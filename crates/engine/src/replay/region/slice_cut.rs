//! Making a recording of nothing but a slice's instructions.
//!
//! Between them, what the others did to registers and memory is put in. So at every
//! instruction of the slice the whole state is that of the run. Where only few lie
//! between, they are executed: putting in what they did would take longer.

use super::cut::{End, Progress, create, finish, tell, write_entry};
use super::delta::Delta;
use crate::Error;
use crate::code::Profile;
use crate::context::Registers;
use crate::guest::machine::Stop;
use crate::guest::memory::Change;
use crate::guest::task::Thread;
use crate::hash;
use crate::kernel::calls::gs;
use crate::layout::PAGE;
use crate::replay::moving::SYSCALL_BYTES;
use crate::replay::replayer::Halt;
use crate::replay::{Goal, Instant, Replayer, SILENT, Stopped, To, Until};
use recording::event::{Effect, Encoder, When};
use recording::{Recording, Region};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Instructions of a slice that follow each other, or nearly so. No exception comes
/// between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Address of the first.
    pub pc: u64,
    /// Their numbers, in order: how many instructions the run executed before each.
    pub runs: Vec<Range<u64>>,
}

/// Memory: where pieces begin, and their lengths.
pub type Pieces = Vec<(u64, u64)>;

/// What a slice consists of.
pub struct SliceSource<'a> {
    /// Addresses of its instructions, in ascending order.
    pub addresses: &'a [u64],
    /// All of its instructions, in order.
    pub stretches: &'a mut dyn Iterator<Item = Stretch>,
    /// Adds the memory that the instructions between two numbers wrote by themselves.
    /// Numbers ascend.
    pub stored: &'a mut dyn FnMut(Range<u64>, &mut Pieces),
    /// Told how many instructions of the run are done.
    pub progress: Progress<'a>,
}

/// Stretches, and instructions, between two reports of progress.
const BETWEEN_TELLING: (u64, u64) = (1 << 10, 1 << 20);

/// Makes a recording of a slice in `dir`, a new or empty folder.
pub fn cut_slice(recording: &Recording, slice: SliceSource, dir: &Path) -> Result<(), Error> {
    let SliceSource { addresses, stretches, stored, progress } = slice;
    let mut stretches = stretches.peekable();
    let Some(first) = stretches.peek().and_then(|stretch| stretch.runs.first()) else {
        return Err(Error::CannotGoOn("a slice without instructions cannot be cut".to_owned()));
    };
    let from = first.start;
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.go_to(from, progress)?;
    let mut writer = create(recording, dir, Region { from, slice: true })?;
    write_entry(&mut replayer, &mut writer, addresses)?;
    replayer.process.machine.memory.take_changes();
    let mut relogger = Relogger { known: replayer.all_registers(), done: from, replayer };
    let mut encoder = Encoder::default();
    let (mut instructions, mut written, mut told) = (0, 0, from);
    for Stretch { pc, runs } in stretches {
        instructions += runs.iter().map(|run| run.end - run.start).sum::<u64>();
        let (mut rest, mut pc) = (&runs[..], Some(pc));
        let mut behind = 0;
        while let Some(run) = rest.first() {
            let at = run.start.max(behind);
            relogger.arrive(at, pc.take(), progress)?;
            let mut left_out = Vec::new();
            stored(relogger.done..at, &mut left_out);
            let taken = relogger.take(at..runs[runs.len() - 1].end, left_out, progress)?;
            behind = at + taken.count.max(1);
            taken.encode(&mut encoder, &gaps(rest, behind), at)?;
            writer.append(encoder.bytes())?;
            rest = &rest[rest.partition_point(|run| run.end <= behind)..];
            written += 1;
            let (stretches, executed) = BETWEEN_TELLING;
            if written % stretches == 0 || relogger.done - told > executed {
                told = relogger.done;
                tell(told, progress)?;
            }
        }
    }
    let counters = [("instructions", instructions), ("stretches", written)];
    let counters = counters.map(|(name, n)| (name.to_owned(), n)).into();
    finish(recording, writer, End::Before(When::Here), counters)
}

/// What lies between runs, before an instruction.
fn gaps(runs: &[Range<u64>], before: u64) -> Vec<Range<u64>> {
    let between = runs.windows(2).map(|two| two[0].end..two[1].start.min(before));
    between.take_while(|gap| !gap.is_empty()).collect()
}

/// Instructions of a stretch that are not in the slice: how many that are come before, and
/// how many they are.
pub(super) type Gaps = Vec<(u64, u64)>;

fn unwritable(_: postcard::Error) -> Error {
    Error::CannotGoOn("the state here cannot be written down".to_owned())
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

/// What becomes one event.
struct Taken {
    thread: Thread,
    /// Instructions that a replay executes. None if the first cannot be executed, which is
    /// a point of the slice all the same.
    count: u64,
    delta: Delta,
    written: Vec<(u64, Vec<u8>)>,
    mapped: Vec<Mapped>,
    state: u32,
}

impl Relogger {
    /// To just before an instruction. An instruction that raises an exception has the
    /// number of its handler's first: the address tells which is meant.
    fn arrive(&mut self, number: u64, pc: Option<u64>, progress: Progress) -> Result<(), Error> {
        let r = &mut self.replayer;
        r.go_to(number, progress)?;
        while pc.is_some_and(|pc| pc != r.registers().rip) {
            let now = r.now();
            let raised = Instant { happened: now.happened + 1, ..now };
            let stopped = r.advance(&Goal::to(To::Instant(raised)))?.stopped;
            if stopped != Stopped::There || r.now().instructions != number {
                let what = format!("instruction @{number} is not that of the slice; slice again");
                return Err(Error::CannotGoOn(what));
            }
        }
        Ok(())
    }

    /// Goes on as far as the processor itself executes what is between two numbers.
    fn take(
        &mut self,
        numbers: Range<u64>,
        left_out: Pieces,
        progress: Progress,
    ) -> Result<Taken, Error> {
        let thread = self.replayer.current;
        let (mapped, mut pieces) = self.replayer.mapped_since();
        pieces.extend(left_out);
        let mut written = self.replayer.contents_of(pieces);
        for map in mapped.iter().filter(|map| map.fresh && map.protection.is_some()) {
            let whole = (map.range.start, map.range.end - map.range.start);
            let pages = self.replayer.contents_of(vec![whole]);
            written.extend(pages.into_iter().filter(|(_, page)| page.iter().any(|b| *b != 0)));
        }
        let known = self.known.entry(thread).or_default();
        let delta = Delta::between(known, &self.replayer.present_registers());
        let raised = self.replayer.run_plain(numbers.end, progress)?;
        let count = self.replayer.instructions() - numbers.start;
        // What raised an exception may have written something before.
        self.done = numbers.start + count - u64::from(raised && count > 0);
        *known = self.replayer.present_registers();
        let state = hash::registers(known);
        Ok(Taken { thread, count, delta, written, mapped, state })
    }
}

impl Taken {
    fn encode(&self, encoder: &mut Encoder, gaps: &[Range<u64>], number: u64) -> Result<(), Error> {
        let registers = postcard::to_allocvec(&self.delta).map_err(unwritable)?;
        encoder.stretch((self.thread.0, number, self.count), self.state, &registers);
        for Mapped { range, protection, fresh } in &self.mapped {
            let (address, len) = (range.start, range.end - range.start);
            let (protection, fresh) = (*protection, *fresh);
            encoder.effect(&Effect::Mapped { address, len, protection, fresh });
        }
        for (address, data) in &self.written {
            encoder.effect(&Effect::Write { address: *address, data });
        }
        if !gaps.is_empty() {
            let mut behind = number;
            let told = |gap: &Range<u64>| {
                let after = gap.start - std::mem::replace(&mut behind, gap.end);
                (after, gap.end - gap.start)
            };
            let told: Gaps = gaps.iter().map(told).collect();
            let gaps = postcard::to_allocvec(&told).map_err(unwritable)?;
            encoder.effect(&Effect::Between { gaps: &gaps });
        }
        Ok(())
    }
}

impl Replayer {
    fn present_registers(&self) -> Registers {
        let mut registers = self.context().regs.clone();
        registers.gs = gs();
        registers
    }

    fn all_registers(&self) -> BTreeMap<Thread, Registers> {
        let of = |thread: &Thread| match *thread == self.current {
            true => Some(self.present_registers()),
            false => self.tasks.get(thread).map(|task| (*task.regs).clone()),
        };
        self.tasks.keys().filter_map(|thread| Some((*thread, of(thread)?))).collect()
    }

    /// Executes what the processor itself executes, at most to an instruction, until
    /// something else is to happen. True if that is an exception.
    fn run_plain(&mut self, end: u64, progress: Progress) -> Result<bool, Error> {
        loop {
            let next = self.instructions().saturating_add(super::cut::BETWEEN_TELLING).min(end);
            match self.run_plain_to(next) {
                Ok(None) if next == end => return Ok(false),
                Ok(None) => tell(self.instructions(), progress)?,
                Ok(Some(Stop::Fault(_))) => return Ok(true),
                Ok(Some(_)) | Err(Halt::Finish(_)) => return Ok(false),
                Err(Halt::Error(error)) => return Err(error),
            }
        }
    }

    /// `None` if it is there.
    fn run_plain_to(&mut self, end: u64) -> Result<Option<Stop>, Halt> {
        while self.executed < end {
            if self.due()?.is_some() {
                return Ok(Some(Stop::Safepoint));
            }
            match self.run_guest(Until::Instruction(end), i64::MAX / 2)? {
                Some(Stop::Budget | Stop::Safepoint) => {}
                Some(stop) => {
                    // Those are counted already, but still to be done.
                    if matches!(stop, Stop::Syscall) {
                        self.context().regs.rip -= SYSCALL_BYTES;
                    }
                    self.executed -= u64::from(matches!(stop, Stop::Syscall | Stop::Emulate));
                    return Ok(Some(stop));
                }
                None => return Ok(Some(Stop::Block)),
            }
        }
        Ok(None)
    }

    /// What the kernel did to memory since the last time: how ranges are mapped now, and
    /// where bytes changed.
    fn mapped_since(&mut self) -> (Vec<Mapped>, Pieces) {
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
    fn contents_of(&self, mut pieces: Pieces) -> Vec<(u64, Vec<u8>)> {
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
                let len = (until - at) as usize;
                // Memory that the guest may not read is rare, and takes longer.
                let bytes = self.read_memory(at, len).unwrap_or_else(|| self.peek(at, len));
                if !bytes.is_empty() {
                    contents.push((at, bytes));
                }
                at = until;
            }
        }
        contents
    }
}
