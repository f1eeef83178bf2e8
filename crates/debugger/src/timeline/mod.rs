//! A run in which one moves both ways.
//!
//! One walker is where we are. Others stand still at earlier instants, made by
//! forking while moving; going back means copying one of those and letting it walk
//! the rest. So what is seen at an instant is always what a replay to it shows.

mod backward;
mod branch;
mod checkpoints;
mod scouts;

use crate::walker::{Registers, State, Walker};
use crate::{Error, Result};
use branch::History;
use checkpoints::Checkpoints;
use engine::{Calls, Goal, Instant, Readiness, Region, Report, Stopped, Stops, Thread, To, Trail};
use recording::Ending;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

/// Instructions between two looks at whether to go on.
const SLICE: u64 = 4_000_000;
/// The same at the beginning, where most time goes into translation.
const FIRST_PIECE: u64 = 30_000;

/// What to stop for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Breakpoints and watched memory.
    pub stops: Stops,
    /// System calls.
    pub calls: Calls,
    /// Signals?
    pub signals: bool,
    /// When so many instructions have been executed.
    pub marks: BTreeSet<u64>,
}

/// Why moving ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is where it was to go, or its step is made.
    There,
    /// A breakpoint.
    Break,
    /// A mark.
    Mark,
    /// Watched memory was touched, or is about to be if we came backward.
    Watched(engine::Watch),
    /// A system call is about to be made.
    Call(u64),
    /// A system call has come back.
    Returned(u64),
    /// A signal is about to be delivered.
    Signal(i32),
    /// The beginning of the run.
    Begin,
    /// The end of the run; `None` if the recording breaks off there.
    End(Option<Ending>),
    /// A run that left its log cannot go on, and why.
    Stuck(String),
    /// Somebody asked to stop.
    Interrupted,
}

/// Where moving ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub met: Met,
    /// The thread that it concerns.
    pub thread: Thread,
}

/// A run in which one moves both ways.
pub struct Timeline {
    recording: PathBuf,
    walker: Walker,
    checkpoints: Checkpoints,
    end: Option<(Instant, Option<Ending>)>,
    /// What was set aside when history was left.
    history: Option<History>,
    trail: Option<(Thread, Trail)>,
    interrupted: Box<dyn FnMut() -> bool>,
    since_checkpoint: Duration,
    _counting: Readiness,
}

impl Timeline {
    /// At the first instruction of a recording. The process must not have other
    /// threads.
    pub fn open(recording: &Path) -> Result<Timeline> {
        let mut walker = Walker::new(recording)?;
        let checkpoints = Checkpoints::new(walker.fork()?);
        Ok(Timeline {
            recording: recording.to_owned(),
            walker,
            checkpoints,
            end: None,
            history: None,
            trail: None,
            interrupted: Box::new(|| false),
            since_checkpoint: Duration::ZERO,
            _counting: Readiness::new(),
        })
    }

    /// Asks this from time to time whether to go on.
    pub fn interrupt_by(&mut self, interrupted: Box<dyn FnMut() -> bool>) {
        self.interrupted = interrupted;
    }

    /// Did somebody ask to stop?
    pub fn is_interrupted(&mut self) -> bool {
        (self.interrupted)()
    }

    /// The recording's folder.
    pub fn recording(&self) -> &Path {
        &self.recording
    }

    /// Where we are.
    pub fn now(&self) -> Instant {
        self.walker.now()
    }

    /// The last instant, if we have been there: how the run ended.
    pub fn end(&self) -> Option<(Instant, Option<Ending>)> {
        self.end
    }

    /// Threads, the running one first.
    pub fn state(&mut self) -> Result<State> {
        self.walker.state()
    }

    /// Registers of a thread.
    pub fn registers(&mut self, thread: Thread) -> Result<Option<Registers>> {
        self.walker.registers(thread)
    }

