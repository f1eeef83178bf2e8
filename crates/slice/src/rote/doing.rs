//! How a path is walked by rote.

use super::case::{CaseId, Cases, Head, Members, Reader, Reason, parent, parts, reason};
use super::pieces::{Brief, Met};
use super::plan::Step;
use super::{Followed, Rote, learning};
use crate::follow::Follow;
use crate::sweep::{Record, Sweep};
use crate::wanted::Distance;
use crate::wanted_cells::ones;
use trace::Instance;

/// A piece with more cases than this is met instruction by instruction in all others.
const MOST_CASES: usize = 64;
/// More words than any key has.
const KEY: usize = 11 + 8 + 1;
/// More members than any piece has.
const MEMBERS: usize = 16;

/// What is wanted of a piece.
struct Asked<M> {
    key: [u64; KEY],
    len: usize,
    /// Of each store.
    starts: [u64; 8],
    /// Its branches that are wanted, and the marks of those.
    demanded: u16,
    demands: [M; MEMBERS],
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
                    let brief = rote.pieces.brief(number);
                    if !self.piece(rote, number, brief, followed, record) {
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
        followed: &Followed,
        record: &Record,
    ) -> bool {
        let demands = [F::Mark::default(); MEMBERS];
        let asked = &mut Asked { key: [0; KEY], len: 0, starts: [0; 8], demanded: 0, demands };
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
            return false;
        }
        let key = &asked.key[..asked.len];
        let case = match brief.last.filter(|case| rote.cases.is(*case, key)) {
            Some(case) => case,
            None => match self.case(rote, number, followed, key) {
                Some(case) => case,
                None => return false,
            },
        };
        self.act(&rote.pieces.met(brief), &mut rote.cases, case, asked, record);
        true
    }

    /// The case with this key; `None` if there are too many.
    fn case(
        &self,
        rote: &mut Rote,
        number: u32,
        followed: &Followed,
        key: &[u64],
    ) -> Option<CaseId> {
        let (known, cases) = (rote.pieces.known(number), &mut rote.cases);
        let case = match known.cases.iter().copied().find(|case| cases.is(*case, key)) {
            Some(case) => case,
            None if known.cases.len() == MOST_CASES => return None,
            None => {
                let (trace, statics, piece) = (self.trace, self.statics, &known.piece);
                let case = cases.add(&learning::learn(trace, statics, followed, piece, key));
                known.cases.push(case);
                case
            }
        };
        rote.pieces.remember(number, case);
        Some(case)
    }

    /// Finds the branches of a piece that are wanted.
    #[inline(always)]
    fn demanded(&self, asked: &mut Asked<F::Mark>, brief: &Brief, record: &Record) {
        for (at, mark) in self.branches.latest() {
            if at.time != record.time || at.index < brief.first {
                break;
            }
            let n = usize::from(at.index - brief.first) % MEMBERS;
            asked.demanded |= 1 << n;
            asked.demands[n] = mark;
        }
    }

    /// Finds what is wanted of a piece, and whether it is anything; `None` if a store of it
    /// may meet a saved register that is looked for.
    #[inline]
    fn ask(&self, asked: &mut Asked<F::Mark>, piece: &Met, record: &Record) -> Option<bool> {
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
        asked: &Asked<F::Mark>,
        record: &Record,
    ) {
        self.branches.met(asked.demanded.count_ones() as usize);
        if F::TALLIES {
            cases.count(case, record.time);
        }
        let (head, mut reader) = cases.read(case);
        let mut next = [F::Mark::default(); MEMBERS];
        for n in 0..head.members {
            let (place, instruction, why) = reader.member();
            let mut mark = None;
            if why.is_branch() {
                mark = Some(asked.demands[usize::from(why.index() - piece.brief.first) % MEMBERS]);
            }
            if why.by() != 0 {
                let one = joined(why.by(), &next, self.follow);
                mark = Some(self.both(mark, one));
            }
            for _ in 0..why.reasons() {
                let one = match reason(reader.word()) {
                    Reason::Register(register, part) => {
                        self.thread.wanted.joined_part(register, part, self.follow)
                    }
                    Reason::Store(store, bytes) => {
                        let start = asked.starts[usize::from(store)];
                        self.memory.joined(start, bytes.into(), self.follow)
                    }
                };
                mark = Some(self.both(mark, one));
            }
            let mark = mark.unwrap_or_default();
            next[n] = if F::TALLIES {
                reader.near(place, F::rank(mark) as Distance);
                F::after(mark)
            } else {
                let at = Instance { time: record.time, index: why.index() };
                self.follow.include(at, instruction, mark).unwrap_or_default()
            };
        }
        self.settle(piece, &head, &mut reader, asked, record, &next);
    }

    #[inline(always)]
    fn both(&mut self, mark: Option<F::Mark>, one: F::Mark) -> F::Mark {
        mark.map_or(one, |mark| self.follow.join(mark, one))
    }

    /// What was defined is wanted no longer; what members used is.
    #[inline]
    fn settle(
        &mut self,
        piece: &Met,
        head: &Head,
        reader: &mut Reader,
        asked: &Asked<F::Mark>,
        record: &Record,
        next: &[F::Mark; MEMBERS],
    ) {
        self.thread.wanted.remove_words(piece.defs, piece.whole());
        for _ in 0..head.stored {
            let (store, _, bytes) = parts(reader.word());
            self.memory.remove_some(asked.starts[usize::from(store)], bytes.into());
        }
        for _ in 0..head.registers {
            let (register, by, part) = parts(reader.word());
            let mark = joined(by, next, self.follow);
            self.thread.wanted.add_part(register, part, mark, self.follow);
        }
        for _ in 0..head.memory {
            let (load, by, bytes) = parts(reader.word());
            let mark = joined(by, next, self.follow);
            let range = piece.loads[usize::from(load)].range(record.captured, record.bases);
            let (start, _) = range.expect("a piece has no other operands");
            self.memory.add_some(start, bytes.into(), mark, self.follow);
        }
        for _ in 0..head.parents {
            let (parent, by) = parent(reader.word());
            let mark = joined(by, next, self.follow);
            let branch = self.trace.control.instance(parent, record.time, record.first_label);
            self.want_branch(branch, mark);
        }
    }
}

/// The mark of what these members want.
#[inline(always)]
fn joined<F: Follow>(by: Members, next: &[F::Mark; MEMBERS], follow: &mut F) -> F::Mark {
    let mut mark = next[by.trailing_zeros() as usize % MEMBERS];
    for member in ones(u64::from(by & by.wrapping_sub(1))) {
        mark = follow.join(mark, next[member % MEMBERS]);
    }
    mark
}

/// Is a load of the piece from where an earlier instruction of it stored, or are two of its
/// stores to one place?
#[inline]
fn overlaps<M>(piece: &Met, asked: &Asked<M>, record: &Record) -> bool {
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
