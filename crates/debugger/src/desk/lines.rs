//! Moving by source lines and by calls, for the plain prompt; gdb does that by itself.

use super::Desk;
use super::prompt::Move;
use super::state::Present;
use crate::{Error, Met, Result, Stop};
use engine::Thread;
use program::debug::FileId;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most single steps that a step to another line makes.
const MOST_STEPS: usize = 100_000;
/// Longest instruction.
const LONGEST: u64 = 15;
/// How far before the address it returns to a call begins.
const CALL: Range<u64> = 2..8;

/// Where a thread is.
#[derive(Clone, Copy)]
struct Spot {
    pc: u64,
    sp: u64,
}

/// Are calls entered?
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    /// Those of the program's own functions.
    Entered,
    Passed,
}

impl Desk {
    /// Moves as a word says; `None` if it says nothing of the kind.
    pub(super) fn move_by_lines(&mut self, word: &str, rest: &str) -> Option<Result<String>> {
        let lines = match word {
            "step" | "s" => Some((Calls::Entered, false)),
            "next" | "n" => Some((Calls::Passed, false)),
            "reverse-step" | "rs" => Some((Calls::Entered, true)),
            "reverse-next" | "rn" => Some((Calls::Passed, true)),
            _ => None,
        };
        if let Some((calls, back)) = lines {
            return Some(self.times(Move::Step, rest, |desk| match back {
                false => desk.step_line(calls),
                true => desk.step_line_back(calls),
            }));
        }
        let moved = match (word, rest) {
            ("finish" | "fin", _) => self.finish(false),
            ("reverse-finish", _) => self.finish(true),
            ("until" | "u", "") => self.until_later(),
            ("until" | "u" | "advance", place) => self.until_place(place),
            _ => return None,
        };
        Some(moved.and_then(|stop| self.show(&stop)))
    }

    /// Goes on until the line is another one that is known.
    fn step_line(&mut self, calls: Calls) -> Result<Stop> {
        let thread = self.running_thread()?;
        let from = self.line_here()?;
        for _ in 0..MOST_STEPS {
            let stop = self.step_one(thread, calls)?;
            let line = self.line_here()?;
            if stop.met != Met::There || (line.is_some() && line != from) {
                return Ok(stop);
            }
        }
        Ok(Stop { met: Met::There, thread })
    }

    /// Goes back to the beginning of the line that was executed before.
    fn step_line_back(&mut self, calls: Calls) -> Result<Stop> {
        let thread = self.running_thread()?;
        let from = self.line_here()?;
        let mut found: Option<(FileId, u32)> = None;
        for _ in 0..MOST_STEPS {
            let behind = self.timeline.now();
            let stop = self.step_one_back(thread, calls)?;
            let line = self.line_here()?;
            if found.is_some() && (line != found || stop.met != Met::There) {
                self.timeline.go_to(behind)?;
                return Ok(Stop { met: Met::There, thread });
            }
            if stop.met != Met::There {
                return Ok(stop);
            }
            found = found.or(line.filter(|_| line != from));
        }
        Ok(Stop { met: Met::There, thread })
    }

    /// One instruction, or a whole call.
    fn step_one(&mut self, thread: Thread, calls: Calls) -> Result<Stop> {
        let before = self.spot(thread)?;
        let stop = self.step(thread, 0..0)?;
        let now = self.spot(thread)?;
        let is_call = now.sp == before.sp.wrapping_sub(8) && !self.is_slice;
        let back_at = if is_call { self.word(now.sp)? } else { None };
        let called =
            |at: &u64| (1..=LONGEST).contains(&at.wrapping_sub(before.pc)) && *at != now.pc;
        match back_at.filter(called) {
            Some(at) if stop.met == Met::There && self.passes(calls)? => {
                self.run_until(thread, &[at].into(), &|spot| spot.sp == before.sp, false)
            }
            _ => Ok(stop),
        }
    }

    /// The same, backward.
    fn step_one_back(&mut self, thread: Thread, calls: Calls) -> Result<Stop> {
        let behind = self.spot(thread)?;
        let stop = self.step_back(thread)?;
        let now = self.spot(thread)?;
        let is_return = now.sp == behind.sp.wrapping_sub(8)
            && !(1..=LONGEST).contains(&behind.pc.wrapping_sub(now.pc))
            && !self.is_slice
            && self.word(now.sp)? == Some(behind.pc);
        if stop.met != Met::There || !is_return || !self.passes(calls)? {
            return Ok(stop);
        }
        self.run_until(thread, &calls_before(behind.pc), &|spot| spot.sp == behind.sp, true)
    }

