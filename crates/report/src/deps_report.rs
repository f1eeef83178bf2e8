//! One step back: what an execution of a line used, and where that came from.

use crate::expressions::expressions;
use crate::values::{Value, code, values};
use position::{Error, Meant, Names, Run, statement_at};
use program::debug::{Piece, Register};
use serde::Serialize;
use slice::{Options, Slicer, Start, Used};
use std::collections::{BTreeMap, HashSet};
use trace::{Flow, Instance};

/// One dependence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependence {
    /// What was used, as the line writes it, if that can be told.
    pub what: Option<String>,
    /// In which way.
    pub how: How,
    /// What defined it: a position.
    pub position: String,
    /// Its thread, if there are several.
    pub thread: Option<u32>,
    /// Its function.
    pub function: Option<String>,
    /// Its source.
    pub code: Option<String>,
}

/// The way in which something was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Its value.
    Data,
    /// To find something in memory.
    Address,
}

/// Why a line ran at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Because {
    /// The branch or call: a position.
    pub position: String,
    /// Its thread, if there are several.
    pub thread: Option<u32>,
    /// Its source.
    pub code: Option<String>,
    /// The condition was true or false, if the source makes that clear.
    pub outcome: Option<bool>,
    /// Is it a call?
    pub call: bool,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct DepsReport {
    /// Of this form.
    pub version: u32,
    /// The execution that is asked about.
    pub position: String,
    /// Its thread, if there are several.
    pub thread: Option<u32>,
    /// Its function.
    pub function: Option<String>,
    /// Its source.
    pub code: Option<String>,
    /// What it saw.
    pub values: Vec<Value>,
    /// Where that came from.
    pub dependences: Vec<Dependence>,
    /// Why it ran; `null` for the first instruction of all.
    pub because: Option<Because>,
    /// What it used that no line of the program defined: input, constants.
    pub outside: Vec<String>,
}

impl DepsReport {
    /// Looks one step back from an execution.
    pub fn of(run: &Run, slicer: &Slicer<'_>, meant: &Meant) -> Result<DepsReport, Error> {
        let at = defining(run, slicer, meant).unwrap_or(meant.at);
        let shown = run.own_instance(at).unwrap_or(at);
        let names = Names::of(run, [shown]);
        let entry = names.get(shown).map_or(shown, |n| n.entry);
        let line = if meant.instances.len() > 1 {
            meant.instances.clone()
        } else {
            statement_at(run, entry)
        };
        let starts: Vec<Start> = line.iter().map(|at| Start::Instance(*at)).collect();
        let found = find(run, slicer, &starts, &line);
        let called = called_names(run, entry, &found)?;
        let definitions = found.definitions.iter().map(|d| d.1);
        let because = because(run, &line);
        let names = Names::of(run, definitions.chain([shown]).chain(because.map(|b| b.0)));
        let place = |at: Instance| {
            let id = run.places.at(run.trace.instruction(at))?;
            run.places.get(id).function.clone()
        };
        let mut dependences: Vec<Dependence> = Vec::new();
        for (n, (used, at)) in found.definitions.iter().enumerate() {
            let how = if matches!(used, Used::Address(_)) { How::Address } else { How::Data };
            let new = Dependence {
                what: called[n].clone(),
                how,
                position: names.name(*at),
                thread: names.thread(*at),
                function: place(*at),
                code: code(run, *at).map(|c| c.trim().to_owned()),
            };
            add(&mut dependences, new);
        }
        let because = because.map(|(at, outcome)| Because {
            position: names.name(at),
            thread: names.thread(at),
            code: code(run, at).map(|c| c.trim().to_owned()),
            outcome,
            call: run.trace.code.info(run.trace.instruction(at)).flow == Flow::Call,
        });
        Ok(DepsReport {
            version: 1,
            position: names.name(shown),
            thread: names.thread(shown),
            function: place(shown),
            code: code(run, shown).map(|c| c.trim().to_owned()),
            values: values(run, &[entry])?.remove(&entry).unwrap_or_default(),
            dependences,
            because,
            outside: found.outside,
        })
    }
}

/// For a byte of output, the program's instance that defined it: not the write that
/// sent it, which may be anybody's, but what put it into the buffer.
fn defining(run: &Run, slicer: &Slicer<'_>, meant: &Meant) -> Option<Instance> {
    meant.byte?;
    let nobodys = |at: Instance, _| run.own_instance(at).is_none();
    let options = Options { control: false, addresses: false, ..Options::default() };
    let (direct, _) = slicer.direct(&meant.starts, &options, &nobodys);
    direct.dependences().map(|(_, at, _)| at).max()
}

/// Adds a dependence, unless it says no more than one that is known.
fn add(all: &mut Vec<Dependence>, new: Dependence) {
    let same = |d: &&mut Dependence| d.position == new.position && d.what == new.what;
    if let Some(known) = all.iter_mut().find(same) {
        known.how = known.how.min(new.how);
        return;
    }
    if new.what.is_none() && all.iter().any(|d| d.position == new.position) {
        return;
    }
    all.retain(|d| d.position != new.position || d.what.is_some());
    all.push(new);
}

struct Found {
    /// What was used, and the program's instance that defined it.
    definitions: Vec<(Used, Instance)>,
    outside: Vec<String>,
}

