//! Slices: made, listed, pruned, stopped at and stepped along.

use super::Desk;
use crate::{Error, Result};
use position::{At, Criterion, Names, Position, Run, meant, pruned, resolve};
use report::{DepsReport, Question, Style};
use serde::{Deserialize, Serialize};
use slice::{Options, Slicer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use trace::{Instance, Walk};

/// Where slices are kept beside their recording.
const SAVED: &str = "debugger-slices.json";

/// An execution of a line that takes part in a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Instructions executed before it.
    pub number: u64,
    /// Address of its first instruction.
    pub address: u64,
    /// Its name: `f.c:15#4`.
    pub name: String,
}

/// A slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sliced {
    criterion: String,
    name: Option<String>,
    pruned: Vec<String>,
    region: (Option<u64>, Option<u64>),
    instances: u64,
    steps: Vec<Step>,
    /// Lines to stop at; all of them if there is an empty one.
    breaks: BTreeSet<String>,
}

impl Sliced {
    /// The executions to stop at.
    pub fn stops(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| {
            let line = step.name.split('#').next().unwrap_or_default();
            self.breaks.contains("") || self.breaks.contains(line)
        })
    }

    /// Has nothing to stop at any more.
    pub fn stop_nowhere(&mut self) {
        self.breaks.clear();
    }

    fn lines(&self) -> BTreeSet<&str> {
        self.steps.iter().filter_map(|s| s.name.split('#').next()).collect()
    }

    fn describe(&self, id: u32) -> String {
        let mut text = format!(
            "slice {id} of {}: {} executions of {} lines, {} instructions",
            self.criterion,
            self.steps.len(),
            self.lines().len(),
            self.instances
        );
        if let Some(name) = &self.name {
            let _ = write!(text, ", saved as {name}");
        }
        if !self.pruned.is_empty() {
            let _ = write!(text, ", without {}", self.pruned.join(", "));
        }
        text.push('\n');
        text
    }
}

impl Desk {
    /// `[CRITERION] [--save NAME]`; without a criterion, all that the present line
    /// uses; `:x` stands for x at the present line.
    pub(super) fn make_slice(&mut self, text: &str) -> Result<String> {
        let (text, name) = match text.split_once("--save") {
            Some((text, name)) => (text.trim(), Some(name.trim().to_owned())),
            None => (text, None),
        };
        let criterion = self.criterion(text)?;
        let mut sliced = Sliced {
            criterion,
            name,
            pruned: Vec::new(),
            region: self.region,
            instances: 0,
            steps: Vec::new(),
            breaks: BTreeSet::new(),
        };
        compute(self.run()?, &mut sliced)?;
        let id = self.slices.keys().next_back().map_or(1, |n| n + 1);
        let mut answer = sliced.describe(id);
        for line in sliced.lines() {
            let _ = writeln!(answer, "  {line}");
        }
        let saved = sliced.name.is_some();
        self.slices.insert(id, sliced);
        self.along = Some(id);
        if saved {
            self.save_slices()?;
        }
        Ok(answer)
    }

    fn criterion(&mut self, text: &str) -> Result<String> {
        if !text.is_empty() && !text.starts_with(':') {
            return Ok(Criterion::parse(text)?.to_string());
        }
        let at = self.here()?;
        let run = self.run()?;
        let names = Names::of(run, [at]);
        let Some(named) = names.get(at) else {
            return Ok(format!("@{}{text}", run.trace.number(at)));
        };
        // The whole path: its end may be that of other files too.
        let line = match run.places.get(named.place).at {
            At::Line(file, line) => format!("{}:{line}", run.program.path(file).display()),
            At::Address(address) => format!("{address:#x}"),
        };
        Ok(format!("{line}#{}{text}", named.nth))
    }

    /// What the present line, or a criterion, depends on directly.
    pub(super) fn dependences(&mut self, text: &str) -> Result<String> {
        let criterion = Criterion::parse(&self.criterion(text)?)?;
        let run = self.run()?;
        let meant = meant(run, &criterion)?;
        let report = DepsReport::of(run, &Slicer::new(&run.trace), &meant)?;
        written(|out| report.write_text(out, STYLE))
    }

