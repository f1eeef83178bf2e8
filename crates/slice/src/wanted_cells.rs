//! Registers that a backward walk is still looking for, each with a mark that says why.

use crate::follow::Follow;
use program::effects::{Cell, Cells};

/// A register or flag, by its bit in short sets.
pub type Register = u8;

/// Registers of one thread.
#[derive(Clone)]
pub struct WantedCells<M> {
    /// Which.
    pub cells: Cells,
    /// The same in short.
    pub short: u64,
    /// Of each cell. If a register is not uneven, all of its cells have the same, those that
    /// are not wanted too.
    marks: Box<[M; Cell::COUNT]>,
    uneven: u64,
}

impl<M: Copy + Default> Default for WantedCells<M> {
    fn default() -> Self {
        let marks = Box::new([M::default(); Cell::COUNT]);
        WantedCells { cells: Cells::NONE, short: 0, marks, uneven: 0 }
    }
}

/// Number of a register's first cell, and how many it has.
#[inline(always)]
fn cells_of(register: Register) -> (usize, usize) {
    match usize::from(register) {
        r @ 0..16 => (8 * r, 8),
        r @ 16..32 => (128 + 32 * (r - 16), 32),
        r => (640 + (r - 32), 1),
    }
}

/// The cells of one register in a set, lowest first.
#[inline(always)]
pub fn part_of(cells: &Cells, register: Register) -> u32 {
    let (first, count) = cells_of(register);
    let all = u32::MAX >> (32 - count);
    (cells.words()[first / 64] >> (first % 64)) as u32 & all
}

/// Has a set all cells of each register that it has one of?
pub fn is_whole(cells: &Cells) -> bool {
    let all = |register: usize| u32::MAX >> (32 - cells_of(register as Register).1);
    ones(cells.in_short()).all(|register| part_of(cells, register as Register) == all(register))
}

impl<M: Copy + Default + PartialEq> WantedCells<M> {
    /// Looks for cells from now on.
    #[inline]
    pub fn add<F: Follow<Mark = M>>(&mut self, cells: Cells, mark: M, follow: &mut F) {
        let short = cells.in_short();
        for register in ones(short) {
            let register = register as Register;
            self.mark_part(register, part_of(&cells, register), mark, follow);
        }
        self.cells = self.cells.union(cells);
        self.short |= short;
    }

    /// Looks for cells of one register from now on.
    #[inline]
    pub fn add_part<F>(&mut self, register: Register, part: u32, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        self.mark_part(register, part, mark, follow);
        let (first, _) = cells_of(register);
        self.cells.words_mut()[first / 64] |= u64::from(part) << (first % 64);
        self.short |= 1 << register;
    }

    #[inline(always)]
    fn mark_part<F>(&mut self, register: Register, part: u32, mark: M, follow: &mut F)
    where
        F: Follow<Mark = M>,
    {
        let wanted = part_of(&self.cells, register);
        let (first, count) = cells_of(register);
        let marks = &mut self.marks[first..first + count];
        let bit = 1 << register;
        if wanted == 0 {
            marks.fill(mark);
            self.uneven &= !bit;
            return;
        }
        if self.uneven & bit == 0 {
            let old = marks[0];
            let joined = follow.join(old, mark);
            if old == mark || joined == old && part & !wanted == 0 {
                return;
            }
            if part == wanted || joined == mark && wanted & !part == 0 {
                return marks.fill(joined);
            }
        }
        for n in ones(part.into()) {
            marks[n] = if wanted >> n & 1 != 0 { follow.join(marks[n], mark) } else { mark };
        }
        self.uneven |= bit;
    }

    /// The marks of some wanted cells, joined.
    #[inline]
    pub fn joined<F: Follow<Mark = M>>(&self, cells: Cells, follow: &mut F) -> Option<M> {
        let mut joined = None;
        for register in ones(cells.in_short()) {
            let register = register as Register;
            let mark = self.joined_part(register, part_of(&cells, register), follow);
            joined = Some(joined.map_or(mark, |j| follow.join(j, mark)));
        }
        joined
    }

