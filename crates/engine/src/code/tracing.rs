//! Code that writes down what a unit did: its path and the registers its
//! addresses are made of.
//!
//! A traced unit keeps, in a register that none of its instructions uses, a
//! pointer to the next free place of the trace buffer. Before an instruction that
//! needs it, a register is stored there ([`Captures`]); on every way out of the
//! unit, so is the number of the *path*: which unit, and how far it went. The
//! buffer ends at a page that cannot be written, so no code checks for its end.

use super::captures::{Capture, Captures};
use super::emit::{Emit, Hole};
use crate::context::{address, reg};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind, Register,
};

/// Holds the guest's value of the register that points into the buffer.
pub const SLOT: usize = 7;
const TRACE_SLOT: i32 = address::slot(SLOT);
/// Bytes of a record before its captures: the path's number.
pub const HEADER: usize = 4;

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

/// Tracing while a unit is translated.
pub struct Tracing {
    /// Points into the buffer.
    pub register: usize,
    /// Longest unit that leaves the register alone.
    pub limit: usize,
    /// Does the register hold the pointer at this point?
    pub open: bool,
    /// The path that was written last, where it is not.
    pub closed: Option<u16>,
    first_path: u32,
    captures: Captures,
    unit: UnitTrace,
    side_exits: Vec<(Hole, u64, PathEnd)>,
}

impl Tracing {
    /// Chooses the register for the unit at `pc`.
    pub fn plan(
        pc: u64,
        first_path: u32,
        limit: usize,
        reach: u64,
        fetch: &dyn Fn(u64) -> &'static [u8],
    ) -> Tracing {
        let (register, limit) = choose(pc, limit, reach, fetch);
        Tracing {
            register,
            limit,
            open: false,
            closed: None,
            first_path,
            captures: Captures::new(),
            unit: UnitTrace::default(),
            side_exits: Vec::new(),
        }
    }

    /// At the head of the unit.
    pub fn enter(&mut self, emit: &mut Emit) {
        emit.store(TRACE_SLOT, self.register);
        emit.load(self.register, address::CURSOR);
        self.open = true;
    }

    /// Stores what the next instruction needs captured.
    pub fn before(&mut self, emit: &mut Emit, i: &Instruction) {
        let from = self.captures.list().len();
        self.captures.before(i);
        self.store(emit, from);
        self.unit.instructions.push((i.ip(), i.len() as u8));
    }

    /// Goes past an instruction.
    pub fn after(&mut self, i: &Instruction) {
        self.captures.after(i);
    }

    fn store(&mut self, emit: &mut Emit, from: usize) {
        for (n, capture) in self.captures.list().iter().enumerate().skip(from) {
            let at = (HEADER + 8 * n) as i32;
            emit.store_through(self.register, at, capture.register as usize);
        }
    }

    /// Writes the record after so many instructions and gives the register back.
    /// Further ways out of the same unit may follow.
    pub fn close(&mut self, emit: &mut Emit, instructions: u32) {
        if instructions > 0 {
            let from = self.captures.list().len();
            self.captures.at_end();
            self.store(emit, from);
            let end = self.here(instructions);
            self.write(emit, end);
        } else {
            emit.load(self.register, TRACE_SLOT);
        }
        self.open = false;
    }

    fn here(&self, instructions: u32) -> PathEnd {
        PathEnd { instructions: instructions as u16, captures: self.captures.list().len() as u16 }
    }

    /// Writes the record of a path.
    pub fn write(&mut self, emit: &mut Emit, end: PathEnd) {
        let path = self.unit.paths.len();
        self.unit.paths.push(end);
        self.closed = Some(path as u16);
        emit.store_u32_through(self.register, self.first_path + path as u32);
        emit.add_constant(self.register, end.record_bytes() as i32);
        emit.store(address::CURSOR, self.register);
        emit.load(self.register, TRACE_SLOT);
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

    /// What the records mean, once the unit is complete.
    pub fn finish(&mut self) -> UnitTrace {
        self.unit.captures = self.captures.list().to_vec();
        std::mem::take(&mut self.unit)
    }
}

/// RAX and RCX are needed by ways out; RSP is the stack's.
const CANDIDATES: u16 = !(1 << reg::RAX | 1 << reg::RCX | 1 << reg::RSP);

/// A register that the code at `pc` leaves alone, and for how many instructions.
fn choose(
    pc: u64,
    limit: usize,
    reach: u64,
    fetch: &dyn Fn(u64) -> &'static [u8],
) -> (usize, usize) {
    let mut factory = InstructionInfoFactory::new();
    let mut free = CANDIDATES;
    let mut decoder = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
    let mut count = 0;
    while count < limit && decoder.can_decode() {
        let i = decoder.decode();
        if i.is_invalid() {
            break;
        }
        let left = free & !used(&mut factory, &i);
        if left == 0 {
            break;
        }
        free = left;
        count += 1;
        match i.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => {}
            FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => {
                let target = i.near_branch_target();
                if target <= i.ip() || target - pc >= reach {
                    break;
                }
                decoder = Decoder::with_ip(64, fetch(target), target, DecoderOptions::NONE);
            }
            _ => break,
        }
    }
    // R8 and above last: their encodings are as long, but code uses them less.
    (15 - (free.leading_zeros() as usize), count.max(1))
}

fn used(factory: &mut InstructionInfoFactory, i: &Instruction) -> u16 {
    let info = factory.info(i);
    let registers = info.used_registers().iter().map(|u| u.register());
    let memory = info.used_memory().iter().flat_map(|m| [m.base(), m.index()]);
    registers
        .chain(memory)
        .filter(|r: &Register| r.is_gpr())
        .fold(0, |set, r| set | 1 << r.full_register().number())
}
