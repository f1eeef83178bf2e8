//! Where can control go, and where do the ways out of a branch meet again?
//!
//! Code is discovered from function entries along direct branches, completed with
//! the targets that indirect jumps were seen to take, and cut into functions. A
//! branch's *join* is its immediate post-dominator: the nearest block that every
//! way from the branch to the function's end passes. What runs between a branch
//! and its join runs because of the branch.
//!
//! ```
//! use program::flow::{Code, Flow};
//! struct Bytes(&'static [u8]);
//! impl Code for Bytes {
//!     fn bytes(&self, address: u64) -> &[u8] {
//!         address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or(&[])
//!     }
//! }
//! // test edi,edi; je +2; mov bl,1; ret
//! let code = Bytes(&[0x85, 0xff, 0x74, 0x02, 0xb3, 0x01, 0xc3]);
//! let flow = Flow::discover(&code, &[0x1000], &[]);
//! assert_eq!(flow.join(0x1002), Some(Some(0x1006)));
//! ```

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// The code of a program, and what is known of it. Functions are looked at side by side.
pub trait Code: Sync {
    /// Bytes at an address; empty where there is no code.
    fn bytes(&self, address: u64) -> &[u8];
    /// Targets that the indirect jump at this address was seen to take.
    fn seen_targets(&self, _jump: u64) -> &[u64] {
        &[]
    }
    /// Does a call at this address never come back?
    fn never_returns(&self, _call: &Instruction) -> bool {
        false
    }
    /// Does a function begin here, by other knowledge than that it was called?
    fn boundary(&self, _address: u64) -> Boundary {
        Boundary::None
    }
    /// The function that code belongs to by other knowledge, where it was not
    /// reached from any entry.
    fn owner(&self, _address: u64) -> Option<u64> {
        None
    }
}

/// How an address is known to be a function's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// It is not.
    None,
    /// Something begins here, a function or a part that was moved away from one.
    Part,
    /// A function begins here.
    Function,
}

/// A straight run of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// Address of its last instruction.
    last: u64,
    /// Where it may go within its function.
    successors: Vec<u64>,
    /// May it leave the function?
    leaves: bool,
}

/// The control flow of a program.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Per branch with more than one way on: where they meet; `None` if only at
    /// the function's end.
    joins: FxHashMap<u64, Option<u64>>,
    /// Per block of code: the entry of its function.
    functions: BTreeMap<u64, u64>,
    entries: FxHashSet<u64>,
    /// Every instruction met.
    covered: FxHashSet<u64>,
}

impl Flow {
    /// Discovers what is reachable from `entries`, then from `others`: code that
    /// was seen to run but that no entry reaches (landing pads, targets of
    /// `longjmp`).
    pub fn discover(code: &dyn Code, entries: &[u64], others: &[u64]) -> Flow {
        let mut flow = Flow { entries: entries.iter().copied().collect(), ..Flow::default() };
        // Few entries lie within what another has reached: it pays to look at all of them.
        let found =
            side_by_side(entries, |entry| Function::find(code, &flow.entries, *entry, &[*entry]));
        for function in found {
            if !flow.covered.contains(&function.entry) {
                flow.add(function);
            }
        }
        let mut left: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for &other in others {
            left.entry(code.owner(other).unwrap_or(other)).or_default().push(other);
        }
        for (owner, mut roots) in left {
            // Where calls return to is inside, though no block begins there.
            roots.retain(|root| !flow.covered.contains(root));
            if !roots.is_empty() {
                roots.push(owner);
                let function = Function::find(code, &flow.entries, owner, &roots);
                flow.add(function);
            }
        }
        flow
    }

    /// Where the ways out of the branch at this address meet. `None` if it is not a
    /// branch with several; `Some(None)` if they meet only at the function's end.
    pub fn join(&self, branch: u64) -> Option<Option<u64>> {
        self.joins.get(&branch).copied()
    }

    /// The branches with more than one way on, and where those meet.
    pub fn joins(&self) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
        self.joins.iter().map(|(branch, join)| (*branch, *join))
    }

    /// Does a function begin here?
    pub fn is_entry(&self, address: u64) -> bool {
        self.entries.contains(&address)
    }

    /// Entry of the function that code belongs to.
    pub fn function_of(&self, address: u64) -> Option<u64> {
        self.functions.range(..=address).next_back().map(|(_, function)| *function)
    }

    fn add(&mut self, function: Function) {
        self.covered.extend(function.covered);
        for start in function.starts {
            self.functions.entry(start).or_insert(function.entry);
        }
        // Code that several functions share is the first one's.
        for (branch, join) in function.joins {
            self.joins.entry(branch).or_insert(join);
        }
    }
}

