//! The static side of a trace: which instructions there are, which paths they
//! form, and how the addresses of each path follow from what it captured.

use crate::captured::Captured;
use crate::numbers::Numbers;
use engine::trace::{Bytes, Captures, Known, Touched, Unit};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
};
use program::effects::{Access, Cells, Effects, Segment, condition, effects};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A distinct instruction: its address and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstructionId(pub u32);

/// A distinct path: a run of instructions from one entry to one exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// What is known of an instruction.
#[derive(Clone, Debug)]
pub struct Info {
    /// The instruction.
    pub instruction: Instruction,
    bytes: Bytes,
    facts: Arc<Facts>,
}

/// What is known of an instruction wherever it stands.
#[derive(Debug)]
pub struct Facts {
    /// Its memory operands.
    pub accesses: Box<[Access]>,
    /// Register cells it defines, in short.
    pub short_defs: u64,
    /// Does it write memory?
    pub writes: bool,
    /// What it does to control.
    pub flow: Flow,
    touched: Touched,
    /// One of those that are alike.
    instruction: Instruction,
    closely: OnceLock<Box<Closely>>,
}

/// What an instruction does to the last byte. That takes a hundred times the room of all else,
/// and few instructions are ever asked for it: it is worked out for those.
#[derive(Debug)]
pub struct Closely {
    /// What it defines, and from what.
    pub effects: Effects,
    /// Register cells it defines.
    pub defs: Cells,
    /// Register cells that its values are computed from, addresses not included.
    pub uses: Cells,
    /// What decides where it goes, if it is a branch.
    pub condition: Cells,
}

/// What an instruction does to control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on.
    Next,
    /// May jump.
    Branch,
    /// Jumps to a fixed place.
    Jump,
    /// Jumps to a computed place.
    Indirect,
    /// Calls.
    Call,
    /// Returns.
    Return,
    /// Asks the kernel.
    System,
}

impl Deref for Info {
    type Target = Facts;

    #[inline]
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Deref for Facts {
    type Target = Closely;

    #[inline]
    fn deref(&self) -> &Closely {
        self.closely.get_or_init(|| Box::new(Closely::of(&self.instruction)))
    }
}

impl Closely {
    fn of(instruction: &Instruction) -> Closely {
        let effects = effects(instruction);
        let (defs, uses) = (effects.defs(), effects.uses());
        Closely { effects, defs, uses, condition: condition(instruction) }
    }
}

impl Facts {
    fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Facts {
        let effects = effects(instruction);
        let flow = match instruction.flow_control() {
            _ if instruction.mnemonic() == Mnemonic::Syscall => Flow::System,
            FlowControl::ConditionalBranch => Flow::Branch,
            FlowControl::UnconditionalBranch => Flow::Jump,
            FlowControl::IndirectBranch => Flow::Indirect,
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
            FlowControl::Return => Flow::Return,
            _ => Flow::Next,
        };
        Facts {
            short_defs: effects.defs().in_short(),
            writes: effects.accesses.iter().any(|access| access.writes),
            accesses: effects.accesses.into(),
            flow,
            touched: Touched::by(instruction, factory),
            instruction: *instruction,
            closely: OnceLock::new(),
        }
    }
}

/// What tells one instruction's facts from another's: its bytes, but for where a branch goes; and
/// where it stands, if that is part of an operand's address.
#[derive(PartialEq, Eq, Hash)]
enum Likeness {
    Branch(iced_x86::Code),
    Bytes(Bytes),
    There(u64, Bytes),
}

impl Likeness {
    fn of(instruction: &Instruction, bytes: &Bytes) -> Likeness {
        let goes = |kind| {
            matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
        };
        if instruction.op_kinds().any(goes) {
            Likeness::Branch(instruction.code())
        } else if instruction.is_ip_rel_memory_operand() {
            Likeness::There(instruction.ip(), bytes.clone())
        } else {
            Likeness::Bytes(bytes.clone())
        }
    }
}

impl Info {
    /// Its address.
    pub fn address(&self) -> u64 {
        self.instruction.ip()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A memory operand of one instruction in one unit: how its address follows from
/// captured registers.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    base: Option<Known>,
    index: Option<Known>,
    /// Elements before and after, for `rep`.
    count: Option<(Known, Option<Known>)>,
    bit: Option<Known>,
    /// Its direction, where the unit itself sets it.
    down: Option<bool>,
    access: Access,
}

/// A piece of memory that an instance touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// What a thread's addresses depend on beside its general registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// Of FS.
    pub fs: u64,
    /// Of GS.
    pub gs: u64,
    /// Do string instructions go downward?
    pub down: bool,
}

fn known(value: Option<Known>, captured: Captured<'_>) -> u64 {
    value.map_or(0, |k| captured.at(k.capture as usize).wrapping_add(k.offset as u64))
}

impl Operand {
    /// The operand as the instruction describes it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The address of its first byte; `None` for gathers.
    #[inline]
    pub fn address(&self, captured: Captured<'_>, bases: Bases) -> Option<u64> {
        let a = &self.access.address;
        let index = known(self.index, captured);
        let scale = a.index.map_or(0, |(_, scale)| scale);
        let plain = !a.vector_index && !a.byte_index && a.bit_index.is_none() && !a.wraps32;
        if plain {
            let sum = known(self.base, captured)
                .wrapping_add(index.wrapping_mul(scale.into()))
                .wrapping_add(a.displacement as u64);
            return Some(match a.segment {
                Segment::None => sum,
                Segment::Fs => sum.wrapping_add(bases.fs),
                Segment::Gs => sum.wrapping_add(bases.gs),
            });
        }
        let mut gpr = [0; 16];
        for (register, value) in [
            (a.base, self.base),
            (a.index.map(|(r, _)| r).filter(|_| !a.vector_index), self.index),
            (a.bit_index.map(|(r, _)| r), self.bit),
        ] {
            if let Some(register) = register {
                gpr[register as usize] = known(value, captured);
            }
        }
        a.resolve(&gpr, bases.fs, bases.gs)
    }

