//! A slice as an answer: lines with their code, how often they take part, the
//! values they saw, and where it all came from.

use crate::gather::{Gather, KEPT, LinePart};
use crate::known::Known;
use crate::values::{Value, code, values};
use position::{At, Error, Names, Run};
use serde::{Deserialize, Serialize};
use slice::{Distance, Options, Origins, Slicer, Start, Visitor};
use std::collections::HashSet;
use trace::{Instance, InstructionId, Time};

/// Which way a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What the criterion depended on.
    Backward,
    /// What depended on the criterion.
    Forward,
    /// Both.
    Both,
    /// What lies on the way from one to another.
    Chop,
}

/// One line of a slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Its function.
    pub function: Option<String>,
    /// Its file, if it is known.
    pub file: Option<String>,
    /// Its number, if it is known.
    pub line: Option<u32>,
    /// The instruction's address where no line is known.
    pub address: Option<u64>,
    /// The source; for an instruction, its text.
    pub code: Option<String>,
    /// Dependences between it and the criterion.
    pub distance: Distance,
    /// Executions that take part.
    pub instances: u64,
    /// Of these, such as are in by a potential dependence alone: had the branch
    /// gone the other way, it might have defined what was wanted.
    #[serde(default)]
    pub potential: u64,
    /// Executions in the whole run.
    pub executions: u64,
    /// The latest of them, latest first.
    pub latest: Vec<Execution>,
}

/// One execution of a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Execution {
    /// Its name.
    pub position: String,
    /// Its thread, if there are several.
    pub thread: Option<u32>,
    /// Instructions executed before.
    pub number: u64,
    /// What it saw.
    pub values: Vec<Value>,
}

/// Bytes that came from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// From where.
    pub from: String,
    /// First byte.
    pub start: u64,
    /// First byte behind them.
    pub end: u64,
}

/// The answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceReport {
    /// Of this form.
    pub version: u32,
    /// The criterion, as it was asked.
    pub criterion: String,
    /// Which way.
    pub kind: Kind,
    /// What was followed, in words.
    pub followed: String,
    /// Instructions that the run executed.
    pub instructions: u64,
    /// Instances in the slice.
    pub instances: u64,
    /// Of these, such as belong to no line of the program.
    pub instances_elsewhere: u64,
    /// Lines that the run executed: of the program, and of libraries if their insides are shown.
    pub executed_lines: u64,
    /// Lines, grouped by function; nearest first.
    pub lines: Vec<Line>,
    /// What came from outside.
    pub origins: Vec<Origin>,
    /// Does the trace reach the end of the run?
    pub complete: bool,
}

/// What is to be reported on.
pub struct Question<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its slicer.
    pub slicer: &'a Slicer<'a>,
    /// The criterion, as it was asked.
    pub criterion: &'a str,
    /// What is followed.
    pub options: &'a Options,
    /// The insides of libraries are shown.
    pub via_lib: bool,
}

impl Question<'_> {
    fn gather(&self) -> Gather<'_> {
        Gather::new(self.run, self.via_lib)
    }

    /// What the criterion depended on.
    pub fn backward(&self, starts: &[Start]) -> Result<SliceReport, Error> {
        let (gather, origins) = self.slicer.visit(starts, self.options, &|| self.gather());
        self.report(Kind::Backward, &gather, &origins)
    }

    /// What depended on the criterion.
    pub fn forward(&self, starts: &[Start]) -> Result<SliceReport, Error> {
        let gather = self.slicer.forward(starts, self.options, self.gather().onward(None));
        self.report(Kind::Forward, &gather, &Origins::default())
    }

    /// Both: what lies on a way through the criterion.
    pub fn both(&self, starts: &[Start], onward: &[Start]) -> Result<SliceReport, Error> {
        let (gather, origins) = self.slicer.visit(starts, self.options, &|| self.gather());
        let known = self.known(starts, onward);
        let gather = self.slicer.forward(onward, self.options, gather.onward(known));
        self.report(Kind::Both, &gather, &origins)
    }

    /// What led to a criterion, as far as it may have followed from it, too: a line may call what
    /// it depends on.
    fn known(&self, starts: &[Start], onward: &[Start]) -> Option<Known<'_>> {
        let first = onward.iter().map(Start::at).min()?;
        let mut options = self.options.clone();
        options.region.from = options.region.from.max(first);
        let none = || Known::none(&self.run.trace, options.region.from.time);
        Some(self.slicer.visit(starts, &options, &none).0)
    }

    /// What lies on a way from one criterion to another.
    pub fn chop(&self, onward: &[Start], starts: &[Start]) -> Result<SliceReport, Error> {
        let none = Known::none(&self.run.trace, Time::START);
        let reached = self.slicer.forward(onward, self.options, none);
        let among = || Among { inner: self.gather(), reached: &reached };
        let (among, _) = self.slicer.visit(starts, self.options, &among);
        self.report(Kind::Chop, &among.inner, &Origins::default())
    }

    fn report(
        &self,
        kind: Kind,
        gather: &Gather<'_>,
        origins: &Origins<Distance>,
    ) -> Result<SliceReport, Error> {
        let parts = gather.lines();
        let run = self.run;
        Ok(SliceReport {
            version: 1,
            criterion: self.criterion.to_owned(),
            kind,
            followed: followed(self.options),
            instructions: run.trace.records.instructions(),
            instances: gather.instances,
            instances_elsewhere: gather.nobodys,
            executed_lines: executed_lines(run, self.via_lib),
            lines: lines(run, &parts)?,
            origins: self::origins(run, origins),
            complete: run.trace.ended.complete,
        })
    }
}

