//! A slice, line by line: whose are its instances?

use crate::known::Known;
use position::{PlaceId, Run};
use rustc_hash::{FxHashMap, FxHashSet};
use slice::{Distance, Part, Telling, Visitor};
use std::collections::HashMap;
use std::rc::Rc;
use trace::{Flow, FrameId, Instance, InstructionId, PathId, Time};

/// How many of an instruction's latest instances are kept.
pub(crate) const KEPT: usize = 3;

/// Part of a slice that belongs to one instruction.
#[derive(Clone, Debug)]
struct Share {
    instances: u64,
    distance: Distance,
    /// The latest ones, the latest first.
    kept: [Option<Instance>; KEPT],
    /// The one that was told last: it may be told again.
    last: Option<Instance>,
}

impl Share {
    /// One more, unless it is the one that was told last.
    fn add(&mut self, at: Instance) {
        if self.last == Some(at) {
            return;
        }
        self.last = Some(at);
        self.instances += 1;
        let place = self.kept.iter().position(|kept| kept.is_none_or(|kept| kept < at));
        if let Some(place) = place {
            self.kept[place..].rotate_right(1);
            self.kept[place] = Some(at);
        }
    }
}

/// An instance that others stand for.
type Meant = (Instance, InstructionId);

/// Takes a slice in, instance by instance where that matters.
pub struct Gather<'a> {
    run: &'a Run,
    /// Library code stands for itself, not for the call that led into it.
    via_lib: bool,
    /// Is the earliest told first?
    onward: bool,
    /// What was told when the latest came first, and may be told again.
    known: Option<Known<'a>>,
    /// Of each path.
    telling: Rc<[Telling]>,
    shares: Vec<Option<Share>>,
    callers: FxHashMap<FrameId, Option<Meant>>,
    /// The latest of them: most instances have the same as the one before.
    latest: Option<(FrameId, Option<Meant>)>,
    /// Calls that were counted, by themselves or because others stand for them.
    called: FxHashSet<Instance>,
    /// By instruction: how often it is in by a potential dependence alone.
    potential: HashMap<InstructionId, u64>,
    /// Instances in all.
    pub instances: u64,
    /// Of these, such as belong to no line of the program: start-up code, and
    /// what libraries do on their own.
    pub nobodys: u64,
}

/// Part of a slice that belongs to one line.
#[derive(Clone, Debug)]
pub struct LinePart {
    /// The line.
    pub place: PlaceId,
    /// How often each of its instructions takes part.
    pub met: Vec<(InstructionId, u64)>,
    /// Executions that take part by a potential dependence alone.
    pub potential: u64,
    /// The nearest one's distance from the criterion.
    pub distance: Distance,
    /// The latest instances of each instruction, the latest first: several may belong to one
    /// execution of the line.
    pub latest: Vec<Instance>,
}

