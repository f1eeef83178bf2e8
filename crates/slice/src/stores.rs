//! Where a path's stores and loads go, in a form that is quick to work out.

use trace::{Bases, Captured, Operand};

/// Where a store goes, in a form that is quick to work out.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    base: u16,
    index: u16,
    scale: u8,
    segment: bool,
    size: u32,
    displacement: i64,
}

/// How two operands of a path lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They never have a byte in common.
    Apart,
    /// They always have.
    Overlap,
    /// That depends on what the registers hold.
    Unknown,
}

/// Stores of a path so near each other are taken together: what lies between them is
/// then looked at without need, but hardly ever in vain.
const NEAR: i64 = 64;

/// No register.
const NONE: u16 = u16::MAX;

impl Store {
    /// First address and length; `None` if it takes more to tell.
    #[inline(always)]
    pub fn range(&self, captured: Captured<'_>, bases: Bases) -> Option<(u64, u64)> {
        if self.size == 0 {
            return None;
        }
        let mut address = self.displacement as u64;
        if self.base != NONE {
            address = address.wrapping_add(captured.at(self.base as usize));
        }
        if self.index != NONE {
            let index = captured.at(self.index as usize).wrapping_mul(self.scale.into());
            address = address.wrapping_add(index);
        }
        if self.segment {
            address = address.wrapping_add(bases.fs);
        }
        Some((address, self.size.into()))
    }

    /// Bytes; 0 if it takes more to tell where they are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.size.into()
    }

    /// Whether this and another of the same path are to the same place, as far as the code
    /// says.
    pub fn relation(&self, other: &Store) -> Relation {
        let place = |s: &Store| (s.base, s.index, s.scale, s.segment);
        if place(self) != place(other) {
            return Relation::Unknown;
        }
        let behind = |a: &Store, b: &Store| {
            a.displacement.wrapping_sub(b.displacement) as u64 >= u64::from(b.size)
        };
        match behind(self, other) && behind(other, self) {
            true => Relation::Apart,
            false => Relation::Overlap,
        }
    }

    /// Both in one, if they are at a constant distance and near each other.
    fn joined(&self, other: &Store) -> Option<Store> {
        let place = |s: &Store| (s.base, s.index, s.scale, s.segment);
        if self.size == 0 || other.size == 0 || place(self) != place(other) {
            return None;
        }
        let displacement = self.displacement.min(other.displacement);
        let end = |s: &Store| s.displacement.saturating_add(s.size.into());
        let size = end(self).max(end(other)).checked_sub(displacement)?;
        (size <= NEAR).then_some(Store { displacement, size: size as u32, ..*self })
    }

    pub fn new(operand: &Operand) -> Store {
        let slow =
            Store { base: NONE, index: NONE, scale: 0, segment: false, size: 0, displacement: 0 };
        let Some(linear) = operand.linear() else { return slow };
        Store {
            base: linear.base.unwrap_or(NONE),
            index: linear.index.map_or(NONE, |(n, _)| n),
            scale: linear.index.map_or(0, |(_, scale)| scale),
            segment: linear.fs,
            size: operand.access().size,
            displacement: linear.displacement,
        }
    }
}

/// Takes together what is near each other, from `first` on.
pub fn join_near(all: &mut Vec<Store>, first: usize) {
    let mut own = all.split_off(first);
    own.sort_by_key(|s| (s.base, s.index, s.scale, s.segment, s.displacement));
    for store in own {
        match all[first..].last().and_then(|last| last.joined(&store)) {
            Some(joined) => *all.last_mut().expect("there is one") = joined,
            None => all.push(store),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_near_each_other_are_one() {
        let store = |base, displacement, size| Store {
            base,
            index: NONE,
            scale: 0,
            segment: false,
            size,
            displacement,
        };
        let mut all = vec![store(9, 0, 8)];
        all.extend([store(0, -8, 8), store(1, 0, 4), store(0, -24, 8), store(0, 100, 8)]);
        join_near(&mut all, 1);
        let found: Vec<_> = all.iter().map(|s| (s.base, s.displacement, s.size)).collect();
        assert_eq!(found, [(9, 0, 8), (0, -24, 24), (0, 100, 8), (1, 0, 4)]);
    }
}
