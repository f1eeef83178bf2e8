//! What could have been: had a branch gone the other way, what might it have
//! defined? That is looked up in the code between the branch and its join: registers,
//! places in the frame, fixed addresses. Code that stores through a pointer, asks the
//! kernel, or goes where nobody knows might have defined any memory.

use crate::callees::Callees;
use crate::depths::{Depth, Depths};
use crate::unrun::{Place, all, decode, is_call, on, volatile};
use iced_x86::{Instruction, Mnemonic};
use program::effects::{Cells, effects};
use program::flow::Boundary;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use trace::{Code, Flow, Trace};

/// How many instructions of one way are looked at; more may define anything.
const MOST: usize = 4000;

/// What the code of one way may define before it meets the other.
#[derive(Default)]
pub struct Region {
    /// Registers.
    pub cells: Cells,
    /// Places in the frame: how far from the stack pointer at the function's entry, how long.
    pub frame: Vec<(i64, u64)>,
    /// Fixed addresses, and how long.
    pub fixed: Vec<(u64, u64)>,
    /// What lies below the stack, so far from the stack pointer at the function's entry: other
    /// functions would have had their frames there.
    pub below: Option<i64>,
    /// Any memory.
    pub anywhere: bool,
}

impl Region {
    fn everything() -> Region {
        Region { cells: all(), anywhere: true, ..Region::default() }
    }
}

/// The ways that a branch did not go.
pub struct Missed {
    /// The function that it is in.
    pub function: u64,
    /// What each may define.
    pub ways: Vec<Region>,
}

/// The regions of a program, each found when it is first asked for.
#[derive(Default)]
pub struct Regions {
    /// By branch and where it went.
    known: HashMap<(u64, Option<u64>), Option<Rc<Missed>>>,
    callees: Callees,
}

impl Regions {
    /// The ways that a branch did not go, if it went on at `went`; both, if that is
    /// not known.
    pub fn missed(
        &mut self,
        trace: &Trace,
        i: &Instruction,
        flow: Flow,
        went: Option<u64>,
    ) -> Option<Rc<Missed>> {
        if let Some(known) = self.known.get(&(i.ip(), went)) {
            return known.clone();
        }
        let found = self.look(trace, i, flow, went).map(Rc::new);
        self.known.insert((i.ip(), went), found.clone());
        found
    }

    fn look(
        &mut self,
        trace: &Trace,
        i: &Instruction,
        flow: Flow,
        went: Option<u64>,
    ) -> Option<Missed> {
        let join = trace.graph.join(i.ip())?;
        let function = trace.function_of(i.ip())?;
        if flow == Flow::Indirect {
            return Some(Missed { function, ways: vec![Region::everything()] });
        }
        let ways = [i.next_ip(), i.near_branch_target()];
        let known = went.filter(|w| ways.contains(w));
        let others = ways.into_iter().filter(|way| Some(*way) != known && Some(*way) != join);
        let ways: Vec<Region> = others.map(|way| self.region(trace, function, way, join)).collect();
        (!ways.is_empty()).then_some(Missed { function, ways })
    }

    fn region(&mut self, trace: &Trace, function: u64, way: u64, join: Option<u64>) -> Region {
        let depths = self.callees.depths(trace, function);
        let region = Region::default();
        let mut search = Search { trace, join, depths, region, callees: &mut self.callees };
        search.walk(way).map_or_else(Region::everything, |()| search.region)
    }

    /// How deep the stack is before an instruction of a function.
    pub fn depth(&mut self, trace: &Trace, function: u64, at: u64) -> Option<Depth> {
        self.callees.depths(trace, function).at(at)
    }
}

/// A walk over code that did not run.
struct Search<'a> {
    trace: &'a Trace,
    join: Option<u64>,
    depths: Rc<Depths>,
    region: Region,
    callees: &'a mut Callees,
}

impl Search<'_> {
    /// `None` if it may define everything.
    fn walk(&mut self, way: u64) -> Option<()> {
        let mut seen = HashSet::new();
        let mut work = vec![way];
        while let Some(at) = work.pop() {
            if Some(at) == self.join || !seen.insert(at) {
                continue;
            }
            let i = decode(self.trace, at).filter(|_| seen.len() <= MOST)?;
            let depth = self.depths.at(at)?;
            if depth.stack == Some(0) && self.trace.program.boundary(at) == Boundary::Function {
                // A call in the place of a return.
                self.call(at, depth);
                continue;
            }
            self.instruction(&i, depth);
            work.extend(on(self.trace, &i)?);
        }
        Some(())
    }

    fn instruction(&mut self, i: &Instruction, depth: Depth) {
        if is_call(i) {
            return self.call(i.near_branch_target(), depth);
        }
        let found = effects(i);
        let region = &mut self.region;
        region.cells = region.cells.union(found.defs());
        if i.mnemonic() == Mnemonic::Syscall {
            region.cells = region.cells.union(Cells::gpr(0, 8));
            region.anywhere = true;
        }
        for access in found.accesses.iter().filter(|access| access.writes) {
            let len = u64::from(access.size);
            let place = match Place::of(access) {
                Place::Fixed(at) => {
                    region.fixed.push((at, len));
                    continue;
                }
                Place::Stack(at) => depth.stack.map(|d| at - d),
                Place::Frame(at) => depth.frame.map(|d| at - d),
                Place::Anywhere => None,
            };
            match place {
                Some(place) => region.frame.push((place, len)),
                None => region.anywhere = true,
            }
        }
    }

    /// A function that would have been called, and what it would have left.
    fn call(&mut self, entry: u64, depth: Depth) {
        let written = self.callees.written(self.trace, entry);
        let region = &mut self.region;
        region.cells = region.cells.union(volatile());
        region.anywhere |= written.anywhere;
        region.fixed.extend(&written.fixed);
        match depth.stack {
            Some(depth) => region.below = region.below.max(Some(-depth)),
            None => region.anywhere = true,
        }
    }
}

/// Where the instruction after one of a path begins, if the path has it.
pub fn within(code: &Code, path: &trace::Path, index: u16) -> Option<u64> {
    let next = code.ops(path).get(usize::from(index) + 1)?;
    Some(code.info(next.instruction).address())
}
