//! Register cells: the parts of a processor's state that have a life of their own.

use iced_x86::{Register, RflagsBits};
use std::fmt;

/// One byte of a register, one flag, or one of the few states kept whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u16);

const YMM: u16 = 128;
const FLAGS: u16 = 640;

impl Cell {
    /// Number of cells.
    pub const COUNT: usize = 652;
    /// Carry flag.
    pub const CF: Cell = Cell(FLAGS);
    /// Parity flag.
    pub const PF: Cell = Cell(641);
    /// Auxiliary carry flag.
    pub const AF: Cell = Cell(642);
    /// Zero flag.
    pub const ZF: Cell = Cell(643);
    /// Sign flag.
    pub const SF: Cell = Cell(644);
    /// Overflow flag.
    pub const OF: Cell = Cell(645);
    /// Direction flag.
    pub const DF: Cell = Cell(646);
    /// The x87 and MMX stack with its control, status and tag words. Whatever has
    /// no cell of its own is here too: mask registers, `zmm` and above `ymm15`.
    pub const X87: Cell = Cell(647);
    /// MXCSR: how floating-point instructions round, and what they mask.
    pub const MXCSR: Cell = Cell(648);
    /// Base of the FS segment.
    pub const FS: Cell = Cell(649);
    /// Base of the GS segment.
    pub const GS: Cell = Cell(650);
    /// The exceptions that MXCSR remembers. Apart from the rest, because nearly
    /// every floating-point instruction adds to them and hardly any reads them:
    /// in one cell with the rounding mode they would chain all arithmetic.
    pub const EXCEPTIONS: Cell = Cell(651);

    /// Byte `byte` of general register `number`, in encoding order.
    pub const fn gpr(number: u8, byte: u8) -> Cell {
        assert!(number < 16 && byte < 8);
        Cell(8 * number as u16 + byte as u16)
    }

    /// Byte `byte` of vector register `number`.
    pub const fn ymm(number: u8, byte: u8) -> Cell {
        assert!(number < 16 && byte < 32);
        Cell(YMM + 32 * number as u16 + byte as u16)
    }

    /// The cell with a number below [`Cell::COUNT`].
    pub const fn new(number: u16) -> Cell {
        assert!((number as usize) < Cell::COUNT);
        Cell(number)
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

const GPRS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];
const WHOLE: [&str; 12] =
    ["CF", "PF", "AF", "ZF", "SF", "OF", "DF", "x87", "mxcsr", "fs", "gs", "exceptions"];

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ 0..YMM => write!(out, "{}.{}", GPRS[usize::from(n / 8)], n % 8),
            n @ YMM..FLAGS => write!(out, "ymm{}.{}", (n - YMM) / 32, (n - YMM) % 32),
            n => out.write_str(WHOLE[usize::from(n - FLAGS)]),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A set of cells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cells([u64; 11]);

impl Cells {
    /// No cell.
    pub const NONE: Cells = Cells([0; 11]);

    /// The flags that arithmetic sets.
    pub fn status() -> Cells {
        Cells::range(Cell::CF, 6)
    }

    /// `len` consecutive cells.
    pub fn range(first: Cell, len: u16) -> Cells {
        let (from, until) = (u32::from(first.0), u32::from(first.0 + len));
        assert!(until as usize <= Cell::COUNT);
        let below = |bits: u32| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Cells(std::array::from_fn(|k| {
            let base = 64 * k as u32;
            below(until.saturating_sub(base)) & !below(from.saturating_sub(base))
        }))
    }

    /// The first `len` bytes of a general register.
    #[inline]
    pub fn gpr(number: u8, len: u16) -> Cells {
        assert!(number < 16 && len <= 8, "a general register is a byte of a word");
        let mut cells = Cells::NONE;
        cells.0[usize::from(number / 8)] = ((1 << len) - 1) << (8 * (number % 8));
        cells
    }

    /// The first `len` bytes of a vector register.
    pub fn ymm(number: u8, len: u16) -> Cells {
        Cells::range(Cell::ymm(number, 0), len)
    }

    /// The cells behind a register as it is named in an instruction.
    pub fn of_register(register: Register) -> Cells {
        let number = register.number();
        if register == Register::None || register.is_ip() {
            return Cells::NONE;
        }
        if register.is_gpr() {
            let high = (Register::AH..=Register::BH).contains(&register);
            let number = register.full_register().number() as u8;
            let first = Cell::gpr(number, high.into());
            return Cells::range(first, register.size() as u16);
        }
        match register {
            Register::FS => Cells::from(Cell::FS),
            Register::GS => Cells::from(Cell::GS),
            _ if register.is_segment_register() => Cells::NONE,
            _ if register.is_vector_register() && number < 16 => {
                let cells = Cells::ymm(number as u8, register.size().min(32) as u16);
                if register.is_zmm() { cells.union(Cell::X87.into()) } else { cells }
            }
            _ => Cell::X87.into(),
        }
    }

