//! Signals: what the guest asked for, how they reach it, and how the engine
//! itself meets them.

pub mod actions;
pub mod careful;
pub mod deliver;
pub mod frame;
pub mod host;

/// A set of signals, bit `n - 1` for signal `n`, as the kernel writes it.
pub type Set = u64;

/// The set with one signal.
pub const fn only(signal: i32) -> Set {
    1 << (signal - 1)
}

/// Signals that a faulting instruction raises; never really blocked, or the
/// kernel would kill the engine with the guest.
pub const SYNCHRONOUS: Set = only(libc::SIGSEGV)
    | only(libc::SIGBUS)
    | only(libc::SIGFPE)
    | only(libc::SIGILL)
    | only(libc::SIGTRAP)
    | only(libc::SIGSYS);

/// Signals nobody can block.
pub const UNBLOCKABLE: Set = only(libc::SIGKILL) | only(libc::SIGSTOP);
