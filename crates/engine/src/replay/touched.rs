//! Which memory an instruction is about to touch, all of it.

use super::observe::Access;
use crate::code::stops::reads_and_writes;
use crate::context::{Registers, reg};
use crate::cpu::shown::shown;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register, UsedMemory};

/// The accesses of an instruction, before it runs. Where their extent is not known
/// they are taken larger rather than smaller.
pub(super) fn touched(i: &Instruction, regs: &Registers) -> Vec<Access> {
    let mut factory = InstructionInfoFactory::new();
    if i.is_vsib() {
        let size = i.memory_size().element_size() as u32;
        let elements = super::tracing::gather_addresses(i, regs);
        let access = |address| Access { address, size, reads: true, writes: false };
        return elements.into_iter().map(access).collect();
    }
    factory.info(i).used_memory().iter().filter_map(|m| access(i, m, regs)).collect()
}

fn access(i: &Instruction, memory: &UsedMemory, regs: &Registers) -> Option<Access> {
    let value = |register: Register, _: usize, _: usize| super::observe::value_of(register, regs);
    let mut address = memory.virtual_address(0, value)?;
    let mut size = memory.memory_size().size() as u64;
    let repeats = i.has_rep_prefix() || i.has_repne_prefix();
    if repeats && i.is_string_instruction() {
        let all = size.saturating_mul(regs.gpr[reg::RCX]);
        if regs.rflags & (1 << 10) != 0 {
            address = address.wrapping_add(size).wrapping_sub(all);
        }
        size = all;
    } else if i.is_save_restore_instruction() {
        size = save_area(i.mnemonic());
    } else if is_bit_string(i) {
        let offset = super::observe::value_of(i.op1_register(), regs)?;
        let bits = (i.op1_register().size() * 8) as i64;
        let offset = match bits {
            16 => i64::from(offset as i16),
            32 => i64::from(offset as i32),
            _ => offset as i64,
        };
        address = address.wrapping_add_signed(offset.div_euclid(bits) * (bits / 8));
    }
    let (reads, writes) = reads_and_writes(memory.access());
    Some(Access { address, size: size.min(u64::from(u32::MAX)) as u32, reads, writes })
}

/// Bytes that XSAVE and its like may touch, of the processor that the guest sees.
fn save_area(mnemonic: Mnemonic) -> u64 {
    use Mnemonic::{Fnsave, Frstor, Fxrstor, Fxrstor64, Fxsave, Fxsave64};
    match mnemonic {
        Fnsave | Frstor => 108,
        Fxsave | Fxsave64 | Fxrstor | Fxrstor64 => 512,
        _ => shown().xsave_size.into(),
    }
}

fn is_bit_string(i: &Instruction) -> bool {
    let bits = matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    bits && i.op1_register() != Register::None
}
