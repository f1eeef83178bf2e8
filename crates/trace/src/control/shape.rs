//! What a path does to open branches, known before anything ran.

use super::{Group, Instance, Parent, Shape};
use crate::captured::Captured;
use crate::code::{Code, Flow, Info, Op, Operand, Path, PathId};
use crate::records::Time;
use iced_x86::{Instruction, Mnemonic, Register};
use program::flow::Flow as Graph;
use rustc_hash::{FxHashMap, FxHashSet};

/// Its number in encodings.
const RSP: u8 = 4;

/// Number of a join address; the rest are special.
pub(super) type JoinId = u32;
/// Nowhere but at the function's end; no place has it.
const AT_END: JoinId = 0;
/// No join at all: nothing is closed there.
pub(super) const NO_JOIN: JoinId = u32::MAX - 2;

/// Number of a function's first address.
pub(super) type FunctionId = u32;
/// A function that is not known yet.
pub(super) const NO_FUNCTION: FunctionId = 0;

/// What a path does to open branches, in order. There are many of them, and where they lie
/// in memory is most of what they cost: each is eight bytes.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Control reaches a join; a label tells which branch is open then.
    Join(JoinId),
    /// The same, where a branch of the path itself is open.
    JoinWithin(JoinId),
    /// A branch opens.
    Branch(u16, JoinId),
    /// A jump goes to another function, which takes this one's place.
    Enter(u16, FunctionId),
}

/// How a path ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    On,
    /// With a return address in this slot of [`Gaits::slots`].
    Call(u32),
    /// With a return address from this slot.
    Return(u32),
    /// To another function, or to a computed place.
    Jump,
}

/// All that the pass over the records needs of a path. There are many paths, and this
/// much of each stays in a near cache: half of one of its lines.
#[derive(Clone, Copy)]
pub(super) struct Gait {
    /// The join it begins at, or [`NO_JOIN`].
    pub first: JoinId,
    /// The join of the branch that is the last of what it does, or [`NO_JOIN`].
    pub branch: JoinId,
    first_step: u32,
    /// All that it does in between; mostly nothing.
    steps: u16,
    pub captures: u16,
    pub len: u16,
    pub branch_index: u8,
    pub is_entry: bool,
    pub end: End,
    pub function: FunctionId,
}

impl Default for Gait {
    /// Of a path that does nothing.
    fn default() -> Gait {
        Gait {
            first: NO_JOIN,
            branch: NO_JOIN,
            first_step: 0,
            steps: 0,
            captures: 0,
            len: 0,
            branch_index: 0,
            is_entry: false,
            end: End::On,
            function: NO_FUNCTION,
        }
    }
}

impl Gait {
    /// Its last instruction, in the record of that time.
    #[inline]
    pub fn last(&self, now: u32) -> Instance {
        Instance { time: Time(now), index: self.len.saturating_sub(1) }
    }
}

/// Where a return address lies: behind the stack pointer as it follows from a captured
/// register.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    capture: Option<u16>,
    displacement: i64,
}

impl Slot {
    /// Of what has no return address.
    pub const NOWHERE: Slot = Slot { capture: None, displacement: 0 };

    /// Where the first register that is captured points to.
    #[cfg(test)]
    pub const IN_FIRST_CAPTURE: Slot = Slot { capture: Some(0), displacement: 0 };

    fn new(operand: &Operand) -> Option<Slot> {
        let linear = operand.linear()?;
        Some(Slot { capture: linear.base, displacement: linear.displacement })
    }

    #[inline]
    pub fn address(&self, captured: Captured<'_>) -> u64 {
        let base = self.capture.map_or(0, |n| captured.at(usize::from(n)));
        base.wrapping_add(self.displacement as u64)
    }
}

/// Branches of a path that are open: they lie above all others, so a path alone tells when
/// one of them is the latest.
#[derive(Default)]
struct Within(Vec<(Option<JoinId>, u16)>);

impl Within {
    /// A branch opens, or takes the place of one with the same join.
    fn branch(&mut self, index: u16, join: JoinId) {
        self.0.pop_if(|(known, _)| *known == Some(join));
        self.0.push((Some(join), index));
    }

    /// Another function takes this one's place: no join closes that.
    fn enter(&mut self, index: u16) {
        self.0 = vec![(None, index)];
    }

    /// Control reaches a join. Says which branch is open then, if it is of the path.
    fn close(&mut self, join: JoinId) -> Option<u16> {
        while self.0.pop_if(|(known, _)| *known == Some(join)).is_some() {}
        self.0.last().map(|(_, index)| *index)
    }
}

