//! From the raw trace to one that can be asked.

use crate::batch::{Batch, IDLE, Shape, Stop};
use crate::code::PathId;
use crate::decoding::Decoding;
use crate::images::Contents;
use crate::packed::Packer;
use crate::records::{Records, Time};
use crate::room;
use crate::stored::Parts;
use engine::large::Ahead;
use engine::trace::{Ended, Event, Sink, Unit, Units};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use rustc_hash::FxHashSet;
use std::collections::{BTreeSet, HashMap};

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
    contents: Contents,
    /// Per number in the raw trace: what the reader needs of a path at every record, once it ran.
    shapes: Vec<Shape>,
    /// The same of all paths of units that ran.
    known: Vec<Shape>,
    /// Per number in the raw trace: its unit, one of those that were told.
    unit_of: Vec<u32>,
    told: Vec<Told>,
    /// Where records are taken apart, if that is not being done.
    batch: Option<Box<Batch>>,
    pub(crate) targets: Targets,
    packer: Option<Packer>,
    /// Gets memory for records that will come. Begun with the first: there is no fork then.
    ahead: Option<Ahead>,
    /// Indirect jump whose target is the next record's start.
    jumped: Option<PathId>,
    /// Of each path that ran.
    ends: Vec<Ends>,
    /// Where indirect jumps lately went.
    ways: Ways,
}

/// A unit that was told, and where.
pub(crate) struct Told {
    units: Units,
    place: usize,
}

impl Told {
    pub fn unit(&self) -> Unit<'_> {
        self.units.at(self.place).expect("it was there")
    }
}

/// Where a path begins and ends.
#[derive(Clone, Copy)]
struct Ends {
    start: u64,
    last: Option<u64>,
}

/// From one path to another: the ways that indirect jumps went. There are far more jumps than
/// ways.
struct Ways {
    /// Some of them, by both.
    lately: Box<[(PathId, PathId); LATELY]>,
    all: FxHashSet<(PathId, PathId)>,
}

const LATELY: usize = 1 << 12;

impl Default for Ways {
    fn default() -> Ways {
        Ways { lately: Box::new([(IDLE, IDLE); LATELY]), all: FxHashSet::default() }
    }
}

impl Ways {
    /// Is it known? It is from now on.
    #[inline]
    fn know(&mut self, from: PathId, to: PathId) -> bool {
        let place = (from.0.wrapping_mul(0x9e37_79b9) ^ to.0).wrapping_mul(0x85eb_ca6b);
        let lately = &mut self.lately[(place >> (u32::BITS - LATELY.ilog2())) as usize];
        *lately == (from, to) || {
            *lately = (from, to);
            !self.all.insert((from, to))
        }
    }
}

impl Sink for Builder<'_> {
    fn units(&mut self, units: Units) {
        for (place, unit) in units.iter() {
            let first = unit.first_path() as usize;
            let end = first + unit.paths().len();
            if self.shapes.len() < end {
                self.shapes.resize(end, Shape::default());
                self.known.resize(end, Shape::default());
                self.unit_of.resize(end, 0);
            }
            self.unit_of[first..end].fill(self.told.len() as u32);
            self.told.push(Told { units: units.clone(), place });
        }
    }

    fn records(&mut self, mut bytes: &[u8]) {
        let mut batch = self.batch.take().unwrap_or_default();
        while !bytes.is_empty() {
            let room = self.records.room();
            let (rest, stop) = batch.read(bytes, room, &self.shapes, self.records.shortener());
            self.records.append(batch.paths(), batch.captured(), batch.instructions());
            self.note_targets(&batch);
            if let Stop::New(raw) = stop {
                self.begin(raw);
            }
            bytes = rest;
        }
        self.batch = Some(batch);
        self.records.settle(&mut self.packer);
        self.records.note(self.ahead.get_or_insert_with(|| Ahead::begin(self.records.rooms())));
        (self.progress)(self.records.instructions());
    }

    fn event(&mut self, event: Event) {
        // What comes next was not jumped to.
        self.jumped = None;
        if let Event::Mapped(mapped) = &event {
            self.contents.note(mapped);
        }
        self.events.push((self.records.now(), event));
    }

    fn wants_more(&self) -> bool {
        self.records.instructions() < self.enough && self.too_much().is_none()
    }
}

/// What control dependences and activations may take for each record, if all are asked for.
const LABELS: u64 = 12;

/// Records are numbered; a few numbers have another meaning.
const MOST_RECORDS: u32 = u32::MAX - (1 << 20);

