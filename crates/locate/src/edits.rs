//! What could a line have said instead? Small changes of single instructions, such as
//! a person might make in the source: another comparison, another constant, another
//! variable, or nothing at all.
//!
//! An edit holds for the whole run, not for one execution as a switched branch does.
//! There are as many as the program has code, however long it runs.

use crate::opcode;
use crate::said::Said;
use iced_x86::{Code, Encoder, FlowControl, Instruction, Mnemonic, OpKind, Register};
use position::{At, PlaceId, Run};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace::{Flow, Info, Instance, InstructionId, Time};

/// What kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A comparison treats equal values the other way.
    Boundary,
    /// A number is one more or one less, or 0.
    Constant,
    /// Another operation.
    Operator,
    /// Another variable or member of the same size.
    Operand,
    /// The opposite of a condition.
    Opposite,
    /// A branch is always taken, or never.
    Forced,
    /// Something is not assigned.
    Unassigned,
    /// Something is not called.
    Uncalled,
}

impl Kind {
    /// Is it a predicate that is switched, in all its executions or in those that went one way?
    /// Nothing else is changed then than with a branch that is switched once.
    pub fn is_switch(self) -> bool {
        matches!(self, Kind::Opposite | Kind::Forced)
    }
}

/// A small change of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Of this instruction.
    pub instruction: InstructionId,
    /// In this line.
    pub place: PlaceId,
    /// What kind.
    pub kind: Kind,
    /// What is written where, instead of what is there.
    pub patches: Vec<(u64, Vec<u8>)>,
    /// Its first execution.
    pub first: Instance,
    /// Instructions executed before that.
    pub number: u64,
    /// What is changed, in words that follow "if".
    pub words: String,
}

/// So many other operands are tried for one.
const OTHERS: usize = 6;

/// All edits of the program's own lines that were executed before an instant.
pub fn edits(run: &Run, until: u64, is_wanted: &dyn Fn(PlaceId) -> bool) -> Vec<Edit> {
    let mut firsts: Vec<(InstructionId, Instance, u64)> =
        first_executions(run, until).into_iter().map(|(id, (at, n))| (id, at, n)).collect();
    firsts.sort_unstable_by_key(|(id, ..)| *id);
    let operands = Operands::of(run, firsts.iter().map(|(id, ..)| *id));
    let mut all = Vec::new();
    let mut said = HashMap::new();
    for (id, first, number) in firsts {
        let Some(place) = run.places.at(id).filter(|p| is_wanted(*p)) else { continue };
        let info = run.trace.code.info(id);
        let mut found = Found(Vec::new());
        conditions(info, &mut found);
        let said = said.entry(place).or_insert_with(|| Said::in_line(run, place));
        numbers(info, said, &mut found);
        operators(info, &mut found);
        operands.others(run, info, &mut found);
        removed(info, &mut found);
        all.extend(found.0.into_iter().map(|(kind, bytes, words)| {
            let patches = vec![(info.address(), bytes)];
            Edit { instruction: id, place, kind, patches, first, number, words }
        }));
    }
    let copies = copies(run, &all);
    all.extend(copies);
    all
}

/// The same edit of all copies of a line at once: optimised code has a line several times,
/// where it was inlined, unrolled or turned into several branches.
fn copies(run: &Run, all: &[Edit]) -> Vec<Edit> {
    let mut lines: BTreeMap<(At, Kind, &str), Vec<&Edit>> = BTreeMap::new();
    for edit in all.iter().filter(|e| is_said_once(e.kind)) {
        let line = run.places.get(edit.place).at;
        let copies = lines.entry((line, edit.kind, &edit.words)).or_default();
        if copies.iter().all(|e| e.instruction != edit.instruction) {
            copies.push(edit);
        }
    }
    let several = lines.into_values().filter(|copies| copies.len() > 1);
    let together = several.filter_map(|copies| {
        let first = copies.iter().min_by_key(|e| e.number)?;
        let patches = copies.iter().flat_map(|e| e.patches.clone()).collect();
        Some(Edit { patches, ..(*first).clone() })
    });
    together.collect()
}

