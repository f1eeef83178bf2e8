//! Code that writes down what a unit did: its path and the registers its
//! addresses are made of.
//!
//! While traced code runs, R11 points to the next free place of the trace buffer, in
//! all units alike: passed on through memory, it would be a chain of stores and loads
//! that each unit waits for. The guest's R11 is in a slot meanwhile, and code that uses
//! it is given another register that the unit leaves alone. Compilers use R11 least of
//! all. Before an instruction that needs it, a register is stored in the buffer
//! ([`Captures`]); on every way out of the unit, so is the number of the *path*: which
//! unit, and how far it went. The buffer ends at a page that cannot be written, so no
//! code checks for its end.

use super::captures::{Capture, Captures, MetLately, Touched};
use super::emit::{Emit, Hole};
use super::translate::Decoded;
use crate::context::{address, reg};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register,
};
use std::cell::RefCell;

/// So many instructions most units have at the most.
const FEW: usize = 24;

/// Points into the buffer while traced code runs.
pub const CURSOR: usize = reg::R11;
/// Holds the guest's value of that register.
pub const SLOT: usize = 7;
/// Holds the guest's value of the register that stands for it in a unit.
pub const STANDS_SLOT: usize = 8;
/// Bytes of a record before its captures: its [`Head`].
pub const HEADER: usize = size_of::<Head>();

/// What a record begins with: the number of its path and, so that the next record can be found
/// without looking that up, how many registers it captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(u32);

/// Bits for the number of captures.
const CAPTURES_BITS: u32 = 4;
/// So many, or more: hardly any path has them.
const MANY: u32 = (1 << CAPTURES_BITS) - 1;

impl Head {
    /// Of a path with so many captures.
    pub fn new(path: u32, captures: u16) -> Head {
        assert!(path >> (u32::BITS - CAPTURES_BITS) == 0, "code for so many paths has no room");
        Head(path << CAPTURES_BITS | u32::from(captures).min(MANY))
    }

    /// As it is in memory.
    pub fn from_bytes(bytes: [u8; HEADER]) -> Head {
        Head(u32::from_le_bytes(bytes))
    }

    /// The same.
    pub fn to_bytes(self) -> [u8; HEADER] {
        self.0.to_le_bytes()
    }

    /// Number of the path.
    #[inline(always)]
    pub fn path(self) -> u32 {
        self.0 >> CAPTURES_BITS
    }

    /// How many registers it captured; `None` if they are many.
    #[inline(always)]
    pub fn captures(self) -> Option<usize> {
        let captures = self.0 & MANY;
        (captures != MANY).then_some(captures as usize)
    }
}

/// How far a unit got: so many instructions, with so many captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnd {
    /// Instructions executed.
    pub instructions: u16,
    /// Registers captured.
    pub captures: u16,
}

impl PathEnd {
    /// Bytes of its record.
    pub fn record_bytes(self) -> usize {
        HEADER + 8 * self.captures as usize
    }
}

/// What a traced unit's records mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitTrace {
    /// Address and length of each instruction.
    pub instructions: Vec<(u64, u8)>,
    /// What is captured, in order.
    pub captures: Vec<Capture>,
    /// Its ways out. The first has the number the translation was asked for.
    pub paths: Vec<PathEnd>,
}

/// What code that runs among traced code writes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Its paths, from this number on.
    Paths(u32),
    /// Nothing, but it leaves the pointer alone.
    Nothing,
}

/// Another register stands for the guest's [`CURSOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stands {
    register: usize,
    /// Does the unit change it?
    changes: bool,
}

/// An instruction that was looked at before it is translated, and what it touches.
struct Ahead {
    decoded: Decoded,
    touched: Touched,
}

/// Tracing while a unit is translated.
pub struct Tracing {
    /// Longest unit with a register that can stand for the pointer's.
    pub limit: usize,
    /// Is a record begun at this point, and does another register stand for the pointer's?
    pub open: bool,
    /// The path that was written last, where none is begun.
    pub closed: Option<u16>,
    stands: Option<Stands>,
    tells: Tells,
    /// The instructions of the unit, in the order in which they come.
    ahead: Vec<Ahead>,
    past: usize,
    captures: Captures,
    unit: UnitTrace,
    side_exits: Vec<(Hole, u64, PathEnd)>,
}

