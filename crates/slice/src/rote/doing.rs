//! How a path is walked by rote.

use super::case::{CaseId, Cases, Head, Reader, Reason, parent, parts};
use super::pieces::{Brief, Met};
use super::plan::Step;
use super::{Followed, Of, Rote, learning};
use crate::follow::{Follow, Telling};
use crate::sweep::{Record, Sweep};
use crate::wanted::Distance;
use trace::Instance;

/// A piece with more cases than this is met instruction by instruction in all others.
const MOST_CASES: usize = 64;
/// More words than any key has.
const KEY: usize = 11 + 8 + 1;
/// More members than any piece has.
const MEMBERS: usize = 16;
/// More reasons than any case that [fits](super::case::Case::fits) has: registers and flags, parts
/// of stores, branches.
const REASONS: usize = 256;

/// What is wanted of a piece.
pub struct Asked {
    key: [u64; KEY],
    len: usize,
    /// Of each store.
    starts: [u64; 8],
    /// Its branches that are wanted, and how far those are.
    demanded: u16,
    demands: [Distance; MEMBERS],
    /// How far the reasons of its case are.
    near: [u64; REASONS],
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            key: [0; KEY],
            len: 0,
            starts: [0; 8],
            demanded: 0,
            demands: [0; MEMBERS],
            near: [0; REASONS],
        }
    }
}

