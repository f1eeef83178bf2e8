//! Consecutive bytes of an operand.

use super::{Cell, Cells, Source, Target};
use iced_x86::Register;

/// Where an operand's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Consecutive cells.
    Cells { first: u16, len: u16 },
    /// Bytes of an access.
    Memory { access: u8, first: u16, len: u16 },
    /// In the instruction itself.
    Constant,
}

impl Place {
    pub fn of(cell: Cell) -> Place {
        Place::Cells { first: cell.number(), len: 1 }
    }

    pub fn gpr(number: u8, len: u16) -> Place {
        Place::Cells { first: Cell::gpr(number, 0).number(), len }
    }

    pub fn ymm(number: u8, len: u16) -> Place {
        Place::Cells { first: Cell::ymm(number, 0).number(), len }
    }

    /// A general or vector register that has cells of its own.
    pub fn register(register: Register) -> Option<Place> {
        let own = register.is_gpr() || register.is_xmm() || register.is_ymm();
        if !own || register.is_vector_register() && register.number() >= 16 {
            return None;
        }
        let cells = Cells::of_register(register);
        let first = cells.iter().next()?.number();
        Some(Place::Cells { first, len: cells.len() as u16 })
    }

    pub fn len(self) -> usize {
        match self {
            Place::Cells { len, .. } | Place::Memory { len, .. } => len.into(),
            Place::Constant => 0,
        }
    }

    /// `len` bytes from byte `from` on.
    pub fn part(self, from: usize, len: usize) -> Place {
        if self == Place::Constant {
            return self;
        }
        assert!(from + len <= self.len(), "no such part of an operand");
        let len = len as u16;
        match self {
            Place::Cells { first, .. } => Place::Cells { first: first + from as u16, len },
            Place::Memory { access, first, .. } => {
                Place::Memory { access, first: first + from as u16, len }
            }
            Place::Constant => self,
        }
    }

    /// Its byte `k`.
    pub fn byte(self, k: usize) -> Place {
        self.part(k, 1)
    }

    /// The last byte: where a sign is.
    pub fn top(self) -> Place {
        if self == Place::Constant { self } else { self.byte(self.len() - 1) }
    }

    /// The first `len` bytes.
    pub fn low(self, len: usize) -> Place {
        self.part(0, len)
    }

    /// Whether `next` begins one byte after this one, so that a run goes on.
    pub fn continues(self, next: Place, by: u16) -> bool {
        match (self, next) {
            (Place::Cells { first: a, .. }, Place::Cells { first: b, .. }) => a + by == b,
            (
                Place::Memory { access: x, first: a, .. },
                Place::Memory { access: y, first: b, .. },
            ) => x == y && a + by == b,
            _ => false,
        }
    }

    /// The same beginning, another length.
    pub fn stretched(self, len: usize) -> Place {
        let len = len as u16;
        match self {
            Place::Cells { first, .. } => Place::Cells { first, len },
            Place::Memory { access, first, .. } => Place::Memory { access, first, len },
            Place::Constant => self,
        }
    }

    pub fn source(self) -> Option<Source> {
        match self {
            Place::Cells { first, len } => Some(Source::Cells(Cells::range(Cell::new(first), len))),
            Place::Memory { access, first, len } => Some(Source::Memory { access, first, len }),
            Place::Constant => None,
        }
    }

    pub fn target(self) -> Option<Target> {
        match self {
            Place::Cells { first, len } => Some(Target::Cells(Cells::range(Cell::new(first), len))),
            Place::Memory { access, first, len } => Some(Target::Memory { access, first, len }),
            Place::Constant => None,
        }
    }
}
