//! Where is a value at an instant, piece by piece, and what is it?

use super::error::Error;
use super::state::{Register, State, register_bytes};
use super::types::Type;

/// Larger values are taken for damage and not read.
const LARGEST: usize = 1 << 28;

/// A value and the places that hold it.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The places, in the order of the value's bytes.
    pub pieces: Vec<Piece>,
    /// The type of the value.
    pub ty: Type,
    /// The bits that count, if it is a bit-field.
    pub bits: Option<BitField>,
}

/// Some neighbouring bytes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// They are in memory.
    Memory {
        /// The address of the first.
        address: u64,
        /// How many.
        len: u64,
    },
    /// They are in a register.
    Register {
        /// The register.
        number: Register,
        /// Which byte of it, counted from the lowest.
        first_byte: u64,
        /// How many.
        len: u64,
    },
    /// They are nowhere, but known.
    Value(Vec<u8>),
    /// They do not exist.
    Gone {
        /// How many.
        len: u64,
        /// Why not.
        why: Gone,
    },
}

/// The bits of a bit-field within its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitField {
    /// The lowest bit, counted from the lowest of the first byte.
    pub first: u32,
    /// How many bits.
    pub len: u32,
}

/// Why a value, or a part of one, does not exist at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Gone {
    /// The compiler keeps no copy here.
    #[error("the compiler keeps no copy of it here")]
    OptimisedOut,
    /// It can only be computed from registers at the function's entry.
    #[error("it was only known when the function was entered")]
    EntryValue,
    /// It is thread-local, in a library whose block is not known.
    #[error("it is a thread-local variable of a library")]
    ThreadLocal,
    /// It is a pointer to something that the compiler has removed.
    #[error("it points to something that the compiler has removed")]
    ImplicitPointer,
    /// It is in a register whose value is not known in this frame.
    #[error("it was in {0}, which this frame's callees have overwritten")]
    RegisterLost(Register),
    /// What leads to it cannot be read.
    #[error("the memory that leads to it cannot be read")]
    Unreadable,
    /// The frame of its function cannot be found.
    #[error("the frame of its function cannot be found")]
    NoFrame,
    /// The debug information says it in a way that is damaged or not understood.
    #[error("the debug information about it is damaged or not understood")]
    NotUnderstood,
}

impl Piece {
    /// How many bytes of the value this is.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory { len, .. } | Self::Register { len, .. } | Self::Gone { len, .. } => *len,
            Self::Value(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it is no byte at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes of this piece, from `first` on.
    fn part(&self, first: u64, len: u64) -> Self {
        match self {
            Self::Memory { address, .. } => {
                Self::Memory { address: address.wrapping_add(first), len }
            }
            Self::Register { number, first_byte, .. } => Self::Register {
                number: *number,
                first_byte: first_byte.saturating_add(first),
                len,
            },
            Self::Value(bytes) => {
                let bytes = bytes.iter().skip(first as usize).take(len as usize);
                Self::Value(bytes.copied().collect())
            }
            Self::Gone { why, .. } => Self::Gone { len, why: *why },
        }
    }

    fn bytes(&self, state: &dyn State) -> Result<Vec<u8>, Error> {
        match self {
            Self::Memory { address, len } => {
                let unreadable = Error::Unreadable { address: *address, len: *len };
                let len = usize::try_from(*len).ok().filter(|len| *len <= LARGEST);
                len.and_then(|len| state.memory(*address, len)).ok_or(unreadable)
            }
            Self::Register { number, first_byte, len } => {
                let bytes = register_bytes(state, *number).ok_or(Gone::RegisterLost(*number))?;
                let first = usize::try_from(*first_byte).unwrap_or(usize::MAX);
                let part = first.checked_add(*len as usize).and_then(|end| bytes.get(first..end));
                Ok(part.ok_or(Gone::NotUnderstood)?.to_vec())
            }
            Self::Value(bytes) => Ok(bytes.clone()),
            Self::Gone { why, .. } => Err((*why).into()),
        }
    }
}

impl Located {
    /// A value of `len` bytes in memory.
    pub(super) fn in_memory(address: u64, len: u64, ty: Type) -> Self {
        Self { pieces: vec![Piece::Memory { address, len }], ty, bits: None }
    }

    /// A value that is nowhere.
    pub(super) fn value(bytes: Vec<u8>, ty: Type) -> Self {
        Self { pieces: vec![Piece::Value(bytes)], ty, bits: None }
    }

    /// How many bytes the value has.
    pub fn len(&self) -> u64 {
        self.pieces.iter().fold(0, |len, piece| len.saturating_add(piece.len()))
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the value, if all of it is in memory.
    pub fn address(&self) -> Option<u64> {
        match self.pieces.as_slice() {
            [Piece::Memory { address, .. }] => Some(*address),
            _ => None,
        }
    }

    /// The bytes of the value.
    pub fn bytes(&self, state: &dyn State) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            bytes.extend(piece.bytes(state)?);
        }
        Ok(bytes)
    }

    /// The part of the value that is `len` bytes from `first` on.
    pub(super) fn part(&self, first: u64, len: u64, ty: Type) -> Self {
        let mut pieces = Vec::new();
        let (mut skip, mut left) = (first, len);
        for piece in &self.pieces {
            let have = piece.len();
            if skip >= have {
                skip -= have;
                continue;
            }
            let take = left.min(have - skip);
            if take > 0 {
                pieces.push(piece.part(skip, take));
            }
            left -= take;
            skip = 0;
        }
        if left > 0 {
            pieces.push(Piece::Gone { len: left, why: Gone::NotUnderstood });
        }
        Self { pieces, ty, bits: None }
    }
}
