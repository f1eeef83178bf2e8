//! What a piece makes of what is wanted in one case.

use crate::wanted_cells::Register;
use trace::InstructionId;

/// One case of a piece.
pub struct Case {
    /// What is wanted of all it defines: a word for each of its words of cells, one for
    /// each store, one for the branch.
    pub key: Box<[u64]>,
    /// The instructions that belong to the slice, last first.
    pub members: Box<[Member]>,
    /// What their marks follow from.
    pub reasons: Box<[Reason]>,
    /// Bytes of stores that are wanted no longer.
    pub stored: Box<[(u8, u64)]>,
    /// Registers that are wanted before it.
    pub registers: Box<[(Register, u32, By)]>,
    /// Memory that is: a load, and which of its bytes.
    pub memory: Box<[(u8, u64, By)]>,
    /// What decided that members ran: an instruction's index, whose parent is meant.
    pub parents: Box<[(u16, By)]>,
    /// Lists of members.
    pub lists: Box<[u8]>,
}

/// An instruction in the slice.
pub struct Member {
    pub index: u16,
    pub instruction: InstructionId,
    /// The end of its reasons; they begin where the one before has its end.
    pub reasons: u16,
}

/// Why a member is wanted: its mark is that of all of these, joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// It defines cells of a register that are wanted behind the piece.
    Register(Register, u32),
    /// It stores bytes that are.
    Store(u8, u64),
    /// It is the branch that is.
    Branch,
    /// Another member wants what it defines.
    Member(u8),
}

/// Members that want something: a range of the case's lists.
#[derive(Clone, Copy, Debug)]
pub struct By {
    pub first: u16,
    pub end: u16,
}
