//! Making a region of a recording a recording of its own.

use super::contents;
use crate::Error;
use crate::code::Profile;
use crate::replay::replayer::{Finish, Halt};
use crate::replay::{Goal, Replayer, SILENT, Stopped, To, Until};
use recording::event::{Effect, Encoder, Event, When};
use recording::{Ending, Outcome, Process, REGION_FORMAT, Recording, Region, Writer};
use std::collections::BTreeMap;
use std::path::Path;

type Counters = BTreeMap<String, u64>;

/// What was cut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Instructions of the original run that come before it.
    pub from: u64,
    /// How many instructions it has.
    pub instructions: u64,
    /// How it ends.
    pub ending: Ending,
}

/// Told how many instructions have been replayed; false ends the work.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Instructions between two calls of it.
pub(super) const BETWEEN_TELLING: u64 = 1 << 24;

/// Makes the part of a run from one instruction to another a recording in `dir`, a new
/// or empty folder. It ends at the first safepoint or event that is not before `to`.
pub fn cut(
    recording: &Recording,
    from: u64,
    to: u64,
    dir: &Path,
    progress: Progress,
) -> Result<Cut, Error> {
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &SILENT)?;
    replayer.keep_world(recording)?;
    replayer.go_to(from, progress)?;
    let first = replayer.log.number();
    let threads = replayer.tasks.len() as u64;
    let mut writer = create(recording, dir, Region { from, slice: false })?;
    write_entry(&mut replayer, &mut writer, &[])?;
    let end = replayer.end_of_region(to, progress)?;
    let instructions = replayer.instructions() - from;
    let mut counters = copy_events(recording, first..replayer.log.number(), &mut writer)?;
    *counters.entry("threads".to_owned()).or_default() += threads;
    counters.insert("instructions".to_owned(), instructions);
    finish(recording, writer, end, counters)?;
    Ok(Cut { from, instructions, ending: end.ending() })
}

/// How a region ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// With the run.
    Run(Ending),
    /// Before.
    Before(When),
}

impl End {
    fn ending(self) -> Ending {
        match self {
            End::Run(ending) => ending,
            End::Before(_) => Ending::Cut,
        }
    }
}

/// Says how far the work is.
pub(super) fn tell(done: u64, progress: Progress) -> Result<(), Error> {
    progress(done).then_some(()).ok_or(Error::Interrupted)
}

/// A recording without events, with the files of another.
pub(super) fn create(recording: &Recording, dir: &Path, region: Region) -> Result<Writer, Error> {
    let mut manifest = recording.manifest().clone();
    manifest.format = REGION_FORMAT;
    let before = manifest.region.map_or(0, |whole| whole.from);
    manifest.region = Some(Region { from: before + region.from, ..region });
    manifest.process = Process { pid: manifest.process.pid, ..Process::default() };
    recording::prepare(dir)?;
    recording.share_files(dir)?;
    let options = recording::Options {
        lowest_fd: crate::sys::first_engine_fd(),
        ..recording::Options::default()
    };
    Ok(Writer::create(dir, &manifest, &options)?)
}

/// Writes what the run consists of where the replay stands, and which addresses a slice
/// has.
pub(super) fn write_entry(
    replayer: &mut Replayer,
    writer: &mut Writer,
    addresses: &[u64],
) -> Result<(), Error> {
    let entry = replayer.entry()?;
    let state = postcard::to_allocvec(&(&entry, addresses))
        .map_err(|_| Error::CannotGoOn("the state here cannot be written down".to_owned()))?;
    writer.append(Encoder::default().entry(&state).bytes())?;
    contents::write(&entry.regions, &mut |event| Ok(writer.append(event)?))
}

