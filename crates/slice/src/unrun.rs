//! Code that did not run: its instructions, where they may go, and what they may write.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use program::effects::{Access, Cell, Cells, Segment};
use trace::Trace;

/// Registers by their numbers in encodings.
pub const RSP: u8 = 4;
pub const RBP: u8 = 5;

/// The instruction at an address.
pub fn decode(trace: &Trace, at: u64) -> Option<Instruction> {
    let bytes = trace.images.bytes(at);
    let i = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (!bytes.is_empty() && !i.is_invalid()).then_some(i)
}

/// Where an instruction may go in the same activation; `None` if that is computed.
pub fn on(trace: &Trace, i: &Instruction) -> Option<Vec<u64>> {
    Some(match i.flow_control() {
        FlowControl::ConditionalBranch => vec![i.near_branch_target(), i.next_ip()],
        FlowControl::UnconditionalBranch => vec![i.near_branch_target()],
        FlowControl::Call if trace.program.is_noreturn(i.near_branch_target()) => Vec::new(),
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => vec![i.next_ip()],
        FlowControl::Return | FlowControl::Exception => Vec::new(),
        // Computed, or transactions and calls of old: nobody knows.
        _ => return None,
    })
}

/// Does it call a function?
pub fn is_call(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        && i.mnemonic() != Mnemonic::Syscall
}

/// Where a store goes, as far as the instruction itself says.
pub enum Place {
    /// To a fixed address.
    Fixed(u64),
    /// So far from the stack pointer.
    Stack(i64),
    /// So far from what RBP holds.
    Frame(i64),
    /// Anywhere: through another pointer, or by an index.
    Anywhere,
}

impl Place {
    /// Where this one writes to.
    pub fn of(access: &Access) -> Place {
        let a = &access.address;
        let odd = a.index.is_some() || a.bit_index.is_some() || a.segment != Segment::None;
        match a.base {
            _ if odd || access.repeats.is_some() => Place::Anywhere,
            None => Place::Fixed(a.displacement as u64),
            Some(RSP) => Place::Stack(a.displacement),
            Some(RBP) => Place::Frame(a.displacement),
            Some(_) => Place::Anywhere,
        }
    }
}

/// The registers that a call need not preserve.
pub fn volatile() -> Cells {
    let general = [0, 1, 2, 6, 7, 8, 9, 10, 11];
    let general = general.into_iter().fold(Cells::NONE, |all, n| all.union(Cells::gpr(n, 8)));
    let vectors = Cells::range(Cell::ymm(0, 0), 16 * 32);
    let others = Cells::status().union(Cell::X87.into()).union(Cell::EXCEPTIONS.into());
    general.union(vectors).union(others)
}

/// All registers.
pub fn all() -> Cells {
    Cells::range(Cell::new(0), Cell::COUNT as u16)
}
