//! Making a change where a run stands.

use crate::experiment::{Change, Target};
use engine::sandbox::Sandbox;

/// There is nothing to change here, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchangeable {
    /// What is to be switched is no branch.
    #[error("{0}")]
    Branch(String),
    /// Memory.
    #[error("memory at {0:#x} cannot be written")]
    Memory(u64),
    /// Code.
    #[error("there is no code at {0:#x}")]
    Code(u64),
}

/// What a change came to.
pub enum Done {
    /// Something is another.
    Changed,
    /// A branch goes the other way; had it been taken?
    Switched(bool),
    /// A value.
    Told(Vec<u8>),
    /// Nothing more is wanted of the run.
    Ended,
}

/// Makes a change where a run that left its log stands.
pub fn apply(sandbox: &mut Sandbox, change: &Change) -> Result<Done, Unchangeable> {
    match change {
        Change::Switch => {
            let switched = sandbox.switch().map(Done::Switched);
            return switched.map_err(|error| Unchangeable::Branch(error.to_string()));
        }
        Change::Set { target: Target::Register(n), bytes } => {
            let n = usize::from(*n);
            // RIP has no part that could stay as it is.
            let now = sandbox.registers().gpr.get(n).copied().unwrap_or(0);
            let mut value = now.to_le_bytes();
            let len = bytes.len().min(8);
            value[..len].copy_from_slice(&bytes[..len]);
            sandbox.set_register(n, u64::from_le_bytes(value));
        }
        Change::Set { target: Target::Vector(n), bytes } => {
            sandbox.set_vector(usize::from(*n), bytes);
        }
        Change::Set { target: target @ (Target::Memory(_) | Target::Stack(_)), bytes } => {
            let address = address(sandbox, *target);
            if !sandbox.set_memory(address, bytes) {
                return Err(Unchangeable::Memory(address));
            }
        }
        Change::Skip { to, value } => sandbox.skip_to(*to, *value),
        Change::Leave(value) => {
            let sp = sandbox.registers().gpr[STACK_POINTER];
            let word = sandbox.read_memory(sp, 8).and_then(|bytes| bytes.try_into().ok());
            let back = word.map(u64::from_le_bytes).ok_or(Unchangeable::Memory(sp))?;
            sandbox.set_register(STACK_POINTER, sp.wrapping_add(8));
            sandbox.skip_to(back, *value);
        }
        Change::Code { address, bytes } => {
            if !sandbox.set_code(*address, bytes) {
                return Err(Unchangeable::Code(*address));
            }
        }
        Change::Tell { target, len } => return Ok(tell(sandbox, *target, *len as usize)),
        Change::End => return Ok(Done::Ended),
    }
    Ok(Done::Changed)
}

/// The stack pointer's number in encodings.
const STACK_POINTER: usize = 4;

/// Where a target is now; registers are nowhere.
fn address(sandbox: &Sandbox, target: Target) -> u64 {
    match target {
        Target::Memory(address) => address,
        Target::Stack(offset) => sandbox.registers().gpr[STACK_POINTER].wrapping_add_signed(offset),
        Target::Register(_) | Target::Vector(_) => 0,
    }
}

fn tell(sandbox: &Sandbox, target: Target, len: usize) -> Done {
    let registers = sandbox.registers();
    let bytes = match target {
        Target::Register(n) => registers.gpr[usize::from(n)].to_le_bytes()[..len.min(8)].to_vec(),
        Target::Vector(n) => {
            let all = &registers.vectors.0;
            all[160 + 16 * usize::from(n)..][..len.min(16)].to_vec()
        }
        // What cannot be read has no value.
        Target::Memory(_) | Target::Stack(_) => {
            sandbox.read_memory(address(sandbox, target), len).unwrap_or_default()
        }
    };
    Done::Told(bytes)
}