/// What is found of one function.
struct Function {
    entry: u64,
    /// Where its blocks begin.
    starts: Vec<u64>,
    covered: FxHashSet<u64>,
    joins: Vec<(u64, Option<u64>)>,
}

impl Function {
    fn find(code: &dyn Code, entries: &FxHashSet<u64>, entry: u64, roots: &[u64]) -> Function {
        let (starts, covered) = find_starts(code, entries, entry, roots);
        let block = |&s| (s, cut_block(code, entries, entry, &starts, s));
        let blocks: BTreeMap<u64, Block> = starts.iter().map(block).collect();
        Function { entry, starts: starts.into_iter().collect(), covered, joins: joins(&blocks) }
    }
}

/// Where the ways out of branches meet.
fn joins(blocks: &BTreeMap<u64, Block>) -> Vec<(u64, Option<u64>)> {
    let branches = |b: &Block| b.successors.len() + b.leaves as usize > 1;
    if !blocks.values().any(branches) {
        return Vec::new();
    }
    let post = PostDominators::of(blocks);
    let branching = blocks.iter().filter(|(_, block)| branches(block));
    branching.map(|(start, block)| (block.last, post.join(*start))).collect()
}

/// Does the same to all, on all processors, and returns the results in order. The threads
/// are gone when it returns: whoever traces next must be alone.
fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    // Neighbours are alike, so the shares are, too.
    let share = all.len().div_ceil(threads).max(1);
    let share_of = &|part: &[T]| part.iter().map(&work).collect::<Vec<R>>();
    std::thread::scope(|scope| {
        let begin = |part| {
            let thread = std::thread::Builder::new();
            (part, thread.spawn_scoped(scope, move || share_of(part)))
        };
        let begun: Vec<_> = all.chunks(share).map(begin).collect();
        // Where no thread can be had, this one does the work.
        let end = |(part, thread): (_, std::io::Result<std::thread::ScopedJoinHandle<_>>)| {
            thread.map_or_else(|_| share_of(part), |t| t.join().expect("nobody panics"))
        };
        begun.into_iter().flat_map(end).collect()
    })
}

/// What is reachable from the roots without leaving the function: every address at
/// which a block begins, and every instruction.
fn find_starts(
    code: &dyn Code,
    entries: &FxHashSet<u64>,
    own: u64,
    roots: &[u64],
) -> (BTreeSet<u64>, FxHashSet<u64>) {
    let mut starts: BTreeSet<u64> = roots.iter().copied().collect();
    let mut work: Vec<u64> = roots.to_vec();
    let mut walked = FxHashSet::default();
    while let Some(start) = work.pop() {
        let mut at = start;
        let mut switched = false;
        loop {
            if !walked.insert(at) {
                // Two ways through the same bytes meet, as behind a `lock` that is jumped over.
                starts.insert(at);
                break;
            }
            let Some(i) = decode(code, at) else { break };
            if goes_on(&i) {
                switched |= switches_stack(&i);
                at = i.next_ip();
                continue;
            }
            let next = ways(code, entries, own, &i, switched);
            if next.branches {
                for target in next.targets {
                    if starts.insert(target) {
                        work.push(target);
                    }
                }
                break;
            }
            if next.targets.is_empty() {
                break;
            }
            at = i.next_ip();
        }
    }
    (starts, walked)
}

fn cut_block(
    code: &dyn Code,
    entries: &FxHashSet<u64>,
    own: u64,
    starts: &BTreeSet<u64>,
    start: u64,
) -> Block {
    let (mut at, mut last) = (start, start);
    let mut switched = false;
    loop {
        // Where no code is, the function ends too.
        let Some(i) = decode(code, at) else {
            return Block { last, successors: Vec::new(), leaves: true };
        };
        last = at;
        if goes_on(&i) && !starts.contains(&i.next_ip()) {
            switched |= switches_stack(&i);
            at = i.next_ip();
            continue;
        }
        let next = ways(code, entries, own, &i, switched);
        let ends = next.branches || next.targets.is_empty() || starts.contains(&i.next_ip());
        if ends {
            let mut successors = next.targets;
            successors.retain(|s| starts.contains(s));
            successors.sort_unstable();
            successors.dedup();
            return Block { last, successors, leaves: next.leaves };
        }
        at = i.next_ip();
    }
}

