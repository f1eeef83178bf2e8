//! How a case is learned: the piece is gone through once, with members in the place of
//! marks.

use super::Followed;
use super::case::{Case, Member, Members as Mask, Reason};
use super::plan::Piece;
use crate::hits::Hit;
use crate::sources::address_registers;
use crate::statics::{Statics, in_short};
use crate::wanted_cells::{Register, ones, part_of};
use program::effects::{Cell, Cells, Flow as DataFlow, Shape, Source, Target};
use std::collections::BTreeMap;
use trace::{Flow, Op, Operand, Parent, Trace};

/// Members, by number, in the order they came.
type Members = Vec<u8>;

/// Learns what a piece does in the case with this key.
pub fn learn(
    trace: &Trace,
    statics: &Statics,
    followed: &Followed,
    piece: &Piece,
    key: &[u64],
) -> Case {
    let mut incoming = Cells::NONE;
    for (&(n, _), word) in piece.defs.iter().zip(key) {
        incoming.words_mut()[usize::from(n)] = *word;
    }
    let stores = key[piece.defs.len()..][..piece.stores.len()].iter();
    let stores = stores.map(|bytes| *bytes as u32).collect();
    let demanded = key.last().copied().unwrap_or(0);
    let mut lesson = Lesson { stores, incoming, ..Lesson::new(trace, followed, piece) };
    let ops = trace.code.ops(trace.code.path(piece.path));
    for index in (piece.first..piece.end).rev() {
        let op = &ops[usize::from(index)];
        let frame = statics.instruction(op.instruction).sets_frame && !followed.bookkeeping;
        if frame {
            lesson.forget(trace.code.info(op.instruction).defs);
            continue;
        }
        let linkage = statics.instruction(op.instruction).is_linkage && !followed.bookkeeping;
        lesson.meet(op, index, demanded >> (index - piece.first) & 1 != 0, linkage);
    }
    lesson.case(key)
}

struct Lesson<'a> {
    trace: &'a Trace,
    followed: &'a Followed,
    piece: &'a Piece,
    /// Wanted bytes of each store.
    stores: Vec<u32>,
    /// Cells that are wanted behind the piece, and were not met yet.
    incoming: Cells,
    /// Cells that members want.
    cells: BTreeMap<u16, Members>,
    memory: BTreeMap<(u8, u8), Members>,
    parents: Vec<(Parent, Mask)>,
    /// Members that a branch of the piece decided about, by its index.
    decided: BTreeMap<u16, Mask>,
    members: Vec<Member>,
    /// Why the instruction that is met is a member.
    reasons: Vec<Reason>,
    by: Mask,
}

impl<'a> Lesson<'a> {
    fn new(trace: &'a Trace, followed: &'a Followed, piece: &'a Piece) -> Lesson<'a> {
        Lesson {
            trace,
            followed,
            piece,
            stores: Vec::new(),
            incoming: Cells::NONE,
            cells: BTreeMap::new(),
            memory: BTreeMap::new(),
            parents: Vec::new(),
            decided: BTreeMap::new(),
            members: Vec::new(),
            reasons: Vec::new(),
            by: 0,
        }
    }

    /// All cells that are wanted now.
    fn wanted(&self) -> Cells {
        let mut wanted = self.incoming;
        self.cells.keys().for_each(|cell| wanted.insert(Cell::new(*cell)));
        wanted
    }

    fn forget(&mut self, cells: Cells) {
        self.incoming = self.incoming.minus(cells);
        self.cells.retain(|cell, _| !cells.contains(Cell::new(*cell)));
    }

    /// One instruction; `branch` says that it is wanted as a branch from behind the piece.
    fn meet(&mut self, op: &Op, index: u16, branch: bool, linkage: bool) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let wanted = self.wanted();
        let mut hits: Vec<Hit<()>> = Vec::new();
        for (n, flow) in info.effects.flows.iter().enumerate() {
            match &flow.to {
                Target::Cells(cells) => {
                    let hit = cells.intersection(wanted);
                    if !hit.is_empty() {
                        self.cells_are_reasons(hit);
                        hits.push(Hit { flow: n, cells: hit, bytes: Vec::new(), mark: () });
                    }
                }
                Target::Memory { access, first, len } => {
                    let bytes = self.stored(index, *access, *first, *len);
                    if !bytes.is_empty() {
                        hits.push(Hit { flow: n, cells: Cells::NONE, bytes, mark: () });
                    }
                }
            }
        }
        let mut reasons = std::mem::take(&mut self.reasons);
        let decided = self.decided.remove(&index).unwrap_or(0);
        let by = std::mem::take(&mut self.by) | decided;
        let demanded = branch || decided != 0;
        if reasons.is_empty() && by == 0 && !branch {
            return;
        }
        self.forget(info.defs);
        let member = self.members.len() as u8;
        tidy(&mut reasons);
        let instruction = op.instruction;
        self.members.push(Member { index, instruction, reasons, by, branch });
        if demanded && !linkage {
            self.want_decision(op, index, member);
        }
        for hit in &hits {
            self.want_sources(op, index, &info.effects.flows[hit.flow], hit, member);
        }
        if self.followed.control
            && let Some(parent) = trace.control.parent_in(self.piece.path, index)
        {
            self.want_parent(parent, 1 << member);
        }
    }

