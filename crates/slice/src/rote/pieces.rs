//! All pieces. What every walk needs of one is kept close together.

use super::case::CaseId;
use super::plan::Piece;
use crate::stores::Store;
use crate::wanted_cells::is_whole;
use program::effects::Cells;

/// All pieces, by number.
#[derive(Default)]
pub struct Pieces {
    briefs: Vec<Brief>,
    defs: Vec<(u8, u64)>,
    /// The stores of a piece, then its loads.
    places: Vec<Store>,
    /// Stores and loads of a piece that must be apart, then two stores each.
    pairs: Vec<(u8, u8)>,
    known: Vec<Known>,
}

/// All that is needed only when a case is looked for.
pub struct Known {
    pub piece: Piece,
    pub cases: Vec<CaseId>,
    /// How often its operands overlapped.
    pub overlaps: u32,
}

/// What is needed whenever a piece is met.
#[derive(Clone, Copy)]
pub struct Brief {
    /// Registers that it defines, in short.
    pub short: u64,
    /// The case that was met last: the likeliest.
    pub last: Option<CaseId>,
    /// Its first instruction's index, and the one behind its last.
    pub first: u16,
    pub end: u16,
    /// Which of its instructions decide where control goes, counted from its first.
    pub deciders: u16,
    pub stores: u8,
    /// It defines all of each register that it defines some of.
    whole: bool,
    defs: u8,
    loads: u8,
    apart: u8,
    distinct: u8,
    first_def: u32,
    first_place: u32,
    first_pair: u32,
}

/// A piece, ready to be met.
#[derive(Clone, Copy)]
pub struct Met<'a> {
    pub brief: Brief,
    pub defs: &'a [(u8, u64)],
    pub stores: &'a [Store],
    pub loads: &'a [Store],
    pub apart: &'a [(u8, u8)],
    pub distinct: &'a [(u8, u8)],
}

impl Met<'_> {
    /// Registers that are gone with all that it defines, in short, if that is so simple.
    #[inline(always)]
    pub fn whole(&self) -> Option<u64> {
        self.brief.whole.then_some(self.brief.short)
    }
}

impl Pieces {
    /// Keeps one more; its number.
    pub fn add(&mut self, piece: Piece) -> u32 {
        let mut cells = Cells::NONE;
        piece.defs.iter().for_each(|(n, word)| cells.words_mut()[usize::from(*n)] = *word);
        self.briefs.push(Brief {
            short: piece.short,
            last: None,
            first: piece.first,
            end: piece.end,
            deciders: piece.deciders,
            stores: piece.stores.len() as u8,
            whole: is_whole(&cells),
            defs: piece.defs.len() as u8,
            loads: piece.loads.len() as u8,
            apart: piece.apart.len() as u8,
            distinct: piece.distinct.len() as u8,
            first_def: self.defs.len() as u32,
            first_place: self.places.len() as u32,
            first_pair: self.pairs.len() as u32,
        });
        self.defs.extend(&piece.defs);
        self.places.extend(piece.stores.iter().chain(&piece.loads).map(|place| place.at));
        self.pairs.extend(piece.apart.iter().chain(&piece.distinct));
        self.known.push(Known { piece, cases: Vec::new(), overlaps: 0 });
        self.briefs.len() as u32 - 1
    }

    #[inline(always)]
    pub fn brief(&self, number: u32) -> Brief {
        self.briefs[number as usize]
    }

    /// With all that goes with it.
    #[inline(always)]
    pub fn met(&self, brief: Brief) -> Met<'_> {
        let places = &self.places[brief.first_place as usize..];
        let (stores, places) = places.split_at(brief.stores.into());
        let pairs = &self.pairs[brief.first_pair as usize..];
        let (apart, pairs) = pairs.split_at(brief.apart.into());
        Met {
            brief,
            defs: &self.defs[brief.first_def as usize..][..brief.defs.into()],
            stores,
            loads: &places[..brief.loads.into()],
            apart,
            distinct: &pairs[..brief.distinct.into()],
        }
    }

    pub fn known(&mut self, number: u32) -> &mut Known {
        &mut self.known[number as usize]
    }

    /// A case was met.
    #[inline(always)]
    pub fn remember(&mut self, number: u32, case: CaseId) {
        self.briefs[number as usize].last = Some(case);
    }
}
