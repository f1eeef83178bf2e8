//! How a path falls into pieces.

use crate::statics::Statics;
use crate::stores::{Relation, Store};
use program::effects::Cells;
use trace::{Op, PathId, Trace};

/// So much of a path is one piece at most: longer ones have too many cases.
const LONGEST: usize = 16;
/// So many operands of a piece are stores, or loads.
const MOST_OPERANDS: usize = 8;
/// Bytes of an operand: a bit for each fits into half a word.
const WIDEST: u64 = 32;

/// What comes next on the way back through a path.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// An instruction that is met by itself: its index.
    Alone(u16),
    /// A piece, by number.
    Piece(u32),
}

/// Instructions that are done at once.
pub struct Piece {
    pub path: PathId,
    /// Its first instruction's index, and the one behind its last.
    pub first: u16,
    pub end: u16,
    /// All that it defines: words of the set of cells.
    pub defs: Box<[(u8, u64)]>,
    /// The same in short.
    pub short: u64,
    pub stores: Box<[Place]>,
    pub loads: Box<[Place]>,
    /// A store and a later load, which may be to one place: then it is met one by one.
    pub apart: Box<[(u8, u8)]>,
    /// Two stores of which the same holds.
    pub distinct: Box<[(u8, u8)]>,
    /// Which of its instructions decide where control goes, counted from its first.
    pub deciders: u16,
}

/// An operand of a piece.
#[derive(Clone, Copy)]
pub struct Place {
    /// Index of the instruction.
    pub index: u16,
    /// Which of its operands.
    pub operand: u8,
    pub at: Store,
}

/// The steps of a path, last first. `number` keeps a piece.
pub fn of(
    trace: &Trace,
    statics: &Statics,
    path: PathId,
    number: &mut dyn FnMut(Piece) -> u32,
) -> Box<[Step]> {
    let ops = trace.code.ops(trace.code.path(path));
    let mut steps = Vec::new();
    let mut end = ops.len();
    while end > 0 {
        let mut draft = Draft::default();
        let mut first = end;
        while first > 0
            && end - first < LONGEST
            && draft.takes(trace, statics, &ops[first - 1], first - 1)
        {
            first -= 1;
        }
        steps.push(match first == end {
            true => Step::Alone(end as u16 - 1),
            false => Step::Piece(number(draft.piece(path, first as u16, end as u16))),
        });
        end = if first == end { end - 1 } else { first };
    }
    steps.into()
}

#[derive(Default)]
struct Draft {
    defs: Cells,
    stores: Vec<Place>,
    loads: Vec<Place>,
    apart: Vec<(u8, u8)>,
    distinct: Vec<(u8, u8)>,
    deciders: Vec<usize>,
}

impl Draft {
    /// Takes one more instruction, before those it has, if it may.
    fn takes(&mut self, trace: &Trace, statics: &Statics, op: &Op, index: usize) -> bool {
        let facts = statics.instruction(op.instruction);
        if facts.saves.is_some() || facts.restores.is_some() {
            return false;
        }
        let (mut stores, mut loads) = (Vec::new(), Vec::new());
        for (n, operand) in trace.code.operands(op).iter().enumerate() {
            let place = Place { index: index as u16, operand: n as u8, at: Store::new(operand) };
            if !(1..=WIDEST).contains(&place.at.len()) {
                return false;
            }
            if operand.access().writes {
                stores.push(place);
            }
            if operand.access().reads {
                loads.push(place);
            }
        }
        if self.stores.len() + stores.len() > MOST_OPERANDS
            || self.loads.len() + loads.len() > MOST_OPERANDS
        {
            return false;
        }
        let number = self.stores.len();
        let Some(apart) = apart_from(&stores, number, &self.loads) else { return false };
        let Some(distinct) = apart_from(&stores, number, &self.stores) else { return false };
        self.apart.extend(apart);
        self.distinct.extend(distinct);
        self.stores.extend(stores);
        self.loads.extend(loads);
        self.defs = self.defs.union(trace.code.info(op.instruction).defs);
        self.deciders.extend(facts.decides.then_some(index));
        true
    }

    fn piece(self, path: PathId, first: u16, end: u16) -> Piece {
        let words = self.defs.words().iter().enumerate();
        let defs = words.filter(|(_, w)| **w != 0).map(|(n, w)| (n as u8, *w));
        let deciders = self.deciders.iter().map(|index| index - usize::from(first));
        Piece {
            path,
            first,
            end,
            defs: defs.collect(),
            short: crate::statics::in_short(&self.defs),
            stores: self.stores.into(),
            loads: self.loads.into(),
            apart: self.apart.into(),
            distinct: self.distinct.into(),
            deciders: deciders.fold(0, |mask, n| mask | 1 << n),
        }
    }
}

/// The later operands that new stores, counted from `number` on, must turn out to be apart
/// from; `None` if one is not.
fn apart_from(stores: &[Place], number: usize, later: &[Place]) -> Option<Vec<(u8, u8)>> {
    let mut apart = Vec::new();
    for (s, store) in stores.iter().enumerate() {
        for (l, other) in later.iter().enumerate() {
            match store.at.relation(&other.at) {
                Relation::Apart => {}
                Relation::Overlap => return None,
                Relation::Unknown => apart.push(((number + s) as u8, l as u8)),
            }
        }
    }
    Some(apart)
}
