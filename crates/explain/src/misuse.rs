//! Was memory of the heap used that was not the program's, or not any more, or before anything
//! was put there? Then that is where its values went wrong.

use crate::accesses::found_by;
use crate::blocks::Misuse;
use crate::heap;
use crate::path::{self, Taken};
use crate::ranking::Ranking;
use crate::spots::Spots;
use crate::watch::Misuses;
use crate::ways::Ways;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use locate::Failure;
use position::{PlaceId, Run};
use program::effects::Cells;
use report::{MisuseKind as Kind, Misused};
use slice::{Node, Slicer, Start};
use std::collections::HashSet;
use std::time::Instant;
use trace::Instance;

/// Lines between the failure and a value that was not set.
const NEAR: u32 = 6;
/// So many wrong uses are told.
const MOST: usize = 3;
/// RDI holds a function's first argument, RSI its second.
const ARGUMENTS: [u8; 2] = [7, 6];

/// The wrong uses to be told: the first ones, then those that the failure depends on.
pub fn told(run: &Run, found: &Misuses, ways: Option<&Ways<'_>>) -> Vec<Misuse> {
    let mut told = found.certain.clone();
    for tree in ways.iter().flat_map(|ways| [&ways.values, &ways.deciding]) {
        for node in tree.nodes().iter().filter(|node| node.groups <= NEAR) {
            if let Some(call) = found.unset.get(&node.at)
                && counts(run, tree.nodes(), node)
            {
                told.push(Misuse { kind: Kind::Unset, at: node.at, call: *call });
            }
        }
    }
    // Whatever is done to a block after the first mistake tells less.
    let mut seen = HashSet::new();
    told.retain(|misuse| seen.insert((misuse.kind, place(run, misuse.call))));
    told.truncate(MOST);
    told
}

/// Did all of a value count on its way out of the program's own code? Bits that were masked off,
/// or a value that was not chosen, may well be unset.
fn counts(run: &Run, nodes: &[Node], from: &Node) -> bool {
    let mut node = from;
    loop {
        let id = run.trace.instruction(node.at);
        if !run.is_own(id) {
            return true;
        }
        if !keeps(&run.trace.code.info(id).instruction) {
            return false;
        }
        match node.towards {
            Some(next) => node = &nodes[next as usize],
            None => return true,
        }
    }
}

/// Does what an instruction makes or decides depend on all of each value it is given?
fn keeps(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Mov | Movzx | Movsx | Movsxd | Lea | Add | Sub | Inc | Dec | Neg | Imul | Mul | Idiv
        | Div | Cmp | Push | Pop | Cdqe | Cdq | Cqo | Cwde | Call | Jmp | Ret | Leave | Movd
        | Movq | Movss | Movsd | Movaps | Movups | Movapd | Movupd | Movdqa | Movdqu | Addsd
        | Subsd | Mulsd | Divsd | Addss | Subss | Mulss | Divss | Cvtsi2sd | Cvtsi2ss
        | Cvttsd2si | Cvttss2si | Cvtss2sd | Cvtsd2ss | Comisd | Ucomisd | Comiss | Ucomiss => true,
        // Is it zero?
        Test => instruction.op0_register() == instruction.op1_register(),
        _ => instruction.flow_control() == FlowControl::ConditionalBranch,
    }
}

/// The line of the program that an instance belongs to.
fn place(run: &Run, at: Instance) -> Option<PlaceId> {
    run.places.at(run.trace.instruction(run.own_instance(at)?))
}

/// Did the allocator find out, and give up?
pub fn is_found_out(run: &Run, failure: &Failure) -> bool {
    failure.crash.is_some() && heap::is_allocator(run, run.trace.last_instance())
}

impl Misuse {
    /// What said which memory to use.
    fn found(&self, run: &Run) -> Start {
        let by = match self.kind {
            Kind::FreedAgain | Kind::NoBlock => Cells::gpr(ARGUMENTS[0], 8),
            _ => found_by(run, self.at, |_| true),
        };
        Start::Before(self.at, by, Vec::new())
    }

    /// Where it comes from: what said which memory to use, and why that memory was what it was.
    pub fn starts(&self, run: &Run) -> Vec<Start> {
        let mut starts = vec![self.found(run)];
        let own = run.own_instance(self.call);
        match self.kind {
            // How much was asked for.
            Kind::Behind => {
                let asked = ARGUMENTS.map(|n| Cells::gpr(n, 8));
                let asked = asked[0].union(asked[1]);
                starts.push(Start::Before(self.call, asked, Vec::new()));
            }
            // Why it was given back, or that it was asked for.
            _ => starts.extend(own.map(Start::Instance)),
        }
        starts
    }

    /// How it came about: why the block was freed, or how the memory that was used was found.
    pub fn path(&self, run: &Run, slicer: &Slicer<'_>, full: bool, late: Instant) -> Vec<Taken> {
        let own = run.own_instance(self.call);
        let steps = match (self.kind, own) {
            (Kind::Freed | Kind::FreedAgain, Some(own)) => path::because(run, slicer, own, late),
            _ => path::between(run, slicer, &self.found(run), place(run, self.call), late),
        };
        if full { steps } else { path::shortened(steps, &|_| 0.0) }
    }

    /// As people see it.
    pub fn shown(&self, path: &[Taken], spots: &Spots<'_>) -> Misused {
        Misused {
            kind: self.kind,
            spot: spots.get(self.at),
            call: spots.get(self.call),
            path: path.iter().map(|step| step.shown(spots)).collect(),
        }
    }

    /// Accuses both lines.
    pub fn accuse(&self, run: &Run, ranking: &mut Ranking, weight: f64) {
        let name = |at| place(run, at).map(|place| run.place_name(place));
        let (used, call) = (name(self.at), name(self.call));
        let mut accuse = |at: Instance, weight: f64, reason: String| {
            if let Some((own, place)) = run.own_instance(at).zip(place(run, at)) {
                ranking.accuse(place, own, weight, reason);
            }
        };
        let (used, call) = (used.unwrap_or_default(), call.unwrap_or_default());
        let (of_use, of_call) = match self.kind {
            Kind::Freed => (
                format!("it used memory that {call} had freed"),
                format!("it freed memory that {used} used afterwards"),
            ),
            Kind::FreedAgain => (
                format!("it freed memory that {call} had freed"),
                format!("it freed memory that {used} freed again"),
            ),
            Kind::Behind => (
                format!("it used memory behind the block that {call} allocated"),
                format!("{used} used memory behind the block that it allocated"),
            ),
            Kind::NoBlock => (
                format!("it freed what is inside of the block that {call} allocated"),
                format!("{used} freed what is inside of the block that it allocated"),
            ),
            Kind::Unset => (
                format!("it used memory of {call} that was not set"),
                format!("{used} used memory that it allocated and that was not set"),
            ),
        };
        accuse(self.at, weight, of_use);
        accuse(self.call, weight, of_call);
    }
}
