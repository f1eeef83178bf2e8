//! Crossing between engine and guest code.
//!
//! [`enter`] saves the engine's registers on its stack, loads the guest's from
//! the context page and jumps into the code cache. Translated code comes back
//! through [`why_guest_exit`], which does the reverse. Between the two the guest
//! owns every register, FS, and the stack pointer; only GS is never touched.

use crate::context::{Context, Registers};
use crate::layout;
use std::arch::global_asm;
use std::mem::offset_of;

/// Why guest code came back to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// A direct branch whose target has no translation yet (`arg` = exit number).
    Unlinked = 0,
    /// An indirect branch that found no translation (target in `slots[1]`).
    Indirect = 1,
    /// A `syscall` instruction; RIP is behind it.
    Syscall = 2,
    /// The safepoint count ran out at a direct branch (`arg` = exit number).
    Safepoint = 3,
    /// The safepoint count ran out at an indirect branch that weighs more than one.
    SafepointIndirect = 4,
    /// An instruction the engine performs itself; RIP is at it.
    Emulate = 5,
    /// A guest instruction raised a hardware exception; RIP is at it.
    Fault = 6,
    /// The instruction budget of a counting profile ran out before RIP.
    Budget = 7,
    /// A profile asked to stop before the instruction at RIP.
    Stop = 8,
    /// The safepoint count ran out; RIP is the branch's target.
    SafepointHere = 10,
    /// The instruction at RIP may touch watched memory (`arg` = instructions that
    /// were counted but not executed).
    Watch = 11,
}

impl Reason {
    /// The reason a translated block stored.
    pub fn of(context: &Context) -> Reason {
        match context.reason {
            0 => Reason::Unlinked,
            1 => Reason::Indirect,
            2 => Reason::Syscall,
            3 => Reason::Safepoint,
            4 => Reason::SafepointIndirect,
            5 => Reason::Emulate,
            6 => Reason::Fault,
            7 => Reason::Budget,
            8 => Reason::Stop,
            10 => Reason::SafepointHere,
            11 => Reason::Watch,
            n => unreachable!("translated code stored reason {n}"),
        }
    }
}

const R: usize = offset_of!(Context, regs);

