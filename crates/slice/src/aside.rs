//! What could have been: had a branch gone the other way, what might it have
//! defined? That is looked up in the code between the branch and its join, and is
//! known only where the code itself says where it writes: registers, places in the
//! frame, fixed addresses. Stores through pointers are not seen.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use program::effects::{Access, Cells, Segment, effects};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use trace::{Code, Trace};

/// How many instructions of one way are looked at.
const MOST: usize = 4000;
/// How many calls deep.
const DEPTH: u32 = 2;

/// What functions write to fixed addresses, by entry and how deep they are looked at.
type Callees = HashMap<(u64, u32), Rc<[(u64, u64)]>>;

/// Registers by their numbers in encodings.
const RSP: u8 = 4;
const RBP: u8 = 5;

/// What the code of one way may define before it meets the other.
#[derive(Default)]
pub struct Region {
    /// Registers.
    pub cells: Cells,
    /// Places in the frame: below which register, at what distance, how long.
    pub frame: Vec<(Base, i64, u64)>,
    /// Fixed addresses, and how long.
    pub fixed: Vec<(u64, u64)>,
}

/// What places in a frame are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer, as it is in the body of the function.
    Stack,
    /// The frame pointer, if the function has one.
    Frame,
}

/// The regions of a program, each found when it is first asked for.
pub struct Regions {
    /// By branch and where it would have gone.
    known: HashMap<(u64, u64), Rc<Region>>,
    /// Functions that have a frame pointer.
    framed: HashSet<u64>,
    callees: Callees,
}

impl Regions {
    /// None yet. `sets_frame` tells the instructions that set frame pointers up.
    pub fn new(trace: &Trace, sets_frame: impl Fn(trace::InstructionId) -> bool) -> Regions {
        let set = trace.code.instructions().filter(|(id, _)| sets_frame(*id));
        let framed = set.filter_map(|(_, info)| trace.function_of(info.address())).collect();
        Regions { known: HashMap::new(), framed, callees: HashMap::new() }
    }

    /// The ways that a branch did not go, if it went on at `went`; both, if that is
    /// not known.
    pub fn missed(&mut self, trace: &Trace, i: &Instruction, went: Option<u64>) -> Vec<Rc<Region>> {
        let Some(join) = trace.graph.join(i.ip()) else { return Vec::new() };
        let ways = [i.next_ip(), i.near_branch_target()];
        let known = went.filter(|w| ways.contains(w));
        let others = ways.into_iter().filter(|way| Some(*way) != known && Some(*way) != join);
        others.map(|way| self.region(trace, i.ip(), way, join)).collect()
    }

    fn region(&mut self, trace: &Trace, branch: u64, way: u64, join: Option<u64>) -> Rc<Region> {
        if let Some(known) = self.known.get(&(branch, way)) {
            return known.clone();
        }
        let function = trace.function_of(branch);
        let framed = function.is_some_and(|f| self.framed.contains(&f));
        let callees = &mut self.callees;
        let region = Region::default();
        let mut search = Search { trace, join, function, framed, region, callees };
        search.walk(way);
        let region = Rc::new(search.region);
        self.known.insert((branch, way), region.clone());
        region
    }

    /// What an explicit operand says about where a frame lies.
    pub fn base(&self, trace: &Trace, i: &Instruction) -> Option<Base> {
        if i.memory_index() != Register::None {
            return None;
        }
        match i.memory_base() {
            Register::RSP => Some(Base::Stack),
            Register::RBP => {
                let function = trace.function_of(i.ip())?;
                self.framed.contains(&function).then_some(Base::Frame)
            }
            _ => None,
        }
    }
}

/// A walk over code that did not run.
struct Search<'a> {
    trace: &'a Trace,
    join: Option<u64>,
    function: Option<u64>,
    framed: bool,
    region: Region,
    callees: &'a mut Callees,
}