impl Tracing {
    /// Looks ahead at the unit at `pc`.
    pub fn plan(
        pc: u64,
        tells: Tells,
        limit: usize,
        reach: u64,
        fetch: &dyn Fn(u64) -> &'static [u8],
    ) -> Tracing {
        let mut ahead = Vec::with_capacity(FEW);
        let (stands, limit) = choose(pc, limit, reach, fetch, &mut ahead);
        Tracing {
            limit,
            open: false,
            closed: None,
            stands,
            tells,
            ahead,
            past: 0,
            captures: Captures::new(),
            unit: UnitTrace::default(),
            side_exits: Vec::new(),
        }
    }

    /// Is what the unit does written down?
    pub fn is_told(&self) -> bool {
        self.tells != Tells::Nothing
    }

    /// At the head of the unit.
    pub fn enter(&mut self, emit: &mut Emit) {
        if let Some(Stands { register, .. }) = self.stands {
            emit.store(address::slot(STANDS_SLOT), register);
            emit.load(register, address::slot(SLOT));
        }
        self.open = true;
    }

    /// The register that stands for the pointer's at this point.
    pub fn stands(&self) -> Option<usize> {
        self.stands.filter(|_| self.open).map(|stands| stands.register)
    }

    /// The instruction as it can be executed: with another register instead of the
    /// pointer's. `None` if it uses none.
    pub fn replaced(&self, i: &Instruction) -> Option<Instruction> {
        let stands = self.stands()?;
        let replaced = replace(i, stands);
        (replaced != *i).then_some(replaced)
    }

    /// Stores what an instruction needs captured, and goes past it.
    pub fn instruction(&mut self, emit: &mut Emit, i: &Instruction) {
        let touched = self.touched_by(i);
        if self.is_told() {
            let from = self.captures.list().len();
            self.captures.before(touched);
            self.store(emit, from);
            self.unit.instructions.push((i.ip(), i.len() as u8));
        }
        self.captures.after(i, touched);
    }

    /// The n-th instruction, if it was looked at and lies at this address.
    pub fn decoded(&self, n: usize, address: u64) -> Option<&Decoded> {
        self.ahead(n, address).map(|ahead| &ahead.decoded)
    }

    fn ahead(&self, n: usize, address: u64) -> Option<&Ahead> {
        self.ahead.get(n).filter(|ahead| ahead.decoded.instruction.ip() == address)
    }

    /// Mostly that was found when the unit was looked at.
    fn touched_by(&mut self, i: &Instruction) -> Touched {
        let found = self.ahead(self.past, i.ip()).map(|ahead| ahead.touched);
        self.past += 1;
        found.unwrap_or_else(|| Touched::by(i, &mut InstructionInfoFactory::new()))
    }

    fn store(&mut self, emit: &mut Emit, from: usize) {
        for (n, capture) in self.captures.list().iter().enumerate().skip(from) {
            let at = (HEADER + 8 * n) as i32;
            let register = match (usize::from(capture.register), self.stands) {
                (CURSOR, Some(stands)) => stands.register,
                (register, _) => register,
            };
            emit.store_through(CURSOR, at, register);
        }
    }

    /// Writes the record after so many instructions and gives registers back.
    /// Further ways out of the same unit may follow.
    pub fn close(&mut self, emit: &mut Emit, instructions: u32) {
        if instructions > 0 && self.is_told() {
            let from = self.captures.list().len();
            self.captures.at_end();
            self.store(emit, from);
            let end = self.here(instructions);
            self.write(emit, end);
        } else {
            self.give_back(emit);
        }
        self.open = false;
    }

    fn here(&self, instructions: u32) -> PathEnd {
        PathEnd { instructions: instructions as u16, captures: self.captures.list().len() as u16 }
    }

    /// Writes the record of a path.
    pub fn write(&mut self, emit: &mut Emit, end: PathEnd) {
        let path = self.unit.paths.len();
        if let Tells::Paths(first) = self.tells {
            self.unit.paths.push(end);
            self.closed = Some(path as u16);
            let head = Head::new(first + path as u32, end.captures);
            emit.store_u32_through(CURSOR, head.0);
            emit.add_constant(CURSOR, end.record_bytes() as i32);
        }
        self.give_back(emit);
    }

