//! The trace as traced code leaves it: chunks of records, and what goes with them.

use super::link::Link;
use super::{Event, Unit};
use crate::code::captures::{Captures, Touched};
use crate::code::tracing::{HEADER, Head, PathEnd, UnitTrace};
use crate::code::translate::Place;
use crate::context::{Context, Registers, context};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use std::collections::HashMap;

type Fetch<'a> = &'a dyn Fn(u64) -> &'static [u8];

/// Collects what traced code writes and hands it on, chunk by chunk.
pub struct Tracer {
    link: Link,
    /// The chunk being written, and its first address.
    chunk: usize,
    start: u64,
    next_path: u32,
    /// Units that whoever reads has not heard of: one after the other, as they are sent.
    units: Vec<u8>,
    events: Vec<(u32, Event)>,
    /// Paths that are no way out of a unit of code: what was executed alone, and what a
    /// fault ended. By address, instructions executed, and whether one more was begun.
    apart: HashMap<(u64, u16, bool), Vec<u8>>,
    /// The instruction that runs alone right now, and the start of its record.
    alone: Option<(u64, UnitTrace)>,
    /// Why the other side is gone, if it is.
    broken: Option<std::io::Error>,
}

impl Tracer {
    /// Writes into the chunks of a link.
    pub fn new(mut link: Link) -> std::io::Result<Tracer> {
        let chunk = link.wait_free()?;
        let start = link.address(chunk);
        // SAFETY: guest code is not running.
        unsafe { context() }.cursor = start;
        Ok(Tracer {
            link,
            chunk,
            start,
            next_path: 0,
            units: Vec::new(),
            events: Vec::new(),
            apart: HashMap::new(),
            alone: None,
            broken: None,
        })
    }

    /// The number that the next unit's first path gets.
    pub fn next_path(&self) -> u32 {
        self.next_path
    }

    /// Paths have numbers from here on: the others are in code that was kept.
    pub fn begin_at(&mut self, next_path: u32) {
        self.next_path = next_path;
    }

    /// Units of earlier runs may run from now on; what their records mean.
    pub fn know(&mut self, meanings: &[u8]) {
        self.units.extend_from_slice(meanings);
    }

    /// A unit was translated. Returns what its records mean, and the number that the next
    /// unit's first path gets.
    pub fn add_unit(&mut self, unit: &UnitTrace, fetch: Fetch) -> (Vec<u8>, u32) {
        let meaning = match unit.paths.is_empty() {
            // The engine does its first instruction itself: it leaves no records.
            true => Vec::new(),
            false => self.tell(unit, fetch),
        };
        (meaning, self.next_path)
    }

    fn tell(&mut self, unit: &UnitTrace, fetch: Fetch) -> Vec<u8> {
        let meaning = self.described(unit, fetch);
        self.know(&meaning);
        self.next_path += unit.paths.len() as u32;
        meaning
    }

