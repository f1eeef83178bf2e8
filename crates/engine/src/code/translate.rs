//! From guest instructions to a unit of the code cache.
//!
//! Most instructions are copied byte for byte. Rewritten are: control flow,
//! RIP-relative operands, and the few instructions whose answer would differ
//! between runs or machines (`syscall`, `cpuid`, `rdtsc`, …), at which the unit
//! ends and the engine acts.
//!
//! *Safepoints* are counted at: direct jumps that do not go forward, indirect jumps
//! and calls, and returns. Any run that does not end passes them (endless recursion
//! meets the end of its stack), and the count does not depend on how the code was
//! cut into units.
//!
//! Translation is a pure function of the guest's bytes, so a fault in a unit is
//! mapped back to the guest instruction by translating once more and looking
//! which instruction the host address falls into ([`Translation::places`]).

use super::cache::NewExit;
use super::emit::{Emit, Hole, ShortHole};
use super::loops::{self, SelfLoop};
use super::tracing::{Tracing, UnitTrace};
use super::{Profile, Stops, flags};
use crate::context::{address, reg};
use crate::crossing::Reason;
use crate::layout;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, InstructionInfoFactory,
    MemoryOperand, Mnemonic, OpKind, Register,
};

/// Spill slots of translated code, by use.
const RCX_SLOT: i32 = address::slot(0);
const TARGET_SLOT: i32 = address::slot(1);
const FAR_SLOT: i32 = address::slot(2);
const FLAGS_RAX_SLOT: i32 = address::slot(3);
const FLAGS_SLOT: i32 = address::slot(4);
const LANDING_RAX_SLOT: i32 = address::slot(5);
const RAX_SLOT: i32 = address::slot(6);
const LOOP_SLOT: i32 = address::slot(7);

/// How far past its start a unit follows jumps.
const FOLLOW_REACH: u64 = 1 << 15;

/// A register whose guest value is in a spill slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// Which register.
    pub register: usize,
    /// Which slot.
    pub slot: usize,
}

/// From `offset` on, host code belongs to the guest instruction at `pc`.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Offset in the unit's host code.
    pub offset: usize,
    /// The guest instruction.
    pub pc: u64,
    /// Its number within the unit.
    pub index: u32,
    /// What is not in its register.
    pub spilled: Option<Spilled>,
    /// The register that holds the safepoint count instead of the guest's value,
    /// which is in slot 7.
    pub counter: Option<usize>,
    /// The register that points into the trace buffer instead of holding the
    /// guest's value, which is in slot 7.
    pub cursor: Option<usize>,
    /// The path that has been written already, although the instruction may still
    /// fault.
    pub written: Option<u16>,
}

/// A translated unit, not yet installed.
pub struct Translation {
    /// Host code for the address it was asked for.
    pub bytes: Vec<u8>,
    /// Its rarely used ways out, for the cold address it was asked for.
    pub cold: Vec<u8>,
    /// Offset of the body: what comes before is the landing.
    pub body: usize,
    /// The landing's jump to the next landing.
    pub landing_next: Option<Hole>,
    /// Direct exits.
    pub exits: Vec<NewExit>,
    /// Length of the guest code.
    pub guest_len: u32,
    /// Number of guest instructions.
    pub instructions: u32,
    /// Does it call anything?
    pub calls: bool,
    /// Which guest instruction each part belongs to, in order of offset.
    pub places: Vec<Place>,
    /// What its records mean, if it is traced.
    pub trace: Option<UnitTrace>,
}

/// What one translation is asked for.
pub struct Request<'a> {
    /// Guest address.
    pub pc: u64,
    /// Host address it will have.
    pub host: u64,
    /// Host address its cold part will have.
    pub cold: u64,
    /// Begin with a landing for indirect branches?
    pub landing: bool,
    /// Number its first exit will have.
    pub first_exit: u32,
    /// What to add.
    pub profile: Profile,
    /// Which memory is watched.
    pub watched: &'a Stops,
    /// The number of its first path, if it is to be traced.
    pub trace: Option<u32>,
    /// At most so many instructions; the unit then ends with [`Reason::Stop`].
    pub stop_after: Option<usize>,
    /// Addresses, in order, to stop before: a unit that begins at one only leaves.
    pub stops: &'a [u64],
    /// Is the unit to go past a stop at its own beginning?
    pub past: bool,
    /// At most so many instructions; the unit then goes on as another one.
    pub limit: usize,
    /// Is there a unit at the address already? Then it is jumped to, not copied.
    pub known: &'a dyn Fn(u64) -> bool,
    /// Executable guest bytes at an address; empty where there are none.
    pub fetch: &'a dyn Fn(u64) -> &'static [u8],
}