/// Copies events, and counts what an outcome counts.
fn copy_events(
    recording: &Recording,
    numbers: std::ops::Range<u64>,
    writer: &mut Writer,
) -> Result<Counters, Error> {
    let mut reader = recording.reader()?;
    let [mut calls, mut signals, mut switches, mut threads] = [0; 4];
    for number in 0..numbers.end {
        let Some(event) = reader.next()? else { break };
        if number < numbers.start {
            continue;
        }
        match Event::decode(event) {
            Ok(Event::Call { effects, .. }) => {
                calls += 1;
                let spawns = |effect: &_| matches!(effect, Ok(Effect::Spawned { .. }));
                threads += effects.iter().filter(spawns).count() as u64;
            }
            Ok(Event::Signal { .. }) => signals += 1,
            Ok(Event::Switch { .. }) => switches += 1,
            _ => {}
        }
        writer.append(event)?;
    }
    let named =
        [("syscalls", calls), ("signals", signals), ("switches", switches), ("threads", threads)];
    Ok(named.map(|(name, n)| (name.to_owned(), n)).into())
}

pub(super) fn finish(
    recording: &Recording,
    mut writer: Writer,
    end: End,
    counters: Counters,
) -> Result<(), Error> {
    if let End::Before(when) = end {
        writer.append(Encoder::default().cut(when).bytes())?;
    }
    let mut outcome = Outcome::new(end.ending());
    if let Some(whole) = recording.outcome() {
        outcome.unsupported = whole.unsupported.clone();
        outcome.partly_captured = whole.partly_captured.clone();
    }
    outcome.counters = counters;
    Ok(writer.finish(&outcome)?)
}

impl Replayer {
    /// To just before an instruction.
    pub(super) fn go_to(&mut self, number: u64, progress: Progress) -> Result<(), Error> {
        if self.move_to(number, progress)? == Stopped::There {
            return Ok(());
        }
        let ran = self.instructions();
        Err(Error::CannotGoOn(format!(
            "the run has {ran} instructions, so none has number {number}"
        )))
    }

    fn move_to(&mut self, number: u64, progress: Progress) -> Result<Stopped, Error> {
        let goal = Goal { most: BETWEEN_TELLING, ..Goal::to(To::Number(number)) };
        loop {
            match self.advance(&goal)?.stopped {
                Stopped::Paused => tell(self.instructions(), progress)?,
                stopped => return Ok(stopped),
            }
        }
    }

    /// Goes on to where a region may end, not before an instruction. The log stands
    /// behind the region's last event then.
    fn end_of_region(&mut self, to: u64, progress: Progress) -> Result<End, Error> {
        if let Stopped::Ended(ending) = self.move_to(to, progress)? {
            return Ok(self.run_end(ending));
        }
        let reached = self.log.number();
        loop {
            let idle = !self.in_call.contains_key(&self.current);
            if self.log.number() > reached && idle && !self.is_due_here()? {
                return Ok(End::Before(When::Here));
            }
            let passed = self.safepoints();
            match self.step_to_safepoint() {
                Ok(()) => {}
                Err(Halt::Finish(Finish::Ended(ending))) => return Ok(self.run_end(ending)),
                Err(Halt::Finish(_)) => return Ok(End::Run(Ending::Unknown)),
                Err(Halt::Error(error)) => return Err(error),
            }
            if self.log.number() == reached && self.safepoints() > passed {
                return Ok(End::Before(When::Safepoint(self.safepoints())));
            }
        }
    }

    /// The run ends: its last event, which is still ahead, is the region's.
    fn run_end(&mut self, ending: Ending) -> End {
        if matches!(self.log.peek(), Ok(Some(_))) {
            let _ = self.log.advance();
        }
        End::Run(ending)
    }

    fn is_due_here(&mut self) -> Result<bool, Error> {
        let next = self.log.peek()?;
        Ok(matches!(
            next,
            Some(
                Event::Signal { when: When::Here, .. }
                    | Event::Shared { when: When::Here, .. }
                    | Event::Memory { .. }
            )
        ))
    }

    /// Runs guest code over one safepoint, or to the next event.
    fn step_to_safepoint(&mut self) -> Result<(), Halt> {
        match self.run_guest(Until::End, 1)? {
            Some(crate::guest::machine::Stop::Safepoint) if self.safepoints_left()? > 0 => Ok(()),
            Some(stop) => self.after_stop(&stop),
            None => Ok(()),
        }
    }
}
