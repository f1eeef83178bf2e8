//! Where in the source is an instruction, as a person would say?

use crate::run::Run;
use program::debug::{FileId, Program, SourceLine};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use trace::{Flow, FrameId, Instance, InstructionId, Trace};

/// Number of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(pub u32);

/// A source line in a function; where there are no lines, an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function's name.
    pub function: Option<String>,
    /// The line; if none is known, there is an address.
    pub at: At,
    /// Does it belong to the user's own program?
    pub own: bool,
}

/// Which line, or which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// A line of a file.
    Line(FileId, u32),
    /// An address.
    Address(u64),
}

/// The places of all instructions of a run.
#[derive(Default)]
pub struct Places {
    list: Vec<Place>,
    /// By place: the first one of the same line, whatever the function.
    lines: Vec<PlaceId>,
    first: HashMap<At, PlaceId>,
    of: Vec<Option<PlaceId>>,
    others: HashMap<InstructionId, Vec<(PlaceId, Also)>>,
}

/// How an instruction belongs to another line besides its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Also {
    /// The line begins there, and has no code of its own.
    Begins,
    /// The instruction's line was inlined there.
    Inlined,
}

impl Places {
    /// Looks at the program's own code that ran, which `own` tells, and at that of
    /// libraries if they are to be shown.
    pub fn of(trace: &Trace, program: &Program, own: &[bool], libraries: bool) -> Places {
        let mut places = Places::default();
        let mut numbers: HashMap<Place, PlaceId> = HashMap::new();
        let with_lines = images_with_lines(trace, program, own, libraries);
        for (id, info) in trace.code.instructions() {
            let own = own[id.0 as usize];
            let shown = own || libraries;
            let place = shown.then(|| place(program, info.address(), own, &with_lines)).flatten();
            let others = match &place {
                Some(place) if own => others(program, info.address(), place),
                _ => Vec::new(),
            };
            let number = place.map(|place| places.number(&mut numbers, place));
            places.of.push(number);
            let others = others.into_iter().map(|(p, also)| (places.number(&mut numbers, p), also));
            let others: Vec<_> = others.collect();
            if !others.is_empty() {
                places.others.insert(id, others);
            }
        }
        places
    }

    fn number(&mut self, numbers: &mut HashMap<Place, PlaceId>, place: Place) -> PlaceId {
        let next = PlaceId(self.list.len() as u32);
        *numbers.entry(place.clone()).or_insert_with(|| {
            self.lines.push(*self.first.entry(place.at).or_insert(next));
            self.list.push(place);
            next
        })
    }

    /// The place that stands for all of the same line: copies of a function that was inlined or
    /// made from a template have a place each.
    pub fn same_line(&self, id: PlaceId) -> PlaceId {
        self.lines[id.0 as usize]
    }

    /// That place of a line, if some instruction is of that line before all others.
    pub fn line(&self, at: At) -> Option<PlaceId> {
        let line = *self.first.get(&at)?;
        let is_own = |place: &PlaceId| self.same_line(*place) == line;
        self.of.iter().flatten().any(is_own).then_some(line)
    }

    /// Other lines that an instruction of optimised code belongs to.
    pub fn others(&self, instruction: InstructionId) -> &[(PlaceId, Also)] {
        self.others.get(&instruction).map_or(&[], Vec::as_slice)
    }

    /// The place of an instruction. Start-up code and the like of a program that
    /// has lines has none.
    #[inline]
    pub fn at(&self, instruction: InstructionId) -> Option<PlaceId> {
        self.of[instruction.0 as usize]
    }

    /// The place that stands for the line of an instruction.
    #[inline]
    pub fn line_at(&self, instruction: InstructionId) -> Option<PlaceId> {
        self.at(instruction).map(|place| self.same_line(place))
    }

    /// What is known of a place.
    pub fn get(&self, id: PlaceId) -> &Place {
        &self.list[id.0 as usize]
    }

    /// All places.
    pub fn iter(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        self.list.iter().enumerate().map(|(n, place)| (PlaceId(n as u32), place))
    }
}

/// Which images have some line for code that ran.
fn images_with_lines(trace: &Trace, program: &Program, own: &[bool], libraries: bool) -> Vec<bool> {
    let mut with = vec![false; program.images().len()];
    for (id, info) in trace.code.instructions() {
        if let Some((image, _)) = program.image_at(info.address())
            && !with[image]
            && (libraries || own[id.0 as usize])
        {
            with[image] = program.line(info.address()).is_some();
        }
    }
    with
}

