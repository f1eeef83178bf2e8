//! What an instruction could not do, in a sentence.

use iced_x86::{Instruction, OpKind};
use position::Run;
use program::debug::State;
use trace::{Event, Flow, Instance, Range, is_address};

/// No program has anything of its own below.
const NULL: u64 = 4096;
/// The code of a signal that comes without an address.
const NO_ADDRESS: i32 = 128;

/// How a run died.
struct Fault {
    signal: i32,
    /// What could not be reached, if the processor said so.
    address: Option<u64>,
    /// The instruction, or where one should have been.
    pc: u64,
}

/// What an instruction could not do, if it was one that ended the run.
pub fn sentence(run: &Run) -> Option<String> {
    let fault = last_fault(run)?;
    Some(match fault.signal {
        11 => format!("SIGSEGV: {}", violation(run, &fault)),
        7 => match fault.address {
            Some(address) => format!("SIGBUS: {} address {address:#x}", way(run, &fault, address)),
            None => "SIGBUS".to_owned(),
        },
        8 => "SIGFPE: a division by zero, or one whose result does not fit".to_owned(),
        4 => "SIGILL: an instruction that the program put there to stop".to_owned(),
        n => format!("signal {n}"),
    })
}

/// The fault that ended the run. One that the program caught and went on after did not.
fn last_fault(run: &Run) -> Option<Fault> {
    let last = run.trace.records.len();
    run.trace.events.iter().rev().find_map(|(at, event)| match event {
        Event::Fault { signal, code, address, pc } if at.0 == last => {
            let address = (*code != NO_ADDRESS).then_some(*address);
            Some(Fault { signal: *signal, address, pc: *pc })
        }
        _ => None,
    })
}

fn violation(run: &Run, fault: &Fault) -> String {
    let at = run.trace.last_instance();
    match fault.address {
        Some(address) if address == fault.pc => match address {
            ..NULL => format!("{} address {address:#x}, a null pointer", going(run, at)),
            _ => format!("{} address {address:#x}, where no code is", going(run, at)),
        },
        Some(address @ ..NULL) => {
            format!("{} address {address:#x}, a null pointer", way(run, fault, address))
        }
        Some(address) => {
            format!("{} address {address:#x}, which is not there", way(run, fault, address))
        }
        None if run.address(at) == fault.pc => refused(run, fault, at),
        None => "an instruction that a program may not execute".to_owned(),
    }
}

/// The processor refused what an instruction asked for, and named no address.
fn refused(run: &Run, fault: &Fault, at: Instance) -> String {
    match (wanted(run, at), touched(run, at)) {
        (Some(target), _) => format!("{} {target:#x}, which is no address", going(run, at)),
        (None, Some(address)) if is_address(address) => {
            format!("{} address {address:#x}, which is not aligned", way(run, fault, address))
        }
        (None, Some(address)) => {
            format!("{} {address:#x}, which is no address", way(run, fault, address))
        }
        (None, None) => "an instruction that a program may not execute".to_owned(),
    }
}

/// What an instruction was about to do at an address.
fn way(run: &Run, fault: &Fault, address: u64) -> &'static str {
    let at = run.trace.last_instance();
    // What the engine does itself, element by element, is not in the records if it fails.
    let known = run.address(at) == fault.pc;
    let has = |ranges: Vec<Range>| {
        ranges.iter().any(|range| address.wrapping_sub(range.start) < range.len.max(1))
    };
    match known {
        true if has(run.trace.stored(at)) => "writing to",
        true if has(run.trace.loaded(at)) => "reading from",
        _ => "an access to",
    }
}

fn going(run: &Run, at: Instance) -> &'static str {
    match run.trace.code.info(run.trace.instruction(at)).flow {
        Flow::Return => "returning to",
        Flow::Call => "calling",
        _ => "jumping to",
    }
}

/// The first memory that an instance asked for.
fn touched(run: &Run, at: Instance) -> Option<u64> {
    let odd = |address: &u64| !is_address(*address);
    let all = || run.trace.stored(at).into_iter().chain(run.trace.loaded(at)).map(|r| r.start);
    all().find(odd).or_else(|| all().next())
}

/// Where a return, or an indirect call or jump, was to go.
fn wanted(run: &Run, at: Instance) -> Option<u64> {
    let info = run.trace.code.info(run.trace.instruction(at));
    if !matches!(info.flow, Flow::Return | Flow::Call | Flow::Indirect) {
        return None;
    }
    let mut states = run.states().ok()?;
    let state = states.before(at).ok()?;
    let target = match by_register(&info.instruction) {
        Some(register) => state.registers().gpr[register],
        None => {
            let slot = run.trace.loaded(at).first()?.start;
            u64::from_le_bytes(state.memory(slot, 8)?.try_into().ok()?)
        }
    };
    (!is_address(target)).then_some(target)
}

fn by_register(i: &Instruction) -> Option<usize> {
    let named = i.op_count() > 0 && i.op0_kind() == OpKind::Register;
    named.then(|| i.op0_register().number())
}
