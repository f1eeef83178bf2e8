//! What does one instruction define, and from what, to the byte and to the flag?
//!
//! [`effects`] is a function of the decoded instruction alone. Its answer is a list
//! of memory operands ([`Access`]) and a list of [`Flow`]s: which bytes are defined,
//! and which others each of them is computed from. Exact where compilers live:
//! integer arithmetic, moves, shuffles and packed arithmetic. Coarse, never wrong,
//! elsewhere: all that is written comes from all that is read.
//!
//! *Computed from* is about values. An operand's address is not part of it: who
//! asks how data came about adds [`Address::registers`] or leaves it out.
//!
//! What is left to the caller:
//! - `syscall` defines `rcx` and `r11` here. `rax` and memory are the kernel's work.
//! - `rip` has no cell. [`condition`] says what a branch depends on, beside the
//!   memory that an indirect one reads.
//!
//! | file | question |
//! | --- | --- |
//! | `cells` | Which parts of the state have a life of their own? |
//! | `access` | Where is a memory operand? |
//! | `place`, `builder` | How are flows put together? |
//! | `integer`, `arithmetic`, `shifts`, `bits`, `exchange`, `stack`, `strings`, `system` | Instructions on general registers and flags. |
//! | `vector`, `moves`, `lanes`, `shuffles`, `selection` | Instructions on vector registers. |
//! | `fallback` | Everything else, from iced's tables. |

mod access;
mod arithmetic;
mod bits;
mod builder;
mod cells;
mod exchange;
mod fallback;
mod integer;
mod lanes;
mod moves;
mod place;
mod selection;
mod shifts;
mod shuffles;
mod stack;
mod strings;
mod system;
mod vector;

pub use access::{Access, Address, Repeat, Segment};
pub use cells::{Cell, Cells};

use builder::Builder;
use iced_x86::{Instruction, OpKind};

/// What one instruction does to registers and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Its memory operands.
    pub accesses: Vec<Access>,
    /// What it defines. No cell or byte is in two targets.
    pub flows: Vec<Flow>,
}

/// One group of things defined, and what each is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What is overwritten.
    pub to: Target,
    /// What it is computed from, in the manner of `shape`.
    pub from: Vec<Source>,
    /// What every byte of `to` is computed from beside that: a carry, a count, a
    /// condition.
    pub also: Vec<Source>,
    /// Which bytes of `from` belong to which byte of `to`.
    pub shape: Shape,
}

/// What is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Registers.
    Cells(Cells),
    /// `len` bytes of an access, from byte `first` on; of every element if the
    /// access repeats.
    Memory {
        /// Index in [`Effects::accesses`].
        access: u8,
        /// First byte.
        first: u16,
        /// Number of bytes.
        len: u16,
    },
}

/// What something is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Registers.
    Cells(Cells),
    /// `len` bytes of an access, from byte `first` on. If the access repeats and
    /// the target does too, of the same element; else of every element.
    Memory {
        /// Index in [`Effects::accesses`].
        access: u8,
        /// First byte.
        first: u16,
        /// Number of bytes.
        len: u16,
    },
}

/// How the bytes of a flow's sources reach its target. Cells count in ascending
/// order. Except for `Whole`, every source is as long as the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every byte is computed from all of `from`.
    Whole,
    /// Byte i is computed from byte i of each source.
    Bytewise,
    /// Byte i is computed from bytes 0 to i of each source, as in an addition.
    Upward,
}

impl Effects {
    /// Every cell that some flow is computed from. Address registers are not among
    /// them unless they are data too.
    pub fn uses(&self) -> Cells {
        let sources = self.flows.iter().flat_map(|flow| flow.from.iter().chain(&flow.also));
        sources.fold(Cells::NONE, |all, source| match source {
            Source::Cells(cells) => all.union(*cells),
            Source::Memory { .. } => all,
        })
    }

    /// Every cell that is overwritten.
    pub fn defs(&self) -> Cells {
        self.flows.iter().fold(Cells::NONE, |all, flow| match &flow.to {
            Target::Cells(cells) => all.union(*cells),
            Target::Memory { .. } => all,
        })
    }
}

/// What an instruction does.
pub fn effects(i: &Instruction) -> Effects {
    let families: [fn(&mut Builder<'_>) -> bool; 8] = [
        integer::apply,
        arithmetic::apply,
        shifts::apply,
        bits::apply,
        exchange::apply,
        stack::apply,
        strings::apply,
        system::apply,
    ];
    if builder::representable(i) {
        for family in families.iter().chain(&[vector::apply as fn(&mut Builder<'_>) -> bool]) {
            let mut builder = Builder::new(i);
            if family(&mut builder) {
                return builder.finish();
            }
        }
    }
    fallback::effects(i)
}

/// The registers and flags that decide where a branch goes: the condition of a
/// conditional one, the target of an indirect one. If that target is in memory, its
/// bytes are an [`Access`], and this is its address.
pub fn condition(i: &Instruction) -> Cells {
    use iced_x86::FlowControl::*;
    match i.flow_control() {
        ConditionalBranch => {
            let counter = match i.mnemonic() {
                iced_x86::Mnemonic::Jrcxz => Cells::gpr(1, 8),
                iced_x86::Mnemonic::Jecxz => Cells::gpr(1, 4),
                _ if i.is_loop() || i.is_loopcc() => Cells::gpr(1, stack::loop_counter_size(i)),
                _ => Cells::NONE,
            };
            counter.union(Cells::of_flags(i.rflags_read()))
        }
        IndirectBranch | IndirectCall => match i.op0_kind() {
            OpKind::Register => Cells::of_register(i.op0_register()),
            OpKind::Memory => access::explicit(i, 0).address.registers(),
            _ => Cells::NONE,
        },
        _ => Cells::NONE,
    }
}
