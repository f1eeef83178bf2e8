//! Is a slice sound? `soundness RECORDING [CRITERIA [SEED [MAX_INSTRUCTIONS]]]`.
//!
//! For random criteria, values that were defined outside of the backward slice are set to
//! others; the criterion must not notice. A few inside of it are altered as well: if it noticed
//! none of those, nothing would be shown. `cargo xtask soundness` runs it. What it prints is one
//! line of JSON: how often what happened. Ends with 0 if all slices are sound, 1 if not, 3 if the
//! run is too long.

use position::Run;
use program::effects::{Cell, Cells};
use slice::{Instances, Options, Slicer, Start};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::ExitCode;
use trace::{Flow, Instance, Trace};
use whatif::{Batch, Change, Experiment, Laboratory, Limits, Oracle, Target, Trigger};

/// Definitions that are altered for one criterion.
const DEFINITIONS: usize = 24;
/// Those inside of its slice, and among how many that are near.
const INSIDE: usize = 6;
const NEAR: usize = 60;

/// How often the place of a criterion is looked at: an altered run may come there by other ways
/// before.
const ARRIVALS: u64 = 4;

/// How the criterion took an alteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It did not notice.
    Unchanged,
    /// The definition is in the slice, and the criterion noticed.
    Noticed,
    /// It was not reached by the calls that led to it: the altered run went elsewhere, or died.
    NotReached,
    /// A branch went the other way, and the relevant slice has the definition.
    BranchChanged,
    /// A store hit another location.
    OtherLocation,
    /// A system call was told another location or value.
    SystemCall,
    /// A branch went the other way, and the relevant slice does not have the definition.
    Irrelevant,
    /// None of these: the slice lacks something.
    Unsound,
}

impl Kind {
    fn is_wrong(self) -> bool {
        matches!(self, Kind::Irrelevant | Kind::Unsound)
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which recording?")?;
    let criteria: usize = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let most: u64 = arguments.next().map_or(Ok(u64::MAX), |n| n.parse())?;
    let recording = recording::Recording::open(Path::new(&folder))?;
    let mut laboratory = Laboratory::open(&recording)?;
    if laboratory.original().instructions > most {
        return Ok(ExitCode::from(3));
    }
    let run = Run::open(recording, &mut |_| ())?;
    let slicer = Slicer::new(&run.trace);
    let mut check =
        Check { run: &run, slicer: &slicer, random: Random(seed), counts: BTreeMap::new() };
    let once = executed_once(&run.trace);
    for _ in 0..criteria {
        let number = once[check.random.below(once.len() as u64) as usize];
        check.criterion(&mut laboratory, number)?;
    }
    let wrong = check.counts.keys().any(|kind| kind.is_wrong());
    let said: Vec<String> = check.counts.iter().map(|(k, n)| format!("\"{k:?}\": {n}")).collect();
    println!("{{{}}}", said.join(", "));
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Numbers of instructions of the program's own that were executed once, use something, and are
/// not near the beginning: another run can come to them only once too.
fn executed_once(trace: &Trace) -> Vec<u64> {
    let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for number in 0..trace.records.instructions() {
        let Some(at) = trace.at_number(number) else { continue };
        let entry = seen.entry(trace.instruction(at).0).or_insert((number, 0));
        entry.1 += 1;
    }
    let useful = |number: &u64| {
        let at = trace.at_number(*number).expect("numbered");
        let info = trace.code.info(trace.instruction(at));
        let own = trace.program.is_own(info.address());
        let plain = matches!(info.flow, Flow::Next | Flow::Branch);
        own && plain && (!used(trace, at).0.is_empty() || !trace.loaded(at).is_empty())
    };
    let once = seen.values().filter(|(_, n)| *n == 1).map(|(number, _)| *number);
    once.filter(useful).collect()
}

/// General registers whose value an instance uses, and all bytes of them that it does.
fn used(trace: &Trace, at: Instance) -> (Vec<u8>, Cells) {
    let info = trace.code.info(trace.instruction(at));
    let mut cells = info.uses.union(info.condition);
    for access in &info.accesses {
        cells = cells.union(address_cells(access));
    }
    let registers = (0..16).filter(|n| cells.overlaps(&Cells::gpr(*n, 8)));
    (registers.collect(), cells)
}

/// What an address is computed from.
fn address_cells(access: &program::effects::Access) -> Cells {
    let base = access.address.base.map_or(Cells::NONE, |n| Cells::gpr(n, 8));
    let index = access.address.index.filter(|_| !access.address.vector_index);
    base.union(index.map_or(Cells::NONE, |(n, _)| Cells::gpr(n, 8)))
}

struct Check<'a> {
    run: &'a Run,
    slicer: &'a Slicer<'a>,
    random: Random,
    counts: BTreeMap<Kind, u64>,
}

/// What was altered.
struct Altered {
    at: Instance,
    experiment: Experiment,
}

impl Check<'_> {
    fn options(&self, relevant: bool) -> Options {
        Options { bookkeeping: true, relevant, ..Options::default() }
    }