    /// Gives back the register that stood for the pointer's.
    fn give_back(&self, emit: &mut Emit) {
        if let Some(Stands { register, changes }) = self.stands {
            if changes {
                emit.store(address::slot(SLOT), register);
            }
            emit.load(register, address::slot(STANDS_SLOT));
        }
    }

    /// A branch out of the unit that is written behind it.
    pub fn side_exit(&mut self, hole: Hole, target: u64, instructions: u32) {
        let end = self.here(instructions);
        self.side_exits.push((hole, target, end));
    }

    /// Those branches.
    pub fn take_side_exits(&mut self) -> Vec<(Hole, u64, PathEnd)> {
        self.open = true;
        std::mem::take(&mut self.side_exits)
    }

    /// What the records mean, once the unit is complete; `None` if it writes none.
    pub fn finish(&mut self) -> Option<UnitTrace> {
        self.unit.captures = self.captures.list().to_vec();
        self.is_told().then(|| std::mem::take(&mut self.unit))
    }
}

/// RAX and RCX are needed by ways out; RSP is the stack's. An address that begins with RBP and is
/// none raises another exception than one that began with R11.
const CANDIDATES: u16 =
    !(1 << reg::RAX | 1 << reg::RCX | 1 << reg::RSP | 1 << reg::RBP | 1 << CURSOR);

thread_local! {
    static LATELY: RefCell<MetLately> = RefCell::default();
}

/// A register that the code at `pc` leaves alone, if it needs one, and for how many
/// instructions it does. On the way, they are put down.
fn choose(
    pc: u64,
    limit: usize,
    reach: u64,
    fetch: &dyn Fn(u64) -> &'static [u8],
    all: &mut Vec<Ahead>,
) -> (Option<Stands>, usize) {
    let mut free = CANDIDATES;
    let (mut start, mut bytes) = (pc, fetch(pc));
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut count = 0;
    let (mut needed, mut changes) = (false, false);
    let mut decoded = Decoded::default();
    while count < limit && decoder.can_decode() {
        decoded.next(&mut decoder);
        let i = &decoded.instruction;
        if i.is_invalid() {
            break;
        }
        let at = (i.ip() - start) as usize;
        let own = &bytes[at..at + i.len()];
        let touched = LATELY.with_borrow_mut(|lately| lately.touched(i, own));
        let left = free & !touched.all;
        let needs = needed || touched.all & 1 << CURSOR != 0;
        if left == 0 && needs {
            break;
        }
        (free, needed) = (left, needs);
        changes |= touched.written & 1 << CURSOR != 0;
        all.push(Ahead { decoded, touched });
        count += 1;
        match i.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => {}
            FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                let target = i.near_branch_target();
                if target <= i.ip() || target - pc >= reach {
                    break;
                }
                (start, bytes) = (target, fetch(target));
                decoder = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
            }
            _ => break,
        }
    }
    // The highest: code uses those less.
    let register = || 15 - free.leading_zeros() as usize;
    (needed.then(|| Stands { register: register(), changes }), count.max(1))
}

/// The same instruction with another register for [`CURSOR`].
fn replace(i: &Instruction, stands: usize) -> Instruction {
    let other = |register: Register| match register.is_gpr() {
        true if register.full_register().number() == CURSOR => renamed(register, stands),
        _ => register,
    };
    let mut replaced = *i;
    for n in 0..i.op_count() {
        if i.op_kind(n) == OpKind::Register {
            replaced.set_op_register(n, other(i.op_register(n)));
        }
    }
    replaced.set_memory_base(other(i.memory_base()));
    replaced.set_memory_index(other(i.memory_index()));
    replaced
}

/// The part of another register that has the size of this one. The low bytes of RSP and
/// those behind it are not numbered in a row with the first four.
fn renamed(register: Register, to: usize) -> Register {
    use Register::*;
    const BYTES: [Register; 16] =
        [AL, CL, DL, BL, SPL, BPL, SIL, DIL, R8L, R9L, R10L, R11L, R12L, R13L, R14L, R15L];
    match register.size() {
        8 => RAX + to as u32,
        4 => EAX + to as u32,
        2 => AX + to as u32,
        _ => BYTES[to],
    }
}