    /// The marks of some wanted cells of one register, joined.
    #[inline]
    pub fn joined_part<F>(&self, register: Register, part: u32, follow: &mut F) -> M
    where
        F: Follow<Mark = M>,
    {
        let (first, _) = cells_of(register);
        if self.uneven >> register & 1 == 0 {
            return self.marks[first];
        }
        let marks = ones(part.into()).map(|n| self.marks[first + n]);
        marks.reduce(|a, b| follow.join(a, b)).unwrap_or_default()
    }

    /// Mark of one wanted cell.
    pub fn mark(&self, cell: Cell) -> M {
        self.marks[usize::from(cell.number())]
    }

    /// Stops looking for cells.
    #[inline]
    pub fn remove(&mut self, cells: Cells) {
        self.cells = self.cells.minus(cells);
        self.shorten();
    }

    /// Stops looking for a general register.
    #[inline]
    pub fn remove_register(&mut self, register: Register) {
        let (first, _) = cells_of(register);
        self.cells.words_mut()[first / 64] &= !(0xff << (first % 64));
        self.short &= !(1 << register);
    }

    /// Stops looking for cells, told as words of the set. `whole` are their registers in
    /// short, if those are gone with them.
    #[inline]
    pub fn remove_words(&mut self, words: &[(u8, u64)], whole: Option<u64>) {
        for &(n, word) in words {
            self.cells.words_mut()[usize::from(n)] &= !word;
        }
        match whole {
            Some(registers) => self.short &= !registers,
            None => self.shorten(),
        }
    }

    #[inline(always)]
    fn shorten(&mut self) {
        self.short = match self.short & Cells::VECTORS_IN_SHORT {
            0 => self.cells.in_short_but_vectors(),
            _ => self.cells.in_short(),
        };
    }

    /// Takes over what another set looks for.
    pub fn merge<F: Follow<Mark = M>>(&mut self, other: &WantedCells<M>, follow: &mut F) {
        for cell in other.cells.iter() {
            self.add(cell.into(), other.mark(cell), follow);
        }
    }
}

/// The bits of a word that are set, lowest first.
#[inline(always)]
pub fn ones(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let n = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask.wrapping_sub(1);
            n
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::{Transitive, Visitor};
    use crate::wanted::Distance;
    use trace::{Instance, InstructionId};

    struct Nobody;

    impl Visitor for Nobody {
        fn instance(&mut self, _: Instance, _: InstructionId, _: Distance) {}
    }

    /// Marks kept one by one, with nothing clever.
    #[derive(Default)]
    struct Plain(std::collections::BTreeMap<u16, Distance>);

    impl Plain {
        fn add(&mut self, cells: Cells, mark: Distance) {
            for cell in cells.iter() {
                let at = self.0.entry(cell.number()).or_insert(mark);
                *at = mark.min(*at);
            }
        }
    }

    #[test]
    fn marks_of_parts_are_kept_apart() {
        let follow = &mut Transitive { visitor: Nobody, depth: Distance::MAX };
        let (mut wanted, mut plain) = (WantedCells::default(), Plain::default());
        let mut seed = 1u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..20_000 {
            let first = [0, 8, 128, 640][random(4) as usize] + random(8) as u16;
            let cells = Cells::range(Cell::new(first), 1 + random(4) as u16);
            if random(3) == 0 {
                wanted.remove(cells);
                plain.0.retain(|cell, _| !cells.contains(Cell::new(*cell)));
            } else {
                let mark = random(5) as Distance;
                wanted.add(cells, mark, follow);
                plain.add(cells, mark);
            }
            let kept: Vec<_> = wanted.cells.iter().map(|c| (c.number(), wanted.mark(c))).collect();
            assert_eq!(kept, plain.0.iter().map(|(c, m)| (*c, *m)).collect::<Vec<_>>());
            let least = plain.0.values().min().copied();
            assert_eq!(wanted.joined(wanted.cells, follow), least);
        }
    }
}