    fn slice(&self, at: Instance, relevant: bool) -> HashSet<Instance> {
        let all = self.slicer.instances(&[Start::Instance(at)], &self.options(relevant));
        all.0.into_iter().map(|(at, ..)| at).collect()
    }

    fn criterion(&mut self, laboratory: &mut Laboratory, number: u64) -> Result<(), whatif::Error> {
        let trace = &self.run.trace;
        let at = trace.at_number(number).expect("numbered");
        let slice = self.slice(at, false);
        let look = self.look(at);
        let anywhere = |random: &mut Random, n: usize| {
            // Most of them near the criterion.
            let reach = if n.is_multiple_of(4) { number } else { number.min(3000) };
            number - 1 - random.below(reach.max(1) - 1).min(number - 1)
        };
        let outside = |at: &Instance| !slice.contains(at);
        let mut altered = self.choose(anywhere, outside, &look, DEFINITIONS);
        let outside = altered.len();
        let mut near: Vec<u64> = slice.iter().map(|at| trace.number(*at)).collect();
        near.retain(|n| *n < number);
        near.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
        near.truncate(NEAR);
        if !near.is_empty() {
            let inside = |random: &mut Random, _| near[random.below(near.len() as u64) as usize];
            altered.extend(self.choose(inside, |_| true, &look, INSIDE));
        }
        // The first one changes nothing: what the criterion sees in the recorded run.
        let Some(first) = altered.first() else { return Ok(()) };
        let mut experiments = vec![Experiment { changes: Vec::new(), ..first.experiment.clone() }];
        experiments.extend(altered.iter().map(|a| a.experiment.clone()));
        let mut batch = Batch::new(experiments, Oracle::default());
        let limits = Limits { steps: 4 * trace.records.instructions() + 100_000, memory: 1 << 28 };
        batch.limits = limits;
        batch.jobs = 2;
        let mut told = vec![Vec::new(); batch.experiments.len()];
        laboratory.perform(&batch, &mut |n, outcome| {
            told[n] = outcome.told;
            true
        })?;
        let (original, told) = told.split_first().expect("one more than altered");
        let calls = self.return_addresses(at).len();
        let seen = |told: &'_ [Vec<u8>]| {
            let mut arrivals = told.chunks_exact(original.len().max(1));
            let arrival = arrivals.find(|told| told[..calls] == original[..calls])?;
            Some(arrival[calls..].to_vec())
        };
        let original_seen = &original[calls.min(original.len())..];
        for told in told[outside..].iter().filter_map(|told| seen(told)) {
            if !self.sees_the_same(at, original_seen, &told) {
                *self.counts.entry(Kind::Noticed).or_default() += 1;
            }
        }
        for (altered, told) in altered[..outside].iter().zip(told) {
            let kind = match seen(told) {
                None => Kind::NotReached,
                Some(told) => self.kind(laboratory, at, altered, original_seen, &told, limits)?,
            };
            if kind.is_wrong() {
                eprintln!("{}", self.describe(at, altered, kind));
            }
            *self.counts.entry(kind).or_default() += 1;
        }
        Ok(())
    }

    /// Where the return addresses of the calls lie that led to an instance.
    fn return_addresses(&self, at: Instance) -> Vec<u64> {
        let control = &self.run.trace.control;
        let mut calls = Vec::new();
        let mut frame = control.frame(control.frame_of(at.time));
        while let Some(call) = frame.call {
            calls.extend(self.run.trace.stored(call).first().map(|range| range.start));
            frame = control.frame(frame.caller);
        }
        calls
    }

    /// Tells by which calls the run came to an instance, and what that uses.
    fn look(&self, at: Instance) -> Vec<Trigger> {
        let trace = &self.run.trace;
        let calls = self.return_addresses(at).into_iter().map(|a| (Target::Memory(a), 8));
        let registers = used(trace, at).0.into_iter().map(|n| (Target::Register(n), 8));
        let memory = trace.loaded(at).into_iter().map(|r| (Target::Memory(r.start), r.len));
        let tell = calls.chain(registers).chain(memory);
        let tell: Vec<Change> = tell.map(|(target, len)| Change::Tell { target, len }).collect();
        let pc = self.run.address(at);
        let arrival = |nth| tell.iter().cloned().map(move |change| Trigger::at(pc, nth, change));
        let end = Trigger::at(pc, ARRIVALS, Change::End);
        (1..=ARRIVALS).flat_map(arrival).chain([end]).collect()
    }

    /// So many definitions, each set to another value.
    fn choose(
        &mut self,
        pick: impl Fn(&mut Random, usize) -> u64,
        wanted: impl Fn(&Instance) -> bool,
        look: &[Trigger],
        count: usize,
    ) -> Vec<Altered> {
        let trace = &self.run.trace;
        let mut chosen = Vec::new();
        for n in 0..100 * count {
            let number = pick(&mut self.random, n);
            let Some(at) = trace.at_number(number).filter(&wanted) else { continue };
            // Half of them the program's own.
            if n.is_multiple_of(2) && !self.run.is_own(trace.instruction(at)) {
                continue;
            }
            let info = trace.code.info(trace.instruction(at));
            if info.flow != Flow::Next || info.instruction.has_rep_prefix() {
                continue;
            }
            // The stack pointer is altered nowhere: a frame that moves is another program.
            let defined = |n: &u8| *n != 4 && info.defs.contains(Cell::gpr(*n, 0));
            let Some(register) = (0..16).find(defined) else { continue };
            let len = (0..8).take_while(|b| info.defs.contains(Cell::gpr(register, *b))).count();
            let value = match self.random.below(4) {
                0 => 0,
                1 => self.random.below(256),
                2 => !0,
                _ => self.random.next() << 32 | self.random.next(),
            };
            let bytes = value.to_le_bytes()[..len].to_vec();
            let change = Change::Set { target: Target::Register(register), bytes };
            let mut experiment = Experiment::one(number + 1, change);
            experiment.triggers = look.to_vec();
            chosen.push(Altered { at, experiment });
            if chosen.len() == count {
                break;
            }
        }
        chosen
    }

    fn kind(
        &self,
        laboratory: &mut Laboratory,
        criterion: Instance,
        altered: &Altered,
        original: &[Vec<u8>],
        told: &[Vec<u8>],
        limits: Limits,
    ) -> Result<Kind, whatif::Error> {
        let trace = &self.run.trace;
        if self.sees_the_same(criterion, original, told) {
            return Ok(Kind::Unchanged);
        }
        let path = Experiment { triggers: Vec::new(), ..altered.experiment.clone() };
        let leaves = laboratory.first_difference(&path, limits)?;
        if leaves.is_some_and(|n| n < trace.number(criterion)) {
            let relevant = self.slice(criterion, true).contains(&altered.at);
            return Ok(if relevant { Kind::BranchChanged } else { Kind::Irrelevant });
        }
        Ok(self.elsewhere(criterion, altered.at).unwrap_or(Kind::Unsound))
    }

    /// Only the bytes that the criterion uses count.
    fn sees_the_same(&self, at: Instance, original: &[Vec<u8>], told: &[Vec<u8>]) -> bool {
        let (registers, cells) = used(&self.run.trace, at);
        original.iter().zip(told).enumerate().all(|(n, (a, b))| match registers.get(n) {
            Some(r) => (0..8u8)
                .filter(|byte| cells.contains(Cell::gpr(*r, *byte)))
                .all(|byte| a.get(usize::from(byte)) == b.get(usize::from(byte))),
            None => a == b,
        })
    }

    /// Did what depends on the altered value decide where something is stored, or what the kernel
    /// is asked for?
    fn elsewhere(&self, criterion: Instance, altered: Instance) -> Option<Kind> {
        let trace = &self.run.trace;
        let options = self.options(false);
        let reached =
            self.slicer.forward(&[Start::Instance(altered)], &options, Instances::default());
        let mut reached: HashSet<Instance> = reached.0.into_iter().map(|(at, ..)| at).collect();
        reached.insert(altered);
        let mut kernel = None;
        for at in reached.iter().copied().filter(|at| *at < criterion) {
            let info = trace.code.info(trace.instruction(at));
            if info.flow == Flow::System {
                kernel = Some(Kind::SystemCall);
            }
            let writes = info.accesses.iter().filter(|access| access.writes);
            let cells = writes.fold(Cells::NONE, |all, access| all.union(address_cells(access)));
            if cells.is_empty() {
                continue;
            }
            let start = Start::Before(at, cells, Vec::new());
            let (direct, _) = self.slicer.direct(&[start], &options, &|_, _| false);
            if direct.dependences().any(|(_, from, _)| reached.contains(&from)) {
                return Some(Kind::OtherLocation);
            }
        }
        kernel
    }

    fn describe(&self, criterion: Instance, altered: &Altered, kind: Kind) -> String {
        let name = |at: Instance| {
            let text = self.run.disassembled(at).unwrap_or_default();
            format!("@{} {:#x} {text}", self.run.trace.number(at), self.run.address(at))
        };
        let change = &altered.experiment.changes;
        format!("{kind:?}: {} depends on {}, {change:?}", name(criterion), name(altered.at))
    }
}
