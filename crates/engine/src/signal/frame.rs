//! Signal frames with the kernel's exact layout.
//!
//! ```text
//! higher  │ red zone (128 bytes)
//!         │ XSAVE image, 64-aligned, with the magic numbers that say so
//!         │ siginfo (128)
//!         │ ucontext (304)
//! rsp ──▶ │ return address: the restorer
//! ```

use super::Set;
use super::actions::Action;
use crate::context::{Registers, reg};
use crate::cpu::shown::shown;
use crate::cpu::xsave::{self, Image};
use crate::guest::memory::Memory;
use crate::guest::task::{AltStack, Task};

/// `siginfo_t` as bytes.
pub type Info = [u8; 128];

const UCONTEXT: u64 = 304;
const FRAME: u64 = 8 + UCONTEXT + 128;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;
const SS_AUTODISARM: i32 = i32::MIN;

/// Order of the general registers in `sigcontext`.
const ORDER: [usize; 16] = [
    reg::R8,
    reg::R9,
    reg::R10,
    reg::R11,
    reg::R12,
    reg::R13,
    reg::R14,
    reg::R15,
    reg::RDI,
    reg::RSI,
    reg::RBP,
    reg::RBX,
    reg::RDX,
    reg::RAX,
    reg::RCX,
    reg::RSP,
];

/// What a hardware exception adds to the frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trap {
    /// Trap number.
    pub number: u64,
    /// Error code.
    pub error: u64,
    /// Faulting address.
    pub address: u64,
}

/// The stack for the frame could not be written.
#[derive(Debug, PartialEq, Eq)]
pub struct NoStack;

