//! What code does to what is wanted, learned by rote.
//!
//! A slice with most of a run in it meets the same few paths millions of times, and wants
//! the same of them nearly every time. So a path is taken in pieces; what a piece makes
//! of what is wanted is worked out once for each case, and then done again without
//! thinking: which of its instructions belong to the slice, what they want in turn, and
//! from which distances theirs follow.
//!
//! A case is told by what is wanted of all that the piece defines: cells of registers,
//! bytes of its stores, and its branches. Whatever else may happen in it, a piece
//! does not have: saved registers, repeated and gathered operands. Those instructions are
//! met one by one.

mod case;
mod doing;
mod learning;
mod pieces;
mod plan;

use crate::follow::Follow;
use crate::options::Options;
use crate::statics::Statics;
use case::Cases;
use doing::Asked;
use pieces::Pieces;
pub(crate) use plan::Chore;
use plan::{Cut, Step};
use program::effects::Cells;
use std::ops::Range;
use trace::{PathId, Trace};

/// What was learned. It is good for all walks that follow the same dependences.
#[derive(Default)]
pub struct Rote {
    /// The first step of each path among all, and how many it has.
    plans: Vec<Option<(u32, u32)>>,
    /// The steps of all paths, last instruction first.
    steps: Vec<Step>,
    pieces: Pieces,
    chores: Vec<Chore>,
    cases: Cases,
    /// Room for what is wanted of a piece, made once.
    asked: Asked,
}

/// Which dependences a walk follows, as far as cases differ by it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    control: bool,
    addresses: bool,
    bookkeeping: bool,
    never: Cells,
}

impl Followed {
    /// Of a walk; `None` if it is not to be done by rote. `never` is what it never looks for.
    pub fn of(options: &Options, never: Cells) -> Option<Followed> {
        let plain = options.region.thread.is_none() && options.pruned.memory.is_empty();
        (plain && options.skipping && !options.relevant).then_some(Followed {
            control: options.control,
            addresses: options.addresses,
            bookkeeping: options.bookkeeping,
            never,
        })
    }
}

/// What all walks over a trace have learned.
#[derive(Default)]
pub struct Learned(Vec<(Followed, Rote)>);

impl Learned {
    /// Takes out what walks that follow the same have learned.
    pub fn take(&mut self, followed: &Followed) -> Rote {
        let known = self.0.iter().position(|(other, _)| other == followed);
        known.map(|n| self.0.swap_remove(n).1).unwrap_or_default()
    }

    /// Puts it back. What was learned last is kept.
    pub fn put(&mut self, followed: Followed, rote: Rote) {
        self.0.truncate(MOST_KINDS - 1);
        self.0.insert(0, (followed, rote));
    }
}

/// So many kinds of walks are remembered.
const MOST_KINDS: usize = 3;

impl Rote {
    /// Tells how often instructions were met, and how near, if that is told in the end.
    pub fn tell<F: Follow>(&mut self, follow: &mut F) {
        self.cases.tell(|instruction, part| follow.tally(instruction, part));
    }

    /// What was met since it was told is met again.
    pub fn forget(&mut self) {
        self.cases.tell(|_, _| ());
    }

    /// The steps of a path.
    #[inline]
    fn plan(&mut self, of: &Of<'_>, path: PathId) -> Range<usize> {
        let known = self.plans.get(path.0 as usize).copied().flatten();
        let (first, count) = known.unwrap_or_else(|| self.make_plan(of, path, false));
        first as usize..first as usize + count as usize
    }

    /// Cuts a path, or cuts it anew.
    #[cold]
    fn make_plan(&mut self, of: &Of<'_>, path: PathId, cautious: bool) -> (u32, u32) {
        let (n, first) = (path.0 as usize, self.steps.len() as u32);
        let cut = Cut { cautious, chores: !of.followed.bookkeeping };
        let keep = &mut Kept { pieces: &mut self.pieces, chores: &mut self.chores };
        self.steps.extend(plan::of(of.trace, of.statics, path, cut, keep));
        let plan = (first, self.steps.len() as u32 - first);
        if self.plans.len() <= n {
            self.plans.resize(n + 1, None);
        }
        self.plans[n] = Some(plan);
        plan
    }

    /// A piece could not be done at once, because a load of it was from where it had stored
    /// before. If that comes again and again, its path is cut there.
    #[cold]
    fn overlapped(&mut self, of: &Of<'_>, number: u32) {
        let known = self.pieces.known(number);
        known.overlaps += 1;
        let path = known.piece.path;
        if known.overlaps == OVERLAPS {
            self.make_plan(of, path, true);
        }
    }
}

/// So often a piece may be met instruction by instruction because its operands overlap.
const OVERLAPS: u32 = 16;

/// What all that is learned is about.
struct Of<'a> {
    trace: &'a Trace,
    statics: &'a Statics,
    followed: &'a Followed,
}

/// Where the steps of a path are kept.
struct Kept<'a> {
    pieces: &'a mut Pieces,
    chores: &'a mut Vec<Chore>,
}

impl plan::Keep for Kept<'_> {
    fn piece(&mut self, piece: plan::Piece) -> u32 {
        self.pieces.add(piece)
    }

    fn chore(&mut self, chore: Chore) -> u32 {
        self.chores.push(chore);
        self.chores.len() as u32 - 1
    }
}
