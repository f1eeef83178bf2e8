//! From the raw trace to one that can be asked.

use crate::code::PathId;
use crate::decoding::Decoding;
use crate::packed::Packer;
use crate::records::{Records, Time};
use crate::room;
use crate::stored::Parts;
use engine::large::Ahead;
use engine::trace::{Ended, Event, HEADER, Sink, Unit};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Targets of indirect jumps and calls, by the jump's address.
pub(crate) type Targets = HashMap<u64, BTreeSet<u64>>;

/// Reads a raw trace.
pub struct Builder<'a> {
    /// Is told how many instructions have been read.
    progress: &'a mut dyn FnMut(u64),
    /// So many instructions are enough.
    enough: u64,
    /// So much memory it may take.
    room: u64,
    decoding: Decoding,
    pub(crate) records: Records,
    pub(crate) events: Vec<(Time, Event)>,
    /// Per number in the raw trace: what the reader needs of a path at every record.
    shapes: Vec<Shape>,
    /// Units none of whose paths has run yet, by their first number in the raw trace.
    idle: BTreeMap<u32, Unit>,
    pub(crate) targets: Targets,
    packer: Option<Packer>,
    /// Gets memory for records that will come. Begun with the first: there is no fork then.
    ahead: Option<Ahead>,
    /// Indirect jump whose target is the next record's start.
    jumped: Option<PathId>,
    /// Of each path that ran.
    ends: Vec<Ends>,
}

#[derive(Clone, Copy)]
struct Shape {
    /// Its number here. Units get their numbers when they first run: code that was kept and
    /// did not run has none.
    path: PathId,
    captures: u16,
    instructions: u16,
    indirect: bool,
}

/// Where a path begins and ends.
#[derive(Clone, Copy)]
struct Ends {
    start: u64,
    last: Option<u64>,
    /// The last target, if it ends in an indirect jump.
    target: PathId,
}

/// A path that has not run yet.
const IDLE: PathId = PathId(u32::MAX);

impl Default for Shape {
    fn default() -> Shape {
        Shape { path: IDLE, captures: 0, instructions: 0, indirect: false }
    }
}

impl Sink for Builder<'_> {
    fn unit(&mut self, unit: Unit) {
        let end = unit.first_path as usize + unit.paths.len();
        if self.shapes.len() < end {
            self.shapes.resize(end, Shape::default());
        }
        self.idle.insert(unit.first_path, unit);
    }

    fn records(&mut self, mut bytes: &[u8]) {
        while let Some((head, rest)) = bytes.split_at_checked(HEADER) {
            let raw = u32::from_le_bytes(head.try_into().expect("four bytes"));
            let mut shape = self.shapes[raw as usize];
            if shape.path == IDLE {
                self.introduce(raw);
                shape = self.shapes[raw as usize];
            }
            let path = shape.path;
            let (captured, rest) = rest.split_at(8 * usize::from(shape.captures));
            self.records.push(path, captured, shape.instructions);
            if let Some(from) = self.jumped.take() {
                self.note_target(from, path);
            }
            if shape.indirect {
                self.jumped = Some(path);
            }
            bytes = rest;
        }
        self.records.settle(&mut self.packer);
        self.records.note(self.ahead.get_or_insert_with(|| Ahead::begin(self.records.rooms())));
        (self.progress)(self.records.instructions());
    }

    fn event(&mut self, event: Event) {
        // What comes next was not jumped to.
        self.jumped = None;
        self.events.push((self.records.now(), event));
    }

    fn wants_more(&self) -> bool {
        self.records.instructions() < self.enough && self.too_much().is_none()
    }
}

/// What control dependences and activations take for each record.
const LABELS: u64 = 12;

/// Records are numbered; a few numbers have another meaning.
const MOST_RECORDS: u32 = u32::MAX - (1 << 20);

impl<'a> Builder<'a> {
    /// Begins with nothing. Captured registers beyond `limit` bytes are packed.
    pub fn new(limit: u64, progress: &'a mut dyn FnMut(u64)) -> Builder<'a> {
        Builder {
            progress,
            enough: u64::MAX,
            room: room::for_trace(),
            decoding: Decoding::default(),
            records: Records::new(limit).with_room(),
            events: Vec::new(),
            shapes: Vec::new(),
            idle: BTreeMap::new(),
            targets: HashMap::new(),
            packer: None,
            ahead: None,
            jumped: None,
            ends: Vec::new(),
        }
    }

    /// The same, for the beginning of the run: so many instructions, and a few more.
    pub fn until(self, enough: u64) -> Builder<'a> {
        Builder { enough, ..self }
    }

    /// The same, for the end of the run: so many instructions went before.
    pub fn after(self, before: u64) -> Builder<'a> {
        Builder { records: self.records.after(before), ..self }
    }

    /// The instructions and bytes so far, if they are too many.
    pub(crate) fn too_much(&self) -> Option<(u64, u64)> {
        let records = self.records.len();
        let bytes = self.records.size() + LABELS * u64::from(records);
        let instructions = self.records.instructions() - self.records.before();
        (bytes > self.room || records >= MOST_RECORDS).then_some((instructions, bytes))
    }

    /// The same, where a trace may take so many bytes.
    #[cfg(test)]
    pub(crate) fn within(self, room: u64) -> Builder<'a> {
        Builder { room, ..self }
    }

    /// A path runs for the first time: its unit is code that ran. That is rare, and must not
    /// be in the way of those that are not new.
    #[cold]
    #[inline(never)]
    fn introduce(&mut self, raw: u32) {
        let near = self.idle.range(..=raw).next_back();
        let own = near.filter(|(first, unit)| ((raw - **first) as usize) < unit.paths.len());
        let first = *own.expect("units come before records").0;
        let mut unit = self.idle.remove(&first).expect("just seen");
        unit.first_path = self.ends.len() as u32;
        for (n, &(instructions, captures)) in (first as usize..).zip(&unit.paths) {
            let path = PathId(self.ends.len() as u32);
            let last = unit.instructions[..usize::from(instructions)].last();
            let (start, target) = (unit.instructions[0].0, IDLE);
            self.ends.push(Ends { start, last: last.map(|(address, _)| *address), target });
            self.records.add_path(captures, instructions);
            let indirect = last.is_some_and(|(_, bytes)| is_indirect(bytes));
            self.shapes[n] = Shape { path, captures, instructions, indirect };
        }
        self.decoding.add(unit);
    }

    fn note_target(&mut self, from: PathId, to: PathId) {
        let target = self.ends[to.0 as usize].start;
        let from = &mut self.ends[from.0 as usize];
        if std::mem::replace(&mut from.target, to) == to {
            return;
        }
        if let Some(jump) = from.last {
            self.targets.entry(jump).or_default().insert(target);
        }
    }

    /// No more records come.
    pub(crate) fn finish(mut self, ended: Ended) -> Parts {
        self.records.finish();
        let Builder { decoding, records, events, targets, .. } = self;
        Parts { code: decoding.finish(), records, events, targets, ended }
    }
}

/// Does an instruction go to a computed place, other than back?
fn is_indirect(bytes: &[u8]) -> bool {
    let i = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    matches!(i.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_without_room_wants_no_more_and_says_how_far_it_came() {
        let mut progress = |_| ();
        let builder = Builder::new(u64::MAX, &mut progress).within(1000);
        assert!(builder.wants_more());
        let mut builder = builder;
        for _ in 0..100 {
            builder.records.push(PathId(0), &[], 3);
        }
        assert!(!builder.wants_more());
        assert_eq!(builder.too_much(), Some((300, 1600)));
    }
}
