//! What do people call an instance? `f.c:12#4`.

use crate::beginnings::Beginnings;
use crate::counts::Counts;
use crate::executions::Targets;
use crate::places::{At, PlaceId};
use crate::run::Run;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use trace::{FrameId, Instance, InstructionId};

/// An execution of a line, and where an instance stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The line.
    pub place: PlaceId,
    /// Which of the line's executions it belongs to, from 1.
    pub nth: u64,
    /// The first instance of that execution.
    pub entry: Instance,
}

/// Names of many instances, found in one pass over the run.
pub struct Names<'a> {
    run: &'a Run,
    named: HashMap<Instance, Named>,
    /// How often each line was executed, by place.
    totals: Vec<u64>,
    beginnings: Beginnings,
}

impl<'a> Names<'a> {
    /// Looks for the names of instances. Those that have no place have no name.
    pub fn of(run: &'a Run, instances: impl IntoIterator<Item = Instance>) -> Names<'a> {
        // Executions of a line are counted together, whatever the function.
        let line = |at: &Instance| run.places.line_at(run.trace.instruction(*at));
        let mut wanted: Vec<(Instance, PlaceId, FrameId)> = instances
            .into_iter()
            .filter_map(|at| Some((at, line(&at)?, run.trace.control.frame_of(at.time))))
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let (named, totals, beginnings) = Default::default();
        let mut names = Names { run, named, totals, beginnings };
        names.count(&wanted);
        names
    }

    fn count(&mut self, wanted: &[(Instance, PlaceId, FrameId)]) {
        let lines: HashSet<PlaceId> = wanted.iter().map(|(_, place, _)| *place).collect();
        let run = self.run;
        let groups = Targets::groups(&run.trace, |id| {
            run.places.line_at(id).filter(|line| lines.contains(line)).map(|line| line.0)
        });
        let counts = Counts::of(&run.trace, &groups);
        self.totals = counts.totals();
        self.beginnings = counts.beginnings();
        let entries = counts.entries(wanted.iter().map(|w| (w.0, w.1.0, w.2)));
        for (at, entry, nth) in entries {
            if let Some(place) = run.places.at(run.trace.instruction(at)) {
                self.named.insert(at, Named { place, nth, entry });
            }
        }
    }

    /// What is known of an instance's name.
    pub fn get(&self, at: Instance) -> Option<Named> {
        self.named.get(&at).copied()
    }

    /// How often a line was executed.
    pub fn total(&self, place: PlaceId) -> u64 {
        let line = self.run.places.same_line(place);
        self.totals.get(line.0 as usize).copied().unwrap_or(0)
    }

    /// In how many executions of a line did some of its instructions take part, of which `met` has
    /// how often each did?
    pub fn together(&self, place: PlaceId, met: &[(InstructionId, u64)]) -> u64 {
        self.beginnings.together(met).min(self.total(place))
    }

    /// The name, as a position that can be given to any verb.
    pub fn name(&self, at: Instance) -> String {
        let Some(named) = self.get(at) else {
            return format!("@{}", self.run.trace.number(at));
        };
        let place = self.run.place_name(named.place);
        let total = self.total(named.place);
        let trace = &self.run.trace;
        match (trace.is_from_start(), trace.ended.complete) {
            (true, _) if total == 1 => place,
            (true, _) => format!("{place}#{}", named.nth),
            // How often it ran before is not known; how often since, is. The last one is
            // meant where none is named.
            (false, true) if total == named.nth => place,
            (false, true) => format!("{place}#-{}", total - named.nth + 1),
            (false, false) => format!("@{}", trace.number(at)),
        }
    }

    /// The thread of an instance, if the run has several.
    pub fn thread(&self, at: Instance) -> Option<u32> {
        let spans = &self.run.trace.spans.spans;
        let first = spans.first()?.thread;
        spans.iter().any(|s| s.thread != first).then(|| self.run.trace.thread(at.time))
    }
}

impl Run {
    /// A line as people write it: the file without its folders, if that is enough.
    pub fn place_name(&self, place: PlaceId) -> String {
        match self.places.get(place).at {
            At::Line(file, line) => {
                let path = self.program.path(file);
                format!("{}:{line}", self.short_path(&path))
            }
            At::Address(address) => format!("{address:#x}"),
        }
    }

    /// As much of a path as tells it from the others of the run.
    pub fn short_path(&self, path: &Path) -> String {
        let parts: Vec<_> = path.components().collect();
        for n in 1..=parts.len() {
            let short: std::path::PathBuf = parts[parts.len() - n..].iter().collect();
            let others = self.files.iter().filter(|p| p.ends_with(&short)).count();
            if others <= 1 {
                return short.display().to_string();
            }
        }
        path.display().to_string()
    }
}