/// Translates one unit. `None` if there is no code at the address.
pub fn translate<'a>(request: &'a Request<'a>) -> Option<Translation> {
    let bytes = (request.fetch)(request.pc);
    if bytes.is_empty() {
        return None;
    }
    let tracing = request
        .trace
        // Not the request's own limit: a unit that is translated again, to its known
        // length, must come to the same register.
        .map(|path| (path, request.profile.unit_limit()))
        .map(|(path, limit)| Tracing::plan(request.pc, path, limit, FOLLOW_REACH, request.fetch));
    let mut t = Translator {
        request,
        tracing,
        emit: Emit::new(request.host),
        cold: Emit::new(request.cold),
        places: Vec::new(),
        stubs: Vec::new(),
        calls: Vec::new(),
        looping: None,
        loop_head: 0,
        loop_register: None,
        loop_exits: Vec::new(),
        index: 0,
    };
    Some(t.unit())
}

/// Code that is reached when an indirect branch has no landing.
pub fn miss_stub(host: u64) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.store_u32(address::REASON, Reason::Indirect as u32);
    emit.jump_through(address::EXIT);
    emit.bytes
}

/// What every translated `ret` jumps to, with the return address in RCX: leaves through a host `ret`, which the
/// CPU predicts, to where the call at this stack depth said it would continue.
pub fn return_stub(host: u64) -> Vec<u8> {
    let mut emit = Emit::new(host);
    emit.store(TARGET_SLOT, reg::RCX);
    let zero = count_through_rcx(&mut emit);
    emit.low16_rsp();
    emit.load_at_rcx(layout::RETURNS as i32);
    emit.store_top();
    emit.ret();
    emit.fill_short(zero);
    emit.store_u32(address::REASON, Reason::SafepointReturn as u32);
    emit.jump_through(address::EXIT);
    emit.bytes
}