    /// Is the function that we are in now to be passed over?
    fn passes(&mut self, calls: Calls) -> Result<bool> {
        Ok(calls == Calls::Passed || self.line_here()?.is_none())
    }

    /// To where the present function returns to, or was called from.
    fn finish(&mut self, back: bool) -> Result<Stop> {
        let thread = self.running_thread()?;
        let (frame, returns_to) = self.caller()?;
        let places = if back { calls_before(returns_to) } else { [returns_to].into() };
        self.run_until(thread, &places, &|spot| spot.sp == frame, back)
    }

    /// To a later line of the present function, or out of it: a loop is not begun again.
    fn until_later(&mut self) -> Result<Stop> {
        let thread = self.running_thread()?;
        let from = self.spot(thread)?;
        let frame = self.caller().map_or(u64::MAX, |(frame, _)| frame);
        for _ in 0..MOST_STEPS {
            let stop = self.step_line(Calls::Passed)?;
            let now = self.spot(thread)?;
            if stop.met != Met::There || now.pc > from.pc || now.sp >= frame {
                return Ok(stop);
            }
        }
        Ok(Stop { met: Met::There, thread })
    }

    /// To a place, or out of the present function.
    fn until_place(&mut self, text: &str) -> Result<Stop> {
        let thread = self.running_thread()?;
        let (_, places) = self.places(text)?;
        if places.is_empty() {
            return Err(Error::NoCode(text.to_owned()));
        }
        let places: BTreeSet<u64> = places.into_iter().collect();
        let (frame, returns_to) = self.caller().unwrap_or((u64::MAX, 0));
        let mut all = places.clone();
        all.insert(returns_to);
        let there = |spot: Spot| places.contains(&spot.pc) || spot.sp == frame;
        self.run_until(thread, &all, &there, false)
    }

    /// Runs until a thread is at one of some places, in the right frame.
    fn run_until(
        &mut self,
        thread: Thread,
        places: &BTreeSet<u64>,
        is_there: &dyn Fn(Spot) -> bool,
        back: bool,
    ) -> Result<Stop> {
        let own = self.wanted.stops.breaks.clone();
        self.wanted.stops.breaks.extend(places);
        self.passing.clone_from(places);
        let stop = loop {
            let stop = if back { self.backward() } else { self.forward() };
            let Ok(Stop { met: Met::Break, thread: whose }) = stop else { break stop };
            let spot = match self.spot(whose) {
                Ok(spot) => spot,
                Err(error) => break Err(error),
            };
            if whose == thread && places.contains(&spot.pc) && is_there(spot) {
                break Ok(Stop { met: Met::There, thread });
            }
            if own.contains(&spot.pc) && self.is_meant(spot.pc) {
                break stop;
            }
        };
        self.passing.clear();
        self.wanted.stops.breaks = own;
        stop
    }

    /// Address of the present frame, and where it returns to.
    fn caller(&mut self) -> Result<(u64, u64)> {
        if self.is_slice {
            return Err(Error::OnlyParts);
        }
        let program = self.program()?;
        let state = Present::of(&mut self.timeline)?;
        match &program.unwind(&state)[..] {
            [frame, caller, ..] => Ok((frame.cfa, caller.pc)),
            _ => Err(Error::NoCaller),
        }
    }

    fn spot(&mut self, thread: Thread) -> Result<Spot> {
        let registers = self.timeline.registers(thread)?.ok_or(Error::Strange)?;
        Ok(Spot { pc: registers.rip, sp: registers.gpr[4] })
    }

    fn word(&mut self, address: u64) -> Result<Option<u64>> {
        let bytes = self.timeline.memory(address, 8)?;
        Ok(bytes.try_into().ok().map(u64::from_le_bytes))
    }

    /// The line that we are at, if it is one of the program itself and no library's.
    fn line_here(&mut self) -> Result<Option<(FileId, u32)>> {
        let (program, pc) = (self.program()?, self.pc()?);
        Ok(program.line(pc).filter(|_| program.is_own(pc)).map(|l| (l.file, l.line)))
    }
}

/// Where a call that returns to an address may begin.
fn calls_before(address: u64) -> BTreeSet<u64> {
    CALL.map(|len| address.wrapping_sub(len)).collect()
}
