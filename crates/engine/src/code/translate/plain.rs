//! Instructions that do not branch: copied, with RIP-relative operands rewritten.

use super::special::{leaks_instruction_pointer, must_emulate};
use super::{FAR_SLOT, Source, Spilled, Then, Translator};
use crate::code::dense;
use crate::crossing::Reason;
use iced_x86::{
    Code, Encoder, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic,
    Register,
};

impl Translator<'_> {
    pub(super) fn emulated(&mut self, i: &Instruction) -> Then {
        self.close(self.index);
        self.leave(Reason::Emulate, i.ip());
        Then::End
    }

    pub(super) fn plain(&mut self, i: &Instruction, source: Source) -> Then {
        if must_emulate(i) {
            return self.emulated(i);
        }
        if self.must_stop_before(i) {
            self.close(0);
            self.leave(Reason::Stop, i.ip());
            return Then::End;
        }
        let replaced = self.tracing.as_ref().and_then(|tracing| tracing.replaced(i));
        match &replaced {
            Some(other) if i.is_ip_rel_memory_operand() && !self.is_near(i) => {
                self.far_operand(other, i.ip_rel_memory_address());
            }
            Some(other) => self.encode(other),
            None if i.is_ip_rel_memory_operand() => self.rip_relative(i, source),
            None => self.emit.raw(source.raw),
        }
        if leaks_instruction_pointer(i) {
            self.clear_x87_pointers(&replaced.unwrap_or(*i));
        }
        // int3, ud2, int n: the CPU faults; what follows is never reached.
        if i.flow_control() != FlowControl::Next {
            return Then::End;
        }
        if dense::is_dense() {
            let weight = dense::weight(i, self.request.fetch);
            if weight > 0 {
                self.close(self.index + 1);
                self.exit_to(i.next_ip(), weight);
                return Then::End;
            }
        }
        Then::Continue
    }

    /// Is a RIP-relative operand in reach, however long the instruction will be?
    fn is_near(&self, i: &Instruction) -> bool {
        const LONGEST: u64 = 15;
        let displacement = i.ip_rel_memory_address().wrapping_sub(self.emit.here()) as i64;
        i.memory_base() == Register::RIP && displacement.unsigned_abs() < (1 << 31) - LONGEST
    }

    fn rip_relative(&mut self, i: &Instruction, source: Source) {
        let Source { raw, displacement_at } = source;
        let target = i.ip_rel_memory_address();
        let next = self.emit.here() + raw.len() as u64;
        let displacement = target.wrapping_sub(next) as i64;
        let near = i32::try_from(displacement);
        if let (Ok(d), Register::RIP) = (near, i.memory_base()) {
            let at = self.emit.offset() + displacement_at;
            self.emit.raw(raw);
            self.emit.bytes[at..at + 4].copy_from_slice(&d.to_le_bytes());
        } else if i.mnemonic() == Mnemonic::Lea && i.op0_register().size() == 8 {
            let register = i.op0_register().number();
            self.emit.load_constant(register, target);
        } else {
            self.far_operand(i, target);
        }
    }

    /// A RIP-relative operand out of reach: through a register the instruction
    /// does not use.
    pub(super) fn far_operand(&mut self, i: &Instruction, target: u64) {
        let scratch = free_register(i);
        let number = scratch.number();
        let mut moved = *i;
        moved.set_memory_base(scratch);
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        self.emit.store(FAR_SLOT, number);
        self.emit.load_constant(number, target);
        self.place(i.ip(), Some(Spilled { register: number as u8, slot: 2 }));
        self.encode(&moved);
        self.place(i.ip(), None);
        self.emit.load(number, FAR_SLOT);
    }

    pub(super) fn encode(&mut self, i: &Instruction) {
        let mut encoder = Encoder::new(64);
        encoder.encode(i, self.emit.here()).expect("a decoded instruction with another base");
        let bytes = encoder.take_buffer();
        self.emit.raw(&bytes);
    }

    /// x87 environment stores contain the address of the last x87 instruction,
    /// which would be an address in the cache: store zero instead.
    pub(super) fn clear_x87_pointers(&mut self, i: &Instruction) {
        // Environment: FIP at 12, FCS/FOP at 16, FDP at 20, FDS at 24.
        for offset in [12i64, 16, 20, 24] {
            let memory = MemoryOperand::new(
                i.memory_base(),
                i.memory_index(),
                i.memory_index_scale(),
                i.memory_displacement64() as i64 + offset,
                8,
                false,
                i.segment_prefix(),
            );
            let store = Instruction::with2(Code::Mov_rm32_imm32, memory, 0u32).expect("valid");
            self.encode(&store);
        }
    }
}

/// A general register the instruction neither reads nor writes.
pub(super) fn free_register(i: &Instruction) -> Register {
    use Register::*;
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(i);
    let used: Vec<Register> =
        info.used_registers().iter().map(|u| u.register().full_register()).collect();
    [RCX, RDX, RBX, RSI, RDI, R8, R9, R10, R11]
        .into_iter()
        .find(|r| !used.contains(r))
        .expect("no instruction uses nine general registers")
}