impl<'a> Gather<'a> {
    /// Begins with nothing.
    pub fn new(run: &'a Run, via_lib: bool) -> Gather<'a> {
        let count = run.trace.code.instructions().count();
        Gather {
            run,
            via_lib,
            onward: false,
            known: None,
            telling: tellings(run, via_lib),
            shares: vec![None; count],
            callers: FxHashMap::default(),
            latest: None,
            called: FxHashSet::default(),
            potential: HashMap::new(),
            instances: 0,
            nobodys: 0,
        }
    }

    /// The same, for what comes from the earliest on. Of that, some is known already.
    pub fn onward(self, known: Option<Known<'a>>) -> Gather<'a> {
        Gather { onward: true, known, ..self }
    }

    fn is_known(&self, at: Instance) -> bool {
        self.known.as_ref().is_some_and(|known| known.has(at))
    }

    /// The instance of the program that a record of other code stands for: the call that led there.
    fn standing_for(&mut self, time: Time) -> Option<Meant> {
        let frame = self.run.trace.control.frame_of(time);
        match self.latest {
            Some((latest, caller)) if latest == frame => caller,
            _ => {
                let caller = self.caller(frame);
                self.latest = Some((frame, caller));
                caller
            }
        }
    }

    /// The call of the program that led into an activation.
    fn caller(&mut self, frame: FrameId) -> Option<Meant> {
        let run = self.run;
        let (mut frame, mut passed) = (frame, Vec::new());
        let found = loop {
            if let Some(known) = self.callers.get(&frame) {
                break *known;
            }
            passed.push(frame);
            let Some(call) = run.call_of(frame) else { break None };
            let id = run.trace.instruction(call);
            if is_shown(run, id, self.via_lib) {
                break Some((call, id));
            }
            frame = run.trace.control.frame_of(call.time);
        };
        self.callers.extend(passed.into_iter().map(|frame| (frame, found)));
        found
    }

    fn share(&mut self, id: InstructionId, distance: Distance) -> &mut Share {
        let new = Share { instances: 0, distance, kept: [None; KEPT], last: None };
        let share = self.shares[id.0 as usize].get_or_insert(new);
        share.distance = share.distance.min(distance);
        share
    }

    /// An instance of the program's own code. Its calls may have been counted already: other code
    /// stands for them.
    fn add(&mut self, at: Instance, id: InstructionId, distance: Distance) {
        let is_call = self.run.trace.code.info(id).flow == Flow::Call;
        let known = is_call
            && match self.onward {
                true => !self.called.insert(at),
                false => self.called.contains(&at),
            };
        let share = self.share(id, distance);
        if !known {
            share.add(at);
        }
    }

    /// An instance of other code, and the call that it stands for.
    fn add_call(&mut self, (call, id): Meant, distance: Distance) {
        let share = self.share(id, distance);
        if share.last != Some(call) && self.called.insert(call) && !self.is_known(call) {
            self.share(id, distance).add(call);
        }
    }

    /// An instance that was counted already. It may be nearer this way.
    fn add_known(&mut self, at: Instance, id: InstructionId, distance: Distance) {
        let id = match is_shown(self.run, id, self.via_lib) {
            true => Some(id),
            false => self.standing_for(at.time).map(|(_, id)| id),
        };
        if let Some(id) = id {
            self.share(id, distance);
        }
    }

    /// The slice's lines, nearest first.
    pub fn lines(&self) -> Vec<LinePart> {
        let mut parts: HashMap<PlaceId, LinePart> = HashMap::new();
        for (n, share) in self.shares.iter().enumerate() {
            let Some(share) = share else { continue };
            let id = InstructionId(n as u32);
            let Some(place) = self.run.places.at(id) else { continue };
            let part = parts.entry(place).or_insert_with(|| LinePart {
                place,
                met: Vec::new(),
                potential: 0,
                distance: share.distance,
                latest: Vec::new(),
            });
            part.distance = part.distance.min(share.distance);
            let potential = self.potential.get(&id).copied().unwrap_or(0);
            part.potential = part.potential.max(potential);
            if share.instances > 0 {
                part.met.push((id, share.instances));
            }
            part.latest.extend(share.kept.iter().flatten());
        }
        let mut lines: Vec<LinePart> = parts.into_values().collect();
        for part in &mut lines {
            part.latest.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        }
        lines.sort_by_key(|part| (part.distance, part.place));
        lines
    }
}

/// Is it code that the answer shows, not the calls that led there?
fn is_shown(run: &Run, id: InstructionId, via_lib: bool) -> bool {
    run.places.at(id).is_some() && (via_lib || run.is_own(id))
}

/// By path: what all of it has in common need not be told one by one. Calls are: others may
/// stand for them too.
fn tellings(run: &Run, via_lib: bool) -> Rc<[Telling]> {
    let code = &run.trace.code;
    let of = |id: InstructionId| match is_shown(run, id, via_lib) {
        false => Telling::ByRecord,
        true if code.info(id).flow == Flow::Call => Telling::OneByOne,
        true => Telling::InTheEnd,
    };
    let instructions: Vec<Telling> = code.instructions().map(|(id, _)| of(id)).collect();
    let common = |path| {
        let mut all = code.ops(path).iter().map(|op| instructions[op.instruction.0 as usize]);
        let first = all.next().unwrap_or(Telling::OneByOne);
        if all.all(|telling| telling == first) { first } else { Telling::OneByOne }
    };
    code.paths().map(|(_, path)| common(path)).collect()
}

impl Visitor for Gather<'_> {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        if self.is_known(at) {
            return self.add_known(at, instruction, distance);
        }
        self.instances += 1;
        if is_shown(self.run, instruction, self.via_lib) {
            return self.add(at, instruction, distance);
        }
        match self.standing_for(at.time) {
            Some(meant) => self.add_call(meant, distance),
            None => self.nobodys += 1,
        }
    }

    const TALLIES: bool = true;
    const LATEST: u32 = KEPT as u32;

    #[inline]
    fn telling(&self, path: PathId) -> Telling {
        self.telling[path.0 as usize]
    }

    fn record(&mut self, time: Time, instances: u64, nearest: Distance) {
        self.instances += instances;
        match self.standing_for(time) {
            Some(call) => self.add_call(call, nearest),
            None => self.nobodys += instances,
        }
    }

    fn tally(&mut self, instruction: InstructionId, part: Part) {
        self.instances += part.instances;
        self.share(instruction, part.distance).instances += part.instances;
    }

    fn copy(&self) -> Option<Self> {
        Some(Gather {
            known: self.known.clone(),
            telling: self.telling.clone(),
            shares: self.shares.clone(),
            called: self.called.clone(),
            potential: self.potential.clone(),
            // Found again where it is needed.
            callers: FxHashMap::default(),
            ..*self
        })
    }

    fn potential(&mut self, _: Instance, instruction: InstructionId) {
        // Inside of a library, it is the call that takes part, and for other reasons.
        if is_shown(self.run, instruction, self.via_lib) {
            *self.potential.entry(instruction).or_default() += 1;
        }
    }
}
