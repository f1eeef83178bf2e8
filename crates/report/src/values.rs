//! What values did a line see?

use crate::expressions::{Expression, expressions};
use position::{At, Error, Run, States, following, statement_at};
use program::debug::{self, Limits, Shown};
use program::effects::Cells;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use trace::{Flow, Instance};

/// A variable, member or element and its value, as its language writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// As the line writes it.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value.
    pub value: String,
    /// Did the line give it that value?
    pub assigned: bool,
}

/// How much of a value fits into a line.
const LIMITS: Limits = Limits { depth: 1, elements: 4, text: 24, total: 40 };

/// An instant at which some expressions are to be looked at.
struct Look {
    number: u64,
    entry: Instance,
    expressions: Vec<Expression>,
    /// The line's last instruction, if that only jumps: behind it, a variable of the line may be
    /// out of sight, or another one of its name in sight, and has its value all the same.
    jump: Option<u64>,
}

/// The values of what executions of lines mention: what a line assigns as it is
/// behind the line, all else as it is before. One replay for all.
pub fn values(run: &Run, entries: &[Instance]) -> Result<HashMap<Instance, Vec<Value>>, Error> {
    see_all(run, entries.iter().flat_map(|entry| looks(run, *entry)).collect(), LIMITS)
}

fn see_all(
    run: &Run,
    mut looks: Vec<Look>,
    limits: Limits,
) -> Result<HashMap<Instance, Vec<Value>>, Error> {
    looks.sort_by_key(|look| look.number);
    let mut found: HashMap<Instance, Vec<Value>> = HashMap::new();
    if looks.is_empty() {
        return Ok(found);
    }
    let mut states = run.states()?;
    for look in &looks {
        let values = see(run, &mut states, look, limits)?;
        found.entry(look.entry).or_default().extend(values);
    }
    Ok(found)
}

/// The value of one expression at executions of a line: behind the line if the
/// line assigns to it, else before.
pub fn values_of(
    run: &Run,
    entries: &[Instance],
    text: &str,
) -> Result<HashMap<Instance, Vec<Value>>, Error> {
    debug::Program::check(text)?;
    let mut all: Vec<Look> = Vec::new();
    for entry in entries {
        let mentioned = code(run, *entry).map(|c| expressions(&c)).unwrap_or_default();
        let assigned = mentioned.iter().any(|e| e.assigned && e.text == text);
        let wanted = vec![Expression { text: text.to_owned(), assigned }];
        all.extend(looks_for(run, *entry, wanted));
    }
    // Who asks for one value wants to see all of it.
    let found = see_all(run, all, Limits::default())?;
    let is_seen = found.values().flatten().any(|value| value.name == text);
    if let Some(first) = entries.first().filter(|_| !is_seen) {
        let mut states = run.states()?;
        let state = states.before(*first)?;
        match run.program.evaluate(state.pc(), text, &state) {
            // Nowhere to be seen: the reason is better than empty lines.
            Err(error) if is_senseless(&error) || found.values().all(Vec::is_empty) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Has the expression no meaning where it was asked for? The value of a part of it would be
/// no answer.
fn is_senseless(error: &debug::Error) -> bool {
    use debug::Error::{NoMember, NoVariable, WrongType};
    matches!(error, NoVariable { .. } | NoMember { .. } | WrongType { .. })
}

/// The text of the line that an instance belongs to.
pub fn code(run: &Run, at: Instance) -> Option<String> {
    let place = run.places.get(run.places.at(run.trace.instruction(at))?);
    let At::Line(file, line) = place.at else { return None };
    Some(run.program.source(file)?.line(line)?.to_owned())
}

fn looks(run: &Run, entry: Instance) -> Vec<Look> {
    let Some(code) = code(run, entry) else { return Vec::new() };
    looks_for(run, entry, expressions(&code))
}

fn looks_for(run: &Run, entry: Instance, all: Vec<Expression>) -> Vec<Look> {
    let address = run.address(entry);
    // Parameters have their values only behind the function's first line, and what the head of a
    // loop tests is what it has just counted.
    let opens = run.program.is_entry(address) || is_loop_head(run, entry);
    let (behind, before): (Vec<_>, Vec<_>) = all.into_iter().partition(|e| e.assigned || opens);
    let line = statement_at(run, entry);
    let next = line.last().and_then(|last| following(&run.trace, *last));
    let mut looks = Vec::new();
    if !before.is_empty() {
        let number = run.trace.number(entry);
        looks.push(Look { number, entry, expressions: before, jump: None });
    }
    let Some(last) = line.last().filter(|_| !behind.is_empty()) else { return looks };
    match next {
        Some(next) => {
            let number = run.trace.number(next);
            looks.push(Look { number, entry, expressions: behind, jump: run.jump(*last) });
        }
        // Behind a line that is a whole function there is nothing of it to be seen: before it
        // gives its frame back and returns, all is done.
        None => {
            let mut expressions = behind;
            expressions.retain(|e| !e.assigned || returns(run, *last));
            let frame = line.iter().rev().take_while(|at| gives_frame_back(run, **at)).last();
            let number = run.trace.number(*frame.unwrap_or(last));
            looks.push(Look { number, entry, expressions, jump: None });
        }
    }
    looks
}

fn returns(run: &Run, at: Instance) -> bool {
    run.trace.code.info(run.trace.instruction(at)).flow == Flow::Return
}

/// Is it one of the last instructions of a function, which move the stack pointer and return?
fn gives_frame_back(run: &Run, at: Instance) -> bool {
    let info = run.trace.code.info(run.trace.instruction(at));
    match info.flow {
        Flow::Return => true,
        Flow::Next => info.defs.overlaps(&Cells::gpr(RSP, 8)),
        _ => false,
    }
}

/// Its number in encodings.
const RSP: u8 = 4;

/// `for` in any of the languages.
fn is_loop_head(run: &Run, entry: Instance) -> bool {
    let code = code(run, entry).unwrap_or_default();
    let rest = code.trim_start().strip_prefix("for");
    rest.is_some_and(|rest| rest.starts_with([' ', '(']))
}

fn see(
    run: &Run,
    states: &mut States<'_>,
    look: &Look,
    limits: Limits,
) -> Result<Vec<Value>, Error> {
    let state = states.at(look.number)?;
    let pc = state.pc();
    let one = |text: &str| {
        let at = |pc| run.program.evaluate(pc, text, &state).ok();
        let located = look.jump.and_then(at).or_else(|| at(pc))?;
        let shown = run.program.show(text, &located, &state, limits);
        shown.available.then_some(shown)
    };
    let mut seen: Vec<Value> = Vec::new();
    for e in &look.expressions {
        // Of what cannot be reached, the part that can be tells why.
        let shown = std::iter::successors(Some(e.text.as_str()), |t| shorter(t)).find_map(one);
        if let Some(shown) = shown
            && !seen.iter().any(|v| v.name == shown.name)
        {
            let assigned = e.assigned && shown.name == e.text;
            seen.push(value(shown, assigned));
        }
    }
    Ok(seen)
}

fn value(shown: Shown, assigned: bool) -> Value {
    Value { name: shown.name, type_name: shown.type_name, value: shown.text, assigned }
}

/// An expression without its last member or element.
fn shorter(text: &str) -> Option<&str> {
    let end = text.rfind("->").max(text.rfind('.')).max(text.rfind('['))?;
    (end > 0).then(|| text[..end].trim_end())
}