fn place(program: &Program, address: u64, own: bool, with_lines: &[bool]) -> Option<Place> {
    let named = |f: program::debug::Frame| Some((f.line?, f.function));
    let line = match own {
        true => program.own_frames(address).find_map(named),
        false => program.lines(address).into_iter().find_map(named),
    };
    if let Some((line, function)) = line {
        return Some(Place { function, at: At::Line(line.file, line.line), own });
    }
    let has_lines = program.image_at(address).is_some_and(|(image, _)| with_lines[image]);
    if has_lines || program.is_plt(address) {
        return None;
    }
    let function = program.function(address).map(|f| f.name.clone());
    Some(Place { function, at: At::Address(address), own })
}

/// Lines that begin at an address without code of their own, and lines that its own
/// line was inlined into.
fn others(program: &Program, address: u64, place: &Place) -> Vec<(Place, Also)> {
    let at = |line: SourceLine| At::Line(line.file, line.line);
    let shared = program.shared_lines(address).into_iter().filter(|l| program.is_own_line(*l));
    let shared = shared.map(|line| {
        (Place { function: place.function.clone(), at: at(line), own: true }, Also::Begins)
    });
    let outer = program.own_frames(address).filter_map(|frame| {
        let place = Place { at: at(frame.line?), function: frame.function, own: true };
        Some((place, Also::Inlined))
    });
    let all = shared.chain(outer).filter(|(other, _)| other.at != place.at);
    all.collect()
}

impl Run {
    /// The file that a person means by the end of its path. Where several fit, as when
    /// a library with debug information has one of that name too, it is the only one
    /// of which own code ran.
    pub fn source_name(&self, suffix: &str) -> String {
        let Err(program::debug::Error::AmbiguousFile { candidates, .. }) =
            self.program.source_file(suffix)
        else {
            return suffix.to_owned();
        };
        let ran = self.own_sources();
        let mut fitting = candidates.iter().filter(|c| ran.iter().any(|path| **path == ***c));
        match (fitting.next(), fitting.next()) {
            (Some(one), None) => one.to_string_lossy().into_owned(),
            _ => suffix.to_owned(),
        }
    }

    /// Sources of code that ran which were written to after the run was recorded: what is
    /// there now need not be what ran.
    pub fn changed_sources(&self) -> Vec<PathBuf> {
        let recorded = UNIX_EPOCH + Duration::from_secs(self.recording.manifest().created);
        let is_changed = |path: &PathBuf| {
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            // Times of recordings are whole seconds.
            modified.is_ok_and(|modified| modified >= recorded + Duration::from_secs(1))
        };
        let sources = self.own_sources().into_iter().map(|path| path.to_path_buf());
        sources.filter(is_changed).collect()
    }

    /// Sources of own code that ran.
    fn own_sources(&self) -> BTreeSet<Arc<Path>> {
        let own = self.places.iter().filter(|(_, place)| place.own);
        let files: BTreeSet<FileId> = own
            .filter_map(|(_, place)| match place.at {
                At::Line(file, _) => Some(file),
                At::Address(_) => None,
            })
            .collect();
        files.into_iter().map(|file| self.program.path(file)).collect()
    }

    /// The instance of the user's own program that an instance belongs to: itself,
    /// or the call that led into the library.
    pub fn own_instance(&self, at: Instance) -> Option<Instance> {
        let mut at = at;
        loop {
            let id = self.trace.instruction(at);
            if self.is_own(id) && self.places.at(id).is_some() {
                return Some(at);
            }
            at = self.call_of(self.trace.control.frame_of(at.time))?;
        }
    }

    /// The address of an instruction that only jumps. What it sees is as it is behind it, and names
    /// mean what they mean to it.
    pub fn jump(&self, at: Instance) -> Option<u64> {
        let info = self.trace.code.info(self.trace.instruction(at));
        matches!(info.flow, Flow::Branch | Flow::Jump).then(|| info.address())
    }

    /// The call that started an activation.
    pub fn call_of(&self, frame: FrameId) -> Option<Instance> {
        self.trace.control.frame(frame).call
    }
}