/// Does a kind of edit say the same of every copy of a line?
fn is_said_once(kind: Kind) -> bool {
    matches!(kind, Kind::Boundary | Kind::Constant | Kind::Operator | Kind::Opposite)
}

/// When the program's own instructions ran first.
fn first_executions(run: &Run, until: u64) -> HashMap<InstructionId, (Instance, u64)> {
    let trace = &run.trace;
    let mut seen = vec![false; trace.code.paths().count()];
    let mut firsts = HashMap::new();
    let mut number = trace.records.before();
    for time in (0..trace.records.len()).map(Time) {
        if number >= until {
            break;
        }
        let id = trace.records.path(time);
        let path = trace.code.path(id);
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            for (n, op) in trace.code.ops(path).iter().enumerate() {
                if run.is_own(op.instruction) {
                    let at = Instance { time, index: n as u16 };
                    firsts.entry(op.instruction).or_insert((at, number + n as u64));
                }
            }
        }
        number += u64::from(path.len);
    }
    firsts
}

/// Edits of one instruction.
struct Found(Vec<(Kind, Vec<u8>, String)>);

impl Found {
    fn add(&mut self, kind: Kind, bytes: Vec<u8>, words: impl Into<String>) {
        if !self.0.iter().any(|(_, known, _)| *known == bytes) {
            self.0.push((kind, bytes, words.into()));
        }
    }

    /// Adds an instruction if it fits where the other one is.
    fn encode(&mut self, kind: Kind, changed: &Instruction, len: usize, words: String) {
        let mut encoder = Encoder::new(64);
        if encoder.encode(changed, changed.ip()).is_err() {
            return;
        }
        let mut bytes = encoder.take_buffer();
        if bytes.len() <= len {
            bytes.resize(len, opcode::NOP);
            self.add(kind, bytes, words);
        }
    }
}

/// Branches, and values and moves that depend on a condition.
fn conditions(info: &Info, found: &mut Found) {
    let Some(at) = opcode::condition(info.bytes()) else { return };
    let with = |condition: u8| {
        let mut bytes = info.bytes().to_vec();
        bytes[at] = bytes[at] & 0xf0 | condition;
        bytes
    };
    let condition = info.bytes()[at] & 0xf;
    for other in opcode::boundaries(condition) {
        found.add(Kind::Boundary, with(*other), "the comparison treats equal values the other way");
    }
    for other in opcode::comparisons(condition) {
        found.add(Kind::Operator, with(*other), "the comparison is another one");
    }
    found.add(Kind::Opposite, with(condition ^ 1), "the condition is the opposite");
    if info.flow == Flow::Branch {
        let (never, always) = opcode::forced(info.bytes());
        found.add(Kind::Forced, never, "the branch is never taken");
        found.add(Kind::Forced, always, "the branch is always taken");
    }
}

/// Constants, and distances between elements.
fn numbers(info: &Info, said: &Said, found: &mut Found) {
    let i = &info.instruction;
    if is_bookkeeping(i) {
        return;
    }
    let len = info.bytes().len();
    for operand in 0..i.op_count() {
        let is_number = matches!(
            i.op_kind(operand),
            OpKind::Immediate8
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        );
        if !is_number {
            continue;
        }
        let now = signed(i, operand);
        if !said.may_mean(i, now) {
            continue;
        }
        for other in [now + 1, now - 1, 0] {
            let mut changed = *i;
            changed.set_immediate_i64(operand, other);
            if other != now {
                found.encode(Kind::Constant, &changed, len, format!("{now} is {other}"));
            }
        }
    }
    let framed = [Register::RBP, Register::RSP, Register::RIP].contains(&i.memory_base());
    let indexed = i.memory_index() != Register::None;
    let step = match i.mnemonic() {
        Mnemonic::Lea if !framed => 1,
        Mnemonic::Lea => return,
        _ if indexed => i64::from(i.memory_index_scale()),
        _ => return,
    };
    if i.memory_displ_size() == 0 || i.memory_base() == Register::RIP {
        return;
    }
    for by in [step, -step] {
        let mut changed = *i;
        changed.set_memory_displacement64(i.memory_displacement64().wrapping_add_signed(by));
        let words = if by > 0 { "the index is one more" } else { "the index is one less" };
        found.encode(Kind::Constant, &changed, len, words.to_owned());
    }
}