    /// The address as a sum, if it is one and the operand does not repeat.
    pub fn linear(&self) -> Option<Linear> {
        let a = &self.access.address;
        let odd = a.vector_index || a.byte_index || a.bit_index.is_some() || a.wraps32;
        if odd || self.count.is_some() || a.segment == Segment::Gs {
            return None;
        }
        let offset = |known: Option<Known>| known.map_or(0, |k| k.offset);
        let scale = a.index.map_or(0, |(_, scale)| scale);
        Some(Linear {
            base: self.base.map(|k| k.capture),
            index: self.index.map(|k| (k.capture, scale)),
            fs: a.segment == Segment::Fs,
            displacement: a
                .displacement
                .wrapping_add(offset(self.base))
                .wrapping_add(offset(self.index).wrapping_mul(scale.into())),
        })
    }

    /// Its base register's value: a capture, and what is added to it.
    pub fn base(&self) -> Option<(u16, i64)> {
        self.base.map(|k| (k.capture, k.offset))
    }

    /// How many elements a repeated operand had; 1 for others.
    pub fn elements(&self, captured: Captured<'_>) -> u64 {
        let Some((before, after)) = self.count else { return 1 };
        let value =
            |k: Known| Some(captured.get(k.capture as usize)?.wrapping_add(k.offset as u64));
        // One that faulted did not come to where the rest is captured. It tried one.
        let left = after.map_or(Some(0), value);
        value(before).zip(left).map_or(1, |(before, left)| before.wrapping_sub(left))
    }

    /// All of the memory it touched.
    #[inline]
    pub fn range(&self, captured: Captured<'_>, bases: Bases) -> Option<Range> {
        let start = self.address(captured, bases)?;
        let size = u64::from(self.access.size);
        if self.count.is_none() {
            return Some(Range { start, len: size });
        }
        let len = size.wrapping_mul(self.elements(captured));
        let down = self.down.unwrap_or(bases.down) && len > 0;
        let start = if down { start.wrapping_add(size).wrapping_sub(len) } else { start };
        Some(Range { start, len })
    }
}

/// An address that is a sum of captured registers and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// A capture.
    pub base: Option<u16>,
    /// A capture and its scale.
    pub index: Option<(u16, u8)>,
    /// The base of FS is added.
    pub fs: bool,
    /// The constant.
    pub displacement: i64,
}

