//! Safepoints after accesses to memory that other threads may see, for runs whose
//! schedule is varied on purpose.
//!
//! Whether a run has them is a fact of its recording, and of the whole process: its
//! events are placed by counting safepoints.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::sync::atomic::{AtomicBool, Ordering};

static DENSE: AtomicBool = AtomicBool::new(false);

/// Whether code that is translated from now on has them.
pub fn choose(dense: bool) {
    DENSE.store(dense, Ordering::Relaxed);
}

/// Has it?
pub fn is_dense() -> bool {
    DENSE.load(Ordering::Relaxed)
}

/// Is there one behind the instruction, if code has them?
///
/// What is found through the stack pointer, or below a frame pointer, is the thread's
/// own as a rule.
pub fn counts(i: &Instruction) -> bool {
    use Mnemonic::*;
    if matches!(i.mnemonic(), Lea | Nop | Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2) {
        return false;
    }
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let own = match i.memory_base() {
        Register::RSP => true,
        Register::RBP => (i.memory_displacement64() as i64) < 0,
        _ => false,
    };
    memory && !own
}

#[cfg(test)]
mod tests {
    use super::counts;
    use iced_x86::{Decoder, DecoderOptions};

    fn counted(bytes: &[u8]) -> bool {
        counts(&Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode())
    }

    #[test]
    fn memory_counts_unless_it_is_the_frame() {
        assert!(counted(&[0x8b, 0x07]), "mov eax, [rdi]");
        assert!(counted(&[0x89, 0x05, 0, 1, 0, 0]), "mov [rip+0x100], eax");
        assert!(counted(&[0xf0, 0x0f, 0xb1, 0x0f]), "lock cmpxchg [rdi], ecx");
        assert!(counted(&[0x8b, 0x45, 0x08]), "mov eax, [rbp+8]");
        assert!(!counted(&[0x8b, 0x45, 0xf8]), "mov eax, [rbp-8]");
        assert!(!counted(&[0x8b, 0x44, 0x24, 0x08]), "mov eax, [rsp+8]");
        assert!(!counted(&[0x48, 0x8d, 0x07]), "lea rax, [rdi]");
        assert!(!counted(&[0x01, 0xc8]), "add eax, ecx");
    }
}
