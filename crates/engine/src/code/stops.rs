//! Where a debugger wants guest code to come back: breakpoints and watched memory.
//!
//! A breakpoint ends the unit before it and begins a unit of no instructions, so
//! it costs nothing where it is not. Watched memory costs a look into a table at
//! every access of the wanted kind.

use super::emit::{Emit, Hole};
use crate::context::{address, reg};
use crate::layout;
use iced_x86::{
    Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess,
    Register, UsedMemory,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

const RCX_SLOT: i32 = address::slot(0);
const RAX_SLOT: i32 = address::slot(6);
/// Entries of a table: an address is looked up by its low bits.
const ENTRIES: u64 = 1 << 16;
/// There is a table for each length of an access that is a power of two.
const TABLES: u64 = 7;
/// An access is at most so long (other than `rep`, which always comes back).
const LONGEST_ACCESS: u64 = 64;

/// Memory that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Watch {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// For reads?
    pub reads: bool,
    /// For writes?
    pub writes: bool,
}

impl Watch {
    /// Does an access meet it?
    pub fn meets(&self, address: u64, len: u64) -> bool {
        address < self.address.saturating_add(self.len)
            && self.address < address.saturating_add(len)
    }
}

/// Breakpoints and watched memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    /// Addresses of instructions.
    pub breaks: BTreeSet<u64>,
    /// Memory.
    pub watches: BTreeSet<Watch>,
}

impl Stops {
    /// Is there a breakpoint?
    pub fn breaks_at(&self, pc: u64) -> bool {
        self.breaks.contains(&pc)
    }

    fn kinds(&self) -> (bool, bool) {
        (self.watches.iter().any(|w| w.reads), self.watches.iter().any(|w| w.writes))
    }

    /// Would both add the same code to accesses?
    pub(crate) fn watches_alike(&self, other: &Stops) -> bool {
        self.kinds() == other.kinds()
    }

    /// Writes the table that translated code looks into.
    pub(crate) fn fill_table(&self) -> io::Result<()> {
        if self.watches.is_empty() {
            return Ok(());
        }
        // SAFETY: a fixed map in the engine's own range; private, so that forks
        // have their own.
        let table = unsafe {
            libc::mmap(
                layout::WATCHES as *mut _,
                (ENTRIES * TABLES) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if table == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let len = (ENTRIES * TABLES) as usize;
        // SAFETY: just mapped, and translated code only reads it.
        let tables = unsafe { std::slice::from_raw_parts_mut(table.cast::<u8>(), len) };
        for watch in &self.watches {
            for (n, table) in tables.chunks_exact_mut(ENTRIES as usize).enumerate() {
                // Where an access of this length meets it.
                let first = watch.address.saturating_sub((1 << n) - 1);
                let last = watch.address.saturating_add(watch.len.max(1) - 1);
                for address in first..=last.min(first.saturating_add(ENTRIES)) {
                    table[(address % ENTRIES) as usize] = 1;
                }
            }
        }
        Ok(())
    }

    /// Code that leaves through the returned holes, with RCX in its slot, if an
    /// instruction may touch watched memory. Changes no flags.
    pub(crate) fn watch(&self, emit: &mut Emit, i: &Instruction) -> Vec<Hole> {
        let (reads, writes) = self.kinds();
        let mut holes = Vec::new();
        if !reads && !writes {
            return holes;
        }
        let mut factory = InstructionInfoFactory::new();
        for memory in factory.info(i).used_memory() {
            let (r, w) = reads_and_writes(memory.access());
            if (r && reads) || (w && writes) {
                holes.push(look_up(emit, i, memory));
            }
        }
        holes
    }
}

/// What an access does.
pub fn reads_and_writes(access: OpAccess) -> (bool, bool) {
    use OpAccess::*;
    (
        matches!(access, Read | CondRead | ReadWrite | ReadCondWrite),
        matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite),
    )
}

/// Does an instruction touch more than one piece of memory that its operand names?
fn is_scattered(i: &Instruction, memory: &UsedMemory) -> bool {
    let repeats = i.has_rep_prefix() || i.has_repne_prefix();
    let bits = matches!(i.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc);
    (repeats && i.is_string_instruction())
        || (bits && i.op1_register() != Register::None)
        || i.is_vsib()
        || i.is_save_restore_instruction()
        || !(1..=LONGEST_ACCESS).contains(&(memory.memory_size().size() as u64))
        || matches!(i.mnemonic(), Mnemonic::Xlatb)
}

fn look_up(emit: &mut Emit, i: &Instruction, memory: &UsedMemory) -> Hole {
    emit.store(RCX_SLOT, reg::RCX);
    if is_scattered(i, memory) {
        return always(emit);
    }
    load_address(emit, memory);
    let table = u64::from(memory.memory_size().size().next_power_of_two().trailing_zeros());
    // movzx ecx, cx; movzx ecx, byte [rcx + table]
    emit.low16_rcx();
    emit.raw(&[0x0f, 0xb6, 0x89]);
    emit.raw(&((layout::WATCHES + table * ENTRIES) as u32).to_le_bytes());
    let unwatched = emit.jump_if_rcx_zero();
    let hole = emit.jump();
    emit.fill_short(unwatched);
    emit.load(reg::RCX, RCX_SLOT);
    hole
}

/// Always leaves.
fn always(emit: &mut Emit) -> Hole {
    emit.jump()
}

/// The address into RCX.
fn load_address(emit: &mut Emit, memory: &UsedMemory) {
    let operand = MemoryOperand::new(
        memory.base(),
        memory.index(),
        memory.scale(),
        memory.displacement() as i64,
        8,
        false,
        Register::None,
    );
    if memory.base() == Register::None && memory.index() == Register::None {
        emit.load_constant(reg::RCX, memory.displacement());
    } else {
        let lea = Instruction::with2(Code::Lea_r64_m, Register::RCX, operand).expect("valid");
        let mut encoder = Encoder::new(64);
        encoder.encode(&lea, emit.here()).expect("an address that was encoded before");
        let bytes = encoder.take_buffer();
        emit.raw(&bytes);
    }
    let base: &[u8] = match memory.segment() {
        Register::FS => &[0xf3, 0x48, 0x0f, 0xae, 0xc0], // rdfsbase rax
        Register::GS => &[0xf3, 0x48, 0x0f, 0xae, 0xc8], // rdgsbase rax
        _ => return,
    };
    emit.store(RAX_SLOT, reg::RAX);
    emit.raw(base);
    emit.add_rax_to_rcx();
    emit.load(reg::RAX, RAX_SLOT);
}
