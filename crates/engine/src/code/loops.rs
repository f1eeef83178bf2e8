//! Units that are a whole innermost loop.
//!
//! Counting safepoints in memory costs a tight loop more than its own work: each
//! iteration waits for the store of the one before. Where a unit jumps back to
//! its own beginning, and leaves some general register alone, the count stays in
//! that register for as long as the loop runs.

use super::{flags, translate};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Register,
};

/// A loop whose count can be in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfLoop {
    /// The register, which no instruction of the loop uses.
    pub register: usize,
    /// Another one, for the instruction budget of counting profiles.
    pub budget: Option<usize>,
    /// Address of the branch back to the beginning.
    pub back_edge: u64,
    /// Are the arithmetic flags dead at the beginning?
    pub flags_dead: bool,
}

/// Is the code at `pc` such a loop, within so many instructions?
pub fn find(pc: u64, fetch: &dyn Fn(u64) -> &'static [u8], limit: usize) -> Option<SelfLoop> {
    let back_edge = back_edge(pc, fetch(pc), limit)?.ip();
    let flags_dead = flags::dead_at(pc, fetch);
    let mut free = unused(pc, fetch(pc), back_edge);
    // Without flags to test, only RCX can be compared with zero.
    let register = free.find(|r| flags_dead || *r == Register::RCX)?.number();
    Some(SelfLoop { register, budget: None, back_edge, flags_dead })
}

/// The same where instructions are counted too: a loop of a single basic block, which can
/// have both counts in registers.
pub fn find_counted(
    pc: u64,
    fetch: &dyn Fn(u64) -> &'static [u8],
    limit: usize,
) -> Option<SelfLoop> {
    let back = back_edge(pc, fetch(pc), limit)?;
    let mut block = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
    let first_branch = block.iter().find(|i| i.flow_control() != FlowControl::Next)?;
    let single = first_branch.ip() == back.ip() && back.is_jcc_short_or_near();
    if !single || !flags::dead_at(pc, fetch) {
        return None;
    }
    let mut free = unused(pc, fetch(pc), back.ip());
    let (register, budget) = (free.next()?.number(), free.next()?.number());
    Some(SelfLoop { register, budget: Some(budget), back_edge: back.ip(), flags_dead: true })
}

/// Registers that no instruction of a loop uses.
fn unused(pc: u64, code: &[u8], back_edge: u64) -> impl Iterator<Item = Register> {
    let mut free: Vec<Register> = CANDIDATES.to_vec();
    let mut factory = InstructionInfoFactory::new();
    for i in &mut Decoder::with_ip(64, code, pc, DecoderOptions::NONE) {
        for used in factory.info(&i).used_registers() {
            let full = used.register().full_register();
            free.retain(|r| *r != full);
        }
        if i.ip() == back_edge {
            break;
        }
    }
    free.into_iter()
}

/// RCX first: it serves in either case.
const CANDIDATES: [Register; 13] = [
    Register::RCX,
    Register::R11,
    Register::R10,
    Register::R9,
    Register::R8,
    Register::R15,
    Register::R14,
    Register::R13,
    Register::R12,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::RBX,
];

/// The first branch back to `pc`, if only plain instructions and forward
/// conditional branches come before it.
fn back_edge(pc: u64, bytes: &[u8], limit: usize) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut i = Instruction::default();
    for _ in 0..limit {
        if !decoder.can_decode() {
            return None;
        }
        decoder.decode_out(&mut i);
        match i.flow_control() {
            _ if i.is_invalid() => return None,
            FlowControl::Next if !translate::must_emulate(&i) => {}
            FlowControl::ConditionalBranch if i.is_jcc_short_or_near() => {
                match i.near_branch_target() {
                    target if target == pc => return Some(i),
                    target if target > i.ip() => {}
                    _ => return None,
                }
            }
            FlowControl::UnconditionalBranch if i.near_branch_target() == pc => {
                return Some(i);
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(code: &'static [u8]) -> Option<SelfLoop> {
        let fetch = move |pc: u64| code.get(pc.wrapping_sub(0x1000) as usize..).unwrap_or(&[]);
        find(0x1000, &fetch, 48)
    }

    #[test]
    fn a_loop_that_leaves_rcx_alone_counts_in_it() {
        // add rax, rbx; cmp rax, rdx; jb -8
        let found = find_in(&[0x48, 0x01, 0xd8, 0x48, 0x39, 0xd0, 0x72, 0xf8, 0xc3]);
        let expected = SelfLoop { register: 1, budget: None, back_edge: 0x1006, flags_dead: true };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_loop_of_one_block_counts_instructions_in_another_register() {
        let code: &[u8] = &[0x48, 0x01, 0xd8, 0x48, 0x39, 0xd0, 0x72, 0xf8, 0xc3];
        let fetch = move |pc: u64| code.get(pc.wrapping_sub(0x1000) as usize..).unwrap_or(&[]);
        let found = find_counted(0x1000, &fetch, 48);
        let expected =
            SelfLoop { register: 1, budget: Some(11), back_edge: 0x1006, flags_dead: true };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_loop_with_a_way_out_in_its_middle_does_not() {
        // add rax, rbx; js +5; cmp rax, rdx; jb -10
        let code: &[u8] = &[0x48, 0x01, 0xd8, 0x78, 0x05, 0x48, 0x39, 0xd0, 0x72, 0xf6, 0xc3];
        let fetch = move |pc: u64| code.get(pc.wrapping_sub(0x1000) as usize..).unwrap_or(&[]);
        assert_eq!(find_counted(0x1000, &fetch, 48), None);
        assert!(find(0x1000, &fetch, 48).is_some());
    }

    #[test]
    fn a_loop_with_a_call_does_not() {
        // call +0; cmp rax, rdx; jb -10
        let code = &[0xe8, 0, 0, 0, 0, 0x48, 0x39, 0xd0, 0x72, 0xf6, 0xc3];
        assert_eq!(find_in(code), None);
    }

    #[test]
    fn a_loop_that_needs_its_flags_and_rcx_does_not() {
        // adc rax, rcx; lea rdx, [rdx-1]; jnc -9
        let code = &[0x48, 0x11, 0xc8, 0x48, 0x8d, 0x52, 0xff, 0x73, 0xf7, 0xc3];
        assert_eq!(find_in(code), None);
    }
}