/// Where one instruction goes.
struct Ways {
    targets: Vec<u64>,
    /// Does a block end here?
    branches: bool,
    /// May the function end here?
    leaves: bool,
}

/// Does nothing follow it, though it is none of those that branch? A program may not halt the
/// processor, and says so behind calls that do not return.
fn never_ends(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Hlt
}

/// Is the next instruction all that can follow? That is so for most, and they are many.
fn goes_on(i: &Instruction) -> bool {
    !never_ends(i)
        && matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt
        )
}

/// Does it give the stack pointer another value? A computed jump behind that leaves the function:
/// `longjmp` and unwinders do so, and no table of cases.
fn switches_stack(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Mov
        && i.op0_kind() == OpKind::Register
        && i.op0_register() == Register::RSP
}

fn ways(
    code: &dyn Code,
    entries: &FxHashSet<u64>,
    own: u64,
    i: &Instruction,
    switched: bool,
) -> Ways {
    let known = |target: u64| target == own || !entries.contains(&target);
    let inside =
        |target: u64| known(target) && (target == own || code.boundary(target) == Boundary::None);
    // Parts that were moved away are reached by conditional branches.
    let near = |target: u64| {
        known(target) && (target == own || code.boundary(target) != Boundary::Function)
    };
    let mut ways = Ways { targets: Vec::new(), branches: true, leaves: false };
    match i.flow_control() {
        _ if never_ends(i) => ways.leaves = true,
        FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt => {
            ways.branches = false;
            ways.targets.push(i.next_ip());
        }
        FlowControl::Call | FlowControl::IndirectCall => {
            ways.branches = false;
            let back =
                i.mnemonic() == Mnemonic::Syscall || !code.never_returns(i) && is_amid(code, i);
            if back {
                ways.targets.push(i.next_ip());
            }
            ways.leaves = !back;
        }
        FlowControl::ConditionalBranch => {
            ways.targets.push(i.next_ip());
            add_direct(i, near, &mut ways);
        }
        FlowControl::UnconditionalBranch => add_direct(i, inside, &mut ways),
        FlowControl::IndirectBranch if switched => ways.leaves = true,
        FlowControl::IndirectBranch => {
            let seen = code.seen_targets(i.ip());
            let own = |target: u64| inside(target) && is_same_owner(code, entries, i.ip(), target);
            ways.targets.extend(seen.iter().copied().filter(|t| own(*t)));
            ways.leaves = seen.len() != ways.targets.len() || seen.is_empty();
        }
        FlowControl::Return | FlowControl::Exception => ways.leaves = true,
    }
    ways
}

/// Is there more of the function behind a call? If not, it never returns, whatever it calls.
fn is_amid(code: &dyn Code, call: &Instruction) -> bool {
    let own = code.owner(call.ip());
    own.is_none() || own == code.owner(call.next_ip())
}

/// Are both in one function, as far as other knowledge says? `longjmp` jumps into
/// the middle of others; a switch may jump into a part that was moved away. What is called
/// is no part, though nothing may say its name.
fn is_same_owner(code: &dyn Code, entries: &FxHashSet<u64>, jump: u64, target: u64) -> bool {
    let is_part = |to: u64| code.boundary(to) == Boundary::Part && !entries.contains(&to);
    match (code.owner(jump), code.owner(target)) {
        (Some(from), Some(to)) => from == to || is_part(to),
        _ => true,
    }
}

fn add_direct(i: &Instruction, inside: impl Fn(u64) -> bool, ways: &mut Ways) {
    let target = i.near_branch_target();
    if i.op0_kind() == OpKind::NearBranch64 && inside(target) {
        ways.targets.push(target);
    } else {
        ways.leaves = true;
    }
}

fn decode(code: &dyn Code, at: u64) -> Option<Instruction> {
    let bytes = code.bytes(at);
    let i = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (!bytes.is_empty() && !i.is_invalid()).then_some(i)
}

/// Post-dominators of one function: dominators of the reversed graph.
struct PostDominators {
    nodes: FxHashMap<u64, NodeIndex>,
    addresses: Vec<Option<u64>>,
    found: petgraph::algo::dominators::Dominators<NodeIndex>,
}

