//! What a path does to open branches, known before anything ran.

use super::{Group, Instance, Parent, Shape};
use crate::code::{Code, Flow, Op, Operand, Path};
use crate::records::Time;
use program::flow::Flow as Graph;
use rustc_hash::FxHashMap;

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
    fn new(operand: &Operand) -> Option<Slot> {
        let linear = operand.linear()?;
        Some(Slot { capture: linear.base, displacement: linear.displacement })
    }

    #[inline]
    pub fn address(&self, captured: &[u64]) -> u64 {
        let base = self.capture.map_or(0, |n| captured[usize::from(n)]);
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

/// Of all paths.
#[derive(Default)]
pub(super) struct Gaits {
    pub of: Vec<Gait>,
    steps: Vec<Step>,
    /// Where return addresses lie.
    pub slots: Vec<Slot>,
    /// The stack pointer where a path first uses it, if it does: with it one activation of a
    /// function is told from another.
    pub stacks: Vec<Option<Slot>>,
    functions: FxHashMap<u64, FunctionId>,
    joins: FxHashMap<u64, JoinId>,
}

impl Gaits {
    /// Knows the joins of a graph.
    pub fn new(graph: &Graph) -> Gaits {
        let mut joins = FxHashMap::default();
        for join in graph.joins().filter_map(|(_, join)| join) {
            let next = joins.len() as JoinId + 1;
            joins.entry(join).or_insert(next);
        }
        Gaits { joins, ..Gaits::default() }
    }

    /// What a path does to open branches, but for what it begins and ends with.
    #[inline]
    pub fn steps(&self, gait: &Gait) -> &[Step] {
        &self.steps[gait.first_step as usize..][..gait.steps as usize]
    }

    /// Adds the next path, and says who its parents are.
    pub fn add(&mut self, code: &Code, path: &Path, graph: &Graph) -> Shape {
        let start = code.start(path);
        let mut shape =
            Shape { groups: vec![Group { first: 0, parent: Parent::Label(0) }], labels: 1 };
        let first_step = self.steps.len();
        let mut function = graph.function_of(start).unwrap_or(start);
        let mut gait = Gait {
            first: NO_JOIN,
            branch: NO_JOIN,
            first_step: first_step as u32,
            steps: 0,
            captures: path.captures,
            len: path.len,
            branch_index: 0,
            // One that is only jumped to is none of the graph's.
            is_entry: graph.is_entry(start) || function == start,
            end: End::On,
            function: self.number(function),
        };
        let mut open = Within::default();
        let ops: Vec<&Op> = code.ops(path).iter().chain(code.faulting(path)).collect();
        for (n, op) in ops.iter().enumerate() {
            let info = code.info(op.instruction);
            if let Some(join) = self.joins.get(&info.address()) {
                if n == 0 {
                    gait.first = *join;
                } else {
                    let (step, parent) = match open.close(*join) {
                        Some(branch) => (Step::JoinWithin(*join), Parent::Here(branch)),
                        None => {
                            shape.labels += 1;
                            (Step::Join(*join), Parent::Label(shape.labels - 1))
                        }
                    };
                    self.steps.push(step);
                    shape.groups.push(Group { first: n as u16, parent });
                }
            }
            let decided = Group { first: n as u16 + 1, parent: Parent::Here(n as u16) };
            if n < path.len.into()
                && let Some(join) = graph.join(info.address())
            {
                let join = join.and_then(|j| self.joins.get(&j).copied()).unwrap_or(AT_END);
                self.steps.push(Step::Branch(n as u16, join));
                open.branch(n as u16, join);
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
        self.stacks.push(code.ops(path).iter().find_map(|op| stack_pointer(code.operands(op))));
        self.of.push(gait);
        shape
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
