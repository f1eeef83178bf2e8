//! Code that units share: what missed returns and indirect branches go through, and where
//! those that do not miss arrive.

use super::{FLAGS_SLOT, LANDING_RAX_SLOT, RCX_SLOT, TARGET_SLOT};
use crate::code::emit::{Emit, Hole, ShortHole};
use crate::context::{address, reg};
use crate::crossing::Reason;
use crate::{lanes, layout};

/// Code that is reached when an indirect branch has no landing.
pub fn miss_stub(host: u64) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.store_u32(address::REASON, Reason::Indirect as u32);
    emit.jump_through(address::EXIT);
    emit.bytes
}

/// Counts safepoints in a lane without touching flags; RCX is clobbered. The hole is taken
/// when the count has run out.
pub(super) fn count_through_rcx(emit: &mut Emit, lane: usize, weight: i32) -> ShortHole {
    let count = address::lane(lane);
    emit.load(reg::RCX, count);
    emit.add_constant(reg::RCX, -weight);
    emit.store(count, reg::RCX);
    if weight == 1 {
        return emit.jump_if_rcx_zero();
    }
    // It may have gone below zero. The highest byte of one less tells, without flags, since
    // no count is beyond `NO_LIMIT`.
    emit.add_constant(reg::RCX, -1);
    emit.store(FLAGS_SLOT, reg::RCX);
    emit.load_byte_rcx(FLAGS_SLOT + 7);
    let more = emit.jump_if_rcx_zero();
    let out = emit.jump_short();
    emit.fill_short(more);
    out
}

/// Code that is reached when a return finds another return address on the stack
/// than the call at that depth left: repairs the slot, then goes on as an
/// indirect jump.
pub fn wrong_return_stub(host: u64) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.load(reg::RCX, TARGET_SLOT);
    emit.store_below();
    emit.low16_rcx();
    emit.jump_table_rcx(layout::TARGETS as i32);
    emit.bytes
}

/// A landing apart from its unit, for one that was first reached directly. Nobody looks
/// ahead now whether flags are dead there.
pub fn landing(host: u64, pc: u64, body: u64) -> (Vec<u8>, Hole) {
    let mut emit = Emit::new(host);
    let Arrival { wrong, out } = arrive(&mut emit, pc, From::Anywhere, false);
    let to_body = emit.jump();
    emit.fill(to_body, body);
    emit.fill_here(out);
    leave_at_safepoint(&mut emit, pc);
    (emit.bytes, wrong)
}

/// Goes back to the engine, because a count has run out on the way to `pc`.
pub(super) fn leave_at_safepoint(emit: &mut Emit, pc: u64) {
    emit.store_u64(address::RIP, pc);
    emit.store_u32(address::REASON, Reason::SafepointHere as u32);
    emit.jump_through(address::EXIT);
}

/// How an indirect branch comes to its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// By a host `ret`, which left the host's address below the stack pointer.
    Return,
    /// Through the table.
    Anywhere,
}

/// The ways on of an indirect branch that does not go through.
pub(super) struct Arrival {
    /// It wanted to go elsewhere.
    pub(super) wrong: Hole,
    /// It was here that a count ran out.
    pub(super) out: Hole,
}

/// Where indirect branches arrive, and count as safepoints: goes on behind if the wanted
/// guest address is `pc`, with all registers the guest's. The count is here and not at the
/// branch because here one can know that flags are dead.
pub(super) fn arrive(emit: &mut Emit, pc: u64, from: From, flags_dead: bool) -> Arrival {
    let count = address::lane(lanes::of(pc));
    let hit = compare_target(emit, pc);
    let wrong = emit.jump();
    if flags_dead {
        emit.fill_short(hit);
        repair(emit, pc, from);
        emit.load(reg::RCX, RCX_SLOT);
        emit.decrement_flags(count);
        let out = emit.jump_if(4 /* zero */);
        return Arrival { wrong, out };
    }
    let used_up = emit.offset();
    emit.load(reg::RCX, RCX_SLOT);
    let out = emit.jump();
    emit.fill_short(hit);
    repair(emit, pc, from);
    emit.load(reg::RCX, count);
    emit.add_constant(reg::RCX, -1);
    emit.store(count, reg::RCX);
    emit.jump_back_if_rcx_zero(used_up);
    emit.load(reg::RCX, RCX_SLOT);
    Arrival { wrong, out }
}

/// The slot below the stack pointer held the host's address for a moment.
fn repair(emit: &mut Emit, pc: u64, from: From) {
    if from == From::Return {
        emit.store_stack(-8, pc);
    }
}

/// Jumps if the target slot holds `pc`; RCX is clobbered.
fn compare_target(emit: &mut Emit, pc: u64) -> ShortHole {
    emit.load(reg::RCX, TARGET_SLOT);
    if pc >> 31 == 0 {
        emit.add_constant(reg::RCX, (pc as i32).wrapping_neg());
    } else {
        emit.store(LANDING_RAX_SLOT, reg::RAX);
        emit.load_constant(reg::RAX, pc.wrapping_neg());
        emit.add_rax_to_rcx();
        emit.load(reg::RAX, LANDING_RAX_SLOT);
    }
    emit.jump_if_rcx_zero()
}