    /// Memory from an address, as far as there is any.
    pub fn memory(&mut self, address: u64, len: usize) -> Result<Vec<u8>> {
        self.walker.memory(address, len)
    }

    /// What is mapped.
    pub fn regions(&mut self) -> Result<Vec<Region>> {
        self.walker.regions()
    }

    /// Files the program has opened so far: paths, and names of their contents.
    pub fn files(&mut self) -> Result<Vec<(Vec<u8>, String)>> {
        self.walker.files()
    }

    /// A number that is the same whenever we are at this instant.
    pub fn fingerprint(&mut self) -> Result<u64> {
        self.walker.fingerprint()
    }

    /// The first instant: that of the first instruction, except in a slice.
    pub fn first(&self) -> Instant {
        self.checkpoints.instants().first().copied().unwrap_or_default()
    }

    /// Instants that are kept, earliest first.
    pub fn kept(&self) -> Vec<Instant> {
        self.checkpoints.instants()
    }

    /// Runs forward until something is met.
    pub fn forward(&mut self, wanted: &Wanted) -> Result<Stop> {
        let mark = wanted.marks.range(self.now().instructions + 1..).next();
        let to = mark.map_or(To::End, |mark| To::Number(*mark));
        let stop = self.move_on(wanted, to, None)?;
        let marked = stop.met == Met::There;
        Ok(if marked { Stop { met: Met::Mark, ..stop } } else { stop })
    }

    /// Lets one thread make a step forward: one instruction, or on until it leaves a
    /// range of addresses. The others run as they did.
    pub fn step(&mut self, thread: Thread, range: Range<u64>, wanted: &Wanted) -> Result<Stop> {
        self.move_on(wanted, To::End, Some((thread, range)))
    }

    fn move_on(
        &mut self,
        wanted: &Wanted,
        to: To,
        step: Option<(Thread, Range<u64>)>,
    ) -> Result<Stop> {
        if self.end.is_some_and(|(end, _)| self.now() >= end) && to == To::End {
            return self.at_end();
        }
        let mut to = to;
        if let Some((left, first)) = self.is_before_branch() {
            let stop = self.move_within(wanted, To::Instant(left), step.clone())?;
            if stop.met != Met::There || self.now() != left {
                return Ok(stop);
            }
            self.copy_from(first)?;
            if to == To::Number(first.instructions) {
                to = To::Instant(first);
            }
        }
        self.move_within(wanted, to, step)
    }

    fn move_within(
        &mut self,
        wanted: &Wanted,
        to: To,
        step: Option<(Thread, Range<u64>)>,
    ) -> Result<Stop> {
        self.walker.set_stops(&wanted.stops)?;
        let mut goal = Goal {
            to,
            most: SLICE,
            here: false,
            step,
            calls: wanted.calls.clone(),
            signals: wanted.signals,
        };
        let report = loop {
            let report = self.advance(&goal)?;
            if report.stopped != Stopped::Paused {
                break report;
            }
            if (self.interrupted)() {
                return self.stop(Met::Interrupted);
            }
            goal.here = true;
        };
        self.reported(&report)
    }

    /// One piece of a way forward, with checkpoints behind it.
    fn advance(&mut self, goal: &Goal) -> Result<Report> {
        let clock = Clock::now();
        let most = goal.most.min(self.piece());
        let report = self.walker.advance(&Goal { most, ..goal.clone() })?;
        self.since_checkpoint += clock.elapsed();
        let alive = !matches!(report.stopped, Stopped::Ended(_) | Stopped::LogEnds);
        if alive && self.since_checkpoint > self.checkpoints.spacing() {
            self.checkpoint();
        }
        Ok(report)
    }

    /// Instructions between two looks at the clock: few where a run begins.
    fn piece(&self) -> u64 {
        (self.now().instructions / 2).clamp(FIRST_PIECE, SLICE)
    }

