//! Changing one thing at the instant a run stands at.

use super::Sandbox;
use crate::context::{Registers, reg};
use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

/// The run does not stand at what is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no conditional branch at {0:#x}; name the branch with `.2`, `.3` and so on")]
pub struct NotHere(pub u64);

impl Sandbox {
    /// The next instruction.
    pub fn instruction(&self) -> Instruction {
        let pc = self.registers().rip;
        let code = self.replayer.process.machine.memory.code(pc);
        Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode()
    }

    /// The branch that is next goes the other way. Says whether it would have been
    /// taken.
    pub fn switch(&mut self) -> Result<bool, NotHere> {
        let i = self.instruction();
        let regs = &mut self.replayer.context().regs;
        if i.flow_control() != FlowControl::ConditionalBranch {
            return Err(NotHere(regs.rip));
        }
        let taken = is_taken(&i, regs);
        regs.rip = if taken { i.next_ip() } else { i.near_branch_target() };
        if self.rate.is_none() {
            self.left = self.left.saturating_sub(1);
        }
        self.at_stop = false;
        Ok(taken)
    }

    /// Sets a general register by its number, or RIP (16).
    pub fn set_register(&mut self, register: usize, value: u64) {
        let regs = &mut self.replayer.context().regs;
        match register {
            16 => {
                regs.rip = value;
                self.at_stop = false;
            }
            n => regs.gpr[n] = value,
        }
    }

    /// Sets a part of a vector register.
    pub fn set_vector(&mut self, register: usize, bytes: &[u8]) {
        let vectors = &mut self.replayer.context().regs.vectors.0;
        let n = bytes.len().min(16);
        vectors[160 + 16 * register..][..n].copy_from_slice(&bytes[..n]);
        // SSE state is there.
        vectors[512] |= 2;
    }

    /// Sets memory. False if it cannot be written.
    #[must_use]
    pub fn set_memory(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.replayer.process.write_from_log(address, bytes)
    }

    /// Puts other code in the place of the program's own, from here on. False if
    /// nothing is mapped there.
    #[must_use]
    pub fn set_code(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.replayer.process.machine.replace_code(address, bytes)
    }

    /// Leaves out everything up to an address of the same function; a call that is
    /// left out returns `value`.
    pub fn skip_to(&mut self, address: u64, value: Option<u64>) {
        let regs = &mut self.replayer.context().regs;
        regs.rip = address;
        if let Some(value) = value {
            regs.gpr[reg::RAX] = value;
        }
        self.at_stop = false;
    }
}

/// Would the branch be taken? The counter of `loop` goes down as the branch itself
/// does it.
fn is_taken(i: &Instruction, regs: &mut Registers) -> bool {
    let rcx = regs.gpr[reg::RCX];
    let zero = regs.rflags & 0x40 != 0;
    match i.mnemonic() {
        Mnemonic::Jrcxz => rcx == 0,
        Mnemonic::Jecxz => rcx as u32 == 0,
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
            let short = matches!(
                i.code(),
                Code::Loop_rel8_64_ECX | Code::Loope_rel8_64_ECX | Code::Loopne_rel8_64_ECX
            );
            let next =
                if short { u64::from((rcx as u32).wrapping_sub(1)) } else { rcx.wrapping_sub(1) };
            regs.gpr[reg::RCX] = next;
            next != 0
                && match i.mnemonic() {
                    Mnemonic::Loope => zero,
                    Mnemonic::Loopne => !zero,
                    _ => true,
                }
        }
        _ => holds(i.condition_code(), regs.rflags),
    }
}

fn holds(condition: ConditionCode, flags: u64) -> bool {
    let bit = |n: u32| flags >> n & 1 != 0;
    let (carry, parity, zero, sign, overflow) = (bit(0), bit(2), bit(6), bit(7), bit(11));
    match condition {
        ConditionCode::None => false,
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
    }
}