impl Search<'_> {
    fn walk(&mut self, way: u64) {
        let mut seen = HashSet::new();
        let mut work = vec![way];
        while let Some(at) = work.pop() {
            if Some(at) == self.join || seen.len() > MOST || !seen.insert(at) {
                continue;
            }
            let Some(i) = decode(self.trace, at) else { continue };
            if self.trace.function_of(at) != self.function {
                self.callee(at, 1);
                continue;
            }
            self.instruction(&i);
            work.extend(on(self.trace, &i));
        }
    }

    fn instruction(&mut self, i: &Instruction) {
        if is_call(i) {
            // What it leaves for its caller: a value.
            let value = Cells::gpr(0, 8).union(Cells::ymm(0, 32));
            self.region.cells = self.region.cells.union(value);
            return self.callee(i.near_branch_target(), 1);
        }
        let found = effects(i);
        self.region.cells = self.region.cells.union(found.defs());
        for access in found.accesses.iter().filter(|a| is_plain_store(a)) {
            let (at, len) = (access.address.displacement, u64::from(access.size));
            match access.address.base {
                None => self.region.fixed.push((at as u64, len)),
                Some(RSP) if !i.is_stack_instruction() => {
                    self.region.frame.push((Base::Stack, at, len));
                }
                Some(RBP) if self.framed => self.region.frame.push((Base::Frame, at, len)),
                Some(_) => {}
            }
        }
    }

    /// A function that would have been called: what it writes to fixed addresses.
    fn callee(&mut self, entry: u64, depth: u32) {
        let written = written_by(self.trace, self.callees, entry, depth);
        self.region.fixed.extend(written.iter());
    }
}

/// What a function writes to fixed addresses, by itself or by what it calls.
fn written_by(trace: &Trace, known: &mut Callees, entry: u64, depth: u32) -> Rc<[(u64, u64)]> {
    if let Some(found) = known.get(&(entry, depth)) {
        return found.clone();
    }
    let mut found: HashSet<(u64, u64)> = HashSet::new();
    let mut seen = HashSet::new();
    let mut work = vec![entry];
    while let Some(at) = work.pop() {
        if seen.len() > MOST || !seen.insert(at) {
            continue;
        }
        let Some(i) = decode(trace, at) else { continue };
        if is_call(&i) && depth < DEPTH {
            found.extend(written_by(trace, known, i.near_branch_target(), depth + 1).iter());
        }
        for access in effects(&i).accesses.iter().filter(|a| is_plain_store(a)) {
            if access.address.base.is_none() {
                found.insert((access.address.displacement as u64, u64::from(access.size)));
            }
        }
        work.extend(on(trace, &i));
    }
    let found: Rc<[(u64, u64)]> = found.into_iter().collect();
    known.insert((entry, depth), found.clone());
    found
}

fn is_call(i: &Instruction) -> bool {
    matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        && i.mnemonic() != iced_x86::Mnemonic::Syscall
}

fn is_plain_store(access: &Access) -> bool {
    let a = &access.address;
    let odd = a.index.is_some() || a.bit_index.is_some() || a.segment != Segment::None;
    access.writes && !odd && access.repeats.is_none()
}

/// Where an instruction may go, calls left out.
fn on(trace: &Trace, i: &Instruction) -> Vec<u64> {
    match i.flow_control() {
        FlowControl::ConditionalBranch => vec![i.near_branch_target(), i.next_ip()],
        FlowControl::UnconditionalBranch => vec![i.near_branch_target()],
        FlowControl::Call if trace.program.is_noreturn(i.near_branch_target()) => Vec::new(),
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => vec![i.next_ip()],
        _ => Vec::new(),
    }
}

fn decode(trace: &Trace, at: u64) -> Option<Instruction> {
    let bytes = trace.images.bytes(at);
    let i = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (!bytes.is_empty() && !i.is_invalid()).then_some(i)
}

/// Where the instruction after one of a path begins, if the path has it.
pub fn within(code: &Code, path: &trace::Path, index: u16) -> Option<u64> {
    let next = code.ops(path).get(usize::from(index) + 1)?;
    Some(code.info(next.instruction).address())
}
