//! Watching a replay: every block or instruction, its memory accesses, branches
//! and system calls.
//!
//! Observers are called from outside translated code, which costs a crossing per
//! block or instruction (about a hundred nanoseconds). Analyses of long runs add
//! inline code through a [`Profile`](crate::code::Profile) instead; instruction
//! counting is the first of those.

use super::replayer::{Finish, Halt, Replayer, Until};
use crate::Error;
use crate::context::Registers;
use crate::guest::machine::Stop;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
};

/// How closely an observer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Once per basic block.
    Blocks,
    /// Once per instruction.
    Instructions,
}

/// A memory access of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Lowest address.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Read, or may be read.
    pub reads: bool,
    /// Written, or may be written.
    pub writes: bool,
}

/// What watches a replay. All methods have empty defaults.
pub trait Observer {
    /// How closely it looks.
    fn grain(&self) -> Grain;
    /// A block is about to run; RIP is its first instruction.
    fn block(&mut self, _replayer: &Replayer) {}
    /// An instruction is about to run. A `rep` instruction is one instruction,
    /// and its accesses span all its repetitions where they are known.
    fn instruction(&mut self, _replayer: &Replayer, _i: &Instruction, _accesses: &[Access]) {}
    /// A branch, call or return went to where RIP is now.
    fn branch(&mut self, _replayer: &Replayer, _i: &Instruction) {}
    /// A system call is about to be made.
    fn system_call(&mut self, _replayer: &Replayer, _number: u64) {}
}

impl Replayer {
    /// Replays to the end, with an observer. The replayer must have been made
    /// with a profile of the observer's grain.
    pub fn observe(&mut self, observer: &mut dyn Observer) -> Result<Finish, Error> {
        loop {
            match self.observe_step(observer) {
                Ok(()) => {}
                Err(Halt::Finish(finish)) => return Ok(finish),
                Err(Halt::Error(error)) => return Err(error),
            }
        }
    }

    fn observe_step(&mut self, observer: &mut dyn Observer) -> Result<(), Halt> {
        // Whatever the log wants done first, until guest code is next.
        while self.settle_events()? {}
        let instruction = self.next_instruction();
        match observer.grain() {
            Grain::Blocks => observer.block(self),
            Grain::Instructions => {
                let accesses = accesses(&instruction, self.registers());
                observer.instruction(self, &instruction, &accesses);
            }
        }
        let Some(stop) = self.run_guest(Until::End, i64::MAX / 2)? else { return Ok(()) };
        let jumps = !matches!(instruction.flow_control(), FlowControl::Next);
        match stop {
            Stop::Syscall => {
                let number = self.registers().gpr[crate::context::reg::RAX];
                observer.system_call(self, number);
            }
            Stop::Block | Stop::Safepoint if jumps && observer.grain() == Grain::Instructions => {
                observer.branch(self, &instruction);
            }
            _ => {}
        }
        self.after_stop(&stop)
    }

    fn next_instruction(&self) -> Instruction {
        let pc = self.registers().rip;
        Decoder::with_ip(64, self.process.machine.memory.code(pc), pc, DecoderOptions::NONE)
            .decode()
    }
}

/// The memory an instruction is about to touch.
fn accesses(i: &Instruction, regs: &Registers) -> Vec<Access> {
    let mut factory = InstructionInfoFactory::new();
    let value = |register: Register, _: usize, _: usize| value_of(register, regs);
    let mut out = Vec::new();
    for memory in factory.info(i).used_memory() {
        let Some(address) = memory.virtual_address(0, value) else { continue };
        use OpAccess::*;
        let access = memory.access();
        out.push(Access {
            address,
            size: memory.memory_size().size() as u32,
            reads: matches!(access, Read | CondRead | ReadWrite | ReadCondWrite),
            writes: matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite),
        });
    }
    out
}

pub(super) fn value_of(register: Register, regs: &Registers) -> Option<u64> {
    match register {
        Register::FS => Some(regs.fs),
        Register::GS => Some(regs.gs),
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        r if r.is_gpr64() => Some(regs.gpr[r.number()]),
        r if r.is_gpr32() => Some(regs.gpr[r.number()] & 0xffff_ffff),
        r if r.is_gpr16() => Some(regs.gpr[r.number()] & 0xffff),
        _ => None,
    }
}