    /// The cells behind iced's set of flags. What has no cell is left out.
    pub fn of_flags(bits: u32) -> Cells {
        const TABLE: [(u32, Cell); 7] = [
            (RflagsBits::CF, Cell::CF),
            (RflagsBits::PF, Cell::PF),
            (RflagsBits::AF, Cell::AF),
            (RflagsBits::ZF, Cell::ZF),
            (RflagsBits::SF, Cell::SF),
            (RflagsBits::OF, Cell::OF),
            (RflagsBits::DF, Cell::DF),
        ];
        let mut cells: Cells =
            TABLE.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, cell)| *cell).collect();
        const X87: u32 = RflagsBits::C0 | RflagsBits::C1 | RflagsBits::C2 | RflagsBits::C3;
        if bits & X87 != 0 {
            cells.insert(Cell::X87);
        }
        cells
    }

    /// Adds a cell.
    pub fn insert(&mut self, cell: Cell) {
        self.0[usize::from(cell.0 / 64)] |= 1 << (cell.0 % 64);
    }

    /// Is the cell in the set?
    #[inline]
    pub fn contains(&self, cell: Cell) -> bool {
        self.0[usize::from(cell.0 / 64)] >> (cell.0 % 64) & 1 != 0
    }

    fn zip(self, other: Cells, f: impl Fn(u64, u64) -> u64) -> Cells {
        Cells(std::array::from_fn(|k| f(self.0[k], other.0[k])))
    }

    /// Cells of either set.
    #[inline]
    pub fn union(self, other: Cells) -> Cells {
        self.zip(other, |a, b| a | b)
    }

    /// Cells of both sets.
    #[inline]
    pub fn intersection(self, other: Cells) -> Cells {
        self.zip(other, |a, b| a & b)
    }

    /// Cells of this set that are not in the other.
    #[inline]
    pub fn minus(self, other: Cells) -> Cells {
        self.zip(other, |a, b| a & !b)
    }

    /// Has it no cell?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Have they a cell in common?
    #[inline]
    pub fn overlaps(&self, other: &Cells) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Its cells, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Cell> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(k, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as u16;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(Cell(64 * k as u16 + bit))
            })
        })
    }

    /// In short: one bit for each register or flag of which some cell is in the set.
    #[inline]
    pub fn in_short(&self) -> u64 {
        let mut short = self.in_short_but_vectors();
        for (n, word) in self.0[2..self.0.len() - 1].iter().enumerate() {
            // A vector register is half a word.
            let (low, high) = (*word as u32 != 0, word >> 32 != 0);
            short |= (u64::from(low) | u64::from(high) << 1) << (16 + 2 * n);
        }
        short
    }

    /// The same of a set without vector registers.
    #[inline]
    pub fn in_short_but_vectors(&self) -> u64 {
        let mut short = self.0[self.0.len() - 1] << 32;
        for (n, word) in self.0[..2].iter().enumerate() {
            // A general register is a byte of a word.
            let mut any = word | word >> 4;
            any |= any >> 2;
            any |= any >> 1;
            let bits = (any & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            short |= bits << (8 * n);
        }
        short
    }

    /// Vector registers in short.
    pub const VECTORS_IN_SHORT: u64 = 0xffff << 16;

    /// As a bit set: cell n is bit n % 64 of word n / 64.
    pub fn words(&self) -> &[u64; 11] {
        &self.0
    }

    /// The same, to be changed.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64; 11] {
        &mut self.0
    }
}

impl From<Cell> for Cells {
    fn from(cell: Cell) -> Cells {
        let mut cells = Cells::NONE;
        cells.insert(cell);
        cells
    }
}

impl FromIterator<Cell> for Cells {
    fn from_iter<T: IntoIterator<Item = Cell>>(cells: T) -> Cells {
        let mut set = Cells::NONE;
        cells.into_iter().for_each(|cell| set.insert(cell));
        set
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_yields_what_was_put_in_ascending() {
        let cells: Cells = [Cell::GS, Cell::gpr(0, 7), Cell::ymm(15, 31)].into_iter().collect();
        let names: Vec<String> = cells.iter().map(|cell| cell.to_string()).collect();
        assert_eq!(names, ["rax.7", "ymm15.31", "gs"]);
        assert_eq!(cells.len(), 3);
    }

    #[test]
    fn in_short_every_register_and_flag_has_its_bit() {
        let mut seen = 0;
        for n in 0..Cell::COUNT as u16 {
            let cells = Cells::from(Cell::new(n));
            let bit = cells.in_short();
            assert_eq!(bit.count_ones(), 1, "{}", Cell::new(n));
            let is_vector = bit & Cells::VECTORS_IN_SHORT != 0;
            assert_eq!(is_vector, (YMM..FLAGS).contains(&n));
            assert!(is_vector || cells.in_short_but_vectors() == bit);
            seen |= bit;
        }
        assert_eq!(seen.count_ones(), 16 + 16 + 12);
        let in_short = |cells: Cells| cells.in_short();
        assert_eq!(in_short(Cells::gpr(9, 8)), in_short(Cell::gpr(9, 7).into()));
        assert_ne!(in_short(Cells::gpr(9, 8)), in_short(Cells::gpr(8, 8)));
        assert_ne!(in_short(Cells::ymm(2, 8)), in_short(Cells::ymm(3, 8)));
    }

    #[test]
    fn a_range_has_its_cells_and_no_others() {
        for (first, len) in [(0, 0), (0, 8), (60, 8), (64, 64), (3, 200), (128, 512), (651, 1)] {
            let one_by_one: Cells = (first..first + len).map(Cell::new).collect();
            assert_eq!(Cells::range(Cell::new(first), len), one_by_one, "{first} {len}");
        }
    }

    #[test]
    fn registers_are_found_by_every_name() {
        assert_eq!(Cells::of_register(Register::CH), Cell::gpr(1, 1).into());
        assert_eq!(Cells::of_register(Register::SIL), Cell::gpr(6, 0).into());
        assert_eq!(Cells::of_register(Register::R9D), Cells::gpr(9, 4));
        assert_eq!(Cells::of_register(Register::XMM3), Cells::ymm(3, 16));
    }
}
