//! Shifts and rotations: by a constant, every byte and flag has known sources.

use super::builder::Builder;
use super::place::Place;
use super::{Cell, Cells, Shape};
use iced_x86::Mnemonic;

const CL: Place = Place::Cells { first: Cell::gpr(1, 0).number(), len: 1 };
const CARRY: Place = Place::Cells { first: Cell::CF.number(), len: 1 };

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    use Mnemonic::*;
    match b.i.mnemonic() {
        Shl | Sal | Shr | Sar | Rol | Ror => {
            let by = b.immediate(1);
            match by {
                Some(by) => by_constant(b, by as u32),
                None => by_cl(b),
            }
        }
        Rcl | Rcr => through_carry(b),
        Shld | Shrd => double(b),
        Shlx | Shrx | Sarx => by_register(b),
        Rorx => {
            let from = b.read(1);
            let by = b.control().unwrap_or_default();
            let to = b.write(0);
            let motion = Motion { kind: Ror, by: mask(from, by.into()), value: from };
            b.bytes(to, |k| motion.byte(k));
        }
        _ => return false,
    }
    true
}

/// The processor looks at five bits of a count, or six.
fn mask(value: Place, by: u32) -> u32 {
    by & if value.len() == 8 { 63 } else { 31 }
}

/// A shift or rotation of `value` by a known number of bits.
#[derive(Clone, Copy)]
struct Motion {
    kind: Mnemonic,
    by: u32,
    value: Place,
}

impl Motion {
    fn bits(self) -> i64 {
        8 * self.value.len() as i64
    }

    /// The bit that becomes bit `k` of the result; `None` if that is always zero.
    fn bit(self, k: i64) -> Option<i64> {
        let (by, bits) = (i64::from(self.by), self.bits());
        let inside = |bit: i64| (0..bits).contains(&bit).then_some(bit);
        match self.kind {
            Mnemonic::Shl | Mnemonic::Sal => inside(k - by),
            Mnemonic::Shr => inside(k + by),
            Mnemonic::Sar => Some((k + by).min(bits - 1)),
            Mnemonic::Rol => Some((k - by).rem_euclid(bits)),
            _ => Some((k + by).rem_euclid(bits)),
        }
    }

    /// The byte that holds the bit that becomes bit `k`.
    fn byte_of_bit(self, k: i64) -> Vec<Place> {
        self.bit(k).map(|bit| self.value.byte(bit as usize / 8)).into_iter().collect()
    }

    /// The bytes that byte `k` of the result is made of.
    fn byte(self, k: usize) -> Vec<Place> {
        let mut bytes = self.byte_of_bit(8 * k as i64);
        for place in self.byte_of_bit(8 * k as i64 + 7) {
            if !bytes.contains(&place) {
                bytes.push(place);
            }
        }
        bytes
    }

    /// The byte that holds the last bit moved out.
    fn carry(self) -> Vec<Place> {
        let (by, bits) = (i64::from(self.by), self.bits());
        let bit = match self.kind {
            Mnemonic::Shl | Mnemonic::Sal => bits - by,
            Mnemonic::Shr => by - 1,
            Mnemonic::Sar => (by - 1).min(bits - 1),
            Mnemonic::Rol => (bits - by).rem_euclid(bits),
            _ => (by - 1).rem_euclid(bits),
        };
        if (0..bits).contains(&bit) { vec![self.value.byte(bit as usize / 8)] } else { vec![] }
    }
}

/// One element of a packed shift. Counts are not masked there.
pub(super) fn lane(b: &mut Builder<'_>, to: Place, value: Place, kind: Mnemonic, by: u8) {
    let motion = Motion { kind, by: by.into(), value };
    b.bytes(to, |k| motion.byte(k));
}

fn by_constant(b: &mut Builder<'_>, by: u32) {
    let value = b.modify(0);
    let motion = Motion { kind: b.i.mnemonic(), by: mask(value, by), value };
    b.bytes(value, |k| motion.byte(k));
    if motion.by == 0 {
        return;
    }
    let rotates = matches!(motion.kind, Mnemonic::Rol | Mnemonic::Ror);
    // What leaves an 8-bit or 16-bit register by more than its width is undefined.
    let far = i64::from(motion.by) > motion.bits() && !rotates;
    let carry = if far { vec![value, CARRY] } else { motion.carry() };
    b.flags(&[Cell::CF], &carry);
    overflow(b, motion, &carry);
    if rotates {
        return;
    }
    let all: Vec<Place> = (0..value.len()).flat_map(|k| motion.byte(k)).collect();
    b.flags(&[Cell::ZF], &all);
    b.flags(&[Cell::PF], &motion.byte(0));
    b.flags(&[Cell::SF], &motion.byte_of_bit(motion.bits() - 1));
    b.flags_or_kept(Cell::AF.into(), &[value]);
}