/// One instruction of a unit.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Which instruction.
    pub instruction: InstructionId,
    first_operand: u32,
    operands: u8,
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    first_op: u32,
    /// Instructions executed.
    pub len: u16,
    /// Registers captured.
    pub captures: u16,
    /// Is there one more, which was begun and faulted?
    pub faults: bool,
}

/// Everything static in a trace.
#[derive(Default)]
pub struct Code {
    infos: Vec<Info>,
    /// The instruction that was first met at an address, and those that took its place.
    numbers: Numbers,
    changed: HashMap<(u64, Bytes), InstructionId>,
    /// Most instructions occur many times, and what they do takes more room and time than all else
    /// that is known of them.
    facts: FxHashMap<Likeness, Arc<Facts>>,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    paths: Vec<Path>,
    /// Of each unit: its first instruction, its first path.
    units: Vec<(u32, u32)>,
    factory: Factory,
}

struct Factory(InstructionInfoFactory);

impl Default for Factory {
    fn default() -> Factory {
        Factory(InstructionInfoFactory::new())
    }
}

/// So many instructions have room without being moved: several times as many as a large program
/// ever executes.
const ROOM: usize = 1 << 20;

impl Code {
    /// None yet, with room for as much as will come; what is not used is never touched.
    pub(crate) fn with_room() -> Code {
        let mut code = Code::default();
        engine::large::reserve(&mut code.infos, ROOM);
        engine::large::reserve(&mut code.ops, 4 * ROOM);
        engine::large::reserve(&mut code.operands, ROOM);
        code
    }

    /// Adds a unit, whose paths get numbers from this one on.
    pub fn add(&mut self, first_path: u32, unit: &Unit<'_>) {
        let first_op = self.ops.len() as u32;
        self.units.push((first_op, first_path));
        self.add_ops(unit);
        let count = self.ops.len() - first_op as usize;
        let missing = Path { first_op, len: 0, captures: 0, faults: false };
        self.paths.resize(first_path as usize, missing);
        let alone = unit.paths().len() == 1;
        for (len, captures) in unit.paths() {
            let faults = alone && usize::from(len) < count;
            self.paths.push(Path { first_op, len, captures, faults });
        }
    }

    fn add_ops(&mut self, unit: &Unit<'_>) {
        let mut captures = Captures::new();
        let mut down = None;
        for (address, bytes) in unit.instructions() {
            let id = self.number(address, bytes);
            let info = &self.infos[id.0 as usize];
            captures.before(info.touched);
            let first_operand = self.operands.len() as u32;
            for access in &info.accesses {
                self.operands.push(Operand { down, ..operand(*access, &captures) });
            }
            let operands = (self.operands.len() as u32 - first_operand) as u8;
            self.ops.push(Op { instruction: id, first_operand, operands });
            captures.after(&info.instruction, info.touched);
            down = sets_direction(&info.instruction).or(down);
            self.measure_repetition(&mut captures, first_operand);
        }
    }

    /// `repe cmps` and its like: RCX is captured behind them.
    fn measure_repetition(&mut self, captures: &mut Captures, first: u32) {
        let operands = &mut self.operands[first as usize..];
        let early = |o: &Operand| o.access.repeats.is_some_and(|r| r.while_zero.is_some());
        if operands.iter().any(early) {
            captures.at_end();
            let after = captures.value(1);
            for operand in operands {
                if let Some((_, end)) = &mut operand.count {
                    *end = after;
                }
            }
        }
    }

    fn number(&mut self, address: u64, bytes: &[u8]) -> InstructionId {
        let next = InstructionId(self.infos.len() as u32);
        let first = self.numbers.get_or_insert(address, next);
        if first != next && self.info(first).bytes() == bytes {
            return first;
        }
        let bytes = Bytes::try_from(bytes).expect("an instruction has 15 bytes at most");
        if first != next {
            let known = *self.changed.entry((address, bytes.clone())).or_insert(next);
            if known != next {
                return known;
            }
        }
        let instruction = Decoder::with_ip(64, &bytes, address, DecoderOptions::NONE).decode();
        let likeness = Likeness::of(&instruction, &bytes);
        let new = || Arc::new(Facts::of(&instruction, &mut self.factory.0));
        let facts = self.facts.entry(likeness).or_insert_with(new).clone();
        self.infos.push(Info { instruction, bytes, facts });
        next
    }