    /// `FROM TO`: what carried an influence from one to the other.
    pub(super) fn chop(&mut self, text: &str) -> Result<String> {
        let Some((from, to)) = text.split_once(char::is_whitespace) else {
            return Ok("say where to begin and where to end: why chop FROM TO\n".to_owned());
        };
        let (from, to) = (Criterion::parse(from)?, Criterion::parse(to.trim())?);
        let run = self.run()?;
        let (first, last) = (meant(run, &from)?, meant(run, &to)?);
        let slicer = Slicer::new(&run.trace);
        let options = Options { from: run.beginning().unwrap_or(FIRST), ..Options::default() };
        let criterion = format!("{from} and {to}");
        let question = Question {
            run,
            slicer: &slicer,
            criterion: &criterion,
            options: &options,
            via_lib: false,
        };
        let report = question.chop(&first.onward, &last.starts)?;
        written(|out| report.write_text(out, STYLE))
    }

    /// `ID VAR|REG,…`: leaves out all dependences through these.
    pub(super) fn prune(&mut self, text: &str) -> Result<String> {
        let (id, list) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (id, mut sliced) = self.slice_named(id)?;
        sliced.pruned.extend(list.split([',', ' ']).filter(|w| !w.is_empty()).map(str::to_owned));
        let before = (sliced.steps.len(), sliced.instances);
        compute(self.run()?, &mut sliced)?;
        let answer = format!(
            "{}it had {} executions, {} instructions\n",
            sliced.describe(id),
            before.0,
            before.1
        );
        self.slices.insert(id, sliced);
        Ok(answer)
    }

    fn slice_named(&self, text: &str) -> Result<(u32, Sliced)> {
        let by_name = || self.slices.iter().find(|(_, s)| s.name.as_deref() == Some(text));
        let found = match text.parse::<u32>() {
            Ok(id) => self.slices.get_key_value(&id),
            Err(_) => by_name(),
        };
        let none = || Error::Walker(format!("there is no slice {text}; `why slices` lists them"));
        found.map(|(id, s)| (*id, s.clone())).ok_or_else(none)
    }

    /// All slices, or `--remove ID`.
    pub(super) fn list_slices(&mut self, text: &str) -> Result<String> {
        if let Some(id) = text.strip_prefix("--remove") {
            let (id, sliced) = self.slice_named(id.trim())?;
            self.slices.remove(&id);
            self.along = self.along.filter(|along| *along != id);
            if sliced.name.is_some() {
                self.save_slices()?;
            }
            return Ok(format!("slice {id} is gone\n"));
        }
        if self.slices.is_empty() {
            return Ok("there are no slices\n".to_owned());
        }
        Ok(self.slices.iter().map(|(id, s)| s.describe(*id)).collect())
    }

    /// `all ID` or `ID LINE,…`: stops at executions in the slice, and only those.
    pub(super) fn slice_break(&mut self, text: &str) -> Result<String> {
        let words: Vec<&str> = text.split([',', ' ']).filter(|w| !w.is_empty()).collect();
        let (id, lines): (&str, Vec<String>) = match &words[..] {
            ["all"] | [] => {
                let none =
                    || Error::Walker("there is no slice yet; make one with `why slice`".into());
                let along = self.along.ok_or_else(none)?;
                return self.slice_break(&format!("all {along}"));
            }
            ["all", id] | [id, "all"] | [id] => (id, vec![String::new()]),
            [id, lines @ ..] => (id, lines.iter().map(|l| (*l).to_owned()).collect()),
        };
        let (id, mut sliced) = self.slice_named(id)?;
        sliced.breaks.extend(lines);
        let answer = format!("slice {id}: stops at {} executions\n", sliced.stops().count());
        self.slices.insert(id, sliced);
        self.along = Some(id);
        Ok(answer)
    }

    /// Addresses that slices are stopped at, for gdb.
    pub(super) fn slice_addresses(&self) -> String {
        let steps = self.slices.values().flat_map(Sliced::stops);
        let addresses: BTreeSet<u64> = steps.map(|s| s.address).collect();
        addresses.iter().map(|a| format!("{a:#x}\n")).collect()
    }