    /// Keeps the present instant, so that coming back to it is quick. Where a run cannot be forked, going back walks a
    /// longer way instead.
    pub fn checkpoint(&mut self) {
        self.since_checkpoint = Duration::ZERO;
        let now = self.now();
        if self.checkpoints.has(now) {
            return;
        }
        let clock = Clock::now();
        if let Ok(copy) = self.walker.fork() {
            self.checkpoints.keep(copy, clock.elapsed());
        }
    }

    fn stop(&mut self, met: Met) -> Result<Stop> {
        let thread = self.state()?.threads.first().ok_or(Error::Strange)?.thread;
        Ok(Stop { met, thread })
    }

    fn reported(&mut self, report: &Report) -> Result<Stop> {
        let thread = report.thread;
        let met = match &report.stopped {
            Stopped::There | Stopped::Stepped | Stopped::Paused => Met::There,
            Stopped::Break => Met::Break,
            Stopped::Watched(watch) => Met::Watched(*watch),
            Stopped::Call(number) => Met::Call(*number),
            Stopped::Returned(number) => Met::Returned(*number),
            Stopped::Signal(signal) => Met::Signal(*signal),
            Stopped::Stuck(why) => Met::Stuck(why.clone()),
            Stopped::Ended(ending) => return self.ended(report.before, Some(*ending)),
            Stopped::LogEnds => return self.ended(report.before, None),
        };
        Ok(Stop { met, thread })
    }

    /// The run is over: stand at its last instant.
    fn ended(&mut self, last: Instant, ending: Option<Ending>) -> Result<Stop> {
        self.end = Some((last, ending));
        self.copy_from(last)?;
        self.walk_to(To::Instant(last))?;
        self.at_end()
    }

    fn at_end(&mut self) -> Result<Stop> {
        let ending = self.end.and_then(|(_, ending)| ending);
        self.stop(Met::End(ending))
    }

    /// Goes to an instant.
    pub fn go_to(&mut self, instant: Instant) -> Result<()> {
        let now = self.now();
        let nearest = self.checkpoints.latest(instant).unwrap_or_default();
        if instant < now || nearest > now {
            self.copy_from(instant)?;
        }
        self.climb(instant)?;
        self.walk_to(To::Instant(instant))
    }

    /// Goes to where so many instructions have been executed, or to the end if there
    /// are not so many.
    pub fn go_to_number(&mut self, number: u64) -> Result<()> {
        let number = number.max(self.first().instructions);
        let aim = Instant { instructions: number, happened: 0 };
        let now = self.now();
        let nearest = self.checkpoints.latest(aim).unwrap_or_default();
        if aim <= now || nearest > now {
            self.copy_from(aim)?;
        }
        self.climb(aim)?;
        self.walk_to(To::Number(number))
    }

    /// Goes to the last instant of the run.
    pub fn go_to_end(&mut self) -> Result<()> {
        match self.end {
            Some((end, _)) => self.go_to(end),
            None => self.forward(&Wanted::default()).map(drop),
        }
    }

    /// Stands at the latest kept instant that is not after this one.
    fn copy_from(&mut self, instant: Instant) -> Result<()> {
        self.walker = self.checkpoints.copy(instant)?;
        Ok(())
    }

    fn walk_to(&mut self, to: To) -> Result<()> {
        self.walker.set_stops(&Stops::default())?;
        let mut goal = Goal::to(to);
        goal.most = SLICE;
        loop {
            let report = self.advance(&goal)?;
            match report.stopped {
                Stopped::Paused if (self.interrupted)() => return Err(Error::Interrupted),
                Stopped::Paused => {}
                // Where the end was found, there is no way beyond it.
                Stopped::Ended(_) if self.end.is_some_and(|(end, _)| end == report.before) => {
                    return Err(Error::Strange);
                }
                Stopped::Ended(ending) => return self.ended(report.before, Some(ending)).map(drop),
                Stopped::LogEnds => return self.ended(report.before, None).map(drop),
                _ => return Ok(()),
            }
        }
    }
}