/// Passes on what another slice has too.
struct Among<'a, V> {
    inner: V,
    reached: &'a Known<'a>,
}

impl<V: Visitor> Visitor for Among<'_, V> {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        if self.reached.has(at) {
            self.inner.instance(at, instruction, distance);
        }
    }

    fn copy(&self) -> Option<Self> {
        Some(Among { inner: self.inner.copy()?, reached: self.reached })
    }

    fn potential(&mut self, at: Instance, instruction: InstructionId) {
        self.inner.potential(at, instruction);
    }
}

impl SliceReport {
    /// Was a kind of dependence followed?
    pub fn follows(&self, kind: &str) -> bool {
        self.followed.split(", ").any(|word| word == kind)
    }

    /// Distinct lines, however many functions they stand in.
    pub fn distinct_lines(&self) -> u64 {
        let key = |l: &Line| (l.file.clone(), l.line, l.address);
        self.lines.iter().map(key).collect::<HashSet<_>>().len() as u64
    }
}

fn followed(options: &Options) -> String {
    let mut words = vec!["data"];
    if options.addresses {
        words.push("addresses");
    }
    if options.control {
        words.push("control");
    }
    if options.relevant {
        words.push("potential");
    }
    if options.bookkeeping {
        words.push("bookkeeping");
    }
    words.join(", ")
}

/// Lines that were executed and that a slice could have: those of the program itself, and of
/// libraries if their insides are shown.
fn executed_lines(run: &Run, via_lib: bool) -> u64 {
    let mut executed = HashSet::new();
    for id in run.trace.executed() {
        if let Some(place) = run.places.at(id)
            && (via_lib || run.is_own(id))
        {
            executed.insert(run.places.get(place).at);
        }
    }
    executed.len() as u64
}

fn lines(run: &Run, parts: &[LinePart]) -> Result<Vec<Line>, Error> {
    let names = Names::of(run, parts.iter().flat_map(|p| p.latest.iter().copied()));
    // One instance stands for its execution.
    let latest = |part: &LinePart| {
        let mut seen = HashSet::new();
        let entry = |at: &Instance| names.get(*at).map_or(*at, |n| n.entry);
        let mut latest = part.latest.clone();
        latest.retain(|at| seen.len() < KEPT && seen.insert(entry(at)));
        latest
    };
    let entries: Vec<Instance> =
        parts.iter().flat_map(latest).filter_map(|at| Some(names.get(at)?.entry)).collect();
    let values = values(run, &entries)?;
    let line = |part: &LinePart| {
        let execution = |at: &Instance| {
            let entry = names.get(*at).map_or(*at, |n| n.entry);
            Execution {
                position: names.name(*at),
                thread: names.thread(*at),
                number: run.trace.number(entry),
                values: values.get(&entry).cloned().unwrap_or_default(),
            }
        };
        let place = run.places.get(part.place);
        let (file, line, address) = match place.at {
            At::Line(file, line) => {
                (Some(run.program.path(file).display().to_string()), Some(line), None)
            }
            At::Address(address) => (None, None, Some(address)),
        };
        let first = part.latest.first();
        Line {
            function: place.function.clone(),
            file,
            line,
            address,
            code: first.and_then(|at| code(run, *at).or_else(|| run.disassembled(*at))),
            distance: part.distance,
            instances: names.together(part.place, &part.met),
            potential: part.potential,
            executions: names.total(part.place),
            latest: latest(part).iter().map(execution).collect(),
        }
    };
    Ok(parts.iter().map(line).collect())
}

fn origins(run: &Run, origins: &Origins<Distance>) -> Vec<Origin> {
    let mut found: Vec<Origin> = Vec::new();
    for &(object, offset, _) in &origins.objects {
        let from = run.trace.objects.name(object);
        match found.last_mut() {
            Some(last) if last.from == from && last.end == offset => last.end += 1,
            _ => found.push(Origin { from, start: offset, end: offset + 1 }),
        }
    }
    found
}
