//! The engine's own signal handler.
//!
//! It runs on a private stack per kernel thread, at whose base lies a [`Block`]
//! found by masking the stack pointer: thread-local storage cannot be used before
//! the engine's FS base is restored. The handler itself does little: a fault in
//! translated code becomes an exit with [`Reason::Fault`]; any other signal is
//! queued in the block and looked at by the session at the next safepoint or
//! system call.

use super::careful;
use crate::context::{Context, reg};
use crate::crossing::{Reason, left_address};
use crate::guest::machine::Fault;
use crate::layout;
use crate::signal::actions::Action;
use crate::signal::frame::Info;
use std::arch::global_asm;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// Size and alignment of a handler stack with its block.
const STACK: usize = 1 << 16;
const QUEUE: usize = 192;

/// A fault as the host reported it.
#[derive(Clone, Copy, Debug)]
pub struct HostFault {
    /// Address in the code cache.
    pub host_pc: u64,
    /// What the guest gets.
    pub fault: Fault,
}

impl HostFault {
    /// An `int3`: the only exception reported behind its instruction.
    pub fn is_breakpoint(&self) -> bool {
        self.fault.trap == 3
    }

    /// Address of (the first byte of, or within) the host instruction.
    pub fn at(&self) -> u64 {
        self.host_pc - self.is_breakpoint() as u64
    }
}

/// Per kernel thread, at the base of its handler stack.
#[repr(C)]
pub struct Block {
    engine_fs: u64,
    /// Signals queued and not yet taken.
    pending: AtomicU32,
    /// Those of them that the guest does not block; read by the system-call stub.
    deliverable: AtomicU32,
    /// What the guest blocks.
    mask: super::Set,
    fault: Option<HostFault>,
    /// The queue is full, and the kernel keeps what comes; the mask to return to.
    full: Option<super::Set>,
    queue: [Info; QUEUE],
}

global_asm!(
    ".text",
    ".globl why_signal_entry",
    ".p2align 4",
    "why_signal_entry:",
    "push rbx",
    "rdfsbase rbx",
    "mov rcx, rsp",
    "and rcx, {MASK}",
    "mov rax, [rcx + {ENGINE_FS}]",
    "wrfsbase rax",
    "mov r8, rbx",
    "call {handler}",
    "wrfsbase rax",
    "pop rbx",
    "ret",
    "",
    ".globl why_signal_return",
    "why_signal_return:",
    "mov eax, 15",
    "syscall",
    "",
    // rdi: number, rsi: arguments, rdx: the pending counter.
    ".globl why_interruptible",
    ".p2align 4",
    "why_interruptible:",
    "push rbx",
    "mov rbx, rdx",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]", "mov rsi, [r11+8]", "mov rdx, [r11+16]",
    "mov r10, [r11+24]", "mov r8, [r11+32]", "mov r9, [r11+40]",
    ".globl why_interruptible_start",
    "why_interruptible_start:",
    "cmp dword ptr [rbx], 0",
    "jne why_interruptible_break",
    "syscall",
    ".globl why_interruptible_end",
    "why_interruptible_end:",
    "pop rbx",
    "ret",
    ".globl why_interruptible_break",
    "why_interruptible_break:",
    "mov rax, -512",
    "pop rbx",
    "ret",
    MASK = const -(STACK as i64),
    ENGINE_FS = const offset_of!(Block, engine_fs),
    handler = sym handler,
);

unsafe extern "C" {
    fn why_signal_entry();
    fn why_signal_return();
    fn why_interruptible(nr: u64, args: *const u64, pending: *const AtomicU32) -> i64;
    fn why_interruptible_start();
    fn why_interruptible_end();
    fn why_interruptible_break();
}

thread_local! {
    static BLOCK: std::cell::Cell<*mut Block> = const { std::cell::Cell::new(std::ptr::null_mut()) };
}

/// A kernel call that a queued signal interrupts, also in the moment before the
/// kernel is entered. The interruption is reported as -512 (ERESTARTSYS).
///
/// # Safety
/// As the system call itself.
pub unsafe fn interruptible(nr: u64, args: [u64; 6]) -> i64 {
    let block = block();
    // SAFETY: the stub makes the call the caller vouches for.
    let result = unsafe { why_interruptible(nr, args.as_ptr(), &raw const (*block).deliverable) };
    // Our handlers are installed without SA_RESTART, so EINTR may mean either.
    result
}