    /// Goes to the next, or previous, execution in a slice.
    pub(super) fn step_along(&mut self, text: &str, back: bool) -> Result<String> {
        let none = || Error::Walker("there is no slice yet; make one with `why slice`".into());
        let along = match (text, self.along) {
            ("", along) => along.ok_or_else(none)?.to_string(),
            _ => String::new(),
        };
        let (id, sliced) = self.slice_named(if text.is_empty() { &along } else { text })?;
        self.along = Some(id);
        let now = self.timeline.now().instructions;
        let next = if back {
            sliced.steps.iter().rposition(|s| s.number < now)
        } else {
            sliced.steps.iter().position(|s| s.number > now)
        };
        let Some(n) = next else {
            let end = if back { "before" } else { "behind" };
            return Ok(format!("slice {id} has nothing {end} this\n"));
        };
        self.timeline.go_to_number(sliced.steps[n].number)?;
        let name = &sliced.steps[n].name;
        let head = format!("slice {id}, {} of {}: {name}\n", n + 1, sliced.steps.len());
        Ok(head + &self.values()?)
    }

    /// What of slices is here.
    pub(super) fn slice_here(&self) -> Option<String> {
        let now = self.timeline.now().instructions;
        self.slices.iter().find_map(|(id, s)| {
            let n = s.steps.iter().position(|step| step.number == now)?;
            Some(format!("slice {id}, {} of {}: {}", n + 1, s.steps.len(), s.steps[n].name))
        })
    }

    /// `on [POS]`, `off [POS]` or `all`: what slices see.
    pub(super) fn set_region(&mut self, text: &str) -> Result<String> {
        let (word, position) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let number = match position.trim() {
            "" => self.timeline.now().instructions,
            position => self.number_of(&Position::parse(position)?)?,
        };
        match word {
            "on" => self.region.0 = Some(number),
            "off" => self.region.1 = Some(number),
            "all" => self.region = (None, None),
            "" => {}
            _ => {
                return Ok(
                    "write why region on, off or all, with a position if not here\n".to_owned()
                );
            }
        }
        let from = self.region.0.map_or("the beginning".to_owned(), |n| format!("@{n}"));
        let to = self.region.1.map_or("the end".to_owned(), |n| format!("@{n}"));
        Ok(format!("slices see what happened from {from} to {to}\n"))
    }

    fn save_slices(&self) -> Result<()> {
        let named: Vec<&Sliced> = self.slices.values().filter(|s| s.name.is_some()).collect();
        let text = serde_json::to_vec_pretty(&named).map_err(|_| Error::Strange)?;
        let kept = self.recording()?.keep_derived(SAVED, &text);
        kept.map_err(|e| Error::Engine(engine::Error::from(e)))
    }

    /// Brings back the slices of earlier sessions.
    pub(super) fn load_slices(&mut self) {
        let Ok(recording) = self.recording() else { return };
        let Ok(text) = std::fs::read(recording.derived(SAVED)) else { return };
        let slices: Vec<Sliced> = serde_json::from_slice(&text).unwrap_or_default();
        self.slices = (1..).zip(slices).collect();
        self.along = self.slices.keys().next_back().copied();
    }
}

/// How reports look at the prompt.
const STYLE: Style = Style { colour: false, width: 80 };
/// The first instance that a run can have.
const FIRST: Instance = Instance { time: trace::Time::START, index: 0 };

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(|_| Error::Strange)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn compute(run: &Run, sliced: &mut Sliced) -> Result<()> {
    let criterion = Criterion::parse(&sliced.criterion)?;
    let meant = meant(run, &criterion)?;
    let mut options = Options::default();
    let number = |n: u64| resolve(run, &Position::Number(n)).map(|r| r.instance());
    match sliced.region.0 {
        Some(n) => options.region.from = number(n)?,
        None => options.from = run.beginning().unwrap_or(options.from),
    }
    if let Some(n) = sliced.region.1 {
        options.region.to = number(n)?;
    }
    options.pruned = pruned(run, &criterion, &sliced.pruned)?;
    let slicer = Slicer::new(&run.trace);
    let instances = slicer.instances(&meant.starts, &options).0;
    let own: BTreeSet<Instance> =
        instances.iter().filter_map(|(at, _, _)| run.own_instance(*at)).collect();
    let names = Names::of(run, own.iter().copied());
    let mut entries: Vec<_> = own.iter().filter_map(|at| names.get(*at)).collect();
    entries.sort_unstable_by_key(|named| named.entry);
    let mut walk = Walk::new(&run.trace);
    let steps: BTreeMap<u64, Step> = entries
        .into_iter()
        .map(|named| {
            let number = walk.number(named.entry);
            let address = run.address(named.entry);
            let name = format!("{}#{}", run.place_name(named.place), named.nth);
            (number, Step { number, address, name })
        })
        .collect();
    sliced.instances = instances.len() as u64;
    sliced.steps = steps.into_values().collect();
    Ok(())
}
