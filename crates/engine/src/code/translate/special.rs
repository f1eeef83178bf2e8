//! Instructions that are not the processor's alone: whose answer differs between
//! runs or machines, or would show the guest the engine.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};

/// Does the engine perform the instruction, or look at it first, so that a traced
/// unit ends before it?
pub fn performed_by_engine(i: &Instruction) -> bool {
    use FlowControl::*;
    let far = match i.flow_control() {
        UnconditionalBranch | Call if i.mnemonic() != Mnemonic::Syscall => {
            i.op0_kind() != OpKind::NearBranch64
        }
        IndirectBranch | IndirectCall => !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64),
        Return => !matches!(i.code(), Code::Retnq | Code::Retnq_imm16),
        XbeginXabortXend => true,
        _ => false,
    };
    far || must_emulate(i) || i.is_vsib()
}

/// Instructions whose answer would differ between runs or machines, or that
/// would show the guest the engine.
pub fn must_emulate(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
        Cpuid
            | Rdtsc
            | Rdtscp
            | Rdrand
            | Rdseed
            | Rdpid
            | Xgetbv
            | Xsave
            | Xsave64
            | Xsavec
            | Xsavec64
            | Xsaveopt
            | Xsaveopt64
            | Xrstor
            | Xrstor64
            | Fxsave
            | Fxsave64
            | Sysenter
            | Lsl
            | Sgdt
            | Sidt
            | Sldt
            | Str
            | Smsw
            | Rdpmc
            | Wrpkru
            | Rdpkru
            | Xbegin
            | Xtest
    ) || (i.mnemonic() == Int && i.immediate8() == 0x80)
}

/// x87 environment stores: they contain the address of the last x87 instruction.
pub fn leaks_instruction_pointer(i: &Instruction) -> bool {
    matches!(
        i.mnemonic(),
        Mnemonic::Fnstenv | Mnemonic::Fstenv | Mnemonic::Fnsave | Mnemonic::Fsave
    )
}
