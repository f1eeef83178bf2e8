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
pub fn dead_at<'a>(mut pc: u64, fetch: &dyn Fn(u64) -> &'a [u8]) -> bool {
    let mut live = ARITHMETIC;
    let mut instruction = Instruction::default();
    let mut decoder = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
    for _ in 0..LOOK_AHEAD {
        if !decoder.can_decode() {
            return false;
        }
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() || instruction.rflags_read() & live != 0 {
            return false;
        }
        // A rep prefix may run zero times and a shift by CL may leave the flags.
        if !instruction.has_rep_prefix() && !instruction.has_repne_prefix() {
            live &= !always_written(&instruction);
        }
        if live == 0 {
            return true;
        }
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::UnconditionalBranch => {
                pc = instruction.near_branch_target();
                decoder = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
            }
            _ => return false,
        }
    }
    false
}

/// Flags the instruction certainly overwrites. Flags it leaves "undefined" count
/// as live: real CPUs give them a value, and programs have been known to use it.
pub fn always_written(instruction: &Instruction) -> u32 {
    use iced_x86::Mnemonic::*;
    match instruction.mnemonic() {
        Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd => 0,
        // The manuals leave AF undefined here; every CPU made clears it.
        And | Or | Xor | Test => ARITHMETIC,
        _ => {
            instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set()
        }
    }
}
