//! Code that units share: what returns and missed indirect branches go through,
//! and the way into a unit for indirect branches.

use super::{FLAGS_SLOT, LANDING_RAX_SLOT, RCX_SLOT, TARGET_SLOT};
use crate::code::emit::{Emit, Hole, ShortHole};
use crate::context::{address, reg};
use crate::crossing::Reason;
use crate::layout;

/// Code that is reached when an indirect branch has no landing.
pub fn miss_stub(host: u64) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.store_u32(address::REASON, Reason::Indirect as u32);
    emit.jump_through(address::EXIT);
    emit.bytes
}

/// What every translated `ret` of a lane jumps to, with the return address in RCX: leaves
/// through a host `ret`, which the CPU predicts, to where the call at this stack depth said
/// it would continue.
pub fn return_stub(host: u64, lane: usize) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.store(TARGET_SLOT, reg::RCX);
    let zero = count_through_rcx(&mut emit, lane, 1);
    emit.low16_rsp();
    emit.load_at_rcx(layout::RETURNS as i32);
    emit.store_top();
    emit.ret();
    emit.fill_short(zero);
    emit.store_u32(address::REASON, Reason::SafepointReturn as u32);
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

/// A landing apart from its unit, for one that was first reached directly.
pub fn landing(host: u64, pc: u64, body: u64) -> (Vec<u8>, Hole) {
    let mut emit = Emit::new(host);
    let next = check_target(&mut emit, pc);
    let to_body = emit.jump();
    emit.fill(to_body, body);
    (emit.bytes, next)
}

/// The way into a unit for indirect branches: checks that the wanted guest
/// address is `pc`, else goes on to the next landing of the same slot. Returns
/// the hole for that next landing.
pub(super) fn check_target(emit: &mut Emit, pc: u64) -> Hole {
    let next = compare_target(emit, pc);
    emit.load(reg::RCX, RCX_SLOT);
    next
}

/// Falls through if the target slot holds `pc`; RCX is clobbered. Returns the
/// hole that is taken otherwise.
pub(super) fn compare_target(emit: &mut Emit, pc: u64) -> Hole {
    emit.load(reg::RCX, TARGET_SLOT);
    if pc >> 31 == 0 {
        emit.add_constant(reg::RCX, (pc as i32).wrapping_neg());
    } else {
        emit.store(LANDING_RAX_SLOT, reg::RAX);
        emit.load_constant(reg::RAX, pc.wrapping_neg());
        emit.add_rax_to_rcx();
        emit.load(reg::RAX, LANDING_RAX_SLOT);
    }
    let hit = emit.jump_if_rcx_zero();
    let next = emit.jump();
    emit.fill_short(hit);
    next
}
