//! One guest thread, apart from the registers in the context page.

use crate::context::Registers;

/// Number of a guest thread: 1 is the first, then in order of creation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Thread(pub u32);

impl std::fmt::Display for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// The alternate signal stack as the guest set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AltStack {
    /// Lowest address.
    pub base: u64,
    /// Length.
    pub size: u64,
    /// `SS_DISABLE`, `SS_AUTODISARM`.
    pub flags: i32,
}

impl Default for AltStack {
    fn default() -> Self {
        AltStack { base: 0, size: 0, flags: libc::SS_DISABLE }
    }
}

impl AltStack {
    /// Is the stack pointer on it?
    pub fn contains(&self, sp: u64) -> bool {
        self.flags & libc::SS_DISABLE == 0 && sp > self.base && sp - self.base <= self.size
    }
}

/// State of one guest thread that both recording and replay keep.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct Task {
    /// Our number for it.
    pub thread: Thread,
    /// The kernel's number for it, as recorded.
    pub tid: i32,
    /// Registers while it does not run.
    pub regs: Box<Registers>,
    /// Signals it blocks.
    pub mask: u64,
    /// A mask to return to after the next signal (`sigsuspend` and friends).
    pub saved_mask: Option<u64>,
    /// Alternate signal stack.
    pub altstack: AltStack,
    /// `set_tid_address`: cleared and woken at exit.
    pub clear_tid: u64,
    /// `set_robust_list`.
    pub robust_list: u64,
    /// Safepoints passed so far, up to the last time the count was loaded.
    pub safepoints: u64,
    /// What the count was loaded with.
    pub count_loaded: i64,
    /// The call that a signal interrupted and that may have to be made again.
    pub interrupted: Option<u64>,
    /// In a replay: what the call it is in gave to the kernel to be sent.
    pub sending: Option<Vec<u8>>,
}

impl Task {
    /// A thread with the given registers.
    pub fn new(thread: Thread, tid: i32, regs: Registers) -> Task {
        Task {
            thread,
            tid,
            regs: Box::new(regs),
            mask: 0,
            saved_mask: None,
            altstack: AltStack::default(),
            clear_tid: 0,
            robust_list: 0,
            safepoints: 0,
            count_loaded: 0,
            interrupted: None,
            sending: None,
        }
    }
}
