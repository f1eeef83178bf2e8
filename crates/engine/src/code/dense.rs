//! Safepoints after accesses to memory that other threads may see, for runs whose
//! schedule is varied on purpose.
//!
//! Whether a run has them is a fact of its recording, and of the whole process: its
//! events are placed by counting safepoints.
//!
//! Threads synchronise in a few instructions among thousands, and the program's own accesses
//! are few among those of its libraries. Both weigh more: they count as many safepoints at
//! once, so a turn of random length ends there more often. A count that would have ended
//! within the weight ends behind it.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static DENSE: AtomicBool = AtomicBool::new(false);

/// Whether code that is translated from now on has them.
pub fn choose(dense: bool) {
    DENSE.store(dense, Ordering::Relaxed);
}

/// Has it?
pub fn is_dense() -> bool {
    DENSE.load(Ordering::Relaxed)
}

/// Where the program's own code is.
static PROGRAM: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Says where the code of the program itself is; the rest is libraries.
pub fn note_program(code: &Range<u64>) {
    PROGRAM[0].store(code.start, Ordering::Relaxed);
    PROGRAM[1].store(code.end, Ordering::Relaxed);
}

fn is_program(pc: u64) -> bool {
    (PROGRAM[0].load(Ordering::Relaxed)..PROGRAM[1].load(Ordering::Relaxed)).contains(&pc)
}

/// What an instruction that synchronises weighs.
pub const SYNCHRONISES: i32 = 1024;

/// What a branch into another library weighs: most locks are taken behind one.
const ENTERS: i32 = 256;

/// What an access by the program's own code weighs.
const OWN: i32 = 512;

/// How far to look for an instruction that synchronises.
const AHEAD: usize = 8;

/// How many safepoints are behind the instruction, if code has them? `fetch` gives code.
pub fn weight(i: &Instruction, fetch: &dyn Fn(u64) -> &'static [u8]) -> i32 {
    match alone(i) {
        1 if !is_program(i.ip()) => 1,
        // The last place before something that synchronises is as good as that behind it.
        1 if synchronises_soon(i.next_ip(), fetch) => SYNCHRONISES,
        1 => OWN,
        other => other,
    }
}

/// Is the next access one that synchronises? The program's own code does not change, so it
/// may be looked at beyond the unit.
fn synchronises_soon(pc: u64, fetch: &dyn Fn(u64) -> &'static [u8]) -> bool {
    let code = Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE);
    let straight = code.into_iter().take(AHEAD).take_while(|i| {
        let on = matches!(i.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        on && !i.is_invalid() && is_program(i.ip())
    });
    straight.map(|i| alone(&i)).find(|weight| *weight > 0) == Some(SYNCHRONISES)
}

/// What an instruction weighs wherever it is.
///
/// What is found through the stack pointer, or below a frame pointer, is the thread's
/// own as a rule.
fn alone(i: &Instruction) -> i32 {
    use Mnemonic::*;
    if matches!(i.mnemonic(), Lea | Nop | Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2) {
        return 0;
    }
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let own = match i.memory_base() {
        Register::RSP => true,
        Register::RBP => (i.memory_displacement64() as i64) < 0,
        _ => false,
    };
    match memory && !own {
        true if i.has_lock_prefix() || i.mnemonic() == Xchg => SYNCHRONISES,
        true => 1,
        false => 0,
    }
}

/// How many safepoints an indirect branch counts as.
pub fn branch_weight(i: &Instruction) -> i32 {
    if is_dense() && i.is_ip_rel_memory_operand() { ENTERS } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::{OWN, SYNCHRONISES, alone, note_program, weight};
    use iced_x86::{Decoder, DecoderOptions};

    fn weighed(bytes: &[u8]) -> i32 {
        alone(&Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode())
    }

    #[test]
    fn memory_counts_unless_it_is_the_frame() {
        assert_eq!(weighed(&[0x8b, 0x07]), 1, "mov eax, [rdi]");
        assert_eq!(weighed(&[0x89, 0x05, 0, 1, 0, 0]), 1, "mov [rip+0x100], eax");
        assert_eq!(weighed(&[0x8b, 0x45, 0x08]), 1, "mov eax, [rbp+8]");
        assert_eq!(weighed(&[0x8b, 0x45, 0xf8]), 0, "mov eax, [rbp-8]");
        assert_eq!(weighed(&[0x8b, 0x44, 0x24, 0x08]), 0, "mov eax, [rsp+8]");
        assert_eq!(weighed(&[0x48, 0x8d, 0x07]), 0, "lea rax, [rdi]");
        assert_eq!(weighed(&[0x01, 0xc8]), 0, "add eax, ecx");
    }

    #[test]
    fn what_synchronises_weighs_more() {
        assert_eq!(weighed(&[0xf0, 0x0f, 0xb1, 0x0f]), SYNCHRONISES, "lock cmpxchg [rdi], ecx");
        assert_eq!(weighed(&[0x87, 0x07]), SYNCHRONISES, "xchg [rdi], eax");
        assert_eq!(weighed(&[0x87, 0xc1]), 0, "xchg ecx, eax");
    }

    #[test]
    fn accesses_of_the_program_weigh_more_and_those_before_something_that_synchronises_most() {
        note_program(&(0x1000..0x2000));
        // mov eax, [rdi]; mov edx, [rdi]; add eax, ecx; lock cmpxchg [rdi], ecx; ret
        const CODE: &[u8] = b"\x8b\x07\x8b\x17\x01\xc8\xf0\x0f\xb1\x0f\xc3";
        let weights = |base: u64| {
            let fetch = move |pc: u64| CODE.get(pc.wrapping_sub(base) as usize..).unwrap_or(&[]);
            let code = Decoder::with_ip(64, CODE, base, DecoderOptions::NONE);
            code.into_iter().map(|i| weight(&i, &fetch)).collect::<Vec<_>>()
        };
        assert_eq!(weights(0x1000), [OWN, SYNCHRONISES, 0, SYNCHRONISES, 0]);
        assert_eq!(weights(0x5000), [1, 1, 0, SYNCHRONISES, 0]);
    }
}
