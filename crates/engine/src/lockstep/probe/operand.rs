//! Which memory an instruction touches, as far as a probe must know it.

use super::arena;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedMemory};

/// A memory operand: a sum of registers and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// A register.
    pub base: Option<u8>,
    /// A register and its factor.
    pub index: Option<(u8, u8)>,
    /// The number.
    pub displacement: u64,
    /// FS or GS is added.
    pub segment: Option<Segment>,
    /// Bytes.
    pub size: u32,
}

/// A segment that has a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// FS.
    Fs,
    /// GS.
    Gs,
}

impl Operand {
    /// The registers of its address.
    pub fn registers(&self) -> impl Iterator<Item = u8> + use<> {
        self.base.into_iter().chain(self.index.map(|(register, _)| register))
    }

    /// Can scratch memory stand for it? Not at a fixed address elsewhere.
    pub fn is_reachable(&self) -> bool {
        let bare = self.base.is_none() && self.index.is_none() && self.segment.is_none();
        !bare || self.displacement >> 44 == arena::CODE >> 44
    }

    /// Its address with these registers.
    pub fn address(&self, gpr: &[u64; 16], fs: u64, gs: u64) -> u64 {
        let base = self.base.map_or(0, |r| gpr[usize::from(r)]);
        let index =
            self.index.map_or(0, |(r, scale)| gpr[usize::from(r)].wrapping_mul(scale.into()));
        let segment = match self.segment {
            None => 0,
            Some(Segment::Fs) => fs,
            Some(Segment::Gs) => gs,
        };
        base.wrapping_add(index).wrapping_add(self.displacement).wrapping_add(segment)
    }

    /// Chooses registers such that the operand lies in the arena.
    pub fn place(&self, gpr: &mut [u64; 16], fs: &mut u64, gs: &mut u64, small: u64) {
        // Now and then where a carry runs through the whole address.
        let near = |register: u8| match small {
            48.. => arena::boundary(register) + (small % 4) * 8 - 16,
            _ => arena::DATA + u64::from(register) * arena::APART + small * 8,
        };
        match (self.base, self.index) {
            (Some(base), None) => {
                gpr[usize::from(base)] = near(base).wrapping_sub(self.displacement);
            }
            (Some(base), Some((index, scale))) if base != index => {
                // Only the sum must be an address.
                let number = match small % 2 {
                    0 => small % 61,
                    _ => small.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                };
                gpr[usize::from(index)] = number;
                let rest = self.displacement.wrapping_add(number.wrapping_mul(scale.into()));
                gpr[usize::from(base)] = near(base).wrapping_sub(rest);
            }
            (Some(base), Some((_, scale))) => {
                let sum = near(base).wrapping_sub(self.displacement);
                gpr[usize::from(base)] = sum / (1 + u64::from(scale));
            }
            (None, Some((index, scale))) => {
                let scale = if self.segment.is_some() { 1 } else { scale };
                let sum = near(index).wrapping_sub(self.displacement);
                gpr[usize::from(index)] = (sum as i64 / i64::from(scale)) as u64;
            }
            (None, None) => {}
        }
        let bare = self.base.is_none() && self.index.is_none();
        match self.segment {
            Some(Segment::Fs) if bare => *fs = near(16).wrapping_sub(self.displacement),
            Some(Segment::Gs) if bare => *gs = near(17).wrapping_sub(self.displacement),
            // Most offsets in thread-local storage are negative.
            Some(segment) => {
                let register = usize::from(self.registers().next().expect("it is not bare"));
                let below = 0x100 + small * 8;
                let base = gpr[register].wrapping_add(below);
                gpr[register] = below.wrapping_neg();
                match segment {
                    Segment::Fs => *fs = base,
                    Segment::Gs => *gs = base,
                }
            }
            None => {}
        }
    }
}

/// All memory operands; `None` if one of them is more than a sum.
pub fn operands(i: &Instruction) -> Option<Vec<Operand>> {
    let mut factory = InstructionInfoFactory::new();
    // A step executes one element of a repeated instruction.
    let mut i = *i;
    if i.is_string_instruction() {
        i.set_has_rep_prefix(false);
        i.set_has_repne_prefix(false);
    }
    let i = &i;
    let mut found: Vec<Operand> = Vec::new();
    let idle = matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    for used in factory.info(i).used_memory().iter().filter(|_| !idle) {
        let operand = operand(used)?;
        if !found.contains(&operand) {
            found.push(operand);
        }
    }
    Some(found)
}

fn operand(used: &UsedMemory) -> Option<Operand> {
    let number = |register: Register| register.is_gpr64().then(|| register.number() as u8);
    let (base, index) = (used.base(), used.index());
    if base != Register::None && !base.is_gpr64() || index != Register::None && !index.is_gpr64() {
        return None;
    }
    let segment = match used.segment() {
        Register::FS => Some(Segment::Fs),
        Register::GS => Some(Segment::Gs),
        _ => None,
    };
    let operand = Operand {
        base: number(base),
        index: number(index).map(|register| (register, used.scale() as u8)),
        displacement: used.displacement(),
        segment,
        size: used.memory_size().size() as u32,
    };
    let known = (1..=64).contains(&operand.size) && used.access() != OpAccess::NoMemAccess;
    known.then_some(operand)
}
