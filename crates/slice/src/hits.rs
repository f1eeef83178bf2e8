//! Which flows of an instruction define something wanted, and which of their
//! sources that makes wanted.

use program::effects::{Cell, Cells, Flow as DataFlow, Shape, Target};
use trace::Operand;

/// One flow that defines something wanted.
pub struct Hit<M> {
    pub flow: usize,
    pub cells: Cells,
    /// Offsets in the operand's memory.
    pub bytes: Vec<u64>,
    pub mark: M,
}

/// All of an instruction's.
pub struct Hits<M> {
    pub list: Vec<Hit<M>>,
    /// First address, for each hit in memory.
    pub memory: Vec<u64>,
}

impl<M> Default for Hits<M> {
    fn default() -> Self {
        Hits { list: Vec::new(), memory: Vec::new() }
    }
}

/// Which bytes of a flow's target are wanted.
pub struct Places {
    /// Within one element, all elements taken together.
    within: Vec<u64>,
    /// The same, counted over all elements; for repeated operands.
    over_all: Option<Vec<u64>>,
    all: bool,
}

impl<M> Hit<M> {
    /// Which bytes of its flow's target are wanted.
    pub fn places(&self, flow: &DataFlow, operands: &[Operand]) -> Places {
        match &flow.to {
            Target::Cells(cells) => {
                if self.cells == *cells {
                    return Places { within: Vec::new(), over_all: None, all: true };
                }
                let wanted = |(_, cell): &(usize, Cell)| self.cells.contains(*cell);
                let within = cells.iter().enumerate().filter(wanted).map(|(n, _)| n as u64);
                Places { within: within.collect(), over_all: None, all: false }
            }
            Target::Memory { access, first, len } => {
                let access = operands[usize::from(*access)].access();
                let size = u64::from(access.size).max(1);
                let mut within: Vec<u64> =
                    self.bytes.iter().map(|b| b % size - u64::from(*first)).collect();
                within.sort_unstable();
                within.dedup();
                let repeats = access.repeats.is_some();
                let all = !repeats && within.len() == usize::from(*len);
                Places { within, over_all: repeats.then(|| self.bytes.clone()), all }
            }
        }
    }
}

impl Places {
    /// Source cells that the wanted bytes are computed from.
    pub fn of_cells(&self, cells: Cells, shape: Shape) -> Cells {
        if self.all || shape == Shape::Whole {
            return cells;
        }
        let most = self.within.iter().max().copied().unwrap_or(0);
        let mut out = Cells::NONE;
        for (n, cell) in cells.iter().enumerate() {
            let n = n as u64;
            let needed = match shape {
                Shape::Bytewise => self.within.contains(&n),
                Shape::Upward => n <= most,
                Shape::Whole => true,
            };
            if needed {
                out.insert(cell);
            }
        }
        out
    }

    /// Offsets in a source operand's memory: from, until.
    pub fn of_memory(
        &self,
        first: u16,
        len: u16,
        size: u64,
        total: u64,
        shape: Shape,
    ) -> Vec<(u64, u64)> {
        let (first, len) = (u64::from(first), u64::from(len));
        if let (Some(bytes), Shape::Bytewise) = (&self.over_all, shape) {
            return bytes.iter().map(|b| (*b, b + 1)).filter(|(b, _)| *b < total).collect();
        }
        if total > size {
            return vec![(0, total)];
        }
        if self.all || shape == Shape::Whole {
            return vec![(first, first + len)];
        }
        match shape {
            Shape::Upward => {
                let most = self.within.iter().max().copied().unwrap_or(0);
                vec![(first, first + (most + 1).min(len))]
            }
            _ => self.within.iter().map(|b| (first + b, first + b + 1)).collect(),
        }
    }
}
