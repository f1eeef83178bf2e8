//! What was asked for, and who wrote it, on either side of a position.

use position::{Lifetime, Run};
use program::debug::State;
use slice::{Direct, Options, Slicer, Start, Used};
use trace::{Instance, Time, Write};

/// Registers and memory as they are before a position.
pub(super) struct Asked<'a> {
    run: &'a Run,
    starts: Vec<Start>,
    pieces: Vec<Piece>,
}

/// Some memory: what is written while it is another variable's does not count.
struct Piece {
    at: Instance,
    memory: (u64, u64),
    lifetime: Option<Lifetime>,
}

impl Piece {
    fn counts(&self, seen: Instance) -> bool {
        self.lifetime.is_none_or(|lifetime| lifetime.has(seen))
    }
}

/// On which side of a position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Behind,
}

impl<'a> Asked<'a> {
    /// Of a variable, only what was written while it was there counts: memory on the stack is
    /// used again. An address is always the same.
    pub fn new(
        run: &'a Run,
        starts: Vec<Start>,
        is_variable: bool,
    ) -> Result<Asked<'a>, position::Error> {
        let mut pieces = Vec::new();
        for start in &starts {
            let Start::Before(at, _, memory) = start else { continue };
            for memory in memory {
                let lifetime = match is_variable {
                    true => run.lifetime(*at, memory.0)?,
                    false => None,
                };
                pieces.push(Piece { at: *at, memory: *memory, lifetime });
            }
        }
        Ok(Asked { run, starts, pieces })
    }

    /// Is it in a register?
    pub fn is_in_register(&self) -> bool {
        let is = |start: &Start| matches!(start, Start::Before(_, cells, _) if !cells.is_empty());
        self.starts.iter().any(is)
    }

    /// An address of it at which there is no memory.
    pub fn nowhere(&self) -> Result<Option<u64>, position::Error> {
        let mut states = self.run.states()?;
        for piece in &self.pieces {
            let state = states.before(piece.at)?;
            if state.memory(piece.memory.0, 1).is_none() {
                return Ok(Some(piece.memory.0));
            }
        }
        Ok(None)
    }

    /// How long it was on the stack, if that is where it is.
    pub fn lifetime(&self) -> Option<Lifetime> {
        self.pieces.iter().find_map(|piece| piece.lifetime)
    }

    /// The writes that it comes from.
    pub fn last(&self) -> Vec<Instance> {
        let slicer = Slicer::new(&self.run.trace);
        let (direct, _) = slicer.direct(&self.starts, &Options::default(), &|_, _| false);
        let found = direct.dependences().filter(|(used, at, _)| self.is_its(&direct, *used, *at));
        found.map(|(_, at, _)| at).collect()
    }

    /// Is a write of some memory one of what was asked for?
    fn is_its(&self, direct: &Direct<'_>, used: usize, at: Instance) -> bool {
        let Used::Memory { start, len } = direct.uses[used].1 else { return true };
        let mut pieces = self.pieces.iter().filter(|piece| piece.memory == (start, len));
        pieces.all(|piece| piece.counts(self.run.trace.seen(at)))
    }

    /// The first write behind the position.
    pub fn next(&self) -> Option<Instance> {
        let next = |piece: &Piece| {
            let next = self.run.trace.next_write(piece.at, &[piece.memory])?;
            piece.counts(next.seen).then_some(next)
        };
        let next = self.pieces.iter().filter_map(next).min_by_key(|write| write.seen)?;
        Some(next.by)
    }

    /// All writes to its memory on one side of the position, in the order in which they were
    /// done.
    pub fn writes(&self, side: Side) -> Vec<Write> {
        let mut all = Vec::new();
        for piece in &self.pieces {
            let first = piece.lifetime.map_or(FIRST, |lifetime| lifetime.begins);
            let from = if side == Side::Before { first } else { piece.at };
            self.run.trace.writes(from, &[piece.memory], &mut |write| {
                let is_there = side == Side::Behind || write.seen <= piece.at;
                let counts = is_there && piece.counts(write.seen);
                all.extend(counts.then_some(write));
                counts
            });
        }
        all.sort_unstable_by_key(|write| (write.seen, write.by));
        all.dedup();
        all
    }
}

/// The first instance of a run.
const FIRST: Instance = Instance { time: Time::START, index: 0 };