fn block() -> *mut Block {
    let block = BLOCK.get();
    assert!(!block.is_null(), "every engine thread that runs guests sets up its signal stack");
    block
}

/// Gives the calling thread its handler stack.
pub fn set_up_thread() -> io::Result<()> {
    // SAFETY: an anonymous map of twice the size, of which an aligned half is
    // used; it stays for the life of the process (threads may end while another
    // thread's signal is on its way here).
    unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            2 * STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = (map as usize + STACK - 1) & !(STACK - 1);
        let block = base as *mut Block;
        let fs: u64;
        std::arch::asm!("rdfsbase {}", out(reg) fs, options(nomem, nostack));
        (*block).engine_fs = fs;
        (*block).fault = None;
        (*block).full = None;
        BLOCK.set(block);
        let room = size_of::<Block>().next_multiple_of(64);
        let stack =
            libc::stack_t { ss_sp: (base + room) as *mut _, ss_flags: 0, ss_size: STACK - room };
        if libc::sigaltstack(&stack, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// In a fork: what was queued is for the parent.
pub fn forget_pending() {
    // SAFETY: our own thread's block; the caller has blocked all signals, so that the
    // handler is out.
    let block = unsafe { &mut *block() };
    block.pending.store(0, Ordering::Relaxed);
    block.deliverable.store(0, Ordering::Relaxed);
    block.full = None;
}

/// Takes the handler stack down before the thread ends.
pub fn tear_down_thread() {
    // SAFETY: disabling the alternate stack of this thread, with all signals
    // blocked so that none can want it any more. The small map is reclaimed.
    unsafe {
        let all: u64 = !0;
        crate::sys::raw(
            libc::SYS_rt_sigprocmask as u64,
            [libc::SIG_SETMASK as u64, &raw const all as u64, 0, 8, 0, 0],
        );
        let stack =
            libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        libc::sigaltstack(&stack, std::ptr::null_mut());
        let block = BLOCK.replace(std::ptr::null_mut());
        libc::munmap(block.cast(), STACK);
    }
}

/// What the kernel should do with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Tell us.
    Catch,
    /// Ignore it.
    Ignore,
    /// The kernel's default.
    Default,
}

/// Catches the signals that guest instructions raise.
pub fn install_synchronous() {
    for signal in 1..=64 {
        if super::SYNCHRONOUS & super::only(signal) != 0 {
            install(signal, Host::Catch, 0);
        }
    }
}

/// Sets the host's disposition of a signal.
pub fn install(signal: i32, host: Host, extra_flags: i32) {
    const SA_RESTORER: u64 = 0x0400_0000;
    // The C library keeps signals 32 and 33 for itself, but they are the guest's.
    let action = Action {
        handler: match host {
            Host::Catch => why_signal_entry as *const () as u64,
            Host::Ignore => 1,
            Host::Default => 0,
        },
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | extra_flags) as u32 as u64 | SA_RESTORER,
        restorer: why_signal_return as *const () as u64,
        mask: !0,
    };
    // SAFETY: the handler is async-signal-safe and runs on its own stack.
    unsafe {
        let args = [signal as u64, &raw const action as u64, 0, 8, 0, 0];
        crate::sys::raw(libc::SYS_rt_sigaction as u64, args);
    }
}

/// Takes the fault that ended the last stretch of guest code.
pub fn take_fault() -> HostFault {
    // SAFETY: our own thread's block; the handler is not running.
    unsafe { (*block()).fault.take() }.expect("an exit with Reason::Fault left one")
}

/// Is a signal waiting for this thread that it does not block?
pub fn is_pending() -> bool {
    // SAFETY: our own thread's block.
    unsafe { (*block()).deliverable.load(Ordering::Acquire) > 0 }
}