    fn described(&self, unit: &UnitTrace, fetch: Fetch) -> Vec<u8> {
        // To fetch takes long, and mostly all instructions lie in what is fetched for the first.
        let mut fetched: (u64, &'static [u8]) = (0, &[]);
        let code = |&(pc, len): &(u64, u8)| {
            let len = usize::from(len);
            let within = |(start, bytes): (u64, &'static [u8])| {
                let at = usize::try_from(pc.checked_sub(start)?).ok()?;
                bytes.get(at..at.checked_add(len)?)
            };
            let bytes = within(fetched).unwrap_or_else(|| {
                fetched = (pc, fetch(pc));
                &fetched.1[..len]
            });
            (pc, bytes)
        };
        let paths = unit.paths.iter().map(|p| (p.instructions, p.captures));
        Unit::tell(self.next_path, unit.instructions.iter().map(code), paths)
    }

    /// The number of a path that is the only one of its unit. Code may change, so the same
    /// place need not mean the same.
    fn path_apart(&mut self, unit: &UnitTrace, fetch: Fetch) -> u32 {
        let executed = unit.paths[0].instructions;
        let faults = unit.instructions.len() > usize::from(executed);
        let key = (unit.instructions[0].0, executed, faults);
        let described = self.described(unit, fetch);
        let read = |told| Unit::read(told).expect("whole units are told").0;
        let like = |known: &Unit<'_>| known.is_like(&read(&described));
        if let Some(known) = self.apart.get(&key).map(|told| read(told)).filter(like) {
            return known.first_path();
        }
        let path = self.next_path;
        let meaning = self.tell(unit, fetch);
        self.apart.insert(key, meaning);
        path
    }

    /// Something happened here that is not in the records.
    pub fn event(&mut self, event: Event) {
        // SAFETY: guest code is not running.
        let at = unsafe { context() }.cursor - self.start;
        self.events.push((at as u32, event));
    }

    /// Does a store to this address mean that the chunk is full?
    pub fn is_full(&self, address: u64) -> bool {
        self.link.is_guard(self.chunk, address)
    }

    /// Hands the chunk on; the record that began at `at` moves to the next, whose
    /// start is returned.
    pub fn next_chunk(&mut self, at: u64) -> u64 {
        let left = self.link.end(self.chunk) - at;
        let mut moved = vec![0; left as usize];
        self.link.read(at, &mut moved);
        self.send(at);
        self.link.write(self.start, &moved);
        // SAFETY: guest code is not running.
        unsafe { context() }.cursor = self.start;
        self.start
    }

    fn send(&mut self, end: u64) {
        let units = std::mem::take(&mut self.units);
        let events = std::mem::take(&mut self.events);
        let sent = self
            .link
            .send(self.chunk, (end - self.start) as u32, events, &units)
            .and_then(|()| self.link.wait_free());
        match sent {
            Ok(chunk) => self.chunk = chunk,
            // The chunk is written over: nobody looks at it any more.
            Err(error) => self.broken = Some(error),
        }
        self.start = self.link.address(self.chunk);
    }

    /// Nobody reads any more.
    pub fn broken(&mut self) -> Option<std::io::Error> {
        self.broken.take()
    }

    /// The run is over: hands on what is left.
    pub fn finish(&mut self) {
        // SAFETY: guest code is not running.
        let end = unsafe { context() }.cursor;
        self.send(end);
    }

    /// A unit ended by a fault at `place`: its record says how far it got.
    pub fn cut(&mut self, c: &mut Context, place: &Place, unit: Option<&UnitTrace>, fetch: Fetch) {
        let Some(unit) = unit else { return self.alone_faults(fetch) };
        let record = match (place.open, place.written) {
            (true, _) => c.cursor,
            (false, Some(path)) => c.cursor - unit.paths[path as usize].record_bytes() as u64,
            (false, None) => return,
        };
        // A record that captured nothing yet may begin where the chunk ends.
        let room = record + HEADER as u64 <= self.link.end(self.chunk);
        let record = if room { record } else { self.next_chunk(record) };
        let index = place.index as usize;
        let captures = unit.captures.iter().take_while(|c| c.before as usize <= index).count();
        let end = PathEnd { instructions: index as u16, captures: captures as u16 };
        let cut = UnitTrace {
            instructions: unit.instructions[..(index + 1).min(unit.instructions.len())].to_vec(),
            captures: unit.captures[..captures].to_vec(),
            paths: vec![end],
        };
        let path = self.path_apart(&cut, fetch);
        self.link.write(record, &Head::new(path, end.captures).to_bytes());
        c.cursor = record + end.record_bytes() as u64;
    }

    /// The instruction at RIP runs alone, outside of traced code.
    pub fn one(&mut self, regs: &Registers, fetch: Fetch) {
        // What ran alone before has happened.
        self.alone = None;
        let pc = regs.rip;
        let i = decode(pc, fetch);
        if i.is_invalid() {
            return;
        }
        let mut captures = Captures::new();
        let touched = Touched::by(&i, &mut InstructionInfoFactory::new());
        captures.before(touched);
        captures.after(&i, touched);
        let unit = UnitTrace {
            instructions: vec![(pc, i.len() as u8)],
            captures: captures.list().to_vec(),
            paths: vec![PathEnd { instructions: 1, captures: captures.list().len() as u16 }],
        };
        let path = self.path_apart(&unit, fetch);
        let mut record = Head::new(path, unit.paths[0].captures).to_bytes().to_vec();
        for capture in &unit.captures {
            record.extend_from_slice(&regs.gpr[capture.register as usize].to_le_bytes());
        }
        debug_assert_eq!(record.len(), HEADER + 8 * unit.captures.len());
        // SAFETY: guest code is not running.
        let c = unsafe { context() };
        if c.cursor + record.len() as u64 > self.link.end(self.chunk) {
            c.cursor = self.next_chunk(c.cursor);
        }
        self.link.write(c.cursor, &record);
        self.alone = Some((c.cursor, unit));
        c.cursor += record.len() as u64;
    }

    /// It did not: it was begun and faulted.
    pub fn alone_faults(&mut self, fetch: Fetch) {
        let Some((record, mut unit)) = self.alone.take() else { return };
        unit.paths[0].instructions = 0;
        let path = self.path_apart(&unit, fetch);
        self.link.write(record, &Head::new(path, unit.paths[0].captures).to_bytes());
    }
}

fn decode(pc: u64, fetch: Fetch) -> Instruction {
    Decoder::with_ip(64, fetch(pc), pc, DecoderOptions::NONE).decode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::link::{Chunks, Link, Message, get};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_fault_where_a_chunk_ends_is_told_in_the_next() {
        static CODE: [u8; 16] = [0x0f, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        crate::crossing::map_context(0).expect("nobody else uses that page");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let link = Link::new(Chunks::new().expect("some memory"), theirs);
        let mut tracer = Tracer::new(link).expect("a free chunk");
        let unit = UnitTrace {
            instructions: vec![(0x1000, 2)],
            captures: Vec::new(),
            paths: vec![PathEnd { instructions: 1, captures: 0 }],
        };
        let place = Place {
            offset: 0,
            pc: 0x1000,
            index: 0,
            spilled: None,
            counter: None,
            budget: None,
            stands: None,
            open: true,
            written: None,
            returns: false,
        };
        // SAFETY: just mapped, and no guest runs.
        let c = unsafe { context() };
        c.cursor = tracer.link.end(tracer.chunk);
        let full = c.cursor - tracer.start;
        tracer.cut(c, &place, Some(&unit), &|_| &CODE);
        assert_eq!(c.cursor, tracer.start + HEADER as u64);
        let (message, _) = get(&mut ours).expect("the full chunk");
        let Message::Chunk { chunk, len, .. } = message else { panic!("not the end") };
        assert_eq!((chunk, u64::from(len), tracer.chunk), (0, full, 1));
    }
}
