//! How a path is walked by rote.

use super::case::{By, Case, Reason};
use super::plan::{Piece, Step};
use super::{Followed, Known, Rote, learning};
use crate::follow::Follow;
use crate::sweep::{Record, Sweep};
use trace::Instance;

/// A piece with more cases than this is met instruction by instruction in all others.
const MOST_CASES: usize = 64;
/// More words than any key has.
const KEY: usize = 11 + 8 + 1;
/// More members than any piece has.
const MEMBERS: usize = 16;

/// What is wanted of a piece.
struct Asked {
    key: [u64; KEY],
    len: usize,
    /// Of each store.
    starts: [u64; 8],
}

impl<F: Follow> Sweep<'_, F> {
    /// All instructions of a record.
    pub(crate) fn by_rote(&mut self, rote: &mut Rote, followed: &Followed, record: &Record) {
        let steps = rote.plan(self.trace, self.statics, record.path).len();
        for n in 0..steps {
            let plan = rote.plans[record.path.0 as usize].as_deref().unwrap_or_default();
            match plan[n] {
                Step::Alone(index) => self.alone(record, index..index + 1),
                Step::Piece(number) => {
                    let known = &mut rote.pieces[number as usize];
                    if !self.piece(known, followed, record) {
                        self.alone(record, known.piece.first..known.piece.end);
                    }
                }
            }
        }
    }

    /// Instructions one by one, last first.
    fn alone(&mut self, record: &Record, indices: std::ops::Range<u16>) {
        let code = &self.trace.code;
        let ops = code.ops(code.path(record.path));
        for index in indices.rev() {
            let at = Instance { time: record.time, index };
            self.instruction(record, &ops[usize::from(index)], at);
        }
    }

    /// One piece; says whether it could be done.
    #[inline]
    fn piece(&mut self, known: &mut Known, followed: &Followed, record: &Record) -> bool {
        let piece = &known.piece;
        let last = Instance { time: record.time, index: piece.end - 1 };
        let demand = if piece.decides { self.branches.mark(last) } else { None };
        let none = self.thread.wanted.short & piece.short == 0;
        if none && demand.is_none() && piece.stores.is_empty() {
            return true;
        }
        let asked = &mut Asked { key: [0; KEY], len: 0, starts: [0; 8] };
        match self.ask(asked, piece, record, demand.is_some()) {
            None => return false,
            Some(false) => return true,
            Some(true) => {}
        }
        if overlaps(piece, asked, record) {
            return false;
        }
        let key = &asked.key[..asked.len];
        if known.cases.get(known.last).is_none_or(|case| *case.key != *key) {
            known.last = match known.cases.iter().position(|case| *case.key == *key) {
                Some(n) => n,
                None if known.cases.len() == MOST_CASES => return false,
                None => {
                    let (trace, statics) = (self.trace, self.statics);
                    known.cases.push(learning::learn(trace, statics, followed, piece, key));
                    known.cases.len() - 1
                }
            };
        }
        self.act(piece, &known.cases[known.last], asked, record, demand);
        true
    }

    /// Finds what is wanted of a piece, and whether it is anything; `None` if a store of it
    /// may meet a saved register that is looked for.
    #[inline]
    fn ask(
        &self,
        asked: &mut Asked,
        piece: &Piece,
        record: &Record,
        demanded: bool,
    ) -> Option<bool> {
        let mut any = u64::from(demanded);
        let words = self.thread.wanted.cells.words();
        for &(n, mask) in &piece.defs {
            let word = words[usize::from(n)] & mask;
            asked.key[asked.len] = word;
            asked.len += 1;
            any |= word;
        }
        for (n, store) in piece.stores.iter().enumerate() {
            let (start, len) = store.at.range(record.captured, record.bases)?;
            asked.starts[n] = start;
            if self.memory.may_concern(start, len) {
                if self.restores.may_have(start, len) {
                    return None;
                }
                asked.key[asked.len] = self.memory.wanted(start, len);
                any |= asked.key[asked.len];
            }
            asked.len += 1;
        }
        asked.key[asked.len] = demanded.into();
        asked.len += 1;
        Some(any != 0)
    }

    #[inline]
    fn act(
        &mut self,
        piece: &Piece,
        case: &Case,
        asked: &Asked,
        record: &Record,
        demand: Option<F::Mark>,
    ) {
        if demand.is_some() {
            self.branches.pop();
        }
        let mut next = [F::Mark::default(); MEMBERS];
        let mut first = 0;
        for (n, member) in case.members.iter().enumerate() {
            let end = usize::from(member.reasons);
            let mut mark = None;
            for reason in &case.reasons[first..end] {
                let one = match *reason {
                    Reason::Register(register, part) => {
                        self.thread.wanted.joined_part(register, part, self.follow)
                    }
                    Reason::Store(store, bytes) => {
                        self.memory.joined(asked.starts[usize::from(store)], bytes, self.follow)
                    }
                    Reason::Branch => demand.unwrap_or_default(),
                    Reason::Member(m) => next[usize::from(m)],
                };
                mark = Some(mark.map_or(one, |mark| self.follow.join(mark, one)));
            }
            first = end;
            let at = Instance { time: record.time, index: member.index };
            let included = self.follow.include(at, member.instruction, mark.unwrap_or_default());
            next[n] = included.unwrap_or_default();
        }
        self.settle(piece, case, asked, record, &next);
    }

    /// What was defined is wanted no longer; what members used is.
    #[inline]
    fn settle(
        &mut self,
        piece: &Piece,
        case: &Case,
        asked: &Asked,
        record: &Record,
        next: &[F::Mark; MEMBERS],
    ) {
        self.thread.wanted.remove_words(&piece.defs);
        for &(store, bytes) in &case.stored {
            self.memory.remove_some(asked.starts[usize::from(store)], bytes);
        }
        for &(register, part, by) in &case.registers {
            let mark = joined(case, by, next, self.follow);
            self.thread.wanted.add_part(register, part, mark, self.follow);
        }
        for &(load, bytes, by) in &case.memory {
            let mark = joined(case, by, next, self.follow);
            let range = piece.loads[usize::from(load)].at.range(record.captured, record.bases);
            let (start, _) = range.expect("a piece has no other operands");
            self.memory.add_some(start, bytes, mark, self.follow);
        }
        for &(index, by) in &case.parents {
            let mark = joined(case, by, next, self.follow);
            let at = Instance { time: record.time, index };
            let parent = self.trace.control.parent(record.path, at, record.first_label);
            self.want_branch(parent, mark);
        }
    }
}

