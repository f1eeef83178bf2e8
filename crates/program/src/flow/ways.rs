//! Where can control go from one instruction, and does it stay in its function?

use super::{Boundary, Code};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::ops::Range;

/// The function whose instructions are looked at.
pub(super) struct Own<'a> {
    pub entry: u64,
    /// Code of it that need not be asked about.
    pub undivided: Range<u64>,
    /// Where functions begin that are called.
    pub entries: &'a FxHashSet<u64>,
}

impl Own<'_> {
    /// What begins at a place that is not where this one does?
    fn boundary(&self, code: &dyn Code, address: u64) -> Boundary {
        match self.undivided.contains(&address) {
            true => Boundary::None,
            false => code.boundary(address),
        }
    }

    /// Is it known that two places have one owner?
    fn has(&self, one: u64, other: u64) -> bool {
        self.undivided.contains(&one) && self.undivided.contains(&other)
    }
}

/// Where one instruction goes.
pub(super) struct Ways {
    /// Hardly ever more than two.
    pub targets: SmallVec<[u64; 2]>,
    /// Does a block end here?
    pub branches: bool,
    /// May the function end here?
    pub leaves: bool,
}

/// Does nothing follow it, though it is none of those that branch? A program may not halt the
/// processor, and says so behind calls that do not return.
fn never_ends(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Hlt
}

/// Is the next instruction all that can follow? That is so for most, and they are many.
pub(super) fn goes_on(i: &Instruction) -> bool {
    !never_ends(i)
        && matches!(
            i.flow_control(),
            FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt
        )
}

/// Does it give the stack pointer another value? A computed jump behind that leaves the function:
/// `longjmp` and unwinders do so, and no table of cases.
pub(super) fn switches_stack(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Mov
        && i.op0_kind() == OpKind::Register
        && i.op0_register() == Register::RSP
}

impl Ways {
    /// Of an instruction of a function. `switched`: the stack pointer has got another value
    /// shortly before.
    pub fn of(code: &dyn Code, own: &Own<'_>, i: &Instruction, switched: bool) -> Ways {
        let may = |target: u64, is: &dyn Fn(Boundary) -> bool| {
            let begins = || own.boundary(code, target);
            target == own.entry || !own.entries.contains(&target) && is(begins())
        };
        let inside = |target: u64| may(target, &|begins| begins == Boundary::None);
        // Parts that were moved away are reached by conditional branches.
        let near = |target: u64| may(target, &|begins| begins != Boundary::Function);
        let mut ways = Ways { targets: SmallVec::new(), branches: true, leaves: false };
        match i.flow_control() {
            _ if never_ends(i) => ways.leaves = true,
            FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Interrupt => {
                ways.branches = false;
                ways.targets.push(i.next_ip());
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                ways.branches = false;
                let back = i.mnemonic() == Mnemonic::Syscall
                    || !code.never_returns(i) && is_amid(code, own, i);
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
                let stays =
                    |target: u64| inside(target) && is_same_owner(code, own, i.ip(), target);
                ways.targets.extend(seen.iter().copied().filter(|t| stays(*t)));
                ways.leaves = seen.len() != ways.targets.len() || seen.is_empty();
            }
            FlowControl::Return | FlowControl::Exception => ways.leaves = true,
        }
        ways
    }
}

/// Is there more of the function behind a call? If not, it never returns, whatever it calls.
fn is_amid(code: &dyn Code, own: &Own<'_>, call: &Instruction) -> bool {
    own.has(call.ip(), call.next_ip()) || {
        let owner = code.owner(call.ip());
        owner.is_none() || owner == code.owner(call.next_ip())
    }
}

/// Are both in one function, as far as other knowledge says? `longjmp` jumps into
/// the middle of others; a switch may jump into a part that was moved away. What is called
/// is no part, though nothing may say its name.
fn is_same_owner(code: &dyn Code, own: &Own<'_>, jump: u64, target: u64) -> bool {
    if own.has(jump, target) {
        return true;
    }
    let is_part = |to: u64| code.boundary(to) == Boundary::Part && !own.entries.contains(&to);
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