    fn want_parent(&mut self, parent: Parent, member: Mask) {
        if let Parent::Here(branch) = parent
            && branch >= self.piece.first
        {
            *self.decided.entry(branch).or_default() |= member;
            return;
        }
        match self.parents.iter_mut().find(|(known, _)| *known == parent) {
            Some((_, members)) => *members |= member,
            None => self.parents.push((parent, member)),
        }
    }

    fn cells_are_reasons(&mut self, hit: Cells) {
        let incoming = hit.intersection(self.incoming);
        for register in ones(in_short(&incoming)) {
            let part = part_of(&incoming, register as Register);
            self.reasons.push(Reason::Register(register as Register, part));
        }
        for cell in hit.iter() {
            let members = self.cells.get(&cell.number()).into_iter().flatten();
            self.by |= mask(members);
        }
    }

    /// Offsets of the wanted bytes that a flow stores.
    fn stored(&mut self, index: u16, access: u8, first: u16, len: u16) -> Vec<u64> {
        let place = |p: &super::plan::Place| p.index == index && p.operand == access;
        let Some(store) = self.piece.stores.iter().position(place) else { return Vec::new() };
        let all = u32::MAX.checked_shr(32 - u32::from(len)).unwrap_or(0) << first;
        let hit = self.stores[store] & all;
        if hit != 0 {
            self.reasons.push(Reason::Store(store as u8, hit));
        }
        ones(hit.into()).map(|n| n as u64).collect()
    }

    fn want_cells(&mut self, cells: Cells, member: u8) {
        for cell in cells.minus(self.followed.never).iter() {
            let members = self.cells.entry(cell.number()).or_default();
            if members.last() != Some(&member) {
                members.push(member);
            }
        }
    }

    fn want_address(&mut self, operand: &Operand, member: u8) {
        if self.followed.addresses {
            self.want_cells(address_registers(operand), member);
        }
    }

    /// Wants bytes of an operand that an instruction loads.
    fn want_bytes(&mut self, index: u16, operand: u8, bytes: std::ops::Range<u64>, member: u8) {
        let place = |p: &super::plan::Place| p.index == index && p.operand == operand;
        let load = self.piece.loads.iter().position(place).expect("what is a source is read");
        for byte in bytes {
            let members = self.memory.entry((load as u8, byte as u8)).or_default();
            if members.last() != Some(&member) {
                members.push(member);
            }
        }
    }

    fn want_decision(&mut self, op: &Op, index: u16, member: u8) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        self.want_cells(info.condition, member);
        if matches!(info.flow, Flow::Indirect | Flow::Call | Flow::Return) {
            for (n, operand) in trace.code.operands(op).iter().enumerate() {
                if operand.access().reads {
                    self.want_address(operand, member);
                    let size = operand.access().size.into();
                    self.want_bytes(index, n as u8, 0..size, member);
                }
            }
        }
    }

    fn want_sources(&mut self, op: &Op, index: u16, flow: &DataFlow, hit: &Hit<()>, member: u8) {
        let operands = self.trace.code.operands(op);
        if let Target::Memory { access, .. } = &flow.to {
            self.want_address(&operands[usize::from(*access)], member);
        }
        let places = hit.places(flow, operands);
        let from = flow.from.iter().map(|source| (source, flow.shape));
        for (source, shape) in from.chain(flow.also.iter().map(|s| (s, Shape::Whole))) {
            match source {
                Source::Cells(cells) => self.want_cells(places.of_cells(*cells, shape), member),
                Source::Memory { access, first, len } => {
                    let operand = &operands[usize::from(*access)];
                    self.want_address(operand, member);
                    let size = u64::from(operand.access().size);
                    for (from, until) in places.of_memory(*first, *len, size, size, shape) {
                        self.want_bytes(index, *access, from..until, member);
                    }
                }
            }
        }
    }

    fn case(self, key: &[u64]) -> Case {
        let mut registers: BTreeMap<(Register, Mask), u32> = BTreeMap::new();
        for (cell, members) in self.cells {
            let cells = Cells::from(Cell::new(cell));
            let register = in_short(&cells).trailing_zeros() as Register;
            *registers.entry((register, mask(&members))).or_default() |= part_of(&cells, register);
        }
        let mut memory: BTreeMap<(u8, Mask), u32> = BTreeMap::new();
        for ((load, byte), members) in self.memory {
            *memory.entry((load, mask(&members))).or_default() |= 1 << byte;
        }
        let mut stored: BTreeMap<u8, u32> = BTreeMap::new();
        for reason in self.members.iter().flat_map(|member| &member.reasons) {
            if let Reason::Store(store, bytes) = reason {
                *stored.entry(*store).or_default() |= bytes;
            }
        }
        Case {
            key: key.to_vec(),
            members: self.members,
            stored: stored.into_iter().collect(),
            registers: registers.into_iter().map(|((r, by), part)| (r, part, by)).collect(),
            memory: memory.into_iter().map(|((l, by), bytes)| (l, bytes, by)).collect(),
            parents: self.parents,
        }
    }
}

/// Members, a bit for each.
fn mask<'a>(members: impl IntoIterator<Item = &'a u8>) -> Mask {
    members.into_iter().fold(0, |mask, member| mask | 1 << member)
}

/// Every reason once.
fn tidy(reasons: &mut Vec<Reason>) {
    let all = std::mem::take(reasons);
    for reason in all {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
}