/// Of all paths that ran: of kept code, many never did.
#[derive(Default)]
pub(super) struct Gaits {
    gaits: Vec<Gait>,
    shapes: Vec<Shape>,
    steps: Vec<Step>,
    /// Where return addresses lie.
    slots: Vec<Slot>,
    /// The stack pointer where a path first uses it, if it does: with it one activation of a
    /// function is told from another.
    stacks: Vec<Option<Slot>>,
    functions: FxHashMap<u64, FunctionId>,
    /// Paths that switch from one stack to another, as `longjmp` and fibers do.
    switches: FxHashSet<PathId>,
}

/// What joins have to do with an instruction.
#[derive(Clone, Copy)]
struct Joined {
    /// The join that is there.
    here: JoinId,
    /// Where its ways out meet, if it has several.
    ways_out: JoinId,
}

/// Of all instructions, by number: most occur in many paths.
struct Joins(Vec<Joined>);

impl Joins {
    fn of(code: &Code, graph: &Graph) -> Joins {
        let mut numbers: FxHashMap<u64, JoinId> = FxHashMap::default();
        let mut ways_out = |info: &Info| {
            // Others have one way out.
            let branches = matches!(info.flow, Flow::Branch | Flow::Indirect);
            let Some(join) = branches.then(|| graph.join(info.address())).flatten() else {
                return NO_JOIN;
            };
            let next = numbers.len() as JoinId + 1;
            join.map_or(AT_END, |join| *numbers.entry(join).or_insert(next))
        };
        let mut new = |info| Joined { here: NO_JOIN, ways_out: ways_out(info) };
        let mut all: Vec<Joined> = code.instructions().map(|(_, info)| new(info)).collect();
        for (joined, (_, info)) in all.iter_mut().zip(code.instructions()) {
            joined.here = numbers.get(&info.address()).copied().unwrap_or(NO_JOIN);
        }
        Joins(all)
    }

    fn at(&self, op: &Op) -> Joined {
        self.0[op.instruction.0 as usize]
    }
}

impl Gaits {
    /// Of paths that ran.
    pub fn of(code: &Code, graph: &Graph, ran: &[PathId]) -> Gaits {
        let paths = code.paths().len();
        let mut gaits = Gaits {
            gaits: vec![Gait::default(); paths],
            shapes: vec![Shape::default(); paths],
            stacks: vec![None; paths],
            ..Gaits::default()
        };
        let joins = Joins::of(code, graph);
        ran.iter().for_each(|path| gaits.add(code, *path, graph, &joins));
        gaits
    }

    /// Of a path.
    #[inline]
    pub fn gait(&self, path: PathId) -> &Gait {
        &self.gaits[path.0 as usize]
    }

    /// Who the parents of a path's instructions are.
    #[inline]
    pub fn shape(&self, path: PathId) -> &Shape {
        &self.shapes[path.0 as usize]
    }

    /// The stack pointer where a path first uses it, if it does.
    pub fn stack(&self, path: PathId) -> Option<Slot> {
        self.stacks[path.0 as usize]
    }

    /// The function that takes another's place within a path, if one does.
    pub fn entered_by(&self, gait: &Gait) -> Option<FunctionId> {
        let entered = |step: &Step| match step {
            Step::Enter(_, function) => Some(*function),
            _ => None,
        };
        self.steps(gait).iter().rev().find_map(entered)
    }

    /// Does a path give the stack pointer a value from elsewhere?
    pub fn switches_stack(&self, path: PathId) -> bool {
        self.switches.contains(&path)
    }

    /// Where a return address lies.
    #[inline]
    pub fn slot(&self, n: u32) -> &Slot {
        &self.slots[n as usize]
    }

    /// What a path does to open branches, but for what it begins and ends with.
    #[inline]
    pub fn steps(&self, gait: &Gait) -> &[Step] {
        &self.steps[gait.first_step as usize..][..gait.steps as usize]
    }