/// Takes the oldest waiting signal that is not in `blocked`.
pub fn take_pending(blocked: super::Set) -> Option<Info> {
    let block = block();
    let mut guard = Blocked::new();
    // SAFETY: our own block, with signals blocked so that the handler is out.
    unsafe {
        let n = (*block).pending.load(Ordering::Relaxed) as usize;
        let queue = &mut (*block).queue;
        let i = queue[..n].iter().position(|info| {
            let signal = i32::from_le_bytes(info[..4].try_into().expect("four"));
            blocked & super::only(signal) == 0
        })?;
        let info = queue[i];
        queue.copy_within(i + 1..n, i);
        (*block).pending.store(n as u32 - 1, Ordering::Relaxed);
        recount(&mut *block);
        if let Some(mask) = (*block).full.take() {
            guard.old = mask;
        }
        Some(info)
    }
}

/// All signals blocked while it lives.
struct Blocked {
    old: u64,
}

impl Blocked {
    fn new() -> Blocked {
        let all: u64 = !super::SYNCHRONOUS;
        let mut old: u64 = 0;
        // SAFETY: plain mask change.
        unsafe {
            crate::sys::raw(
                libc::SYS_rt_sigprocmask as u64,
                [libc::SIG_SETMASK as u64, &raw const all as u64, &raw mut old as u64, 8, 0, 0],
            );
        }
        Blocked { old }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        set_host_mask(self.old);
    }
}

/// How many queued signals the guest's mask lets through.
fn recount(block: &mut Block) {
    let n = block.pending.load(Ordering::Relaxed) as usize;
    let open = block.queue[..n].iter().filter(|info| {
        let signal = i32::from_le_bytes(info[..4].try_into().expect("four"));
        block.mask & super::only(signal) == 0
    });
    block.deliverable.store(open.count() as u32, Ordering::Release);
}

/// Notes what the guest blocks, without telling the kernel: it does so itself for
/// the time of a call.
pub fn note_mask(mask: super::Set) {
    let _guard = Blocked::new();
    // SAFETY: our own block, with signals blocked so that the handler is out.
    let block = unsafe { &mut *block() };
    block.mask = mask;
    recount(block);
}

/// Sets what this thread blocks.
pub fn set_mask(mask: super::Set) {
    let block = BLOCK.get();
    if !block.is_null() {
        let all: super::Set = !0;
        set_host_mask(all);
        // SAFETY: our own block, with signals blocked so that the handler is out.
        let block = unsafe { &mut *block };
        block.mask = mask;
        recount(block);
        if block.full.is_some() {
            block.full = Some(mask & !super::SYNCHRONOUS);
            return;
        }
    }
    set_host_mask(mask);
}

/// Sets this thread's host mask; the synchronous signals always stay open.
fn set_host_mask(mask: super::Set) {
    let mask = mask & !super::SYNCHRONOUS;
    // SAFETY: plain mask change.
    unsafe {
        crate::sys::raw(
            libc::SYS_rt_sigprocmask as u64,
            [libc::SIG_SETMASK as u64, &raw const mask as u64, 0, 8, 0, 0],
        );
    }
}

const SYNC: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// The handler proper. Returns the FS base to go on with.
unsafe extern "C" fn handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    uc: *mut libc::ucontext_t,
    block: *mut Block,
    fs: u64,
) -> u64 {
    // SAFETY: the kernel gave valid pointers; the block is this thread's.
    unsafe {
        let pc = (*uc).uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
        let from_kernel = (*info).si_code > 0;
        if SYNC.contains(&signal) && from_kernel {
            if layout::CACHE.contains(&pc) {
                guest_fault(signal, &*info, &mut *uc, &mut *block, fs);
                return (*block).engine_fs;
            }
            if let Some(failed) = careful::way_out(pc) {
                (*uc).uc_mcontext.gregs[libc::REG_RIP as usize] = failed as i64;
                return fs;
            }
            die(signal, pc, (*info).si_addr() as u64);
        }
        queue(&*info, &mut *block);
        if (*block).pending.load(Ordering::Relaxed) as usize == QUEUE {
            // Until one was taken out, the kernel shall keep the others.
            let mask = (&raw mut (*uc).uc_sigmask).cast::<super::Set>();
            (*block).full = Some(*mask);
            *mask = !super::SYNCHRONOUS;
        }
        let start = why_interruptible_start as *const () as u64;
        let end = why_interruptible_end as *const () as u64;
        if (start..end).contains(&pc) {
            (*uc).uc_mcontext.gregs[libc::REG_RIP as usize] =
                why_interruptible_break as *const () as i64;
        }
        fs
    }
}