/// The overflow flag says whether the sign changed. It is defined for one bit only;
/// `sar` never changes it.
fn overflow(b: &mut Builder<'_>, motion: Motion, carry: &[Place]) {
    let top = motion.value.top();
    match (motion.by, motion.kind) {
        (1, Mnemonic::Sar) => b.flags(&[Cell::OF], &[]),
        (1, Mnemonic::Shr) => b.flags(&[Cell::OF], &[top]),
        (1, Mnemonic::Ror) => b.flags(&[Cell::OF], &[&[top], carry].concat()),
        (1, _) => {
            let sign = motion.byte_of_bit(motion.bits() - 1);
            b.flags(&[Cell::OF], &[carry, &sign].concat());
        }
        _ => b.flags_or_kept(Cell::OF.into(), &[motion.value]),
    }
}

/// A count in `cl` may be zero: then nothing changes, so old values are sources.
fn by_cl(b: &mut Builder<'_>) {
    let kind = b.i.mnemonic();
    let value = b.modify(0);
    match kind {
        Mnemonic::Shl | Mnemonic::Sal => b.flow_also(value, &[value], Shape::Upward, &[CL]),
        Mnemonic::Shr | Mnemonic::Sar => downward(b, value, value, CL),
        _ => b.flow(value, &[value, CL], Shape::Whole),
    }
    if matches!(kind, Mnemonic::Rol | Mnemonic::Ror) {
        b.flags_or_kept([Cell::CF, Cell::OF].into_iter().collect(), &[value, CL]);
        return;
    }
    // What the lowest byte and the sign are made of is known whatever the count.
    let (low, sign) = match kind {
        Mnemonic::Shr => (value, Place::Constant),
        Mnemonic::Sar => (value, value.top()),
        _ => (value.low(1), value),
    };
    b.flags_or_kept(Cell::PF.into(), &[low, CL]);
    b.flags_or_kept(Cell::SF.into(), &[sign, CL]);
    let others = Cells::status().minus([Cell::PF, Cell::SF].into_iter().collect());
    b.flags_or_kept(others, &[value, CL]);
}

/// Byte k from itself and all above.
fn downward(b: &mut Builder<'_>, to: Place, from: Place, count: Place) {
    for k in 0..to.len() {
        b.flow(to.byte(k), &[from.part(k, from.len() - k), count], Shape::Whole);
    }
}

fn through_carry(b: &mut Builder<'_>) {
    let value = b.modify(0);
    let count = b.read_low(1, 1);
    let all = [value, CARRY, count];
    b.flow(value, &all, Shape::Whole);
    b.flags_or_kept([Cell::CF, Cell::OF].into_iter().collect(), &all);
}

/// `shlx`, `shrx`, `sarx`: no flags, and the count in any register.
fn by_register(b: &mut Builder<'_>) {
    let (from, count) = (b.read(1), b.read(2).low(1));
    let to = b.write(0);
    match b.i.mnemonic() {
        Mnemonic::Shlx => b.flow_also(to, &[from], Shape::Upward, &[count]),
        _ => downward(b, to, from, count),
    }
}

/// `shld`, `shrd`: what is moved in comes from a second register.
fn double(b: &mut Builder<'_>) {
    let value = b.modify(0);
    let filler = b.read(1);
    let bits = 8 * value.len() as u32;
    match b.immediate(2).map(|by| mask(value, by as u32)) {
        // Nothing happens, except that a 32-bit register is extended.
        Some(0) => b.flow(value, &[value], Shape::Bytewise),
        Some(by) if by < bits => double_by(b, value, filler, by),
        _ => {
            let all = [value, filler, b.read_low(2, 1)];
            b.flow(value, &all, Shape::Whole);
            b.flags_or_kept(Cells::status(), &all);
        }
    }
}

fn double_by(b: &mut Builder<'_>, value: Place, filler: Place, by: u32) {
    let left = b.i.mnemonic() == Mnemonic::Shld;
    let bits = 8 * value.len() as i64;
    let by = i64::from(by);
    let byte_of_bit = |k: i64| {
        let bit = if left { k - by } else { k + by };
        let place = if (0..bits).contains(&bit) { value } else { filler };
        place.byte(bit.rem_euclid(bits) as usize / 8)
    };
    let byte = |k: usize| {
        let (low, high) = (byte_of_bit(8 * k as i64), byte_of_bit(8 * k as i64 + 7));
        if low == high { vec![low] } else { vec![low, high] }
    };
    b.bytes(value, byte);
    let out = if left { bits - by } else { by - 1 };
    b.flags(&[Cell::CF], &[value.byte(out as usize / 8)]);
    b.flags(&[Cell::SF], &[byte_of_bit(bits - 1)]);
    b.flags(&[Cell::PF], &byte(0));
    b.flags(&[Cell::ZF], &(0..value.len()).flat_map(byte).collect::<Vec<_>>());
    if by == 1 {
        b.flags(&[Cell::OF], &[value.top(), byte_of_bit(bits - 1)]);
    } else {
        b.flags_or_kept(Cell::OF.into(), &[value, filler]);
    }
    b.flags_or_kept(Cell::AF.into(), &[value, filler]);
}