/// Counts a safepoint without touching flags; RCX is clobbered. The hole is taken
/// when the count has run out.
fn count_through_rcx(emit: &mut Emit) -> ShortHole {
    emit.load(reg::RCX, address::COUNT);
    emit.add_constant(reg::RCX, -1);
    emit.store(address::COUNT, reg::RCX);
    emit.jump_if_rcx_zero()
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
fn check_target(emit: &mut Emit, pc: u64) -> Hole {
    let next = compare_target(emit, pc);
    emit.load(reg::RCX, RCX_SLOT);
    next
}

/// Falls through if the target slot holds `pc`; RCX is clobbered. Returns the
/// hole that is taken otherwise.
fn compare_target(emit: &mut Emit, pc: u64) -> Hole {
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

/// A call whose other half is still to be written.
struct Call {
    /// The host call.
    into: Hole,
    /// Host address it returns to.
    back: u64,
    /// Guest address of the instruction behind it.
    returns_to: u64,
    /// Where it goes; `None` if that is in RAX.
    target: Option<u64>,
}

/// A branch out of the unit, waiting for its stub.
struct Stub {
    hole: Hole,
    kind: StubKind,
}

enum StubKind {
    /// Direct branch to a guest address.
    Direct { target: u64 },
    /// The safepoint count ran out on the way to `target`; uses that exit's number.
    Safepoint { exit: usize },
    /// The same at an indirect branch.
    SafepointIndirect,
    /// The instruction budget would run negative.
    Budget,
    /// A return came to a call it does not belong to.
    WrongReturn,
    /// An instruction, by address and number, may touch watched memory.
    Watch { pc: u64, index: u32 },
}

struct Translator<'a> {
    request: &'a Request<'a>,
    tracing: Option<Tracing>,
    emit: Emit,
    cold: Emit,
    places: Vec<Place>,
    stubs: Vec<Stub>,
    calls: Vec<Call>,
    /// The loop being translated, its host address, and the ways out of it.
    looping: Option<SelfLoop>,
    loop_head: u64,
    loop_register: Option<usize>,
    loop_exits: Vec<(Hole, LoopExit)>,
    index: u32,
}

/// How a loop that counts in a register is left.
enum LoopExit {
    /// To a guest address.
    To(u64),
    /// The count has run out.
    Safepoint,
}

/// Does the unit go on after an instruction?
#[derive(PartialEq)]
enum Then {
    Continue,
    /// Go on, unless a unit begins here already.
    Boundary,
    /// Go on decoding at another address: a forward jump was followed.
    Follow(u64),
    End,
}

impl Translator<'_> {
    fn unit(&mut self) -> Translation {
        let pc = self.request.pc;
        let landing_next = self.request.landing.then(|| check_target(&mut self.emit, pc));
        let body = self.emit.offset();
        let count_hole = self.budget_check(pc);
        if let Some(tracing) = &mut self.tracing {
            tracing.enter(&mut self.emit);
        }
        self.enter_loop(pc);
        let end = self.instructions(pc);
        let calls = !self.calls.is_empty();
        self.write_calls();
        self.write_loop_exits();
        self.write_side_exits();
        if let Some(at) = count_hole {
            let n = self.index as i32;
            self.emit.bytes[at..at + 4].copy_from_slice(&n.to_le_bytes());
        }
        let exits = self.write_stubs();
        Translation {
            bytes: std::mem::take(&mut self.emit.bytes),
            cold: std::mem::take(&mut self.cold.bytes),
            body,
            landing_next,
            exits,
            guest_len: (end - pc) as u32,
            instructions: self.index,
            calls,
            places: std::mem::take(&mut self.places),
            trace: self.tracing.as_mut().map(Tracing::finish),
        }
    }

    /// Watching: come back before the instruction if it may touch watched memory.
    fn watch(&mut self, i: &Instruction) {
        if must_emulate(i) {
            return;
        }
        let (pc, index) = (i.ip(), self.index);
        for hole in self.request.watched.watch(&mut self.emit, i) {
            self.stubs.push(Stub { hole, kind: StubKind::Watch { pc, index } });
        }
    }

    /// Translates from `pc` to the end of the unit. Returns the highest guest
    /// address it covers.
    fn instructions(&mut self, pc: u64) -> u64 {
        let longest = self.tracing.as_ref().map_or(usize::MAX, |t| t.limit);
        let limit = self.request.stop_after.unwrap_or(longest).min(self.request.limit);
        let mut bytes = (self.request.fetch)(pc);
        let mut start = pc;
        let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut at = pc;
        let mut end = pc;
        while (self.index as usize) < limit && decoder.can_decode() {
            let past = self.request.past && self.index == 0;
            if !past && self.request.stops.binary_search(&at).is_ok() {
                if self.index > 0 {
                    break;
                }
                self.place(at, None);
                self.leave(Reason::Stop, at);
                return at + 1;
            }
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                if self.index == 0 {
                    self.undecodable(at);
                    return at + 1;
                }
                break;
            }
            if self.must_stop_before(&instruction) && self.index > 0 {
                break;
            }
            self.place(at, None);
            let from = (at - start) as usize;
            let raw = &bytes[from..from + instruction.len()];
            let displacement_at = decoder.get_constant_offsets(&instruction).displacement_offset();
            if let Some(tracing) = &mut self.tracing
                && !performed_by_engine(&instruction)
            {
                tracing.before(&mut self.emit, &instruction);
                tracing.after(&instruction);
            }
            self.watch(&instruction);
            let then = self.instruction(&instruction, raw, displacement_at);
            self.index += 1;
            at = instruction.next_ip();
            end = end.max(at);
            match then {
                Then::Continue => {}
                Then::Boundary if self.looping.is_none() && (self.request.known)(at) => break,
                Then::Boundary => {}
                Then::End => return end,
                Then::Follow(target) => {
                    (at, start) = (target, target);
                    bytes = (self.request.fetch)(target);
                    decoder = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
                }
            }
        }
        self.fall_out(at);
        end
    }

    fn place(&mut self, pc: u64, spilled: Option<Spilled>) {
        let offset = self.emit.offset();
        let counter = self.looping.map(|l| l.register);
        let open = self.tracing.as_ref().filter(|t| t.open);
        let closed = self.tracing.as_ref().filter(|t| !t.open);
        self.places.push(Place {
            offset,
            pc,
            index: self.index,
            spilled,
            counter,
            cursor: open.map(|t| t.register),
            written: closed.and_then(|t| t.closed),
        });
    }

    /// Tracing: the record of a unit that ends here, after so many instructions.
    fn close(&mut self, instructions: u32) {
        let Some(tracing) = &mut self.tracing else { return };
        tracing.close(&mut self.emit, instructions);
        if let Some(pc) = self.places.last().map(|p| p.pc) {
            self.place(pc, None);
        }
    }

    /// Tracing: what comes behind a record that was written on one side of a
    /// branch belongs to the other side.
    fn reopen(&mut self) {
        let Some(tracing) = &mut self.tracing else { return };
        tracing.open = true;
        if let Some(pc) = self.places.last().map(|p| p.pc) {
            self.place(pc, None);
        }
    }

    /// Tracing: addresses that registers alone do not tell are looked at by the
    /// engine, before the instruction.
    fn must_stop_before(&self, i: &Instruction) -> bool {
        self.tracing.is_some() && i.is_vsib()
    }

    fn write_side_exits(&mut self) {
        let Some(mut tracing) = self.tracing.take() else { return };
        let exits = tracing.take_side_exits();
        self.tracing = Some(tracing);
        if !exits.is_empty() {
            // The buffer may end in any of them.
            self.place(self.request.pc, None);
        }
        for (hole, target, end) in exits {
            self.emit.fill_here(hole);
            if let Some(tracing) = &mut self.tracing {
                tracing.write(&mut self.emit, end);
            }
            let hole = self.emit.jump();
            self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
        }
    }

    /// Counting profiles: take the unit's instructions off the budget at its
    /// head. Returns where the number is to be written once it is known.
    fn budget_check(&mut self, pc: u64) -> Option<usize> {
        if !self.request.profile.count || self.request.stop_after.is_some() {
            return None;
        }
        let dead = flags::dead_at(pc, &self.request.fetch);
        if !dead {
            self.emit.save_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        self.emit.subtract_flags(address::BUDGET, 0);
        let number_at = self.emit.offset() - 4;
        let hole = self.emit.jump_if(8 /* sign */);
        self.stubs.push(Stub { hole, kind: StubKind::Budget });
        if !dead {
            self.emit.restore_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        Some(number_at)
    }

    /// Bytes that are no instruction: the engine finds out what they raise.
    fn undecodable(&mut self, at: u64) {
        self.place(at, None);
        self.close(0);
        self.leave(Reason::Emulate, at);
        self.index += 1;
    }

    /// The unit ends in the middle of straight code.
    fn fall_out(&mut self, at: u64) {
        if self.request.stop_after.is_some() {
            self.place(at, None);
            self.leave(Reason::Stop, at);
            return;
        }
        self.close(self.index);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: at } });
    }

    /// Goes back to the engine with RIP = `pc`.
    fn leave(&mut self, reason: Reason, pc: u64) {
        self.emit.store_u64(address::RIP, pc);
        self.emit.store_u32(address::REASON, reason as u32);
        self.emit.jump_through(address::EXIT);
    }

    fn instruction(&mut self, i: &Instruction, raw: &[u8], displacement_at: usize) -> Then {
        match i.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => {
                self.plain(i, raw, displacement_at)
            }
            FlowControl::UnconditionalBranch => self.direct_jump(i),
            FlowControl::ConditionalBranch => self.conditional(i, raw),
            FlowControl::Call if i.mnemonic() == Mnemonic::Syscall => {
                self.close(self.index + 1);
                self.leave(Reason::Syscall, i.next_ip());
                Then::End
            }
            FlowControl::Call => self.direct_call(i),
            FlowControl::IndirectBranch => self.indirect(i, false),
            FlowControl::IndirectCall => self.indirect(i, true),
            FlowControl::Return => self.ret(i),
            FlowControl::XbeginXabortXend => self.emulated(i),
        }
    }

    fn emulated(&mut self, i: &Instruction) -> Then {
        self.close(self.index);
        self.leave(Reason::Emulate, i.ip());
        Then::End
    }

    fn plain(&mut self, i: &Instruction, raw: &[u8], displacement_at: usize) -> Then {
        if must_emulate(i) {
            return self.emulated(i);
        }
        if self.must_stop_before(i) {
            self.close(0);
            self.leave(Reason::Stop, i.ip());
            return Then::End;
        }
        if i.is_ip_rel_memory_operand() {
            self.rip_relative(i, raw, displacement_at);
        } else {
            self.emit.raw(raw);
        }
        if leaks_instruction_pointer(i) {
            self.clear_x87_pointers(i);
        }
        // int3, ud2, int n: the CPU faults; what follows is never reached.
        if i.flow_control() == FlowControl::Next { Then::Continue } else { Then::End }
    }

    fn rip_relative(&mut self, i: &Instruction, raw: &[u8], displacement_at: usize) {
        let target = i.ip_rel_memory_address();
        let next = self.emit.here() + raw.len() as u64;
        let displacement = target.wrapping_sub(next) as i64;
        let near = i32::try_from(displacement);
        if let (Ok(d), Register::RIP) = (near, i.memory_base()) {
            let at = self.emit.offset() + displacement_at;
            self.emit.raw(raw);
            self.emit.bytes[at..at + 4].copy_from_slice(&d.to_le_bytes());
        } else if i.mnemonic() == Mnemonic::Lea && i.op0_register().size() == 8 {
            let register = i.op0_register().number();
            self.emit.load_constant(register, target);
        } else {
            self.far_operand(i, target);
        }
    }

    /// A RIP-relative operand out of reach: through a register the instruction
    /// does not use.
    fn far_operand(&mut self, i: &Instruction, target: u64) {
        let scratch = free_register(i);
        let number = scratch.number();
        let mut moved = *i;
        moved.set_memory_base(scratch);
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        self.emit.store(FAR_SLOT, number);
        self.emit.load_constant(number, target);
        self.place(i.ip(), Some(Spilled { register: number, slot: 2 }));
        self.encode(&moved);
        self.place(i.ip(), None);
        self.emit.load(number, FAR_SLOT);
    }

    fn encode(&mut self, i: &Instruction) {
        let mut encoder = Encoder::new(64);
        encoder.encode(i, self.emit.here()).expect("a decoded instruction with another base");
        let bytes = encoder.take_buffer();
        self.emit.raw(&bytes);
    }

    /// x87 environment stores contain the address of the last x87 instruction,
    /// which would be an address in the cache: store zero instead.
    fn clear_x87_pointers(&mut self, i: &Instruction) {
        // Environment: FIP at 12, FCS/FOP at 16, FDP at 20, FDS at 24.
        for offset in [12i64, 16, 20, 24] {
            let memory = MemoryOperand::new(
                i.memory_base(),
                i.memory_index(),
                i.memory_index_scale(),
                i.memory_displacement64() as i64 + offset,
                8,
                false,
                i.segment_prefix(),
            );
            let store = Instruction::with2(Code::Mov_rm32_imm32, memory, 0u32).expect("valid");
            self.encode(&store);
        }
    }

    fn direct_jump(&mut self, i: &Instruction) -> Then {
        if i.op0_kind() != OpKind::NearBranch64 {
            return self.emulated(i);
        }
        let target = i.near_branch_target();
        if self.looping.is_some_and(|l| l.back_edge == i.ip()) {
            self.loop_back();
            self.looping = None;
            return Then::End;
        }
        let near = target > i.ip() && target - self.request.pc < FOLLOW_REACH;
        let whole = !self.request.profile.basic_blocks() && self.request.stop_after.is_none();
        if near && whole && !(self.request.known)(target) {
            return Then::Follow(target);
        }
        self.close(self.index + 1);
        self.direct_exit(i.ip(), target);
        Then::End
    }

    /// A jump to a guest address, with a safepoint if it does not go forward.
    fn direct_exit(&mut self, from: u64, target: u64) {
        let safepoint = (target <= from).then(|| self.safepoint(target));
        let hole = self.emit.jump();
        let exit = self.stubs.len();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
        if let Some(hole) = safepoint {
            self.stubs.push(Stub { hole, kind: StubKind::Safepoint { exit } });
        }
    }

    /// Counts a safepoint; the hole is taken when the count has run out.
    fn safepoint(&mut self, target: u64) -> Hole {
        if flags::dead_at(target, &self.request.fetch) {
            self.emit.decrement_flags(address::COUNT);
            return self.emit.jump_if(4 /* zero */);
        }
        self.emit.store(RCX_SLOT, reg::RCX);
        let zero = count_through_rcx(&mut self.emit);
        self.emit.load(reg::RCX, RCX_SLOT);
        let over = self.emit.jump_short();
        self.emit.fill_short(zero);
        self.emit.load(reg::RCX, RCX_SLOT);
        let hole = self.emit.jump();
        self.emit.fill_short(over);
        hole
    }

    fn conditional(&mut self, i: &Instruction, raw: &[u8]) -> Then {
        let target = i.near_branch_target();
        if !i.is_jcc_short_or_near() {
            return self.loop_branch(i, raw);
        }
        // iced numbers conditions from 1 in the order of the encoding.
        let condition = i.condition_code() as u8 - 1;
        if let Some(l) = self.looping {
            return self.conditional_in_loop(i, condition, l);
        }
        if target > i.ip() {
            let hole = self.emit.jump_if(condition);
            match &mut self.tracing {
                Some(tracing) => tracing.side_exit(hole, target, self.index + 1),
                None => self.stubs.push(Stub { hole, kind: StubKind::Direct { target } }),
            }
        } else {
            let not = condition ^ 1;
            let over = self.emit.jump_if(not);
            self.close(self.index + 1);
            self.direct_exit(i.ip(), target);
            self.reopen();
            self.emit.fill_here(over);
        }
        self.after_branch(i)
    }

    /// A unit that is a loop keeps the safepoint count in a register meanwhile.
    fn enter_loop(&mut self, pc: u64) {
        let r = self.request;
        if r.profile.basic_blocks() || r.stop_after.is_some() || r.trace.is_some() {
            return;
        }
        self.looping = loops::find(pc, r.fetch, r.limit);
        if let Some(l) = self.looping {
            self.emit.store(LOOP_SLOT, l.register);
            self.emit.load(l.register, address::COUNT);
        }
        self.loop_head = self.emit.here();
    }

    fn conditional_in_loop(&mut self, i: &Instruction, condition: u8, l: SelfLoop) -> Then {
        if i.ip() != l.back_edge {
            let hole = self.emit.jump_if(condition);
            self.loop_exits.push((hole, LoopExit::To(i.near_branch_target())));
            return Then::Boundary;
        }
        let over = self.emit.jump_if(condition ^ 1);
        self.loop_back();
        self.emit.fill_here(over);
        self.leave_loop(l);
        self.looping = None;
        self.loop_register = Some(l.register);
        Then::Boundary
    }

    /// Counts one iteration and goes on with the next.
    fn loop_back(&mut self) {
        let l = self.looping.expect("only called within a loop");
        self.loop_register = Some(l.register);
        if l.flags_dead {
            self.emit.decrement_register_flags(l.register);
            let zero = self.emit.jump_if(4 /* zero */);
            self.loop_exits.push((zero, LoopExit::Safepoint));
        } else {
            self.emit.add_constant(l.register, -1);
            let zero = self.emit.jump_if_rcx_zero();
            let again = self.emit.jump();
            self.emit.fill(again, self.loop_head);
            self.emit.fill_short(zero);
            let hole = self.emit.jump();
            self.loop_exits.push((hole, LoopExit::Safepoint));
            return;
        }
        let again = self.emit.jump();
        self.emit.fill(again, self.loop_head);
    }

    /// Puts count and register back where they belong.
    fn leave_loop(&mut self, l: SelfLoop) {
        self.emit.store(address::COUNT, l.register);
        self.emit.load(l.register, LOOP_SLOT);
    }

    /// The ways out of a loop, behind the unit.
    fn write_loop_exits(&mut self) {
        for (hole, exit) in std::mem::take(&mut self.loop_exits) {
            let register = self.loop_register.expect("a loop was translated");
            self.emit.fill_here(hole);
            self.emit.store(address::COUNT, register);
            self.emit.load(register, LOOP_SLOT);
            match exit {
                LoopExit::To(target) => {
                    let hole = self.emit.jump();
                    self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
                }
                LoopExit::Safepoint => self.leave(Reason::SafepointHere, self.request.pc),
            }
        }
    }

    /// Past a conditional branch the unit goes on, unless blocks are wanted.
    fn after_branch(&mut self, i: &Instruction) -> Then {
        if !self.request.profile.basic_blocks() {
            return Then::Boundary;
        }
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: i.next_ip() } });
        Then::End
    }

    /// LOOP, LOOPE, LOOPNE, JRCXZ: only short forms exist.
    fn loop_branch(&mut self, i: &Instruction, raw: &[u8]) -> Then {
        let taken = self.emit.short_branch(&raw[..raw.len() - 1]);
        let over = self.emit.jump();
        self.emit.fill_short(taken);
        self.close(self.index + 1);
        self.direct_exit(i.ip(), i.near_branch_target());
        self.reopen();
        self.emit.fill_here(over);
        self.after_branch(i)
    }

    fn direct_call(&mut self, i: &Instruction) -> Then {
        if i.op0_kind() != OpKind::NearBranch64 {
            return self.emulated(i);
        }
        self.call(i, Some(i.near_branch_target()))
    }

    /// A call is a host call, so that the CPU predicts the return: it pushes the
    /// address of the code behind it, which is replaced at once by the guest's
    /// return address. The part that does so and makes the call is behind the
    /// unit; here stands what the return comes to, and the unit goes on.
    fn call(&mut self, i: &Instruction, target: Option<u64>) -> Then {
        self.close(self.index + 1);
        let into = self.emit.call();
        let back = self.emit.here();
        self.calls.push(Call { into, back, returns_to: i.next_ip(), target });
        let wrong = compare_target(&mut self.emit, i.next_ip());
        self.stubs.push(Stub { hole: wrong, kind: StubKind::WrongReturn });
        // The slot below the stack pointer held the host's address for a moment.
        self.emit.store_stack(-8, i.next_ip());
        self.emit.load(reg::RCX, RCX_SLOT);
        let whole = !self.request.profile.basic_blocks() && self.tracing.is_none();
        if whole && self.request.stop_after.is_none() {
            return Then::Boundary;
        }
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: i.next_ip() } });
        Then::End
    }

    /// The parts of calls that stand behind the unit.
    fn write_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.emit.fill_here(call.into);
            self.emit.store_stack(0, call.returns_to);
            match call.target {
                Some(target) => {
                    self.emit.store(RCX_SLOT, reg::RCX);
                    self.expect_return(call.back);
                    self.emit.load(reg::RCX, RCX_SLOT);
                    let hole = self.emit.jump();
                    self.stubs.push(Stub { hole, kind: StubKind::Direct { target } });
                }
                None => {
                    self.expect_return(call.back);
                    self.jump_to_rax();
                }
            }
        }
    }

    /// Remembers, by stack depth, where the call returns to. Clobbers RCX.
    fn expect_return(&mut self, back: u64) {
        self.emit.low16_rsp();
        self.emit.store_at_rcx(layout::RETURNS as i32, back as i32);
    }

    fn ret(&mut self, i: &Instruction) -> Then {
        match i.code() {
            Code::Retnq => {}
            Code::Retnq_imm16 => return self.ret_popping(i.immediate16() as i32),
            _ => return self.emulated(i),
        }
        // A bad stack pointer must fault here, not in the shared stub.
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.load_top();
        self.close(self.index + 1);
        let hole = self.emit.jump();
        self.emit.fill(hole, super::cache::RETURN);
        Then::End
    }

    /// `ret n`: too rare to be predicted.
    fn ret_popping(&mut self, bytes: i32) -> Then {
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.store(RAX_SLOT, reg::RAX);
        self.emit.pop_rcx();
        self.close(self.index + 1);
        self.emit.add_constant(reg::RSP, bytes);
        self.emit.store(TARGET_SLOT, reg::RCX);
        let zero = count_through_rcx(&mut self.emit);
        self.emit.load(reg::RCX, TARGET_SLOT);
        self.emit.low16_rcx();
        self.emit.jump_table_rcx(layout::TARGETS as i32);
        self.emit.fill_short(zero);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::SafepointIndirect });
        Then::End
    }

    /// The target goes through RAX, the count through RCX: neither waits for the
    /// other.
    fn indirect(&mut self, i: &Instruction, call: bool) -> Then {
        if !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64) {
            return self.emulated(i);
        }
        self.emit.store(RCX_SLOT, reg::RCX);
        self.emit.store(RAX_SLOT, reg::RAX);
        self.load_target(i);
        self.place(i.ip(), Some(Spilled { register: reg::RAX, slot: 6 }));
        self.emit.store(TARGET_SLOT, reg::RAX);
        if call {
            return self.call(i, None);
        }
        self.close(self.index + 1);
        self.jump_to_rax();
        Then::End
    }

    /// An indirect branch whose registers are spilled and whose target is in RAX
    /// and in its slot.
    fn jump_to_rax(&mut self) {
        self.emit.low16_rax();
        let zero = count_through_rcx(&mut self.emit);
        self.emit.load_table_rax(layout::TARGETS as i32);
        self.emit.load(reg::RAX, RAX_SLOT);
        self.emit.jump_rcx();
        self.emit.fill_short(zero);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::SafepointIndirect });
    }

    /// The branch's operand into RAX, which still has the guest's value should the
    /// load fault.
    fn load_target(&mut self, i: &Instruction) {
        if i.op0_kind() == OpKind::Register {
            let from = i.op0_register().number();
            if from != reg::RAX {
                self.emit.copy(reg::RAX, from);
            }
            return;
        }
        if i.is_ip_rel_memory_operand() {
            return self.load_target_rip(i.ip_rel_memory_address());
        }
        let memory = MemoryOperand::new(
            i.memory_base(),
            i.memory_index(),
            i.memory_index_scale(),
            i.memory_displacement64() as i64,
            i.memory_displ_size(),
            false,
            i.segment_prefix(),
        );
        let load = Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory).expect("valid");
        self.encode(&load);
    }

    fn load_target_rip(&mut self, target: u64) {
        let next = self.emit.here() + 7;
        match i32::try_from(target.wrapping_sub(next) as i64) {
            Ok(d) => {
                self.emit.raw(&[0x48, 0x8b, 0x05]);
                self.emit.raw(&d.to_le_bytes());
            }
            Err(_) => {
                self.emit.load_constant(reg::RAX, target);
                let pc = self.places.last().expect("inside an instruction").pc;
                self.place(pc, Some(Spilled { register: reg::RAX, slot: 6 }));
                self.emit.load_through(reg::RAX);
            }
        }
    }

    /// The cold code behind the unit: one stub per way out.
    fn write_stubs(&mut self) -> Vec<NewExit> {
        let stubs = std::mem::take(&mut self.stubs);
        let mut exits: Vec<NewExit> = Vec::new();
        let mut exit_numbers = vec![0u32; stubs.len()];
        for (n, stub) in stubs.iter().enumerate() {
            if let StubKind::Direct { target } = stub.kind {
                let number = self.request.first_exit + exits.len() as u32;
                exit_numbers[n] = number;
                let at = self.cold.offset();
                exits.push(NewExit { hole: stub.hole, stub: at, target });
                self.ask(stub.hole, Reason::Unlinked, number);
            }
        }
        for stub in &stubs {
            match stub.kind {
                StubKind::Direct { .. } => {}
                StubKind::Safepoint { exit } => {
                    self.ask(stub.hole, Reason::Safepoint, exit_numbers[exit]);
                }
                StubKind::SafepointIndirect => self.ask(stub.hole, Reason::SafepointIndirect, 0),
                StubKind::Budget => self.out_of_budget(stub.hole),
                StubKind::WrongReturn => self.emit.fill(stub.hole, super::cache::WRONG_RETURN),
                StubKind::Watch { pc, index } => self.watched(stub.hole, pc, index),
            }
        }
        exits
    }

    fn ask(&mut self, hole: Hole, reason: Reason, arg: u32) {
        self.emit.fill(hole, self.cold.here());
        self.cold.store_u32(address::REASON, reason as u32);
        self.cold.store_u32(address::ARG, arg);
        self.cold.jump_through(address::EXIT);
    }

    fn watched(&mut self, hole: Hole, pc: u64, index: u32) {
        self.emit.fill(hole, self.cold.here());
        self.cold.load(reg::RCX, RCX_SLOT);
        self.cold.store_u64(address::RIP, pc);
        self.cold.store_u32(address::ARG, self.index - index);
        self.cold.store_u32(address::REASON, Reason::Watch as u32);
        self.cold.jump_through(address::EXIT);
    }

    fn out_of_budget(&mut self, hole: Hole) {
        self.emit.fill(hole, self.cold.here());
        if !flags::dead_at(self.request.pc, &self.request.fetch) {
            self.cold.restore_flags(FLAGS_RAX_SLOT, FLAGS_SLOT);
        }
        self.cold.store_u32(address::ARG, self.index);
        self.cold.store_u64(address::RIP, self.request.pc);
        self.cold.store_u32(address::REASON, Reason::Budget as u32);
        self.cold.jump_through(address::EXIT);
    }
}