    /// Number of units.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// The instructions of a unit and the numbers of its paths.
    pub(crate) fn unit(&self, n: usize) -> (&[Op], std::ops::Range<u32>) {
        let (op, path) = self.units[n];
        let next = self.units.get(n + 1);
        let ops = next.map_or(self.ops.len(), |(op, _)| *op as usize);
        // Numbers that were never given to a path lie before the next unit's first.
        let end = next.map_or(self.paths.len() as u32, |(_, path)| *path);
        let own = (path..end).take_while(|id| self.paths[*id as usize].first_op == op).count();
        (&self.ops[op as usize..ops], path..path + own as u32)
    }

    /// A unit as it was told.
    pub(crate) fn told(&self, n: usize) -> Vec<u8> {
        let (ops, paths) = self.unit(n);
        let instructions = ops.iter().map(|op| {
            let info = self.info(op.instruction);
            (info.address(), info.bytes())
        });
        let of = |id: u32| (self.paths[id as usize].len, self.paths[id as usize].captures);
        Unit::tell(paths.start, instructions, paths.map(of))
    }

    /// All instructions.
    pub fn instructions(&self) -> impl Iterator<Item = (InstructionId, &Info)> {
        self.infos.iter().enumerate().map(|(n, info)| (InstructionId(n as u32), info))
    }

    /// What is known of an instruction.
    #[inline]
    pub fn info(&self, id: InstructionId) -> &Info {
        &self.infos[id.0 as usize]
    }

    /// All paths.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = (PathId, &Path)> {
        self.paths.iter().enumerate().map(|(n, path)| (PathId(n as u32), path))
    }

    /// A path.
    #[inline]
    pub fn path(&self, id: PathId) -> &Path {
        &self.paths[id.0 as usize]
    }

    /// The instructions that a path executed.
    #[inline]
    pub fn ops(&self, path: &Path) -> &[Op] {
        &self.ops[path.first_op as usize..path.first_op as usize + path.len as usize]
    }

    /// The instruction that faulted at the end of a path.
    pub fn faulting(&self, path: &Path) -> Option<&Op> {
        path.faults.then(|| &self.ops[path.first_op as usize + path.len as usize])
    }

    /// The memory operands of an instruction of a unit, in the order of
    /// [`Effects::accesses`].
    #[inline]
    pub fn operands(&self, op: &Op) -> &[Operand] {
        &self.operands[op.first_operand as usize..][..op.operands as usize]
    }

    /// Address of a path's first instruction.
    pub fn start(&self, path: &Path) -> u64 {
        let first = self.ops[path.first_op as usize].instruction;
        self.info(first).address()
    }

    /// The last instruction that a path executed.
    pub fn last(&self, path: &Path) -> Option<&Info> {
        self.ops(path).last().map(|op| self.info(op.instruction))
    }
}

/// The direction that string instructions have after this one, if it says so. Flags
/// that come back from the stack are taken to be as the calling convention wants
/// them.
pub(crate) fn sets_direction(i: &Instruction) -> Option<bool> {
    match i.mnemonic() {
        Mnemonic::Std => Some(true),
        Mnemonic::Cld | Mnemonic::Popfq => Some(false),
        _ => None,
    }
}

fn operand(access: Access, captures: &Captures) -> Operand {
    let a = &access.address;
    let index = a.index.filter(|_| !a.vector_index);
    Operand {
        base: a.base.and_then(|r| captures.value(r)),
        index: index.and_then(|(r, _)| captures.value(r)),
        count: access.repeats.and_then(|_| Some((captures.value(1)?, None))),
        bit: a.bit_index.and_then(|(r, _)| captures.value(r)),
        down: None,
        access,
    }
}
