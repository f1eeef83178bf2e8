//! What a forward walk has touched: register cells and bytes of memory, each with
//! its distance from the criterion.

use crate::follow::{Transitive, Visitor};
use crate::wanted::{Distance, WantedMemory};
use crate::wanted_cells::WantedCells;
use program::effects::Cells;
use trace::{Instance, InstructionId};

struct Nobody;

impl Visitor for Nobody {
    fn instance(&mut self, _: Instance, _: InstructionId, _: Distance) {}
}

/// Joins distances: the nearest counts.
const NEAREST: Transitive<Nobody> = Transitive { visitor: Nobody, depth: Distance::MAX };

/// Registers of one thread.
#[derive(Default)]
pub struct Touched(WantedCells<Distance>);

impl Clone for Touched {
    fn clone(&self) -> Self {
        let mut copy = Touched::default();
        copy.merge(self);
        copy
    }
}

impl Touched {
    /// Which.
    pub fn cells(&self) -> Cells {
        self.0.cells
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.cells.is_empty()
    }

    /// Touches cells.
    pub fn add(&mut self, cells: Cells, distance: Distance) {
        self.0.add(cells, distance, &mut { NEAREST });
    }

    /// They are touched no longer.
    pub fn remove(&mut self, cells: Cells) {
        self.0.remove(cells);
    }

    /// The nearest of some cells, if any is touched.
    pub fn nearest(&self, cells: Cells) -> Option<Distance> {
        self.0.joined(cells.intersection(self.0.cells), &mut { NEAREST })
    }

    /// What is touched of some cells.
    pub fn part(&self, cells: Cells) -> Touched {
        let mut part = Touched::default();
        for cell in cells.intersection(self.0.cells).iter() {
            part.add(cell.into(), self.0.mark(cell));
        }
        part
    }

    /// Touches what another has touched.
    pub fn merge(&mut self, other: &Touched) {
        self.0.merge(&other.0, &mut { NEAREST });
    }
}

/// Bytes of memory, and of what the kernel keeps.
#[derive(Default)]
pub struct TouchedMemory(WantedMemory<Distance>);

impl TouchedMemory {
    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// May some byte of a range be touched? Never wrong when it says no.
    #[inline]
    pub fn may_have(&self, start: u64, len: u64) -> bool {
        self.0.may_have(start, len)
    }

    /// Touches bytes.
    pub fn add(&mut self, start: u64, len: u64, distance: Distance) {
        self.0.add(start, len, distance, &mut { NEAREST });
    }

    /// They are touched no longer.
    pub fn remove(&mut self, start: u64, len: u64) {
        for (address, _) in self.0.hits(start, len) {
            self.0.remove(address);
        }
    }

    /// The touched bytes of a range.
    pub fn hits(&self, start: u64, len: u64) -> Vec<(u64, Distance)> {
        self.0.hits(start, len)
    }

    /// The nearest of them.
    pub fn nearest(&self, start: u64, len: u64) -> Option<Distance> {
        if len == 0 || !self.0.may_have(start, len) {
            return None;
        }
        self.0.hits(start, len).into_iter().map(|(_, distance)| distance).min()
    }
}