/// Does the engine perform the instruction, or look at it first, so that a traced
/// unit ends before it?
pub fn performed_by_engine(i: &Instruction) -> bool {
    use FlowControl::*;
    let far = match i.flow_control() {
        UnconditionalBranch | Call if i.mnemonic() != Mnemonic::Syscall => {
            i.op0_kind() != OpKind::NearBranch64
        }
        IndirectBranch | IndirectCall => !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64),
        Return => !matches!(i.code(), Code::Retnq | Code::Retnq_imm16),
        XbeginXabortXend => true,
        _ => false,
    };
    far || must_emulate(i) || i.is_vsib()
}

/// Instructions whose answer would differ between runs or machines, or that
/// would show the guest the engine.
pub fn must_emulate(i: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        i.mnemonic(),
        Cpuid
            | Rdtsc
            | Rdtscp
            | Rdrand
            | Rdseed
            | Rdpid
            | Xgetbv
            | Xsave
            | Xsave64
            | Xsavec
            | Xsavec64
            | Xsaveopt
            | Xsaveopt64
            | Xrstor
            | Xrstor64
            | Fxsave
            | Fxsave64
            | Sysenter
            | Lsl
            | Sgdt
            | Sidt
            | Sldt
            | Str
            | Smsw
            | Rdpmc
            | Wrpkru
            | Rdpkru
            | Xbegin
            | Xtest
    ) || (i.mnemonic() == Int && i.immediate8() == 0x80)
}

/// x87 environment stores: they contain the address of the last x87 instruction.
pub fn leaks_instruction_pointer(i: &Instruction) -> bool {
    matches!(
        i.mnemonic(),
        Mnemonic::Fnstenv | Mnemonic::Fstenv | Mnemonic::Fnsave | Mnemonic::Fsave
    )
}

/// A general register the instruction neither reads nor writes.
fn free_register(i: &Instruction) -> Register {
    use Register::*;
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(i);
    let used: Vec<Register> =
        info.used_registers().iter().map(|u| u.register().full_register()).collect();
    [RCX, RDX, RBX, RSI, RDI, R8, R9, R10, R11]
        .into_iter()
        .find(|r| !used.contains(r))
        .expect("no instruction uses nine general registers")
}
