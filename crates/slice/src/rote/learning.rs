//! How a case is learned: the piece is gone through once, with members in the place of
//! marks. Then it is known which reasons each member, and all that members want, follow from,
//! and by how many steps.

use super::Followed;
use super::case::{Case, Member, Reason, Steps, UNREACHED};
use super::plan::Piece;
use crate::hits::Hit;
use crate::sources::address_registers;
use crate::statics::Statics;
use crate::wanted_cells::{Register, ones, part_of};
use program::effects::{Cell, Cells, Flow as DataFlow, Shape, Source, Target};
use std::collections::BTreeMap;
use trace::{Flow, InstructionId, Op, Operand, Parent, Trace};

/// Members, by number: a bit for each.
type Members = u16;

/// An instruction in the slice, as it is met.
struct Met {
    index: u16,
    instruction: InstructionId,
    /// Why it is wanted: its distance is that of the nearest of these.
    reasons: Vec<Reason>,
    /// Other members that want what it defines, all of them met before.
    by: Members,
}

/// Learns what a piece does in the case with this key; `None` if there is more than can be told.
pub fn learn(
    trace: &Trace,
    statics: &Statics,
    followed: &Followed,
    piece: &Piece,
    key: &[u64],
) -> Option<Case> {
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
    Some(lesson.case(key)).filter(Case::fits)
}

struct Lesson<'a> {
    trace: &'a Trace,
    followed: &'a Followed,
    piece: &'a Piece,
    /// Wanted bytes of each store.
    stores: Vec<u32>,
    /// Cells that are wanted behind the piece, and were not met yet.
    incoming: Cells,
    /// Cells that members want: all, and who wants each.
    inner: Cells,
    cells: Vec<(u16, Members)>,
    /// Bytes of loads that they want.
    memory: Vec<((u8, u8), Members)>,
    parents: Vec<(Parent, Members)>,
    /// Members that a branch of the piece decided about, by its index.
    decided: BTreeMap<u16, Members>,
    members: Vec<Met>,
    /// Why the instruction that is met is a member.
    reasons: Vec<Reason>,
    by: Members,
}

