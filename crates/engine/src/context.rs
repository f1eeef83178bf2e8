//! The context page: what the running guest thread and the engine share.
//!
//! It lies at a fixed address below 2 GiB, so that translated code reaches every
//! field as `[disp32]` without stealing a register. Guest threads run one at a
//! time, hence there is one page; a thread that gives up its turn takes its part
//! of the page with it ([`Registers`]).

use crate::lanes::Lanes;
use crate::layout;
use std::mem::offset_of;

/// Bytes reserved for the vector state. The guest's baseline needs 832; with
/// `--cpu host` AVX-512 and protection keys make it larger.
pub const XSAVE_BYTES: usize = 3072;

/// General register numbers as x86 encodes them.
#[allow(missing_docs)]
pub mod reg {
    pub const RAX: usize = 0;
    pub const RCX: usize = 1;
    pub const RDX: usize = 2;
    pub const RBX: usize = 3;
    pub const RSP: usize = 4;
    pub const RBP: usize = 5;
    pub const RSI: usize = 6;
    pub const RDI: usize = 7;
    pub const R8: usize = 8;
    pub const R9: usize = 9;
    pub const R10: usize = 10;
    pub const R11: usize = 11;
    pub const R12: usize = 12;
    pub const R13: usize = 13;
    pub const R14: usize = 14;
    pub const R15: usize = 15;
}

/// Vector and floating-point state in the CPU's XSAVE standard format.
#[repr(C, align(64))]
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Vectors(pub [u8; XSAVE_BYTES]);

impl Default for Vectors {
    fn default() -> Self {
        let mut v = Vectors([0; XSAVE_BYTES]);
        // x87 control word: all exceptions masked, extended precision.
        v.0[0..2].copy_from_slice(&0x37fu16.to_le_bytes());
        // MXCSR: all exceptions masked, as the kernel starts a process.
        v.0[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        // MXCSR_MASK as every v3 CPU reports it.
        v.0[28..32].copy_from_slice(&0xffffu32.to_le_bytes());
        // XSTATE_BV: x87 and SSE present, so that MXCSR above is loaded.
        v.0[512] = 3;
        v
    }
}

impl From<Vectors> for Vec<u8> {
    fn from(vectors: Vectors) -> Vec<u8> {
        let used = vectors.0.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
        vectors.0[..used].to_vec()
    }
}

impl TryFrom<Vec<u8>> for Vectors {
    type Error = &'static str;

    fn try_from(bytes: Vec<u8>) -> Result<Vectors, &'static str> {
        let mut vectors = Vectors([0; XSAVE_BYTES]);
        let used = vectors.0.get_mut(..bytes.len()).ok_or("more vector state than there is")?;
        used.copy_from_slice(&bytes);
        Ok(vectors)
    }
}

/// The registers of one guest thread.
#[repr(C)]
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Registers {
    /// General registers by encoding number ([`reg`]).
    pub gpr: [u64; 16],
    /// Address of the next guest instruction.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
    /// Base of FS: thread-local storage.
    pub fs: u64,
    /// Base of GS.
    pub gs: u64,
    /// Vector state.
    pub vectors: Vectors,
}

/// The count and the budget of code that is not to be stopped. No count is larger: translated
/// code takes one whose highest byte is not zero for negative.
pub const NO_LIMIT: i64 = 1 << 54;

/// The page itself.
#[repr(C)]
pub struct Context {
    /// Registers of the running thread, valid while the engine runs.
    pub regs: Registers,
    /// Spill slots of translated code. `slots[0]` holds RCX and `slots[1]` the
    /// guest target address during an indirect branch.
    pub slots: [u64; 9],
    /// Host address within the last return, indirect jump or call: which one it was, should
    /// its target be no address.
    pub branch: u32,
    /// Safepoints left until the engine wants to be asked again. While guest code runs,
    /// the lanes say it.
    pub count: i64,
    /// The count may end so much earlier: a recording does not care.
    pub slack: i64,
    /// Instructions left until the engine wants to be asked (counting profiles).
    pub budget: i64,
    /// The engine's stack pointer while guest code runs.
    pub engine_rsp: u64,
    /// The engine's thread-local storage.
    pub engine_fs: u64,
    /// Why guest code came back ([`crate::crossing::Reason`]).
    pub reason: u32,
    /// What goes with the reason: an exit number.
    pub arg: u32,
    /// Address of the trampoline out of guest code.
    pub exit: u64,
    /// Host address at which guest code is entered.
    pub enter: u64,
    /// Next free place of the trace buffer (tracing profiles).
    pub cursor: u64,
    /// XSAVE components that belong to the guest.
    pub xmask: u64,
    /// What safepoints count down.
    pub lanes: Lanes,
}

macro_rules! at {
    ($($name:ident = $field:ident $(. $more:ident)?;)*) => {
        $(/// Absolute address of the field.
        pub const $name: i32 = layout::CONTEXT as i32 + offset_of!(Context, $field $(. $more)?) as i32;)*
    };
}

/// Absolute addresses of the fields, for translated code.
pub mod address {
    use super::*;
    at! {
        RIP = regs.rip;
        LANES = lanes.left;
        BUDGET = budget;
        REASON = reason;
        ARG = arg;
        EXIT = exit;
        SLOTS = slots;
        BRANCH = branch;
    }
    /// Spill slot `n`.
    pub const fn slot(n: usize) -> i32 {
        SLOTS + 8 * n as i32
    }
    /// Lane `n` of the safepoint count.
    pub const fn lane(n: usize) -> i32 {
        LANES + 8 * n as i32
    }
}

/// The context page.
///
/// # Safety
/// The caller must hold the turn (so that no other thread uses the page), and
/// must not keep the reference while guest code runs.
pub unsafe fn context() -> &'static mut Context {
    // SAFETY: the page is mapped by `crossing::map_context` before any guest
    // exists and never unmapped; exclusivity is the caller's promise.
    unsafe { &mut *(layout::CONTEXT as *mut Context) }
}