global_asm!(
    ".text",
    ".globl why_guest_enter",
    ".p2align 4",
    "why_guest_enter:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "mov [{ENGINE_RSP}], rsp",
    "rdfsbase rax",
    "mov [{ENGINE_FS}], rax",
    "mov eax, [{XMASK}]",
    "mov edx, [{XMASK}+4]",
    "xrstor64 [{VECTORS}]",
    "mov rax, [{FS}]",
    "wrfsbase rax",
    // Arithmetic flags by hand; `popfq` is slow and only needed for the others.
    "mov eax, [{RFLAGS}]",
    "test eax, {RARE_FLAGS}",
    "jnz 3f",
    "mov ecx, eax",
    "shr ecx, 11",
    "and ecx, 1",
    "mov ah, al",
    "add cl, 127",
    "sahf",
    "2:",
    "mov rax, [{GPR}]", "mov rcx, [{GPR}+8]", "mov rdx, [{GPR}+16]", "mov rbx, [{GPR}+24]",
    "mov rsp, [{GPR}+32]", "mov rbp, [{GPR}+40]", "mov rsi, [{GPR}+48]", "mov rdi, [{GPR}+56]",
    "mov r8, [{GPR}+64]", "mov r9, [{GPR}+72]", "mov r10, [{GPR}+80]", "mov r11, [{GPR}+88]",
    "mov r12, [{GPR}+96]", "mov r13, [{GPR}+104]", "mov r14, [{GPR}+112]", "mov r15, [{GPR}+120]",
    "jmp qword ptr [{ENTER}]",
    "3:",
    "push qword ptr [{RFLAGS}]",
    "popfq",
    "jmp 2b",
    "",
    ".globl why_guest_exit",
    ".p2align 4",
    "why_guest_exit:",
    "mov [{GPR}], rax", "mov [{GPR}+8], rcx", "mov [{GPR}+16], rdx", "mov [{GPR}+24], rbx",
    "mov [{GPR}+32], rsp", "mov [{GPR}+40], rbp", "mov [{GPR}+48], rsi", "mov [{GPR}+56], rdi",
    "mov [{GPR}+64], r8", "mov [{GPR}+72], r9", "mov [{GPR}+80], r10", "mov [{GPR}+88], r11",
    "mov [{GPR}+96], r12", "mov [{GPR}+104], r13", "mov [{GPR}+112], r14", "mov [{GPR}+120], r15",
    "mov rsp, [{ENGINE_RSP}]",
    "pushfq",
    "pop qword ptr [{RFLAGS}]",
    "rdfsbase rax",
    "mov [{FS}], rax",
    "mov rax, [{ENGINE_FS}]",
    "wrfsbase rax",
    "mov eax, [{XMASK}]",
    "mov edx, [{XMASK}+4]",
    // Writes only what changed since it was loaded from the same place.
    "xsaveopt64 [{VECTORS}]",
    "test dword ptr [{RFLAGS}], {RARE_FLAGS}",
    "jz 4f",
    ".globl why_guest_left",
    "why_guest_left:",
    "push 2", "popfq",
    "4:",
    // The engine never uses x87, so that state may stay the guest's.
    "vzeroupper",
    "ldmxcsr [rsp]",
    "add rsp, 8",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
    "ret",
    GPR = const layout::CONTEXT as usize + R + offset_of!(Registers, gpr),
    RFLAGS = const layout::CONTEXT as usize + R + offset_of!(Registers, rflags),
    FS = const layout::CONTEXT as usize + R + offset_of!(Registers, fs),
    VECTORS = const layout::CONTEXT as usize + R + offset_of!(Registers, vectors),
    ENGINE_RSP = const layout::CONTEXT as usize + offset_of!(Context, engine_rsp),
    ENGINE_FS = const layout::CONTEXT as usize + offset_of!(Context, engine_fs),
    // TF, DF, AC, ID.
    RARE_FLAGS = const 0x24_0500,
    XMASK = const layout::CONTEXT as usize + offset_of!(Context, xmask),
    ENTER = const layout::CONTEXT as usize + offset_of!(Context, enter),
);

unsafe extern "C" {
    fn why_guest_enter();
    fn why_guest_exit();
    fn why_guest_left();
}

/// Where a fault handler sends the engine after it has stored the guest's
/// registers itself: the end of the way out, on the engine's stack.
pub fn left_address() -> u64 {
    why_guest_left as *const () as u64
}

/// Runs guest code at the host address `host` until it comes back.
///
/// # Safety
/// `host` must be an entry into the code cache for the guest state now in the
/// context page, and the caller must hold the turn.
pub unsafe fn enter(context: *mut Context, host: u64) -> Reason {
    // SAFETY: the page is mapped; nobody else holds a reference (the turn).
    unsafe {
        (*context).enter = host;
        (*context).deal();
        why_guest_enter();
        (*context).gather();
        Reason::of(&*context)
    }
}

/// Maps the context page and fills in what never changes.
pub fn map_context(xmask: u64) -> std::io::Result<()> {
    let size = crate::layout::page_ceil(size_of::<Context>() as u64).expect("small") as usize;
    // SAFETY: a fixed map in the engine's own range, which nothing else uses.
    let got = unsafe {
        libc::mmap(
            layout::CONTEXT as *mut _,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if got as u64 != layout::CONTEXT {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just mapped, zeroed, and single-threaded so far.
    let context = unsafe { crate::context::context() };
    context.exit = why_guest_exit as *const () as u64;
    context.xmask = xmask;
    context.regs.rflags = 0x202;
    context.regs.vectors = Default::default();
    context.lanes = Default::default();
    Ok(())
}
