//! What code does to what is wanted, learned by rote.
//!
//! A slice with most of a run in it meets the same few paths millions of times, and wants
//! the same of them nearly every time. So a path is taken in pieces; what a piece makes
//! of what is wanted is worked out once for each case, and then done again without
//! thinking: which of its instructions belong to the slice, what they want in turn, and
//! from which marks theirs follow.
//!
//! A case is told by what is wanted of all that the piece defines: cells of registers,
//! bytes of its stores, and its branches. Whatever else may happen in it, a piece
//! does not have: saved registers, repeated and gathered operands. Those instructions stay
//! alone, and are met one by one.

mod case;
mod doing;
mod learning;
mod pieces;
mod plan;

use crate::follow::Follow;
use crate::options::Options;
use crate::statics::Statics;
use case::Cases;
use pieces::Pieces;
use plan::Step;
use program::effects::Cells;
use trace::{PathId, Trace};

/// What was learned. It is good for all walks that follow the same dependences.
#[derive(Default)]
pub struct Rote {
    /// The steps of each path, last instruction first.
    plans: Vec<Option<Box<[Step]>>>,
    pieces: Pieces,
    cases: Cases,
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
        let plain = options.thread.is_none() && options.pruned.memory.is_empty();
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
    fn plan(&mut self, trace: &Trace, statics: &Statics, path: PathId) -> &[Step] {
        let n = path.0 as usize;
        if self.plans.len() <= n {
            self.plans.resize_with(n + 1, || None);
        }
        if self.plans[n].is_none() {
            let pieces = &mut self.pieces;
            self.plans[n] = Some(plan::of(trace, statics, path, &mut |piece| pieces.add(piece)));
        }
        self.plans[n].as_deref().unwrap_or_default()
    }
}