    fn add(&mut self, code: &Code, id: PathId, graph: &Graph, joins: &Joins) {
        let path = code.path(id);
        let start = code.start(path);
        let mut shape =
            Shape { groups: vec![Group { first: 0, parent: Parent::Label(0) }], labels: 1 };
        let first_step = self.steps.len();
        let mut function = graph.function_of(start).unwrap_or(start);
        let mut gait = Gait {
            first_step: first_step as u32,
            captures: path.captures,
            len: path.len,
            // One that is only jumped to is none of the graph's.
            is_entry: graph.is_entry(start) || function == start,
            function: self.number(function),
            ..Gait::default()
        };
        let mut open = Within::default();
        let ops: Vec<&Op> = code.ops(path).iter().chain(code.faulting(path)).collect();
        for (n, op) in ops.iter().enumerate() {
            let info = code.info(op.instruction);
            let Joined { here: join, ways_out } = joins.at(op);
            if join != NO_JOIN {
                if n == 0 {
                    gait.first = join;
                } else {
                    let (step, parent) = match open.close(join) {
                        Some(branch) => (Step::JoinWithin(join), Parent::Here(branch)),
                        None => {
                            shape.labels += 1;
                            (Step::Join(join), Parent::Label(shape.labels - 1))
                        }
                    };
                    self.steps.push(step);
                    shape.groups.push(Group { first: n as u16, parent });
                }
            }
            let decided = Group { first: n as u16 + 1, parent: Parent::Here(n as u16) };
            if n < path.len.into() && ways_out != NO_JOIN {
                self.steps.push(Step::Branch(n as u16, ways_out));
                open.branch(n as u16, ways_out);
                shape.groups.push(decided);
            }
            let next = ops.get(n + 1).map(|op| code.info(op.instruction).address());
            if info.flow == Flow::Jump
                && let Some(next) = next.filter(|next| begins_function(graph, *next))
                && next != function
            {
                function = next;
                let entered = self.number(function);
                self.steps.push(Step::Enter(n as u16, entered));
                open.enter(n as u16);
                shape.groups.push(decided);
            }
        }
        let last = self.steps[first_step..].last().copied();
        if let Some(Step::Branch(index, join)) = last {
            (gait.branch, gait.branch_index) = (join, index as u8);
            self.steps.pop();
        }
        gait.steps = (self.steps.len() - first_step) as u16;
        gait.end = self.end(code, path, graph, function);
        if ops.iter().any(|op| switches_stack(&code.info(op.instruction).instruction)) {
            self.switches.insert(id);
        }
        let n = id.0 as usize;
        self.stacks[n] = code.ops(path).iter().find_map(|op| stack_pointer(code.operands(op)));
        self.gaits[n] = gait;
        self.shapes[n] = shape;
    }

    fn number(&mut self, function: u64) -> FunctionId {
        let next = self.functions.len() as FunctionId + NO_FUNCTION + 1;
        *self.functions.entry(function).or_insert(next)
    }

    fn end(&mut self, code: &Code, path: &Path, graph: &Graph, function: u64) -> End {
        let Some(last) = code.ops(path).last() else { return End::On };
        let info = code.info(last.instruction);
        let slot = self.slots.len() as u32;
        match info.flow {
            Flow::Call | Flow::Return => {
                let found = code.operands(last).iter().find(|o| is_return_slot(o, info.flow));
                let found = found.and_then(Slot::new);
                self.slots.extend(found);
                match (found, info.flow) {
                    (None, _) => End::On,
                    (Some(_), Flow::Call) => End::Call(slot),
                    (Some(_), _) => End::Return(slot),
                }
            }
            Flow::Indirect => End::Jump,
            Flow::Jump | Flow::Branch => {
                let target = info.instruction.near_branch_target();
                let leaves = begins_function(graph, target) && target != function;
                if leaves { End::Jump } else { End::On }
            }
            Flow::Next | Flow::System => End::On,
        }
    }
}

/// Does the stack pointer get a value that is not made of its own, or of the frame pointer's?
fn switches_stack(i: &Instruction) -> bool {
    let is_stack = |n: u32| i.op_register(n).full_register() == Register::RSP;
    if !(0..i.op_count().min(2)).any(is_stack) {
        return false;
    }
    let known =
        |register: Register| matches!(register.full_register(), Register::RSP | Register::RBP);
    match i.mnemonic() {
        Mnemonic::Xchg => true,
        Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test => false,
        _ if !is_stack(0) => false,
        Mnemonic::Mov => !known(i.op_register(1)),
        Mnemonic::Lea => !known(i.memory_base()),
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Inc | Mnemonic::Dec => false,
        _ => true,
    }
}

/// The stack pointer, if an operand lies there.
fn stack_pointer(operands: &[Operand]) -> Option<Slot> {
    let through = |o: &&Operand| o.access().address.base == Some(RSP);
    operands
        .iter()
        .find(through)
        .and_then(Operand::base)
        .map(|(capture, offset)| Slot { capture: Some(capture), displacement: offset })
}

/// Does a function, or a part that was moved away from one, begin here? Code that
/// several share is not another function to any of them.
fn begins_function(graph: &Graph, address: u64) -> bool {
    graph.function_of(address) == Some(address)
}

/// The operand through RSP, 8 bytes: where the return address is. A call may have another,
/// where its target is.
fn is_return_slot(o: &Operand, flow: Flow) -> bool {
    let a = o.access();
    let way = if flow == Flow::Call { a.writes } else { a.reads };
    way && a.size == 8 && a.address.base == Some(RSP) && a.address.index.is_none()
}
