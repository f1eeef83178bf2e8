//! Where a person sits: one run, what it is to stop for, and the verbs that both
//! gdb (through its monitor command) and the plain prompt understand.

mod changes;
mod library;
mod moves;
mod places;
mod prompt;
mod slices;
mod state;
mod verbs;

use crate::{Error, Result, Timeline, Wanted};
use engine::Instant;
use library::LibraryBreak;
use position::Run;
use recording::Recording;
use slices::Sliced;
use std::collections::BTreeMap;
use std::path::Path;

/// An instant that is kept by number.
struct Kept {
    at: Instant,
    name: String,
}

/// A run, and what is known of it.
pub struct Desk {
    /// Where we are.
    pub timeline: Timeline,
    /// What to stop for.
    pub wanted: Wanted,
    /// What went wrong, or what was met, that the other side has no word for.
    pub notice: Option<String>,
    run: Option<Run>,
    auxv: Vec<u8>,
    slices: BTreeMap<u32, Sliced>,
    /// The slice that steps are made along.
    along: Option<u32>,
    /// What slices see: from, to (instruction numbers).
    region: (Option<u64>, Option<u64>),
    library: BTreeMap<u32, LibraryBreak>,
    kept: BTreeMap<u32, Kept>,
}

impl Desk {
    /// At the first instruction of a recording.
    pub fn open(recording: &Path) -> Result<Desk> {
        let mut timeline = Timeline::open(recording)?;
        let auxv = auxiliary_vector(&mut timeline)?;
        let wanted = Wanted { signals: true, ..Wanted::default() };
        let mut desk = Desk {
            timeline,
            wanted,
            notice: None,
            run: None,
            auxv,
            slices: BTreeMap::new(),
            along: None,
            region: (None, None),
            library: BTreeMap::new(),
            kept: BTreeMap::new(),
        };
        desk.load_slices();
        Ok(desk)
    }

    /// The auxiliary vector that the program was started with.
    pub fn auxv(&self) -> &[u8] {
        &self.auxv
    }

    fn recording(&self) -> Result<Recording> {
        Recording::open(self.timeline.recording())
            .map_err(|e| Error::Engine(engine::Error::from(e)))
    }

    /// The whole trace and the program's symbols, made when they are first needed.
    fn run(&mut self) -> Result<&Run> {
        if self.run.is_none() {
            self.run = Some(Run::open(self.recording()?, &mut |_| ())?);
        }
        self.run.as_ref().ok_or(Error::Strange)
    }
}

/// Behind arguments and environment on the first stack.
fn auxiliary_vector(timeline: &mut Timeline) -> Result<Vec<u8>> {
    let thread = timeline.state()?.threads.first().ok_or(Error::Strange)?.thread;
    let sp = timeline.registers(thread)?.ok_or(Error::Strange)?.gpr[4];
    let mut word = |at: u64| -> Result<u64> {
        let bytes = timeline.memory(at, 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| Error::Strange)?))
    };
    let mut at = sp + 8 * (word(sp)? + 2);
    while word(at)? != 0 {
        at += 8;
    }
    at += 8;
    let start = at;
    while word(at)? != 0 {
        at += 16;
    }
    timeline.memory(start, (at + 16 - start) as usize)
}
