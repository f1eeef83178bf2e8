//! A process that stands at an instant of a run, and moves when it is told to.

mod body;
mod branch;
mod child;
mod link;
mod talk;

pub use talk::{Answer, Ask, Look, Registers, Scanned, State};

use crate::{Error, Result};
use engine::{Goal, Instant, Region, Report, Stops, Survey, Thread};
use recording::Recording;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use whatif::{Change, Trigger};

/// How a survey ended.
pub enum Surveyed {
    /// With this.
    Done(Survey),
    /// Nobody counts accesses here.
    Impossible,
}

/// Our side of a walker. It ends when this is dropped.
pub struct Walker {
    socket: UnixStream,
    now: Instant,
    stops: Stops,
}

impl Walker {
    /// One at the first instruction. This process must not have other threads.
    pub fn new(recording: &Path) -> Result<Walker> {
        let socket = engine::apart(|socket| {
            child::serve(socket, Recording::open(recording));
        })?;
        let mut walker = Walker { socket, now: Instant::default(), stops: Stops::default() };
        walker.now = walker.state()?.now;
        Ok(walker)
    }

    /// Where it stands.
    pub fn now(&self) -> Instant {
        self.now
    }

    fn ask(&mut self, ask: &Ask) -> Result<Answer> {
        link::put(&self.socket, ask).map_err(Error::Gone)?;
        match link::get(&self.socket).map_err(Error::Gone)? {
            Answer::Failed(text) => Err(Error::Walker(text)),
            answer => Ok(answer),
        }
    }

    /// A copy of it that stands at the same instant.
    pub fn fork(&mut self) -> Result<Walker> {
        match self.ask(&Ask::Fork)? {
            Answer::Done => {}
            _ => return Err(Error::Strange),
        }
        let socket = link::get_socket(&self.socket).map_err(Error::Gone)?;
        Ok(Walker { socket, now: self.now, stops: self.stops.clone() })
    }

    /// Sets what it stops for.
    pub fn set_stops(&mut self, stops: &Stops) -> Result<()> {
        if self.stops == *stops {
            return Ok(());
        }
        self.stops = stops.clone();
        match self.ask(&Ask::Stops(stops.clone()))? {
            Answer::Done => Ok(()),
            _ => Err(Error::Strange),
        }
    }

    /// Moves forward.
    pub fn advance(&mut self, goal: &Goal) -> Result<Report> {
        match self.ask(&Ask::Advance(goal.clone()))? {
            Answer::Moved(report, now) => {
                self.now = now;
                Ok(report)
            }
            _ => Err(Error::Strange),
        }
    }

    /// Moves forward and notes the last thing it would have stopped for.
    pub fn scan(&mut self, goal: &Goal, thread: Option<Thread>) -> Result<Scanned> {
        match self.ask(&Ask::Scan(goal.clone(), thread))? {
            Answer::Scanned(scanned) => {
                self.now = scanned.now;
                Ok(*scanned)
            }
            _ => Err(Error::Strange),
        }
    }

    /// Begins a survey of the way to a goal.
    pub fn begin_survey(&mut self, stops: &Stops, goal: &Goal, look: Look) -> Result<()> {
        let ask = Ask::Survey(stops.clone(), goal.clone(), look);
        link::put(&self.socket, &ask).map_err(Error::Gone)
    }

    /// What the survey found, if it ends within this time.
    pub fn surveyed(&mut self, most: Duration) -> Result<Option<Surveyed>> {
        if !link::waits(&self.socket, most).map_err(Error::Gone)? {
            return Ok(None);
        }
        match link::get(&self.socket).map_err(Error::Gone)? {
            Answer::Surveyed(Some(survey)) => Ok(Some(Surveyed::Done(survey))),
            Answer::Surveyed(None) => Ok(Some(Surveyed::Impossible)),
            Answer::Failed(text) => Err(Error::Walker(text)),
            _ => Err(Error::Strange),
        }
    }

    /// Threads and the like.
    pub fn state(&mut self) -> Result<State> {
        match self.ask(&Ask::State)? {
            Answer::State(state) => Ok(state),
            _ => Err(Error::Strange),
        }
    }

    /// Registers of a thread.
    pub fn registers(&mut self, thread: Thread) -> Result<Option<Registers>> {
        match self.ask(&Ask::Registers(thread))? {
            Answer::Registers(registers) => Ok(registers.map(|r| *r)),
            _ => Err(Error::Strange),
        }
    }

    /// Memory from an address, as far as there is any.
    pub fn memory(&mut self, address: u64, len: usize) -> Result<Vec<u8>> {
        match self.ask(&Ask::Memory(address, len as u64))? {
            Answer::Memory(bytes) => Ok(bytes),
            _ => Err(Error::Strange),
        }
    }

    /// What is mapped.
    pub fn regions(&mut self) -> Result<Vec<Region>> {
        match self.ask(&Ask::Regions)? {
            Answer::Regions(regions) => Ok(regions),
            _ => Err(Error::Strange),
        }
    }

    /// Files the program has opened so far: paths, and names of their contents.
    pub fn files(&mut self) -> Result<Vec<(Vec<u8>, String)>> {
        match self.ask(&Ask::Files)? {
            Answer::Files(files) => Ok(files),
            _ => Err(Error::Strange),
        }
    }

    /// Changes something, now and where triggers say, and leaves history.
    pub fn alter(&mut self, change: &Change, triggers: &[Trigger]) -> Result<()> {
        match self.ask(&Ask::Alter(change.clone(), triggers.to_vec()))? {
            Answer::Altered(now) => {
                self.now = now;
                // It forgot them with history.
                self.stops = Stops::default();
                Ok(())
            }
            _ => Err(Error::Strange),
        }
    }

    /// A number that all walkers at this instant have in common.
    pub fn fingerprint(&mut self) -> Result<u64> {
        match self.ask(&Ask::Fingerprint)? {
            Answer::Fingerprint(hash) => Ok(hash),
            _ => Err(Error::Strange),
        }
    }
}
