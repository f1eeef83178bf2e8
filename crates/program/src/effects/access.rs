//! Memory operands.

use super::{Cell, Cells};
use iced_x86::{Instruction, OpKind, Register};

/// A memory operand, written in the instruction or implied by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub address: Address,
    /// Bytes; of one element if it repeats, or if [`Address::vector_index`].
    pub size: u32,
    /// Its old contents are a source of some flow, or decide where a branch goes.
    pub reads: bool,
    /// It is a target, at least of a flow that may keep what was there.
    pub writes: bool,
    /// For string instructions with a `rep` prefix.
    pub repeats: Option<Repeat>,
}

/// How an address is computed from the registers before the instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// A general register.
    pub base: Option<u8>,
    /// A register and its scale.
    pub index: Option<(u8, u8)>,
    /// Constant part. Operands relative to `rip` have an absolute address here.
    pub displacement: i64,
    /// What is added beside.
    pub segment: Segment,
    /// The sum, without the segment, is cut to 32 bits.
    pub wraps32: bool,
    /// `index` is a vector register: every element of the target has its own
    /// address, and [`Address::resolve`] does not apply. The elements of the index
    /// are as wide as the mnemonic says (`d` or `q`).
    pub vector_index: bool,
    /// Only the low byte of the index counts (`xlat`).
    pub byte_index: bool,
    /// A signed bit number in so many bytes of a general register selects another
    /// operand of the same size nearby (`bt` and its kin on memory).
    pub bit_index: Option<(u8, u8)>,
}

/// Segments with a base of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segment {
    /// Base zero.
    #[default]
    None,
    /// Thread-local storage.
    Fs,
    /// The other one.
    Gs,
}

/// A string instruction with `rep`: `counter` elements, upward from the address if
/// DF is clear, downward if it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Bytes of `rcx` that count.
    pub counter: u8,
    /// `repe`, `repne` of `cmps` and `scas`: goes on only while ZF is so.
    pub while_zero: Option<bool>,
}

impl Repeat {
    /// What decides how many elements there are, and in which direction.
    pub fn registers(&self) -> Cells {
        Cells::gpr(1, self.counter.into()).union(Cell::DF.into())
    }
}

impl Address {
    /// The registers it is computed from.
    pub fn registers(&self) -> Cells {
        let width = if self.wraps32 { 4 } else { 8 };
        let mut cells = self.base.map_or(Cells::NONE, |base| Cells::gpr(base, width));
        if let Some((index, _)) = self.index {
            cells = cells.union(match (self.vector_index, self.byte_index) {
                (true, _) => Cells::ymm(index, 32),
                (_, true) => Cells::gpr(index, 1),
                _ => Cells::gpr(index, width),
            });
        }
        if let Some((index, size)) = self.bit_index {
            cells = cells.union(Cells::gpr(index, size.into()));
        }
        match self.segment {
            Segment::None => cells,
            Segment::Fs => cells.union(Cell::FS.into()),
            Segment::Gs => cells.union(Cell::GS.into()),
        }
    }

    /// The address, given the registers before the instruction. `None` for vector
    /// indices.
    pub fn resolve(&self, gpr: &[u64; 16], fs: u64, gs: u64) -> Option<u64> {
        if self.vector_index {
            return None;
        }
        let base = self.base.map_or(0, |base| gpr[usize::from(base)]);
        let index = self.index.map_or(0, |(index, scale)| {
            let value = gpr[usize::from(index)];
            let value = if self.byte_index { value & 0xff } else { value };
            value.wrapping_mul(scale.into())
        });
        let sum = base.wrapping_add(index).wrapping_add(self.displacement as u64);
        let sum = sum.wrapping_add(self.bit_index.map_or(0, |(index, size)| {
            let bits = 8 * u32::from(size);
            let number = (gpr[usize::from(index)] << (64 - bits)) as i64 >> (64 - bits);
            ((number >> bits.trailing_zeros()) * i64::from(size)) as u64
        }));
        let sum = if self.wraps32 { sum & 0xffff_ffff } else { sum };
        Some(sum.wrapping_add(match self.segment {
            Segment::None => 0,
            Segment::Fs => fs,
            Segment::Gs => gs,
        }))
    }

    /// `[base + displacement]`.
    pub(super) fn based(base: u8, displacement: i64) -> Address {
        Address { base: Some(base), displacement, ..Address::default() }
    }
}

impl Access {
    pub(super) fn new(address: Address, size: u32) -> Access {
        Access { address, size, reads: false, writes: false, repeats: None }
    }
}

/// The operand that is written in the instruction, neither read nor written yet.
pub(super) fn explicit(i: &Instruction, operand: u32) -> Access {
    debug_assert_eq!(i.op_kind(operand), OpKind::Memory);
    let size = i.memory_size().size() as u32;
    let mut address = Address {
        displacement: i.memory_displacement64() as i64,
        segment: segment(i.memory_segment()),
        ..Address::default()
    };
    let (base, index) = (i.memory_base(), i.memory_index());
    let narrow = |register: Register| register.is_gpr32() || register == Register::EIP;
    address.wraps32 = narrow(base) || narrow(index) || i.memory_displ_size() == 4 && bare(i);
    // iced adds `rip` to the displacement itself.
    if base.is_gpr() {
        address.base = Some(base.number() as u8);
    }
    if index != Register::None {
        address.index = Some((index.number() as u8, i.memory_index_scale() as u8));
        address.vector_index = index.is_vector_register();
    }
    Access::new(address, size)
}

/// An absolute 32-bit address with an address-size prefix: zero-extended. Without
/// the prefix iced reports a displacement of 8 bytes.
fn bare(i: &Instruction) -> bool {
    i.memory_base() == Register::None && i.memory_index() == Register::None
}

pub(super) fn segment(register: Register) -> Segment {
    match register {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::None,
    }
}
