//! What is one function? Its instructions, each decoded once, and the blocks they make.

use super::Code;
use super::joins::joins;
use super::places::Places;
use super::ways::{Own, Ways, goes_on, switches_stack};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// What is found of one function.
pub(super) struct Function {
    pub entry: u64,
    /// Where its blocks begin, in order.
    pub starts: Vec<u64>,
    /// Every address at which it has an instruction.
    pub covered: Vec<u64>,
    /// Per branch: where its ways out meet.
    pub joins: Vec<(u64, Option<u64>)>,
}

impl Function {
    /// All that is reachable from the roots without leaving the function.
    pub fn find(code: &dyn Code, entries: &FxHashSet<u64>, entry: u64, roots: &[u64]) -> Function {
        let mut walk = Walk::new(code, entries, entry);
        walk.all(roots);
        let starts = walk.places.sorted_starts();
        let blocks: Vec<Block> = starts.iter().map(|start| walk.block(*start, &starts)).collect();
        let joins = joins(&starts, &blocks);
        Function { entry, starts, covered: walk.met.iter().map(|met| met.address).collect(), joins }
    }
}

/// Numbers of blocks: hardly ever more than two.
type Numbers = SmallVec<[u32; 2]>;

/// A straight run of instructions.
pub(super) struct Block {
    /// Address of its last instruction.
    pub last: u64,
    /// Where it may go within its function: numbers of blocks.
    pub successors: Numbers,
    /// May it leave the function?
    pub leaves: bool,
}

impl Block {
    /// Is there more than one way on?
    pub fn branches(&self) -> bool {
        self.successors.len() + usize::from(self.leaves) > 1
    }
}

/// An address that control comes to.
struct Met {
    address: u64,
    next: u64,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    /// The next instruction follows.
    GoOn,
    /// The same, with another stack.
    Switch,
    /// One of [`Walk::turns`].
    Turn(u32),
    /// There is no instruction here.
    Nothing,
}

/// Goes over the instructions of a function.
struct Walk<'a> {
    code: &'a dyn Code,
    own: Own<'a>,
    /// In the order in which they were met: those of a straight run are neighbours.
    met: Vec<Met>,
    /// Which of those is where, and where blocks begin.
    places: Places,
    /// Instructions behind which something else may follow than the next one.
    turns: Vec<(Instruction, Ways)>,
}

impl<'a> Walk<'a> {
    fn new(code: &'a dyn Code, entries: &'a FxHashSet<u64>, entry: u64) -> Walk<'a> {
        let own = Own { entry, undivided: code.undivided(entry), entries };
        let places = Places::near(own.undivided.clone());
        Walk { code, own, met: Vec::new(), places, turns: Vec::new() }
    }

    fn all(&mut self, roots: &[u64]) {
        roots.iter().for_each(|root| _ = self.places.begin(*root));
        let mut work: Vec<u64> = roots.to_vec();
        while let Some(start) = work.pop() {
            self.run(start, &mut work);
        }
    }

    /// One straight run. What it may jump to is work left.
    fn run(&mut self, start: u64, work: &mut Vec<u64>) {
        let mut bytes = Bytes::at(self.code, start);
        let mut switched = false;
        let mut at = start;
        loop {
            if !self.places.meet(at, self.met.len()) {
                // Two ways through the same bytes meet, as behind a `lock` that is jumped over.
                self.places.begin(at);
                break;
            }
            match self.meet(bytes.next(), at, &mut switched, work) {
                Some(next) => at = next,
                None => break,
            }
        }
    }

    /// Control comes to an instruction for the first time. Returns where it goes on, if it does.
    fn meet(
        &mut self,
        instruction: Option<Instruction>,
        address: u64,
        switched: &mut bool,
        work: &mut Vec<u64>,
    ) -> Option<u64> {
        let mut met = Met { address, next: address, does: Does::Nothing };
        let mut goes = false;
        if let Some(i) = instruction {
            met.next = i.next_ip();
            if goes_on(&i) {
                goes = true;
                met.does = if switches_stack(&i) { Does::Switch } else { Does::GoOn };
                *switched |= switches_stack(&i);
            } else {
                let ways = Ways::of(self.code, &self.own, &i, *switched);
                if ways.branches {
                    work.extend(ways.targets.iter().filter(|target| self.places.begin(**target)));
                }
                goes = !ways.branches && !ways.targets.is_empty();
                met.does = Does::Turn(self.turns.len() as u32);
                self.turns.push((i, ways));
            }
        }
        let next = met.next;
        self.met.push(met);
        goes.then_some(next)
    }

    /// What is met behind another; mostly it is its neighbour.
    fn behind(&self, number: usize) -> Option<usize> {
        let next = self.met[number].next;
        match self.met.get(number + 1) {
            Some(met) if met.address == next => Some(number + 1),
            _ => self.places.met(next),
        }
    }

    fn block(&self, start: u64, starts: &[u64]) -> Block {
        let mut last = start;
        let mut switched = false;
        let mut at = self.places.met(start);
        while let Some(n) = at {
            let met = &self.met[n];
            if matches!(met.does, Does::Nothing) {
                break;
            }
            last = met.address;
            let behind = self.behind(n);
            let next_begins = self.places.begins(met.next);
            let numbered = |targets: &[u64]| {
                let number = |target| Some(starts.binary_search(target).ok()? as u32);
                let mut numbers: Numbers = targets.iter().filter_map(number).collect();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            };
            match met.does {
                Does::Turn(turn) => {
                    let (i, known) = &self.turns[turn as usize];
                    // It was met on a longer way than from here, where the stack may have changed.
                    let other = (i.flow_control() == FlowControl::IndirectBranch)
                        .then(|| Ways::of(self.code, &self.own, i, switched));
                    let ways = other.as_ref().unwrap_or(known);
                    if ways.branches || ways.targets.is_empty() || next_begins {
                        let successors = numbered(&ways.targets);
                        return Block { last, successors, leaves: ways.leaves };
                    }
                }
                _ if next_begins => {
                    return Block { last, successors: numbered(&[met.next]), leaves: false };
                }
                Does::Switch => switched = true,
                Does::GoOn | Does::Nothing => {}
            }
            at = behind;
        }
        // Where no code is, the function ends too.
        Block { last, successors: Numbers::new(), leaves: true }
    }
}

/// The instructions from an address on, one after the other.
struct Bytes<'a> {
    code: &'a dyn Code,
    decoder: Decoder<'a>,
}

impl<'a> Bytes<'a> {
    fn at(code: &'a dyn Code, address: u64) -> Bytes<'a> {
        let decoder = Decoder::with_ip(64, code.bytes(address), address, DecoderOptions::NONE);
        Bytes { code, decoder }
    }

    fn next(&mut self) -> Option<Instruction> {
        if !self.decoder.can_decode() {
            // There may be other code right behind this.
            *self = Bytes::at(self.code, self.decoder.ip());
        }
        let i = self.decoder.can_decode().then(|| self.decoder.decode());
        i.filter(|i| !i.is_invalid())
    }
}
