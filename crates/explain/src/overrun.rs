//! Did the program write over what the allocator keeps with its blocks? Then the allocator gives
//! up, and what it found wrong was written by somebody else.

use crate::accesses::found_by;
use crate::functions::Functions;
use crate::options;
use crate::ranking::Ranking;
use locate::Failure;
use position::{PlaceId, Run};
use program::effects::Cells;
use slice::{Options, Slicer, Start};
use std::time::Instant;
use trace::{Flow, Instance, InstructionId};
use whatif::Original;

/// SIGABRT, SIGBUS and SIGSEGV.
const GIVEN_UP: [i32; 3] = [6, 7, 11];
/// So many conditions before the end are looked at.
const CONDITIONS: usize = 12;
/// So far back from the end they are looked for.
const STEPS: usize = 1024;
/// So many lines are named.
const MOST: usize = 3;

/// What the program wrote over the allocator's own.
pub struct Overrun {
    /// The store.
    at: Instance,
    /// The program's own instruction that it is part of.
    pub own: Instance,
    /// Its line.
    place: PlaceId,
}

impl Overrun {
    /// What the allocator found wrong when it gave up, if it did.
    pub fn all(
        run: &Run,
        slicer: &Slicer<'_>,
        failure: &Failure,
        original: &Original,
        late: Instant,
    ) -> Vec<Overrun> {
        let signal = original.status.map_or(0, |status| status & 0x7f);
        // Whatever else it died of, somebody sent.
        if failure.crash.is_none() || !GIVEN_UP.contains(&signal) {
            return Vec::new();
        }
        let thin = Options { control: false, addresses: false, until: Some(late), ..options(run) };
        let mut found: Vec<Overrun> = Vec::new();
        for overrun in conditions(run).iter().flat_map(|at| written(run, slicer, *at, &thin)) {
            if found.len() < MOST && found.iter().all(|known| known.place != overrun.place) {
                found.push(overrun);
            }
        }
        found
    }

    /// Where it comes from: what was written, and above all what said where to.
    pub fn starts(&self, run: &Run) -> [Start; 2] {
        let cells = found_by(run, self.at, |access| access.writes);
        [Start::Instance(self.at), Start::Before(self.at, cells, Vec::new())]
    }

    /// Accuses the line.
    pub fn accuse(&self, ranking: &mut Ranking) {
        let reason = "it wrote over what the allocator keeps with its blocks";
        ranking.accuse(self.place, self.own, 1.5, reason.to_owned());
    }
}

/// The last conditions of the allocator that let it give up.
fn conditions(run: &Run) -> Vec<Instance> {
    let mut functions = Functions::new(run);
    let mut found = Vec::new();
    let mut next = run.trace.parent(run.trace.last_instance());
    for _ in 0..STEPS {
        let Some(at) = next.filter(|at| !run.is_own(run.trace.instruction(*at))) else { break };
        let flow = run.trace.code.info(run.trace.instruction(at)).flow;
        if flow == Flow::Branch && functions.allocates(at) {
            found.push(at);
        }
        if found.len() == CONDITIONS {
            break;
        }
        next = run.trace.parent(at);
    }
    found
}

/// What others wrote to memory and the allocator compared.
fn written(run: &Run, slicer: &Slicer<'_>, condition: Instance, thin: &Options) -> Vec<Overrun> {
    let mut functions = Functions::new(run);
    let group = |_: Instance, _: InstructionId| None;
    let tree = slicer.tree(&[Start::Instance(condition)], thin, &group);
    let nodes = tree.nodes();
    let mut found = Vec::new();
    for node in nodes {
        let Some(user) = node.towards.map(|user| nodes[user as usize].at) else { continue };
        if !stores(run, node.at)
            || functions.allocates(node.at)
            || !functions.allocates(user)
            || !replaces(run, slicer, node.at, thin, &mut functions)
        {
            continue;
        }
        let Some(own) = run.own_instance(node.at) else { continue };
        if let Some(place) = run.places.at(run.trace.instruction(own)) {
            found.push(Overrun { at: node.at, own, place });
        }
    }
    found
}

/// Was what a store replaced written by the allocator? Otherwise the bytes were not its own: it
/// was given something that is no block.
fn replaces(
    run: &Run,
    slicer: &Slicer<'_>,
    at: Instance,
    thin: &Options,
    functions: &mut Functions<'_>,
) -> bool {
    let bytes = run.trace.stored(at).into_iter().map(|range| (range.start, range.len)).collect();
    let start = Start::Before(at, Cells::NONE, bytes);
    let (replaced, _) = slicer.direct(&[start], thin, &|_, _| false);
    replaced.dependences().any(|(_, at, _)| functions.allocates(at))
}

/// Does an instance write data to memory?
fn stores(run: &Run, at: Instance) -> bool {
    let info = run.trace.code.info(run.trace.instruction(at));
    info.flow != Flow::Call && info.effects.accesses.iter().any(|access| access.writes)
}