fn find(run: &Run, slicer: &Slicer<'_>, starts: &[Start], line: &[Instance]) -> Found {
    let inside: HashSet<Instance> = line.iter().copied().collect();
    // What a library did for another line is that line's; what it did for this one leads on.
    let owner = |at: Instance| run.own_instance(at).filter(|own| !inside.contains(own));
    let through = |at, id| !run.is_own(id) && owner(at).is_none();
    let mut options = Options { control: false, ..Options::default() };
    if let Some(beginning) = run.beginning() {
        options.from = beginning;
    }
    let (direct, origins) = slicer.direct(starts, &options, &through);
    // What the line itself defined on its way was made of what it used, which is asked for too.
    let mut definitions: Vec<(Used, Instance)> = direct
        .dependences()
        .filter(|(_, at, _)| !inside.contains(at))
        .map(|(n, at, _)| (direct.uses[n].1, owner(at).unwrap_or(at)))
        .collect();
    definitions.sort_by_key(|(used, at)| (std::cmp::Reverse(*at), *used));
    definitions.dedup();
    let mut bytes: BTreeMap<trace::ObjectId, Vec<u64>> = BTreeMap::new();
    for (object, offset, _) in origins.objects {
        bytes.entry(object).or_default().push(offset);
    }
    let outside = bytes.iter().map(|(object, offsets)| {
        let name = run.trace.objects.name(*object);
        match offsets[..] {
            [one] => format!("byte {one} of {name}"),
            [first, .., last] => format!("bytes {first} to {last} of {name}"),
            [] => name,
        }
    });
    Found { definitions, outside: outside.collect() }
}

/// What the line calls the things it used.
fn called_names(run: &Run, entry: Instance, found: &Found) -> Result<Vec<Option<String>>, Error> {
    let Some(text) = code(run, entry) else { return Ok(vec![None; found.definitions.len()]) };
    let mut states = run.states()?;
    let state = states.before(entry)?;
    let pc = state.pc();
    let located: Vec<(String, Vec<Piece>)> = expressions(&text)
        .into_iter()
        .filter_map(|e| {
            let value = run.program.evaluate(pc, &e.text, &state).ok()?;
            Some((e.text, value.pieces))
        })
        .collect();
    let name = |used: &Used, defined: Instance| {
        // A register that was set since, by a function that the line calls, is another's.
        let is_kept = matches!(used, Used::Memory { .. }) || defined < entry;
        let fits = |pieces: &[Piece]| is_kept && pieces.iter().any(|p| fits(p, used));
        let mut fitting: Vec<_> = located.iter().filter(|(_, pieces)| fits(pieces)).collect();
        fitting.sort_by_key(|(_, pieces)| pieces.iter().map(Piece::len).sum::<u64>());
        fitting.first().map(|(name, _)| name.clone())
    };
    Ok(found.definitions.iter().map(|(used, at)| name(used, *at)).collect())
}

fn fits(piece: &Piece, used: &Used) -> bool {
    match (piece, used) {
        (Piece::Memory { address, len }, Used::Memory { start, len: n }) => {
            *address < start + n && *start < address + len
        }
        (Piece::Register { number, .. }, Used::Register(r) | Used::Address(r)) => {
            encoded(*number) == Some(*r)
        }
        _ => false,
    }
}

/// From the number in debug information to the one in encodings.
fn encoded(register: Register) -> Option<u8> {
    [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15].get(usize::from(register.0)).copied()
}

/// The branch or call of the program that led to a line, and whether it was true.
fn because(run: &Run, line: &[Instance]) -> Option<(Instance, Option<bool>)> {
    let inside: HashSet<Instance> = line.iter().copied().collect();
    let mut parent = run.trace.parent(*line.first()?)?;
    while inside.contains(&parent) || !run.is_own(run.trace.instruction(parent)) {
        parent = run.trace.parent(parent)?;
    }
    Some((parent, outcome(run, parent)))
}

/// Was a branch's condition true? Of its two ways on, the one to the nearer line
/// below is the body that a true condition leads to, unless that is in the same line.
fn outcome(run: &Run, branch: Instance) -> Option<bool> {
    let info = run.trace.code.info(run.trace.instruction(branch));
    if info.flow != Flow::Branch {
        return None;
    }
    let text = code(run, branch)?;
    let plain = ["&&", "||", "?"].iter().all(|o| !text.contains(o));
    let begins = |word: &str| text.trim_start().trim_start_matches("} else ").starts_with(word);
    if !plain || !["if", "while", "for"].iter().any(|w| begins(w)) {
        return None;
    }
    let line = |address: u64| Some(run.program.line(address)?.line);
    let file = run.program.line(info.address())?.file;
    let (here, on) = (line(info.address())?, line(info.instruction.next_ip())?);
    let jump = line(info.instruction.near_branch_target())?;
    let stays = on == here || jump == here;
    if on == jump || stays != has_body(&text) {
        return None;
    }
    let body = if stays { here } else { [on, jump].into_iter().filter(|l| *l > here).min()? };
    // Compilers move code: where neither way leads to the next line, none says which is the body.
    if !stays && run.program.lines_of(file).into_iter().find(|line| *line > here) != Some(body) {
        return None;
    }
    let next = position::following(&run.trace, branch)?;
    let went = if run.address(next) == info.instruction.next_ip() { on } else { jump };
    Some(went == body)
}

/// Does a line with a condition have what that decides about, too?
fn has_body(text: &str) -> bool {
    let code = text.split("//").next().unwrap_or(text).trim_end();
    !code.ends_with([')', '{', '\\'])
}
