//! What was done to the blocks of the heap that must not be done to them?

use crate::accesses::{Access, accesses};
use crate::blocks::{Blocks, Misuse};
use crate::heap::Heap;
use iced_x86::Mnemonic;
use position::{At, PlaceId, Run};
use report::MisuseKind as Kind;
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use trace::{Info, Instance, InstructionId};

/// So many reads of what was not set are kept.
const READS: usize = 1 << 20;
/// Functions of the C library that write what they are told to where they are told to.
const WRITERS: [&str; 18] = [
    "mem",
    "str",
    "stp",
    "wcs",
    "wmem",
    "bzero",
    "bcopy",
    "sprintf",
    "snprintf",
    "vsprintf",
    "vsnprintf",
    "sscanf",
    "fscanf",
    "scanf",
    "isoc",
    "fread",
    "fgets",
    "qsort",
];

/// What was found.
#[derive(Default)]
pub struct Misuses {
    /// What is wrong by itself: the first of each kind and line.
    pub certain: Vec<Misuse>,
    /// Reads of bytes that nothing had been put into, and where the block came from. That is
    /// wrong only if something comes of it.
    pub unset: HashMap<Instance, Instance>,
}

/// Goes through all accesses of a run. `None` if there was no time for it, or not all blocks are
/// known.
pub fn misuses(run: &Run, late: Instant) -> Option<Misuses> {
    if !run.trace.is_from_start() {
        return None;
    }
    let heap = Heap::of(run, late)?;
    if heap.calls.is_empty() {
        return Some(Misuses::default());
    }
    let image = heap.image;
    let blocks = Blocks::new(run, heap);
    let mut watch = Watch { run, blocks, image, found: Misuses::default(), seen: HashSet::new() };
    let done = accesses(run, run.trace.last_instance(), late, &mut |access| watch.see(&access));
    watch.go_on(run.trace.last_instance());
    if run.trace.code.instructions().any(|(_, info)| scatters(info)) {
        // Where that puts something is not known.
        watch.found.unset.clear();
    }
    done.then_some(watch.found)
}

/// Is an instruction part of a line of the program?
fn is_written_out(run: &Run, id: InstructionId) -> bool {
    let place = run.places.at(id).filter(|_| run.is_own(id));
    place.is_some_and(|place| matches!(run.places.get(place).at, At::Line(..)))
}

/// Does an instruction store to many places?
fn scatters(info: &Info) -> bool {
    info.accesses.iter().any(|access| access.writes && access.address.vector_index)
}

/// Does an instruction leave out some of the bytes that it could touch?
fn is_masked(run: &Run, id: InstructionId) -> bool {
    use Mnemonic::*;
    let instruction = &run.trace.code.info(id).instruction;
    let masked =
        [Vmaskmovps, Vmaskmovpd, Vpmaskmovd, Vpmaskmovq, Maskmovdqu, Maskmovq, Vmaskmovdqu];
    instruction.has_op_mask() || masked.contains(&instruction.mnemonic())
}

/// Lines that have been told of something.
type Seen = HashSet<(Kind, PlaceId)>;

impl Misuses {
    /// The first of each kind and line is kept, if both lines are the program's.
    fn tell(&mut self, run: &Run, seen: &mut Seen, misuse: Misuse) {
        let own = run.own_instance(misuse.at).filter(|_| run.own_instance(misuse.call).is_some());
        let place = own.and_then(|own| run.places.at(run.trace.instruction(own)));
        if place.is_some_and(|place| seen.insert((misuse.kind, place))) {
            self.certain.push(misuse);
        }
    }
}

/// One walk through all accesses.
struct Watch<'a> {
    run: &'a Run,
    blocks: Blocks<'a>,
    /// The file of the allocator.
    image: usize,
    found: Misuses,
    seen: Seen,
}

impl Watch<'_> {
    fn see(&mut self, access: &Access) {
        self.go_on(access.at);
        // What the allocator does to blocks is right.
        if !self.blocks.is_near(access.range) || self.blocks.is_inside(access.thread) {
            return;
        }
        // Libraries read more than they need, where it does no harm.
        if !access.writes && !is_written_out(self.run, access.instruction) {
            return;
        }
        let Some(misuse) = self.blocks.judge(access) else { return };
        if misuse.kind == Kind::Unset {
            if self.found.unset.len() < READS {
                self.found.unset.insert(misuse.at, misuse.call);
            }
        } else if !is_masked(self.run, access.instruction) && self.is_meant(access) {
            self.found.tell(self.run, &mut self.seen, misuse);
        }
    }

    /// What the allocator and the kernel have done up to an instant.
    fn go_on(&mut self, at: Instance) {
        let Watch { run, blocks, found, seen, .. } = self;
        blocks.go_on(at, &mut |misuse| found.tell(run, seen, misuse));
    }

    /// Was it the program that wanted this access, and not the library for itself?
    fn is_meant(&self, access: &Access) -> bool {
        let run = self.run;
        let image = |at| run.program.image_at(run.address(at)).map(|(n, _)| n);
        if run.is_own(access.instruction) || image(access.at) != Some(self.image) {
            return true;
        }
        let mut frame = run.trace.control.frame_of(access.at.time);
        while let Some(call) = run.call_of(frame) {
            if image(call) != Some(self.image) {
                let target = run.trace.code.info(run.trace.instruction(call)).instruction;
                let name = run.program.plt_target(target.near_branch_target());
                let name = name.map(|name| name.trim_start_matches('_'));
                return name.is_some_and(|name| WRITERS.iter().any(|w| name.starts_with(w)));
            }
            frame = run.trace.control.frame(frame).caller;
        }
        false
    }
}
