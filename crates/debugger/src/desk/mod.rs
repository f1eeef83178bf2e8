//! Where a person sits: one run, what it is to stop for, and the verbs that both
//! gdb (through its monitor command) and the plain prompt understand.

mod breaks;
mod changes;
mod in_slice;
mod library;
mod lines;
mod moves;
mod places;
mod prompt;
mod slices;
mod state;
mod verbs;
mod writes;

use crate::{Error, Result, Timeline, Wanted};
use breaks::Condition;
use engine::Instant;
use engine::trace::Mapped;
use library::LibraryBreak;
use position::Run;
use program::debug::Program;
use recording::Recording;
use slices::Sliced;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

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
    /// Only a slice, of which there is no trace?
    is_slice: bool,
    /// Addresses of its instructions, in ascending order.
    points: Vec<u64>,
    /// Symbols and types, if there is no trace to take them from.
    symbols: Option<Arc<Program>>,
    auxv: Vec<u8>,
    slices: BTreeMap<u32, Sliced>,
    /// The slice that steps are made along.
    along: Option<u32>,
    /// What slices see: from, to (instruction numbers).
    region: (Option<u64>, Option<u64>),
    library: BTreeMap<u32, LibraryBreak>,
    /// When breakpoints of the plain prompt are meant, by address.
    conditions: BTreeMap<u64, Vec<Condition>>,
    /// Where a move ends that is under way, whatever conditions say.
    passing: BTreeSet<u64>,
    kept: BTreeMap<u32, Kept>,
    searches: Option<Search>,
    /// What the plain prompt was told last.
    last_line: String,
}

/// Answers questions that take a whole search, such as `critical`: from the words of
/// one to what is to be shown.
pub type Search = Box<dyn Fn(&[&str]) -> String>;

impl Desk {
    /// At the first instruction of a recording.
    pub fn open(recording: &Path) -> Result<Desk> {
        let mut timeline = Timeline::open(recording)?;
        let auxv = timeline.state()?.auxv;
        let opened = Recording::open(recording).ok();
        let slice = opened.filter(|r| r.manifest().region.is_some_and(|region| region.slice));
        // Without them, breakpoints are taken as they are.
        let points = slice.as_ref().and_then(|slice| engine::slice_addresses(slice).ok());
        let wanted = Wanted { signals: true, ..Wanted::default() };
        let mut desk = Desk {
            timeline,
            wanted,
            notice: None,
            run: None,
            is_slice: slice.is_some(),
            points: points.unwrap_or_default(),
            symbols: None,
            auxv,
            slices: BTreeMap::new(),
            along: None,
            region: (None, None),
            library: BTreeMap::new(),
            conditions: BTreeMap::new(),
            passing: BTreeSet::new(),
            kept: BTreeMap::new(),
            searches: None,
            last_line: String::new(),
        };
        desk.load_slices();
        Ok(desk)
    }

    /// Lets somebody else answer what takes a whole search.
    pub fn search_with(&mut self, search: Search) {
        self.searches = Some(search);
    }

    /// The auxiliary vector that the program was started with.
    pub fn auxv(&self) -> &[u8] {
        &self.auxv
    }

    fn recording(&self) -> Result<Recording> {
        Recording::open(self.timeline.recording())
            .map_err(|e| Error::Engine(engine::Error::from(e)))
    }

    /// What the binaries say: from the trace, or from what a slice has mapped.
    fn program(&mut self) -> Result<Arc<Program>> {
        if !self.is_slice {
            return Ok(self.run()?.program.clone());
        }
        if self.symbols.is_none() {
            let files = self.timeline.files()?;
            let mapped = self.timeline.regions()?.into_iter().map(|region| Mapped {
                start: region.start,
                end: region.end,
                offset: region.offset,
                executable: region.protection[2],
                file: files.iter().find(|(path, _)| *path == region.name).map(|f| f.1.clone()),
                path: region.name,
            });
            let mapped: Vec<Mapped> = mapped.collect();
            self.symbols = Some(Arc::new(trace::program_of(&self.recording()?, &mapped)));
        }
        self.symbols.clone().ok_or(Error::Strange)
    }

    /// The whole trace and the program's symbols, made when they are first needed.
    fn run(&mut self) -> Result<&Run> {
        if self.run.is_none() {
            self.run = Some(Run::open(self.recording()?, &mut |_| ())?);
        }
        self.run.as_ref().ok_or(Error::Strange)
    }
}
