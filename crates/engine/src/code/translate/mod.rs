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
//! cut into units. A run whose schedule is varied has more of them ([`super::dense`]).
//!
//! Translation is a pure function of the guest's bytes, so a fault in a unit is
//! mapped back to the guest instruction by translating once more and looking
//! which instruction the host address falls into ([`Translation::places`]).

mod calls;
mod exits;
mod jumps;
mod looping;
mod plain;
mod records;
mod shared;
mod special;

pub use shared::{landing, miss_stub, wrong_return_stub};
pub use special::{leaks_instruction_pointer, must_emulate, performed_by_engine};

use super::cache::NewExit;
use super::emit::{Emit, Hole};
use super::loops::SelfLoop;
use super::tracing::{Tells, Tracing, UnitTrace};
use super::{Profile, Stops, flags};
use crate::context::address;
use crate::crossing::Reason;
use calls::Call;
use exits::{Stub, StubKind};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use looping::LoopExit;
use shared::{Arrival, From};

/// Spill slots of translated code, by use.
const RCX_SLOT: i32 = address::slot(0);
const TARGET_SLOT: i32 = address::slot(1);
const FAR_SLOT: i32 = address::slot(2);
const FLAGS_RAX_SLOT: i32 = address::slot(3);
const FLAGS_SLOT: i32 = address::slot(4);
const LANDING_RAX_SLOT: i32 = address::slot(5);
const LOOP_SLOT: i32 = address::slot(7);
/// A loop that counts has no flags to keep.
const BUDGET_SLOT: i32 = FLAGS_RAX_SLOT;

/// So many places most units have at the most.
const MOST_PLACES: usize = 24;

/// How far past its start a unit follows jumps.
const FOLLOW_REACH: u64 = 1 << 15;

/// A register whose guest value is in a spill slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// Which register.
    pub register: u8,
    /// Which slot.
    pub slot: u8,
}

/// From `offset` on, host code belongs to the guest instruction at `pc`. There is one for every
/// instruction that is translated: it takes little room.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Offset in the unit's host code.
    pub offset: u32,
    /// The guest instruction.
    pub pc: u64,
    /// Its number within the unit.
    pub index: u32,
    /// What is not in its register.
    pub spilled: Option<Spilled>,
    /// The register that holds the safepoint count instead of the guest's value,
    /// which is in slot 7.
    pub counter: Option<u8>,
    /// The register that holds the instruction budget instead of the guest's value,
    /// which is in slot 3.
    pub budget: Option<u8>,
    /// The register that holds the guest's R11, which points into the trace buffer
    /// meanwhile. Its own value is in slot 8.
    pub stands: Option<u8>,
    /// Is a record begun, where R11 points to?
    pub open: bool,
    /// The path that has been written already, although the instruction may still
    /// fault.
    pub written: Option<u16>,
    /// Is it a return that only leaves, with its target in slot 1?
    pub returns: bool,
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
    /// What it writes down, if code is traced.
    pub trace: Option<Tells>,
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
        .map(|tells| (tells, request.profile.unit_limit()))
        .map(|(tells, limit)| Tracing::plan(request.pc, tells, limit, FOLLOW_REACH, request.fetch));
    let mut t = Translator {
        request,
        tracing,
        emit: Emit::new(request.host),
        cold: Emit::new(request.cold),
        places: Vec::with_capacity(MOST_PLACES),
        stubs: Vec::new(),
        calls: Vec::new(),
        looping: None,
        loop_head: 0,
        left_loop: None,
        loop_exits: Vec::new(),
        index: 0,
    };
    Some(t.unit())
}

/// The bytes of an instruction, and where its displacement is in them.
#[derive(Clone, Copy)]
struct Source<'a> {
    raw: &'a [u8],
    displacement_at: usize,
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
    left_loop: Option<SelfLoop>,
    loop_exits: Vec<(Hole, LoopExit)>,
    index: u32,
}

/// An instruction, and where its displacement is in its bytes.
#[derive(Clone, Copy, Default)]
pub struct Decoded {
    /// The instruction.
    pub instruction: Instruction,
    displacement_at: u8,
}

