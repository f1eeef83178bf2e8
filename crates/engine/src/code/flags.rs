//! Which flags matter at a place in the guest's code.
//!
//! A safepoint check may use `dec` instead of a flag-free sequence where every
//! arithmetic flag is overwritten before it is read. The answer errs towards
//! "live": a wrong "dead" would corrupt the guest.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, RflagsBits};

/// The six flags arithmetic sets.
pub const ARITHMETIC: u32 = RflagsBits::CF
    | RflagsBits::PF
    | RflagsBits::AF
    | RflagsBits::ZF
    | RflagsBits::SF
    | RflagsBits::OF;

/// How far to look ahead.
const LOOK_AHEAD: usize = 12;

/// Are all arithmetic flags dead at `pc`? `fetch` gives the code bytes there.
pub fn dead_at<'a>(pc: u64, fetch: &dyn Fn(u64) -> &'a [u8]) -> bool {
    dead_flags(pc, fetch) == ARITHMETIC
}

/// The arithmetic flags that are overwritten before they are read from `pc` on.
///
/// If all are dead at some place, then those that are not yet overwritten are in
/// this set at every instruction on the way.
pub fn dead_flags<'a>(mut pc: u64, fetch: &dyn Fn(u64) -> &'a [u8]) -> u32 {
    // Not yet read or overwritten, and overwritten before they were read.
    let (mut open, mut dead) = (ARITHMETIC, 0);
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
    for _ in 0..LOOK_AHEAD {
        if open == 0 || !decoder.can_decode() {
            break;
        }
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            break;
        }
        open &= !instruction.rflags_read();
        // A rep prefix may run zero times and a shift by CL may leave the flags.
        if !instruction.has_rep_prefix() && !instruction.has_repne_prefix() {
            dead |= open & always_written(&instruction);
            open &= !dead;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::UnconditionalBranch => {
                pc = instruction.near_branch_target();
                decoder = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
            }
            _ => break,
        }
    }
    dead
}

/// The same flags as bits of RFLAGS.
pub fn as_rflags(flags: u32) -> u64 {
    let bits = [
        (RflagsBits::OF, 0x800),
        (RflagsBits::SF, 0x80),
        (RflagsBits::ZF, 0x40),
        (RflagsBits::AF, 0x10),
        (RflagsBits::PF, 4),
        (RflagsBits::CF, 1),
    ];
    bits.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bit)| bit).sum()
}

/// Flags the instruction certainly overwrites. Flags it leaves "undefined" count
/// as live: real CPUs give them a value, and programs have been known to use it.
pub fn always_written(instruction: &Instruction) -> u32 {
    use iced_x86::Mnemonic::*;
    match instruction.mnemonic() {
        Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd => 0,
        // The manuals leave AF undefined here; every CPU made clears it.
        And | Or | Xor | Test => ARITHMETIC,
        _ => instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set(),
    }
}