impl<'a> Lesson<'a> {
    fn new(trace: &'a Trace, followed: &'a Followed, piece: &'a Piece) -> Lesson<'a> {
        Lesson {
            trace,
            followed,
            piece,
            stores: Vec::new(),
            incoming: Cells::NONE,
            inner: Cells::NONE,
            cells: Vec::new(),
            memory: Vec::new(),
            parents: Vec::new(),
            decided: BTreeMap::new(),
            members: Vec::new(),
            reasons: Vec::new(),
            by: 0,
        }
    }

    fn forget(&mut self, cells: Cells) {
        self.incoming = self.incoming.minus(cells);
        if self.inner.overlaps(&cells) {
            self.inner = self.inner.minus(cells);
            self.cells.retain(|(cell, _)| !cells.contains(Cell::new(*cell)));
        }
    }

    /// One instruction; `branch` says that it is wanted as a branch from behind the piece.
    fn meet(&mut self, op: &Op, index: u16, branch: bool, linkage: bool) {
        let trace = self.trace;
        let info = trace.code.info(op.instruction);
        let wanted = self.incoming.union(self.inner);
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
        reasons.extend(branch.then(|| Reason::Branch((index - self.piece.first) as u8)));
        self.members.push(Met { index, instruction: op.instruction, reasons, by });
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

    fn want_parent(&mut self, parent: Parent, member: Members) {
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
        for register in ones(incoming.in_short()) {
            let part = part_of(&incoming, register as Register);
            self.add_reason(Reason::Register(register as Register, part));
        }
        if self.inner.overlaps(&hit) {
            let hit = self.cells.iter().filter(|(cell, _)| hit.contains(Cell::new(*cell)));
            self.by |= hit.fold(0, |by, (_, members)| by | members);
        }
    }

    /// What is defined byte by byte is one reason: the nearest of its bytes counts.
    fn add_reason(&mut self, reason: Reason) {
        if !self.reasons.iter_mut().any(|known| known.takes(reason)) {
            self.reasons.push(reason);
        }
    }

    /// Offsets of the wanted bytes that a flow stores.
    fn stored(&mut self, index: u16, access: u8, first: u16, len: u16) -> Vec<u64> {
        let place = |p: &super::plan::Place| p.index == index && p.operand == access;
        let Some(store) = self.piece.stores.iter().position(place) else { return Vec::new() };
        let all = u32::MAX.checked_shr(32 - u32::from(len)).unwrap_or(0) << first;
        let hit = self.stores[store] & all;
        if hit != 0 {
            self.add_reason(Reason::Store(store as u8, hit));
        }
        ones(hit.into()).map(|n| n as u64).collect()
    }

    fn want_cells(&mut self, cells: Cells, member: u8) {
        let cells = cells.minus(self.followed.never);
        let known = cells.intersection(self.inner);
        if !known.is_empty() {
            let known = self.cells.iter_mut().filter(|(cell, _)| known.contains(Cell::new(*cell)));
            known.for_each(|(_, members)| *members |= 1 << member);
        }
        let new = cells.minus(self.inner);
        self.cells.extend(new.iter().map(|cell| (cell.number(), 1 << member)));
        self.inner = self.inner.union(new);
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
            let place = (load as u8, byte as u8);
            match self.memory.iter_mut().find(|(known, _)| *known == place) {
                Some((_, members)) => *members |= 1 << member,
                None => self.memory.push((place, 1 << member)),
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
        let reasons = distinct(self.members.iter().flat_map(|member| &member.reasons));
        let steps = steps(&self.members, &reasons);
        let by = |members: Members| wanted_by(members, &steps, reasons.len());
        let registers = self.cells.iter().map(|&(cell, members)| {
            let cells = Cells::from(Cell::new(cell));
            let register = cells.in_short().trailing_zeros() as Register;
            (register, members, part_of(&cells, register))
        });
        let registers = grouped(registers, by);
        let memory = self.memory.iter().map(|&((load, byte), members)| (load, members, 1 << byte));
        let memory = grouped(memory, by);
        let mut stored: BTreeMap<u8, u32> = BTreeMap::new();
        for reason in &reasons {
            if let Reason::Store(store, bytes) = reason {
                *stored.entry(*store).or_default() |= bytes;
            }
        }
        let parents = self.parents.iter().map(|&(parent, members)| (parent, by(members))).collect();
        let members = self.members.iter().zip(&steps).map(|(met, steps)| Member {
            index: met.index,
            instruction: met.instruction,
            steps: steps.clone(),
        });
        Case {
            key: key.to_vec(),
            members: members.collect(),
            stored: stored.into_iter().collect(),
            registers,
            memory,
            parents,
            reasons,
        }
    }
}

/// How many dependences lie between each reason and each member.
fn steps(members: &[Met], reasons: &[Reason]) -> Vec<Steps> {
    let mut all: Vec<Steps> = Vec::new();
    for member in members {
        let mut steps = wanted_by(member.by, &all, reasons.len());
        for (n, reason) in reasons.iter().enumerate() {
            if member.reasons.contains(reason) {
                steps[n] = 0;
            }
        }
        all.push(steps);
    }
    all
}

/// How many lie between each reason and what these members want.
fn wanted_by(members: Members, steps: &[Steps], reasons: usize) -> Steps {
    let mut least = vec![UNREACHED; reasons];
    for member in ones(members.into()) {
        for (least, steps) in least.iter_mut().zip(&steps[member]) {
            *least = steps.saturating_add(1).min(*least);
        }
    }
    least
}

/// Cells of registers, or bytes of loads: those that are as far from the reasons are together.
fn grouped(
    all: impl Iterator<Item = (u8, Members, u32)>,
    by: impl Fn(Members) -> Steps,
) -> Vec<(u8, u32, Steps)> {
    // Most are wanted by the same members, and how far those are is worked out once.
    let mut parts: Vec<(u8, Members, u32)> = Vec::new();
    for (which, members, some) in all {
        match parts.iter_mut().find(|part| (part.0, part.1) == (which, members)) {
            Some(part) => part.2 |= some,
            None => parts.push((which, members, some)),
        }
    }
    let mut groups: Vec<(u8, u32, Steps)> = Vec::new();
    for (which, members, some) in parts {
        let steps = by(members);
        match groups.iter_mut().find(|group| group.0 == which && group.2 == steps) {
            Some(group) => group.1 |= some,
            None => groups.push((which, some, steps)),
        }
    }
    groups
}

/// Every reason once.
fn distinct<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Vec<Reason> {
    let mut all = Vec::new();
    for reason in reasons {
        if !all.contains(reason) {
            all.push(*reason);
        }
    }
    all
}
