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
    /// A callee-saved register that is saved or comes back, by number.
    Chore(u32),
}

/// An instruction that saves a callee-saved register on the stack, or brings it back.
#[derive(Clone, Copy)]
pub struct Chore {
    pub index: u16,
    pub register: u8,
    pub saves: bool,
    pub slot: Store,
}

/// Where pieces and chores are kept; each says its number.
pub trait Keep {
    fn piece(&mut self, piece: Piece) -> u32;
    fn chore(&mut self, chore: Chore) -> u32;
}

/// How a path is cut.
#[derive(Clone, Copy)]
pub struct Cut {
    /// A load and an earlier store that may be to one place, or two stores, are never in one
    /// piece.
    pub cautious: bool,
    /// Saved registers are passed by.
    pub chores: bool,
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

/// The steps of a path, last first.
pub fn of(
    trace: &Trace,
    statics: &Statics,
    path: PathId,
    cut: Cut,
    keep: &mut dyn Keep,
) -> Vec<Step> {
    let ops = trace.code.ops(trace.code.path(path));
    let mut steps = Vec::new();
    let mut end = ops.len();
    while end > 0 {
        let mut draft = Draft { cautious: cut.cautious, ..Draft::default() };
        let mut first = end;
        while first > 0
            && end - first < LONGEST
            && draft.takes(trace, statics, &ops[first - 1], first - 1)
        {
            first -= 1;
        }
        if first < end {
            steps.push(Step::Piece(keep.piece(draft.piece(path, first as u16, end as u16))));
            end = first;
        } else {
            let chore = chore(trace, statics, &ops[end - 1], end - 1).filter(|_| cut.chores);
            let alone = Step::Alone(end as u16 - 1);
            steps.push(chore.map_or(alone, |chore| Step::Chore(keep.chore(chore))));
            end -= 1;
        }
    }
    steps
}

/// Is all that an instruction does to save a register, or to bring it back?
fn chore(trace: &Trace, statics: &Statics, op: &Op, index: usize) -> Option<Chore> {
    let facts = statics.instruction(op.instruction);
    let [operand] = trace.code.operands(op) else { return None };
    let slot = Store::new(operand);
    let register = facts.saves.xor(facts.restores)?;
    let is_plain = slot.len() == 8 && !facts.decides && !facts.sets_frame;
    let saves = facts.saves.is_some();
    let index = index as u16;
    is_plain.then_some(Chore { index, register, saves, slot })
}

#[derive(Default)]
struct Draft {
    cautious: bool,
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
        if self.cautious && !(apart.is_empty() && distinct.is_empty()) {
            return false;
        }
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
            short: self.defs.in_short(),
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