impl PostDominators {
    fn of(blocks: &BTreeMap<u64, Block>) -> PostDominators {
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        let end = graph.add_node(());
        let mut addresses = vec![None];
        let mut nodes = FxHashMap::default();
        for start in blocks.keys() {
            nodes.insert(*start, graph.add_node(()));
            addresses.push(Some(*start));
        }
        for (start, block) in blocks {
            for to in &block.successors {
                if let Some(to) = nodes.get(to) {
                    graph.add_edge(*to, nodes[start], ());
                }
            }
            if block.leaves || block.successors.is_empty() {
                graph.add_edge(end, nodes[start], ());
            }
        }
        reach_all(&mut graph, end, blocks, &nodes);
        let found = simple_fast(&graph, end);
        PostDominators { nodes, addresses, found }
    }

    fn join(&self, start: u64) -> Option<u64> {
        let join = self.found.immediate_dominator(*self.nodes.get(&start)?)?;
        self.addresses[join.index()]
    }
}

/// A loop without an end is taken to end at its last block.
fn reach_all(
    graph: &mut DiGraph<(), ()>,
    end: NodeIndex,
    blocks: &BTreeMap<u64, Block>,
    nodes: &FxHashMap<u64, NodeIndex>,
) {
    let mut reached: FxHashSet<NodeIndex> = FxHashSet::default();
    let mut walk = petgraph::visit::Dfs::new(&*graph, end);
    while let Some(node) = walk.next(&*graph) {
        reached.insert(node);
    }
    for start in blocks.keys().rev() {
        let node = nodes[start];
        if reached.contains(&node) {
            continue;
        }
        graph.add_edge(end, node, ());
        walk.move_to(node);
        while let Some(node) = walk.next(&*graph) {
            reached.insert(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Bytes(Vec<u8>, HashMap<u64, Vec<u64>>);

    impl Code for Bytes {
        fn bytes(&self, address: u64) -> &[u8] {
            address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or(&[])
        }
        fn seen_targets(&self, jump: u64) -> &[u64] {
            self.1.get(&jump).map_or(&[], |v| v)
        }
    }

    fn flow(bytes: &[u8]) -> Flow {
        Flow::discover(&Bytes(bytes.to_vec(), HashMap::new()), &[0x1000], &[])
    }

    #[test]
    fn both_arms_of_an_if_meet_behind_it() {
        // test edi,edi; je 1008; mov bl,1; jmp 100a; mov bl,2; ret
        let f = flow(&[0x85, 0xff, 0x74, 0x04, 0xb3, 1, 0xeb, 2, 0xb3, 2, 0xc3]);
        assert_eq!(f.join(0x1002), Some(Some(0x100a)));
        assert_eq!(f.function_of(0x1008), Some(0x1000));
    }

    #[test]
    fn an_early_return_leaves_only_the_end_as_join() {
        // test edi,edi; je 1005; ret; mov bl,2; ret
        let f = flow(&[0x85, 0xff, 0x74, 0x01, 0xc3, 0xb3, 2, 0xc3]);
        assert_eq!(f.join(0x1002), Some(None));
    }

    #[test]
    fn the_join_of_a_loop_is_what_follows_it() {
        // dec edi; jne 1000; ret
        let f = flow(&[0xff, 0xcf, 0x75, 0xfc, 0xc3]);
        assert_eq!(f.join(0x1002), Some(Some(0x1004)));
    }

    #[test]
    fn what_follows_a_loop_joins_it_though_it_runs_into_no_code() {
        // dec edi; jne 1000; nop
        let f = flow(&[0xff, 0xcf, 0x75, 0xfc, 0x90]);
        assert_eq!(f.join(0x1002), Some(Some(0x1004)));
    }

    #[test]
    fn an_endless_loop_has_joins_too() {
        // test edi,edi; je 1006; mov bl,1; jmp 1000
        let f = flow(&[0x85, 0xff, 0x74, 0x02, 0xb3, 1, 0xeb, 0xf8]);
        assert_eq!(f.join(0x1002), Some(Some(0x1006)));
    }

    /// F-001-36
    #[test]
    fn the_cases_of_a_switch_are_known_once_they_were_seen() {
        // jmp rax; 1002: mov bl,1; jmp 1008; 1006: mov bl,2; 1008: ret
        let bytes = [0xff, 0xe0, 0xb3, 1, 0xeb, 2, 0xb3, 2, 0xc3];
        assert_eq!(flow(&bytes).join(0x1000), None);
        let seen = HashMap::from([(0x1000, vec![0x1002, 0x1006])]);
        let f = Flow::discover(&Bytes(bytes.to_vec(), seen), &[0x1000], &[]);
        assert_eq!(f.join(0x1000), Some(Some(0x1008)));
    }
}