/// A number as people write it: what does not fit into 31 bits is below 0.
fn signed(i: &Instruction, operand: u32) -> i64 {
    match i.op_kind(operand) {
        OpKind::Immediate8 => i64::from(i.immediate8() as i8),
        OpKind::Immediate16 => i64::from(i.immediate16() as i16),
        OpKind::Immediate32 => i64::from(i.immediate32() as i32),
        _ => i.immediate(operand) as i64,
    }
}

fn is_bookkeeping(i: &Instruction) -> bool {
    i.op0_register() == Register::RSP || i.flow_control() != FlowControl::Next
}

fn operators(info: &Info, found: &mut Found) {
    if is_bookkeeping(&info.instruction) {
        return;
    }
    if let Some((bytes, words)) = opcode::other_operator(&info.instruction, info.bytes()) {
        found.add(Kind::Operator, bytes, words);
    }
}

/// Does it change memory?
fn writes(info: &Info) -> bool {
    info.accesses.iter().any(|access| access.writes)
}

/// What is not done at all.
fn removed(info: &Info, found: &mut Found) {
    let i = &info.instruction;
    let nothing = vec![opcode::NOP; info.bytes().len()];
    let assigns = writes(info) && i.mnemonic() != Mnemonic::Push && info.flow == Flow::Next;
    if assigns {
        found.add(Kind::Unassigned, nothing, "this is not assigned");
    } else if matches!(i.code(), Code::Call_rel32_64) {
        found.add(Kind::Uncalled, nothing, "this is not called");
    }
}

/// Where operands are kept: relative to a frame or to a global address, or to any
/// other pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Base {
    Frame(Register),
    Global,
    Pointer,
}

/// Operands of each function, or of all, by where they are kept and how large they are.
struct Operands(HashMap<(Option<u64>, Base, usize), BTreeSet<i64>>);

impl Operands {
    fn of(run: &Run, ids: impl Iterator<Item = InstructionId>) -> Operands {
        let mut all = Operands(HashMap::new());
        for id in ids {
            let info = run.trace.code.info(id);
            if let Some((base, size)) = kept(&info.instruction) {
                let function = within(run, info, base);
                let displacement = info.instruction.memory_displacement64() as i64;
                all.0.entry((function, base, size)).or_default().insert(displacement);
            }
        }
        all
    }

    /// Other operands of the same function for a value that is loaded.
    fn others(&self, run: &Run, info: &Info, found: &mut Found) {
        let i = &info.instruction;
        let Some((base, size)) = kept(i) else { return };
        if writes(info) {
            return;
        }
        let function = within(run, info, base);
        let Some(all) = self.0.get(&(function, base, size)) else { return };
        let now = i.memory_displacement64() as i64;
        let mut near: Vec<i64> = all.iter().copied().filter(|d| *d != now).collect();
        near.sort_by_key(|d| (d.abs_diff(now), *d));
        let words = match base {
            Base::Frame(_) | Base::Global => "another variable is used",
            Base::Pointer => "another member is used",
        };
        for other in near.into_iter().take(OTHERS) {
            let mut changed = *i;
            changed.set_memory_displacement64(other as u64);
            found.encode(Kind::Operand, &changed, info.bytes().len(), words.to_owned());
        }
    }
}

/// The function that operands are shared in: members belong to all functions.
fn within(run: &Run, info: &Info, base: Base) -> Option<u64> {
    match base {
        Base::Pointer => None,
        _ => run.trace.function_of(info.address()),
    }
}

/// Where a simple operand is kept and how large it is.
fn kept(i: &Instruction) -> Option<(Base, usize)> {
    let apart = matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Push | Mnemonic::Nop);
    let plain = !apart && i.flow_control() == FlowControl::Next;
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    if !plain || !memory || i.memory_index() != Register::None {
        return None;
    }
    let base = match i.memory_base() {
        frame @ (Register::RBP | Register::RSP) => Base::Frame(frame),
        Register::RIP => Base::Global,
        Register::None => return None,
        _ => Base::Pointer,
    };
    Some((base, i.memory_size().size()))
}