impl Decoded {
    /// The next one that is decoded.
    pub fn next(&mut self, decoder: &mut Decoder<'_>) {
        decoder.decode_out(&mut self.instruction);
        let offsets = decoder.get_constant_offsets(&self.instruction);
        self.displacement_at = offsets.displacement_offset() as u8;
    }
}

/// What was decoded ahead is not decoded again. Its bytes begin at `start`.
fn catch_up(decoder: &mut Decoder<'_>, at: u64, start: u64) {
    if decoder.ip() != at {
        decoder.set_position((at - start) as usize).expect("all of it has been decoded");
        decoder.set_ip(at);
    }
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
        let landing_next = self.request.landing.then(|| self.land(pc));
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
            trace: self.tracing.as_mut().and_then(Tracing::finish),
        }
    }

    /// Translates from `pc` to the end of the unit. Returns the highest guest
    /// address it covers.
    fn instructions(&mut self, pc: u64) -> u64 {
        let longest = self.tracing.as_ref().map_or(usize::MAX, |t| t.limit);
        let limit = self.request.stop_after.unwrap_or(longest).min(self.request.limit);
        debug_assert!(limit <= longest, "whoever stops early asks for little");
        let mut bytes = (self.request.fetch)(pc);
        let mut start = pc;
        let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
        let mut decoded = Decoded::default();
        let mut at = pc;
        let mut end = pc;
        while (self.index as usize) < limit {
            let ahead = self.tracing.as_ref().and_then(|t| t.decoded(self.index as usize, at));
            if ahead.is_none() {
                catch_up(&mut decoder, at, start);
                if !decoder.can_decode() {
                    break;
                }
            }
            let past = self.request.past && self.index == 0;
            if !past && self.request.stops.binary_search(&at).is_ok() {
                if self.index > 0 {
                    break;
                }
                self.place(at, None);
                self.close(0);
                self.leave(Reason::Stop, at);
                return at + 1;
            }
            match ahead {
                Some(ahead) => decoded = *ahead,
                None => decoded.next(&mut decoder),
            }
            let instruction = decoded.instruction;
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
            let source = Source { raw, displacement_at: decoded.displacement_at.into() };
            if let Some(tracing) = &mut self.tracing
                && !performed_by_engine(&instruction)
            {
                tracing.instruction(&mut self.emit, &instruction);
            }
            self.watch(&instruction);
            let then = self.instruction(&instruction, source);
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

    /// The unit's own landing. Returns the hole for the next one of the same slot.
    fn land(&mut self, pc: u64) -> Hole {
        let Arrival { wrong, out } = self.arrive(pc, From::Anywhere);
        self.stubs.push(Stub { hole: out, kind: StubKind::Arrived { pc } });
        wrong
    }

    fn arrive(&mut self, pc: u64, from: From) -> Arrival {
        let flags_dead = flags::dead_at(pc, &self.request.fetch);
        shared::arrive(&mut self.emit, pc, from, flags_dead)
    }

    fn place(&mut self, pc: u64, spilled: Option<Spilled>) {
        let offset = self.emit.offset() as u32;
        let register = |number: usize| number as u8;
        let counter = self.looping.map(|l| register(l.register));
        let open = self.tracing.as_ref().filter(|t| t.open);
        let closed = self.tracing.as_ref().filter(|t| !t.open);
        self.places.push(Place {
            offset,
            pc,
            index: self.index,
            spilled,
            counter,
            budget: self.looping.and_then(|l| l.budget).map(register),
            stands: open.and_then(Tracing::stands).map(register),
            open: open.is_some(),
            written: closed.and_then(|t| t.closed),
            returns: false,
        });
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
            self.close(0);
            self.leave(Reason::Stop, at);
            return;
        }
        self.close(self.index);
        let hole = self.emit.jump();
        self.stubs.push(Stub { hole, kind: StubKind::Direct { target: at } });
    }

    fn instruction(&mut self, i: &Instruction, source: Source) -> Then {
        match i.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => {
                self.plain(i, source)
            }
            FlowControl::UnconditionalBranch => self.direct_jump(i),
            FlowControl::ConditionalBranch => self.conditional(i, source.raw),
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
}