/// Pushes a frame and sets the registers to enter the handler.
pub fn push(
    task: &mut Task,
    regs: &mut Registers,
    memory: &Memory,
    action: &Action,
    info: &Info,
    saved_mask: Set,
    trap: Trap,
) -> Result<(), NoStack> {
    let signal = i32::from_le_bytes(info[..4].try_into().expect("four bytes"));
    let sp = regs.gpr[reg::RSP];
    let on_alt = action.flags & libc::SA_ONSTACK as u64 != 0
        && task.altstack.flags & libc::SS_DISABLE == 0
        && !task.altstack.contains(sp);
    let top = if on_alt {
        task.altstack.base.wrapping_add(task.altstack.size)
    } else {
        sp.wrapping_sub(128)
    };
    let vectors = shown().xsave_size as u64 + 4;
    let fp = top.wrapping_sub(vectors) & !63;
    let frame = (fp.wrapping_sub(FRAME) & !15).wrapping_sub(8);
    let mut bytes = vec![0u8; (fp + vectors).wrapping_sub(frame) as usize];
    put(&mut bytes, 0, action.restorer);
    write_ucontext(&mut bytes[8..], task, regs, saved_mask, trap, fp);
    bytes[(8 + UCONTEXT) as usize..FRAME as usize].copy_from_slice(info);
    write_vectors(&mut bytes[(fp - frame) as usize..], regs);
    if !memory.write(frame, &bytes) {
        return Err(NoStack);
    }
    if on_alt && task.altstack.flags & SS_AUTODISARM != 0 {
        task.altstack = AltStack::default();
    }
    regs.gpr[reg::RSP] = frame;
    regs.gpr[reg::RDI] = signal as u64;
    regs.gpr[reg::RSI] = frame + 8 + UCONTEXT;
    regs.gpr[reg::RDX] = frame + 8;
    regs.gpr[reg::RAX] = 0;
    regs.rip = action.handler;
    // The kernel clears DF, RF and TF.
    regs.rflags &= !(0x400 | 0x1_0000 | 0x100);
    Ok(())
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Offset of `sigcontext` in `ucontext`.
const MCONTEXT: usize = 40;

fn write_ucontext(uc: &mut [u8], task: &Task, regs: &Registers, mask: Set, trap: Trap, fp: u64) {
    put(uc, 0, 7); // UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
    put(uc, 16, task.altstack.base);
    let flags = if task.altstack.contains(regs.gpr[reg::RSP]) {
        task.altstack.flags | libc::SS_ONSTACK
    } else {
        task.altstack.flags
    };
    put(uc, 24, flags as u32 as u64);
    put(uc, 32, task.altstack.size);
    for (n, r) in ORDER.iter().enumerate() {
        put(uc, MCONTEXT + 8 * n, regs.gpr[*r]);
    }
    put(uc, MCONTEXT + 128, regs.rip);
    put(uc, MCONTEXT + 136, regs.rflags);
    // cs = 0x33, gs = fs = 0, ss = 0x2b: the kernel's user selectors.
    put(uc, MCONTEXT + 144, 0x002b_0000_0000_0033);
    put(uc, MCONTEXT + 152, trap.error);
    put(uc, MCONTEXT + 160, trap.number);
    put(uc, MCONTEXT + 168, mask);
    put(uc, MCONTEXT + 176, trap.address);
    put(uc, MCONTEXT + 184, fp);
    put(uc, MCONTEXT + 256, mask);
}

fn write_vectors(area: &mut [u8], regs: &Registers) {
    let mut v = regs.vectors.clone();
    xsave::normalise(&mut v);
    let xsave_size = shown().xsave_size;
    let size = xsave_size as usize;
    area[..size].copy_from_slice(&v.0[..size]);
    area[464..468].copy_from_slice(&MAGIC1.to_le_bytes());
    area[468..472].copy_from_slice(&(xsave_size + 4).to_le_bytes());
    put(area, 472, shown().xcr0);
    area[480..484].copy_from_slice(&xsave_size.to_le_bytes());
    area[size..size + 4].copy_from_slice(&MAGIC2.to_le_bytes());
}

/// `rt_sigreturn`: registers and mask from the frame below RSP. `None` if there
/// is no readable frame, which the kernel answers with SIGSEGV.
pub fn pop(task: &mut Task, regs: &mut Registers, memory: &Memory) -> Option<Set> {
    let uc_at = regs.gpr[reg::RSP];
    let uc = memory.read(uc_at, UCONTEXT as usize)?;
    let fp = get(&uc, MCONTEXT + 184);
    for (n, r) in ORDER.iter().enumerate() {
        regs.gpr[*r] = get(&uc, MCONTEXT + 8 * n);
    }
    regs.rip = get(&uc, MCONTEXT + 128);
    // What user mode may change: the arithmetic flags, DF, OF, TF, AC, RF.
    let changeable = 0x5_0dd5;
    regs.rflags = (regs.rflags & !changeable) | (get(&uc, MCONTEXT + 136) & changeable);
    if fp == 0 {
        regs.vectors = Default::default();
    } else {
        read_vectors(regs, memory, fp)?;
    }
    task.altstack = AltStack {
        base: get(&uc, 16),
        size: get(&uc, 32),
        flags: get(&uc, 24) as i32 & !libc::SS_ONSTACK,
    };
    Some(get(&uc, MCONTEXT + 256) & !super::UNBLOCKABLE)
}

fn read_vectors(regs: &mut Registers, memory: &Memory, fp: u64) -> Option<()> {
    let legacy = memory.read(fp, 512)?;
    let magic = u32::from_le_bytes(legacy[464..468].try_into().ok()?);
    let mut image: Image = [0; _];
    if magic == MAGIC1 {
        let size = shown().xsave_size as usize;
        image[..size].copy_from_slice(&memory.read(fp, size)?);
    } else {
        image[..512].copy_from_slice(&legacy);
        image[512] = 3;
    }
    xsave::restore(&mut regs.vectors, shown().xcr0, &image);
    // Reserved bits of MXCSR would fault when loaded.
    let mxcsr = u32::from_le_bytes(regs.vectors.0[24..28].try_into().ok()?) & 0xffff;
    regs.vectors.0[24..28].copy_from_slice(&mxcsr.to_le_bytes());
    Some(())
}