impl<F: Follow> Sweep<'_, F> {
    /// All instructions of a record.
    pub(crate) fn by_rote(&mut self, rote: &mut Rote, followed: &Followed, record: &Record) {
        let of = &Of { trace: self.trace, statics: self.statics, followed };
        for n in rote.plan(of, record.path) {
            match rote.steps[n] {
                Step::Alone(index) => self.alone(record, index..index + 1),
                Step::Chore(number) => {
                    let chore = rote.chores[number as usize];
                    if !self.chore(&chore, record) {
                        self.alone(record, chore.index..chore.index + 1);
                    }
                }
                Step::Piece(number) => {
                    let brief = rote.pieces.brief(number);
                    if !self.piece(rote, number, brief, of, record) {
                        self.alone(record, brief.first..brief.end);
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
    fn piece(
        &mut self,
        rote: &mut Rote,
        number: u32,
        brief: Brief,
        of: &Of<'_>,
        record: &Record,
    ) -> bool {
        let asked = &mut rote.asked;
        (asked.len, asked.demanded) = (0, 0);
        if brief.deciders != 0 {
            self.demanded(asked, &brief, record);
        }
        let none = self.thread.wanted.short & brief.short == 0;
        if none && asked.demanded == 0 && brief.stores == 0 {
            return true;
        }
        let met = rote.pieces.met(brief);
        match self.ask(asked, &met, record) {
            None => return false,
            Some(false) => return true,
            Some(true) => {}
        }
        if overlaps(&met, asked, record) {
            rote.overlapped(of, number);
            return false;
        }
        let key = &asked.key[..asked.len];
        let case = match brief.last.filter(|case| rote.cases.is(*case, key)) {
            Some(case) => case,
            None => match self.case(rote, number, of) {
                Some(case) => case,
                None => return false,
            },
        };
        self.act(&rote.pieces.met(brief), &mut rote.cases, case, &mut rote.asked, record);
        true
    }

    /// The case that was asked for; `None` if there are too many, or too much in it.
    fn case(&self, rote: &mut Rote, number: u32, of: &Of<'_>) -> Option<CaseId> {
        let key = &rote.asked.key[..rote.asked.len];
        let (known, cases) = (rote.pieces.known(number), &mut rote.cases);
        let case = match known.cases.iter().copied().find(|case| cases.is(*case, key)) {
            Some(case) => case,
            None if known.cases.len() == MOST_CASES => return None,
            None => {
                let lesson = learning::learn(of.trace, of.statics, of.followed, &known.piece, key)?;
                let case = cases.add(lesson);
                known.cases.push(case);
                case
            }
        };
        rote.pieces.remember(number, case);
        Some(case)
    }

    /// Finds the branches of a piece that are wanted.
    #[inline(always)]
    fn demanded(&self, asked: &mut Asked, brief: &Brief, record: &Record) {
        for (at, mark) in self.branches.latest() {
            if at.time != record.time || at.index < brief.first {
                break;
            }
            let n = usize::from(at.index - brief.first) % MEMBERS;
            asked.demanded |= 1 << n;
            asked.demands[n] = F::rank(mark) as Distance;
        }
    }

    /// Finds what is wanted of a piece, and whether it is anything; `None` if a store of it
    /// may meet a saved register that is looked for.
    #[inline]
    fn ask(&self, asked: &mut Asked, piece: &Met, record: &Record) -> Option<bool> {
        let mut any = u64::from(asked.demanded);
        let words = self.thread.wanted.cells.words();
        for &(n, mask) in piece.defs {
            let word = words[usize::from(n)] & mask;
            asked.key[asked.len] = word;
            asked.len += 1;
            any |= word;
        }
        for (n, store) in piece.stores.iter().enumerate() {
            let (start, len) = store.range(record.captured, record.bases)?;
            asked.starts[n] = start;
            asked.key[asked.len] = 0;
            if self.memory.may_concern(start, len) {
                if self.restores.may_have(start, len) {
                    return None;
                }
                asked.key[asked.len] = self.memory.wanted(start, len);
                any |= asked.key[asked.len];
            }
            asked.len += 1;
        }
        asked.key[asked.len] = asked.demanded.into();
        asked.len += 1;
        Some(any != 0)
    }

    #[inline]
    fn act(
        &mut self,
        piece: &Met,
        cases: &mut Cases,
        case: CaseId,
        asked: &mut Asked,
        record: &Record,
    ) {
        self.branches.met(asked.demanded.count_ones() as usize);
        let telling = match F::TALLIES {
            true => self.follow.telling(record.path),
            false => Telling::OneByOne,
        };
        let tallied = telling == Telling::InTheEnd;
        let is_new = tallied && cases.count(case, record.time) <= F::LATEST;
        let (head, mut reader) = cases.read(case);
        for n in 0..head.reasons {
            let near = match reader.reason() {
                Reason::Register(register, part) => {
                    F::rank(self.thread.wanted.joined_part(register, part, self.follow))
                }
                Reason::Store(store, bytes) => {
                    let start = asked.starts[usize::from(store)];
                    F::rank(self.memory.joined(start, bytes.into(), self.follow))
                }
                Reason::Branch(n) => asked.demands[usize::from(n) % MEMBERS].into(),
            };
            asked.near[n] = near;
            if tallied {
                reader.near(near);
            }
        }
        self.settle(piece, &head, &mut reader, asked, record);
        let near = &asked.near[..head.reasons];
        if telling == Telling::ByRecord {
            // Of every reason, some member is what was asked for.
            let nearest = near.iter().copied().min().unwrap_or_default() as Distance;
            let members = cases.members(case).len() as u64;
            if members > 0 {
                self.follow.record(record.time, members, nearest);
            }
        } else if is_new || !tallied {
            for member in cases.members(case) {
                let at = Instance { time: record.time, index: member.index };
                let distance = member.distance(near);
                self.follow.include(at, member.instruction, F::at_distance(distance));
            }
        }
    }

    /// What was defined is wanted no longer; what members used is.
    #[inline]
    fn settle(
        &mut self,
        piece: &Met,
        head: &Head,
        reader: &mut Reader,
        asked: &Asked,
        record: &Record,
    ) {
        let near = &asked.near[..head.reasons];
        self.thread.wanted.remove_words(piece.defs, piece.whole());
        for _ in 0..head.stored {
            let (store, bytes) = parts(reader.word());
            self.memory.remove_some(asked.starts[usize::from(store)], bytes.into());
        }
        for _ in 0..head.registers {
            let (register, part) = parts(reader.word());
            let mark = F::at_distance(reader.distance(near));
            self.thread.wanted.add_part(register, part, mark, self.follow);
        }
        for _ in 0..head.memory {
            let (load, bytes) = parts(reader.word());
            let mark = F::at_distance(reader.distance(near));
            let range = piece.loads[usize::from(load)].range(record.captured, record.bases);
            let (start, _) = range.expect("a piece has no other operands");
            self.memory.add_some(start, bytes.into(), mark, self.follow);
        }
        for _ in 0..head.parents {
            let parent = parent(reader.word());
            let mark = F::at_distance(reader.distance(near));
            let branch = self.trace.control.instance(parent, record.time, record.first_label);
            self.want_branch(branch, mark);
        }
    }
}

/// Is a load of the piece from where an earlier instruction of it stored, or are two of its
/// stores to one place?
#[inline]
fn overlaps(piece: &Met, asked: &Asked, record: &Record) -> bool {
    let store = |n: u8| (asked.starts[usize::from(n)], piece.stores[usize::from(n)].len());
    let loaded = piece.apart.iter().any(|&(earlier, load)| {
        let range = piece.loads[usize::from(load)].range(record.captured, record.bases);
        range.is_none_or(|range| meet(store(earlier), range))
    });
    loaded || piece.distinct.iter().any(|&(a, b)| meet(store(a), store(b)))
}

/// Have two ranges a byte in common, modulo the size of the address space?
#[inline(always)]
fn meet((a, a_len): (u64, u64), (b, b_len): (u64, u64)) -> bool {
    b.wrapping_sub(a) < a_len || a.wrapping_sub(b) < b_len
}
