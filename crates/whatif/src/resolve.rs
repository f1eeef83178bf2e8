//! From what a person wrote to what is changed when.

use crate::experiment::{Change, Experiment, Target, Trigger};
use crate::points::Crash;
use crate::words::{Selector, Verb, Words};
use iced_x86::FlowControl;
use position::{Of, Position, Run, Targets, executions, statement};
use program::debug::{Piece, Register, State};
use trace::{Flow, Instance};

/// Why an alteration cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// Its position leads nowhere.
    #[error(transparent)]
    Position(#[from] position::Error),
    /// Its words are no alteration.
    #[error(transparent)]
    Misread(#[from] crate::Misread),
    /// What is set cannot be found.
    #[error(transparent)]
    Program(#[from] program::debug::Error),
    /// There is no branch.
    #[error("{0} has {1} conditional branches; `switch` needs one that was executed there")]
    NoBranch(String, usize),
    /// There is no call.
    #[error("{0} calls nothing, so nothing can return a value there")]
    NoCall(String),
    /// What is set is in no place.
    #[error("{0} is not in memory or a register there, so it cannot be set")]
    NoPlace(String),
    /// A value that is no number.
    #[error("`{0}` is no value; write a number such as 3, -1, 0x10, 2.5 or 'c'")]
    NoValue(String),
    /// Several instances of something that moves.
    #[error("{0} is on the stack and may move; set it at one instance, not at all of them")]
    Moves(String),
    /// A value that needs more bytes than there are.
    #[error("{value} does not fit into the {len} bytes of {what}")]
    TooLarge {
        /// The value as written.
        value: String,
        /// What was to be set.
        what: String,
        /// Its bytes.
        len: usize,
    },
    /// Only the altered run may come there.
    #[error("{0} is not executed again in the recorded run; there, only `switch` and `skip` work")]
    NotAgain(String),
    /// Nothing is to be altered.
    #[error("nothing is to be altered; say `switch POS`, `set POS LVALUE=VALUE` or `skip POS`")]
    Nothing,
}

mishap::mishaps! { Unresolved {
    Unresolved::NoBranch(..) = Unresolved::NoBranch("POS".into(), 0) =>
        "`switch` needs a conditional branch, and the line has none, or several of which that one was not executed.",
        "Name another line, or a part of it, as in `f.c:15#4.2`.";
    Unresolved::NoCall(_) = Unresolved::NoCall("POS".into()) =>
        "`skip POS =VALUE` replaces what a call returns, and there is no call.",
        "Leave out the value, or name a line that calls something.";
    Unresolved::NoPlace(_) = Unresolved::NoPlace("LVALUE".into()) =>
        "The compiler keeps the variable in no place there, as optimised code does.",
        "Name a line where it lives, or compile with `-O0` or `-Og`.";
    Unresolved::NoValue(_) = Unresolved::NoValue("TEXT".into()) =>
        "What is behind `=` is no number.",
        "Write one as shown.";
    Unresolved::Moves(_) = Unresolved::Moves("LVALUE".into()) =>
        "A local variable has another address in each call.",
        "Set it at one instance: `set f.c:15#4 x=3`.";
    Unresolved::TooLarge { .. } = Unresolved::TooLarge { value: "300".into(), what: "LVALUE".into(), len: 1 } =>
        "The value needs more bytes than what is to be set has.",
        "Write one that fits, or set what has more bytes.";
    Unresolved::NotAgain(_) = Unresolved::NotAgain("POS".into()) =>
        "`set POS#next` needs an execution in the recorded run, to know where the value is kept there.",
        "Set it at an execution that the recorded run has, by its number.";
    Unresolved::Nothing = Unresolved::Nothing =>
        "No alteration was given.",
        "Write one of the three.";
} passes on { Unresolved::Position(_), Unresolved::Misread(_), Unresolved::Program(_) } }

/// One alteration, resolved.
struct Resolved {
    /// When, in the recorded run; not known where only the altered run comes.
    number: Option<u64>,
    pc: u64,
    change: Change,
    selector: Selector,
}

/// Makes an experiment of alterations.
pub fn experiment(
    run: &Run,
    words: &[Words],
    crash: Option<&Crash>,
) -> Result<Experiment, Unresolved> {
    let mut all: Vec<Resolved> = Vec::new();
    let mut after = 0;
    for alteration in words {
        let resolved = resolve(run, alteration, after)?;
        after = resolved.number.map_or(after, |number| number + 1);
        all.push(resolved);
    }
    let at = all.iter().filter_map(|r| r.number).min().ok_or(Unresolved::Nothing)?;
    let way = crash.map(|crash| crash.way(at)).unwrap_or_default();
    let mut experiment = Experiment { at, changes: vec![], triggers: vec![], way };
    for resolved in all {
        let Resolved { number, pc, change, selector } = resolved;
        let is_first = number == Some(at);
        if is_first {
            experiment.changes.push(change.clone());
        }
        match (selector, number) {
            (Selector::All, _) => experiment.triggers.push(Trigger::at(pc, 0, change)),
            (Selector::One, Some(number)) if !is_first => {
                let nth = between(run, pc, at, number);
                experiment.triggers.push(Trigger::at(pc, nth, change));
            }
            (Selector::Next, _) if !is_first => experiment.triggers.push(Trigger::next(pc, change)),
            _ => {}
        }
    }
    Ok(experiment)
}

/// No more branches of a line are tried.
const MOST_PARTS: u32 = 8;

/// Executions of an instruction after one instant, up to and with another.
pub fn between(run: &Run, pc: u64, after: u64, to: u64) -> u64 {
    let targets = Targets::addresses(&run.trace, |address| address == pc, true);
    let mut count = 0;
    executions(run, &targets, None, &mut |_, at| {
        let number = run.trace.number(at);
        count += u64::from(number > after && number <= to);
        number < to
    });
    count
}

/// The name of a branch, by which `switch` finds it, from that of its line's execution:
/// one line may hold several.
pub fn branch_name(run: &Run, line: &str, number: u64) -> String {
    let is_it = |part: &u32| {
        let (verb, position) = (Verb::Switch, line.to_owned());
        let words = Words { verb, position, selector: Selector::One, part: Some(*part) };
        resolve(run, &words, 0).is_ok_and(|resolved| resolved.number == Some(number))
    };
    match (1..=MOST_PARTS).find(is_it) {
        None | Some(1) => line.to_owned(),
        Some(part) if line.contains('#') => format!("{line}.{part}"),
        Some(part) => format!("{line}#1.{part}"),
    }
}

fn resolve(run: &Run, words: &Words, after: u64) -> Result<Resolved, Unresolved> {
    let text = match words.selector {
        Selector::One => words.position.clone(),
        Selector::All | Selector::Next => format!("{}#first", words.position),
    };
    let position = Position::parse(&text).map_err(position::Error::from)?;
    let targets = match &position {
        Position::Execution { of, .. } => Some(position::targets(run, of)?),
        _ => None,
    };
    let is_next = words.selector == Selector::Next && after > 0;
    let mut first = match position::resolve(run, &position) {
        Err(position::Error::Never { .. }) if is_next => {
            return unrun_branch(run, words, &position);
        }
        resolved => resolved?.instance(),
    };
    let mut is_again = true;
    if let (true, Some(targets)) = (is_next, &targets) {
        let mut found = None;
        executions(run, targets, None, &mut |_, at| {
            found = Some(at).filter(|at| run.trace.number(*at) >= after);
            found.is_none()
        });
        // The altered run may come there where the recorded one does not.
        is_again = found.is_some();
        first = found.unwrap_or(first);
        if !is_again && matches!(words.verb, Verb::Set(..)) {
            return Err(Unresolved::NotAgain(words.position.clone()));
        }
    }
    let line = match &targets {
        Some(targets) => {
            let meant = targets.of(run.trace.instruction(first));
            statement(run, first, |id| targets.of(id) == meant && meant.is_some())
        }
        None => vec![first],
    };
    let (at, change) = match &words.verb {
        Verb::Switch => (branch(run, &line, words)?, Change::Switch),
        Verb::Set(what, value) => (first, set(run, first, what, value, words)?),
        Verb::Skip(value) => skip(run, &position, first, &line, value.as_deref(), words)?,
    };
    let number = is_again.then(|| run.trace.number(at));
    Ok(Resolved { number, pc: run.address(at), change, selector: words.selector })
}

/// The branch of a line that the recorded run never came to.
fn unrun_branch(run: &Run, words: &Words, position: &Position) -> Result<Resolved, Unresolved> {
    let Position::Execution { of: Of::Line { file, line }, .. } = position else {
        return Err(Unresolved::NotAgain(words.position.clone()));
    };
    if words.verb != Verb::Switch {
        return Err(Unresolved::NotAgain(words.position.clone()));
    }
    let mut branches = Vec::new();
    for range in run.program.addresses(&run.source_name(file), *line)? {
        let code = run.trace.images.bytes(range.start);
        let mut decoder = iced_x86::Decoder::with_ip(64, code, range.start, 0);
        while decoder.can_decode() && decoder.ip() < range.end {
            let instruction = decoder.decode();
            if instruction.flow_control() == FlowControl::ConditionalBranch {
                branches.push(instruction.ip());
            }
        }
    }
    let n = words.part.unwrap_or(1).max(1) as usize - 1;
    let none = || Unresolved::NoBranch(words.position.clone(), branches.len());
    let pc = branches.get(n).copied().ok_or_else(none)?;
    Ok(Resolved { number: None, pc, change: Change::Switch, selector: Selector::Next })
}

/// The branch of a line that is meant.
fn branch(run: &Run, line: &[Instance], words: &Words) -> Result<Instance, Unresolved> {
    let is_branch =
        |at: &&Instance| run.trace.code.info(run.trace.instruction(**at)).flow == Flow::Branch;
    let branches: Vec<Instance> = line.iter().filter(is_branch).copied().collect();
    let n = words.part.unwrap_or(1).max(1) as usize - 1;
    let none = || Unresolved::NoBranch(words.position.clone(), branches.len());
    branches.get(n).copied().ok_or_else(none)
}

fn skip(
    run: &Run,
    position: &Position,
    first: Instance,
    line: &[Instance],
    value: Option<&str>,
    words: &Words,
) -> Result<(Instance, Change), Unresolved> {
    let number = value.map(number).transpose()?;
    let info = |at: Instance| run.trace.code.info(run.trace.instruction(at));
    // A function is left out by leaving out its call.
    let function = matches!(position, Position::Execution { of: Of::Function(_), .. });
    let call = if function {
        run.call_of(run.trace.control.frame_of(first.time))
    } else {
        line.iter().copied().find(|at| info(*at).flow == Flow::Call)
    };
    if function || number.is_some() {
        let call = call.ok_or_else(|| Unresolved::NoCall(words.position.clone()))?;
        let to = info(call).instruction.next_ip();
        return Ok((call, Change::Skip { to, value: number }));
    }
    let first_info = info(first);
    let to = match run.program.line(first_info.address()) {
        Some(source) => {
            // The end of the line's code from here on, without a gap.
            let mut to = first_info.instruction.next_ip();
            while run.program.line(to) == Some(source) {
                let code = run.trace.images.bytes(to);
                let mut decoder = iced_x86::Decoder::with_ip(64, code, to, 0);
                let next = decoder.decode();
                if next.is_invalid() {
                    break;
                }
                to = next.next_ip();
            }
            to
        }
        None => first_info.instruction.next_ip(),
    };
    Ok((first, Change::Skip { to, value: None }))
}

fn set(
    run: &Run,
    at: Instance,
    what: &str,
    value: &str,
    words: &Words,
) -> Result<Change, Unresolved> {
    if let Some(name) = what.strip_prefix('$') {
        let unknown = || Unresolved::NoPlace(what.to_owned());
        let register = Register::named(name).ok_or_else(unknown)?;
        let target = register_target(register).ok_or_else(unknown)?;
        return Ok(Change::Set { target, bytes: number(value)?.to_le_bytes().to_vec() });
    }
    let mut states = run.states()?;
    let state = states.before(at)?;
    let located = run.program.evaluate(state.pc(), what, &state)?;
    let no_place = || Unresolved::NoPlace(what.to_owned());
    let [piece] = &located.pieces[..] else { return Err(no_place()) };
    let (target, len) = match piece {
        Piece::Memory { address, len } => (Target::Memory(*address), *len),
        Piece::Register { number, first_byte: 0, len } => {
            (register_target(*number).ok_or_else(no_place)?, *len)
        }
        _ => return Err(no_place()),
    };
    if let Target::Memory(address) = target
        && words.selector == Selector::All
        && address.abs_diff(state.register(Register::RSP).unwrap_or(0)) < 1 << 24
    {
        return Err(Unresolved::Moves(what.to_owned()));
    }
    let bytes = match located.bits {
        None => encode(value, len as usize, what)?,
        Some(_) => return Err(no_place()),
    };
    Ok(Change::Set { target, bytes })
}

/// From the number in debug information to the one in encodings.
const ENCODED: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

fn register_target(register: Register) -> Option<Target> {
    match register.0 {
        n @ 0..=15 => Some(Target::Register(ENCODED[usize::from(n)])),
        n @ 17..=32 => Some(Target::Vector(n as u8 - 17)),
        _ => None,
    }
}

/// A value of so many bytes.
fn encode(text: &str, len: usize, what: &str) -> Result<Vec<u8>, Unresolved> {
    let float =
        text.parse::<f64>().ok().filter(|_| text.contains(['.', 'e']) && !text.starts_with("0x"));
    match (float, len) {
        (Some(value), 8) => Ok(value.to_le_bytes().to_vec()),
        (Some(value), 4) => Ok((value as f32).to_le_bytes().to_vec()),
        (Some(_), _) => Err(Unresolved::NoValue(text.to_owned())),
        (None, _) => {
            let value = number(text)?;
            if !fits(value, text.starts_with('-'), len) {
                let (value, what) = (text.to_owned(), what.to_owned());
                return Err(Unresolved::TooLarge { value, what, len });
            }
            let mut bytes = value.to_le_bytes().to_vec();
            bytes.resize(len.min(8), 0);
            Ok(bytes)
        }
    }
}

/// Is a number one of so many bytes, with or without a sign?
fn fits(value: u64, negative: bool, len: usize) -> bool {
    match (len, negative) {
        (8.., _) => true,
        (_, false) => value >> (8 * len) == 0,
        (_, true) => value.wrapping_neg() <= 1 << (8 * len - 1),
    }
}

/// A number, or a character in quotes.
fn number(text: &str) -> Result<u64, Unresolved> {
    let none = || Unresolved::NoValue(text.to_owned());
    if let Some(c) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        return c.bytes().next().filter(|_| c.len() == 1).map(u64::from).ok_or_else(none);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let value = value.map_err(|_| none())?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fit_are_refused() {
        assert_eq!(encode("255", 1, "c").unwrap(), [255]);
        assert_eq!(encode("-128", 1, "c").unwrap(), [128]);
        assert_eq!(encode("-1", 4, "n").unwrap(), [255; 4]);
        for text in ["256", "-129"] {
            assert!(matches!(encode(text, 1, "c"), Err(Unresolved::TooLarge { len: 1, .. })));
        }
        assert!(encode("0xffffffffffffffff", 8, "n").is_ok());
        assert!(encode("4294967296", 4, "n").is_err());
    }
}
