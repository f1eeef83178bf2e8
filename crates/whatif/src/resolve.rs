//! From what a person wrote to what is changed when.

use crate::experiment::{Change, Experiment, Trigger};
use crate::points::Crash;
use crate::values;
use crate::words::{Selector, Verb, Words};
use iced_x86::FlowControl;
use position::{Of, Position, Run, Targets, executions, statement};
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
    #[error("{0} is elsewhere in each execution; set it at one of them, by its number")]
    Moves(String),
    /// No number.
    #[error("{0} is no number, so it cannot be set; name a member or an element of it")]
    NoNumber(String),
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
    #[error("{0} is not executed again in the recorded run, which does not tell how to alter it")]
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
    Unresolved::NoNumber(_) = Unresolved::NoNumber("LVALUE".into()) =>
        "A structure, an array or a number of an unusual format was to be set.",
        "Set what it consists of, one by one.";
    Unresolved::Moves(_) = Unresolved::Moves("LVALUE".into()) =>
        "What a pointer leads to, or an element by a variable index, may be another one each time.",
        "Set it at one instance: `set f.c:15#4 x=3`.";
    Unresolved::TooLarge { .. } = Unresolved::TooLarge { value: "300".into(), what: "LVALUE".into(), len: 1 } =>
        "The value needs more bytes than what is to be set has.",
        "Write one that fits, or set what has more bytes.";
    Unresolved::NotAgain(_) = Unresolved::NotAgain("POS".into()) =>
        "`#next` means an execution that only the altered run has. What is kept where, or what is to be left out, is known of executions of the recorded run.",
        "`switch LINE#next` works everywhere, `skip POS#next` where the recorded run has been before.";
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
    // What `#next` follows: the trigger of the alteration before it, if that is one.
    let mut before = None;
    for resolved in all {
        let Resolved { number, pc, change, selector } = resolved;
        let is_first = number == Some(at);
        let follows = before.take();
        before = Some(experiment.triggers.len()).filter(|_| !is_first);
        if is_first {
            experiment.changes.push(change.clone());
        }
        match (selector, number) {
            (Selector::All, _) => experiment.triggers.push(Trigger::at(pc, 0, change)),
            (Selector::One, Some(number)) if !is_first => {
                let nth = between(run, pc, at, number);
                experiment.triggers.push(Trigger::at(pc, nth, change));
            }
            (Selector::Next, _) if !is_first => {
                experiment.triggers.push(Trigger::next(pc, change, follows));
            }
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
        Verb::Set(what, value) => (first, values::set(run, first, what, value, words.selector)?),
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
    let number = value.map(values::register).transpose()?;
    let info = |at: Instance| run.trace.code.info(run.trace.instruction(at));
    // A function is left out by leaving out its call. Where that will be is not known of
    // executions to come, so there it is left as soon as it is entered.
    let function = matches!(position, Position::Execution { of: Of::Function(_), .. });
    if function && words.selector != Selector::One {
        return Ok((first, Change::Leave(number)));
    }
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
