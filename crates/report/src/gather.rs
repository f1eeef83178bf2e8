//! A slice, line by line: whose are its instances?

use position::{PlaceId, Run};
use slice::{Distance, Visitor};
use std::collections::HashMap;
use trace::{FrameId, Instance, InstructionId};

/// How many of an instruction's latest instances are kept.
const KEPT: usize = 3;

/// Part of a slice that belongs to one instruction.
#[derive(Clone, Debug)]
struct Share {
    instances: u64,
    distance: Distance,
    /// The latest ones, in the order they were met.
    kept: [Option<Instance>; KEPT],
    last: Option<Instance>,
}

/// An instance that stands for itself or for others.
type Meant = (Instance, InstructionId);

/// Takes a slice in, instance by instance.
pub struct Gather<'a> {
    run: &'a Run,
    /// Library code stands for itself, not for the call that led into it.
    via_lib: bool,
    shares: Vec<Option<Share>>,
    callers: HashMap<FrameId, Option<Meant>>,
    /// The latest of them: most instances have the same as the one before.
    latest: Option<(FrameId, Option<Meant>)>,
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
    /// Executions of the line that take part.
    pub executions: u64,
    /// Of these, such as are in by a potential dependence alone.
    pub potential: u64,
    /// The nearest one's distance from the criterion.
    pub distance: Distance,
    /// An instance of each of the latest executions, the latest first.
    pub latest: Vec<Instance>,
}

impl<'a> Gather<'a> {
    /// Begins with nothing.
    pub fn new(run: &'a Run, via_lib: bool) -> Gather<'a> {
        let count = run.trace.code.instructions().count();
        Gather {
            run,
            via_lib,
            shares: vec![None; count],
            callers: HashMap::new(),
            latest: None,
            potential: HashMap::new(),
            instances: 0,
            nobodys: 0,
        }
    }

    /// The instance that stands for another: itself, or the call of the program
    /// that led into a library.
    #[inline]
    fn standing_for(&mut self, at: Instance, id: InstructionId) -> Option<Meant> {
        let run = self.run;
        let shown = run.places.at(id).is_some();
        if shown && (self.via_lib || run.is_own(id)) {
            return Some((at, id));
        }
        let frame = run.trace.control.frame_of(at.time);
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
        if let Some(known) = self.callers.get(&frame) {
            return *known;
        }
        let run = self.run;
        let caller = run.call_of(frame).and_then(|call| {
            let id = run.trace.instruction(call);
            self.standing_for(call, id)
        });
        self.callers.insert(frame, caller);
        caller
    }

    fn add(&mut self, (at, id): Meant, distance: Distance) {
        let new = Share { instances: 0, distance, kept: [None; KEPT], last: None };
        let share = self.shares[id.0 as usize].get_or_insert(new);
        share.distance = share.distance.min(distance);
        if share.last == Some(at) {
            return;
        }
        share.last = Some(at);
        if share.instances < KEPT as u64 {
            share.kept[share.instances as usize] = Some(at);
        }
        share.instances += 1;
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
                executions: 0,
                potential: 0,
                distance: share.distance,
                latest: Vec::new(),
            });
            part.distance = part.distance.min(share.distance);
            let potential = self.potential.get(&id).copied().unwrap_or(0);
            part.potential = part.potential.max(potential);
            // Every execution of the line runs an instruction once at most, so the
            // one met most often tells how many took part.
            if share.instances > part.executions {
                part.executions = share.instances;
                part.latest = share.kept.iter().flatten().copied().collect();
            }
        }
        let mut lines: Vec<LinePart> = parts.into_values().collect();
        lines.sort_by_key(|part| (part.distance, part.place));
        lines
    }
}

impl Visitor for Gather<'_> {
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        self.instances += 1;
        match self.standing_for(at, instruction) {
            Some(meant) => self.add(meant, distance),
            None => self.nobodys += 1,
        }
    }

    fn copy(&self) -> Option<Self> {
        Some(Gather {
            shares: self.shares.clone(),
            potential: self.potential.clone(),
            // Found again where it is needed.
            callers: HashMap::new(),
            ..*self
        })
    }

    fn potential(&mut self, at: Instance, instruction: InstructionId) {
        // Inside of a library, it is the call that takes part, and for other reasons.
        if self.standing_for(at, instruction) == Some((at, instruction)) {
            *self.potential.entry(instruction).or_default() += 1;
        }
    }
}