impl<'a> Builder<'a> {
    /// Begins with nothing but the contents of files. Captured registers beyond `limit` bytes are
    /// packed.
    pub fn new(contents: Contents, limit: u64, progress: &'a mut dyn FnMut(u64)) -> Builder<'a> {
        Builder {
            progress,
            enough: u64::MAX,
            room: room::for_trace(),
            decoding: Decoding::default(),
            records: Records::new(limit).with_room(),
            events: Vec::new(),
            contents,
            shapes: Vec::new(),
            known: Vec::new(),
            unit_of: Vec::new(),
            told: Vec::new(),
            batch: None,
            targets: HashMap::new(),
            packer: None,
            ahead: None,
            jumped: None,
            ends: Vec::new(),
            ways: Ways::default(),
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

    /// A path runs for the first time: its unit is code that ran.
    fn begin(&mut self, raw: u32) {
        if self.known[raw as usize].path == IDLE {
            self.introduce(raw);
        }
        let shape = self.known[raw as usize];
        self.shapes[raw as usize] = shape;
        self.records.begin(shape.path);
    }

    fn introduce(&mut self, raw: u32) {
        let Told { units, place } = &self.told[self.unit_of[raw as usize] as usize];
        let told = Told { units: units.clone(), place: *place };
        let unit = told.unit();
        let first_path = self.ends.len() as u32;
        let code: Vec<(u64, &[u8])> = unit.instructions().collect();
        let start = code.first().map_or(0, |(address, _)| *address);
        for (n, (instructions, captures)) in (unit.first_path() as usize..).zip(unit.paths()) {
            let path = PathId(self.ends.len() as u32);
            let last = usize::from(instructions).checked_sub(1).and_then(|n| code.get(n).copied());
            self.ends.push(Ends { start, last: last.map(|(address, _)| address) });
            self.records.add_path(captures, instructions);
            let indirect = last.is_some_and(|(_, bytes)| is_indirect(bytes));
            self.known[n] = Shape::new(path, captures, instructions, indirect);
        }
        self.decoding.add(first_path, told);
    }

    /// Where indirect jumps among the latest records went: the last one's target comes with the
    /// next.
    fn note_targets(&mut self, batch: &Batch) {
        let paths = batch.paths();
        if let (Some(from), Some(to)) = (self.jumped, paths.first()) {
            self.note_target(from, *to);
            self.jumped = None;
        }
        for n in batch.jumps() {
            match paths.get(n + 1) {
                Some(to) => self.note_target(paths[n], *to),
                None => self.jumped = Some(paths[n]),
            }
        }
    }

    fn note_target(&mut self, from: PathId, to: PathId) {
        if self.ways.know(from, to) {
            return;
        }
        let target = self.ends[to.0 as usize].start;
        if let Some(jump) = self.ends[from.0 as usize].last {
            self.targets.entry(jump).or_default().insert(target);
        }
    }

    /// No more records come.
    pub(crate) fn finish(mut self, ended: Ended) -> Parts {
        self.records.finish();
        let Builder { decoding, records, events, contents, targets, .. } = self;
        Parts { code: decoding.finish(), records, events, contents, targets, ended }
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
    use engine::trace::Head;

    /// A unit with one path, which captures as many registers as it is told to.
    fn nops(count: u16, captures: u16) -> Units {
        let nop = |n| (0x1000 + u64::from(n), &[0x90][..]);
        let told = Unit::tell(0, (0..count).map(nop), [(count, captures)].into_iter());
        Units::new(told).expect("a unit")
    }

    fn record(captured: &[u64]) -> Vec<u8> {
        let head = Head::new(0, captured.len() as u16).to_bytes();
        head.into_iter().chain(captured.iter().flat_map(|value| value.to_le_bytes())).collect()
    }

    #[test]
    fn records_with_few_and_with_many_registers_are_read_as_they_were_written() {
        for captures in [0, 1, 3, 4, 5, 14, 15, 16, 40] {
            let captured = |n: u64| (0..captures).map(move |k| (n * k) << (k % 64));
            let records = 0..2000;
            let bytes = records.clone().flat_map(|n| record(&captured(n).collect::<Vec<_>>()));
            let mut progress = |_| ();
            let mut builder = Builder::new(Contents::none(), u64::MAX, &mut progress);
            builder.units(nops(3, captures as u16));
            builder.records(&bytes.collect::<Vec<u8>>());
            let Parts { records: read, .. } = builder.finish(Ended { complete: true, pc: 0 });
            assert_eq!((read.len(), read.instructions()), (2000, 6000), "{captures}");
            assert!(read.captured(0).all().all().eq(records.flat_map(captured)), "{captures}");
        }
    }

    #[test]
    fn a_trace_without_room_wants_no_more_and_says_how_far_it_came() {
        let mut progress = |_| ();
        let mut builder = Builder::new(Contents::none(), u64::MAX, &mut progress).within(1000);
        assert!(builder.wants_more());
        builder.units(nops(3, 0));
        builder.records(&record(&[]).repeat(100));
        assert!(!builder.wants_more());
        assert_eq!(builder.too_much(), Some((300, 1600)));
    }
}