/// The mark of what these members want.
#[inline(always)]
fn joined<F: Follow>(case: &Case, by: By, next: &[F::Mark; MEMBERS], follow: &mut F) -> F::Mark {
    let members = &case.lists[usize::from(by.first)..usize::from(by.end)];
    let mut mark = next[usize::from(members[0])];
    for member in &members[1..] {
        mark = follow.join(mark, next[usize::from(*member)]);
    }
    mark
}

/// Is a load of the piece from where an earlier instruction of it stored, or are two of its
/// stores to one place?
#[inline]
fn overlaps(piece: &Piece, asked: &Asked, record: &Record) -> bool {
    let store = |n: u8| (asked.starts[usize::from(n)], piece.stores[usize::from(n)].at.len());
    let loaded = piece.apart.iter().any(|&(earlier, load)| {
        let range = piece.loads[usize::from(load)].at.range(record.captured, record.bases);
        range.is_none_or(|range| meet(store(earlier), range))
    });
    loaded || piece.distinct.iter().any(|&(a, b)| meet(store(a), store(b)))
}

/// Have two ranges a byte in common, modulo the size of the address space?
#[inline(always)]
fn meet((a, a_len): (u64, u64), (b, b_len): (u64, u64)) -> bool {
    b.wrapping_sub(a) < a_len || a.wrapping_sub(b) < b_len
}