/// Stores the guest's registers and sends the engine to the end of its way out.
unsafe fn guest_fault(
    signal: i32,
    info: &libc::siginfo_t,
    uc: &mut libc::ucontext_t,
    block: &mut Block,
    fs: u64,
) {
    let context = layout::CONTEXT as *mut Context;
    let g = &mut uc.uc_mcontext.gregs;
    // SAFETY: a thread that executes in the cache holds the turn, hence the page.
    let context = unsafe { &mut *context };
    for (r, host) in GREGS {
        context.regs.gpr[r] = g[host as usize] as u64;
    }
    context.regs.rflags = g[libc::REG_EFL as usize] as u64 & !0x1_0100;
    context.regs.fs = fs;
    // SAFETY: the frame's vector state is in XSAVE standard format; copying no
    // more than the guest's components.
    unsafe {
        let from = uc.uc_mcontext.fpregs as *const u8;
        let size = crate::cpu::shown::shown().xsave_size as usize;
        std::ptr::copy_nonoverlapping(from, context.regs.vectors.0.as_mut_ptr(), size);
    }
    context.regs.vectors.0[464..512].fill(0);
    let header = &mut context.regs.vectors.0[512..576];
    let present = header[0] & context.xmask as u8;
    header.fill(0);
    header[0] = present;
    // SAFETY: `si_addr` is set for the five synchronous signals.
    let address = unsafe { info.si_addr() } as u64;
    block.fault = Some(HostFault {
        host_pc: g[libc::REG_RIP as usize] as u64,
        fault: Fault {
            signal,
            code: info.si_code,
            address,
            trap: g[libc::REG_TRAPNO as usize] as u64,
            error: g[libc::REG_ERR as usize] as u64,
        },
    });
    context.reason = Reason::Fault as u32;
    g[libc::REG_RIP as usize] = left_address() as i64;
    g[libc::REG_RSP as usize] = context.engine_rsp as i64;
    g[libc::REG_EFL as usize] = 0x202;
}

const GREGS: [(usize, i32); 16] = [
    (reg::RAX, libc::REG_RAX),
    (reg::RCX, libc::REG_RCX),
    (reg::RDX, libc::REG_RDX),
    (reg::RBX, libc::REG_RBX),
    (reg::RSP, libc::REG_RSP),
    (reg::RBP, libc::REG_RBP),
    (reg::RSI, libc::REG_RSI),
    (reg::RDI, libc::REG_RDI),
    (reg::R8, libc::REG_R8),
    (reg::R9, libc::REG_R9),
    (reg::R10, libc::REG_R10),
    (reg::R11, libc::REG_R11),
    (reg::R12, libc::REG_R12),
    (reg::R13, libc::REG_R13),
    (reg::R14, libc::REG_R14),
    (reg::R15, libc::REG_R15),
];

fn queue(info: &libc::siginfo_t, block: &mut Block) {
    let n = block.pending.load(Ordering::Relaxed) as usize;
    let bytes = (&raw const *info).cast::<Info>();
    // SAFETY: siginfo_t is 128 bytes.
    let bytes = unsafe { *bytes };
    let same = |i: &Info| i[..4] == bytes[..4];
    let ordinary = info.si_signo < 32;
    // As the kernel does: an ordinary signal that already waits is not queued
    // again. The queue is never full here, because signals are blocked then.
    if n == QUEUE || ordinary && block.queue[..n].iter().any(same) {
        return;
    }
    block.queue[n] = bytes;
    block.pending.store(n as u32 + 1, Ordering::Release);
    if block.mask & super::only(info.si_signo) == 0 {
        block.deliverable.fetch_add(1, Ordering::Release);
    }
}

/// A fault in the engine itself: say so and die of it.
fn die(signal: i32, pc: u64, address: u64) -> ! {
    let text = format_fault(signal, pc, address);
    // SAFETY: writing and re-raising with the default action.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        install(signal, Host::Default, 0);
        libc::raise(signal);
        libc::_exit(125);
    }
}

/// The process is lost anyway, so allocating in a handler does no more harm.
fn format_fault(signal: i32, pc: u64, address: u64) -> Vec<u8> {
    format!(
        "why: internal error: signal {signal} in the engine at {pc:#x} (address {address:#x})\n"
    )
    .into_bytes()
}
