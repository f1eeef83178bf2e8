//! One instruction by itself: what does it change, and what does that depend on?
//!
//! The processor is asked, not a table. The instruction is executed natively in a
//! process of its own, again and again: from many states, and from each state once
//! more for every byte of a register or of memory, with that byte alone altered.
//! What changes with it depends on it.
//!
//! A decoder is needed for two things only: how long the instruction is, and which
//! memory it touches, so that there is some.
//!
//! ```no_run
//! # fn main() -> Result<(), engine::Error> {
//! use engine::lockstep::probe::{Place, Probe};
//! let mut probe = Probe::new()?;
//! // mov al, ah
//! let observed = probe.observe(&[0x88, 0xe0])?.expect("not one that the engine performs");
//! assert_eq!(observed.from[&Place::Register(0)], [Place::Register(1)].into());
//! # Ok(())
//! # }
//! ```

mod arena;
mod operand;
mod state;

use super::native::{Native, Step};
use super::walk::engine_performs;
use crate::Error;
use arena::Arena;
pub use arena::CODE;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
pub use operand::{Operand, Segment, operands};
use state::{Random, State};
use std::collections::{BTreeMap, BTreeSet};

/// Something that an instruction can change or depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A cell, numbered as in `program::effects`: bytes of general registers (8
    /// each, from 0), of vector registers (32 each, from 128), then single flags
    /// and states kept whole (from 640).
    Register(u16),
    /// A byte near a memory operand: its number, and the offset from its address.
    Memory(u8, i16),
    /// Where control goes next.
    Next,
}

/// The first vector cell.
pub(crate) const YMM: u16 = 128;
/// CF, PF, AF, ZF, SF, OF, DF.
pub(crate) const FLAGS: u16 = 640;
pub(crate) const X87: u16 = 647;
pub(crate) const MXCSR: u16 = 648;
pub(crate) const FS: u16 = 649;
pub(crate) const GS: u16 = 650;
pub(crate) const EXCEPTIONS: u16 = 651;

/// What was seen of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What it changes, and what each of those depends on.
    pub from: BTreeMap<Place, BTreeSet<Place>>,
    /// States from which it ran without a fault.
    pub runs: u32,
}

/// States tried to find out what matters at all.
const SCOUTED: u32 = 14;

/// A process that executes single instructions.
pub struct Probe {
    native: Native,
    arena: Arena,
    random: Random,
    /// States tried byte by byte.
    pub rounds: u32,
}

/// What is looked at while one instruction is probed.
struct Case {
    operands: Vec<Operand>,
    /// Numbers taken from its bytes: a constant operand may be among them.
    constants: Vec<u64>,
    /// Does it touch vector registers?
    vectors: bool,
    /// Does it say where control goes?
    branches: bool,
    observed: Observed,
    /// Memory that it changes where it is, not because an address was altered.
    written: BTreeSet<Place>,
}

impl Case {
    fn of(bytes: &[u8]) -> Option<(Instruction, Case)> {
        let i = Decoder::with_ip(64, bytes, CODE, DecoderOptions::NONE).decode();
        let operands = operands(&i).filter(|_| can_run(&i))?;
        if !operands.iter().all(Operand::is_reachable) {
            return None;
        }
        let case = Case {
            operands,
            constants: constants(&bytes[..i.len()]),
            vectors: true,
            branches: i.flow_control() != FlowControl::Next,
            observed: Observed::default(),
            written: BTreeSet::new(),
        };
        Some((i, case))
    }

    /// What differs between two states, as far as it is looked at.
    fn differences(&self, a: &State, b: &State) -> Vec<Place> {
        let mut found = a.differences(b, &self.operands, self.vectors);
        found.retain(|place| self.branches || *place != Place::Next);
        found
    }
}

impl Probe {
    /// Starts the process. This one must not have other threads that hold locks.
    pub fn new() -> Result<Probe, Error> {
        let arena = Arena::map()?;
        let native = Native::fork()?;
        Ok(Probe { native, arena, random: Random::new(), rounds: 28 })
    }

    /// Finds out about an instruction. `None` if it cannot be executed by itself:
    /// system calls, what the engine performs, traps, and operands that no scratch
    /// memory can stand for.
    pub fn observe(&mut self, bytes: &[u8]) -> Result<Option<Observed>, Error> {
        let Some((i, mut case)) = Case::of(bytes) else { return Ok(None) };
        self.arena.put_code(&bytes[..i.len()]);
        let involved = self.scout(&mut case)?;
        for round in 0..self.rounds {
            self.round(&mut case, &involved, round)?;
        }
        self.arena.forget();
        finish(&mut case);
        Ok((case.observed.runs > 0).then_some(case.observed))
    }

    /// Looks harder, for so many rounds, for what was not seen yet: definitions, and
    /// dependences of theirs.
    pub fn search(
        &mut self,
        bytes: &[u8],
        observed: &mut Observed,
        missing: &BTreeSet<(Place, Option<Place>)>,
        rounds: u32,
    ) -> Result<(), Error> {
        let Some((i, mut case)) = Case::of(bytes) else { return Ok(()) };
        self.arena.put_code(&bytes[..i.len()]);
        let places = missing.iter().flat_map(|(to, from)| [Some(*to), *from]).flatten();
        case.vectors = places.into_iter().any(|place| Group::of(place).is_vector());
        let mut missing = missing.clone();
        for round in 0..rounds {
            if missing.is_empty() {
                break;
            }
            self.search_round(&case, observed, &mut missing, round)?;
        }
        self.arena.forget();
        case.written = observed.from.keys().copied().collect();
        case.observed = std::mem::take(observed);
        finish(&mut case);
        *observed = case.observed;
        Ok(())
    }

    fn search_round(
        &mut self,
        case: &Case,
        observed: &mut Observed,
        missing: &mut BTreeSet<(Place, Option<Place>)>,
        round: u32,
    ) -> Result<(), Error> {
        // What is seen only where something equals a number in the code is seldom met otherwise.
        let kind = if round.is_multiple_of(2) { round / 2 } else { state::EQUAL };
        let base = State::new(&mut self.random, &case.operands, &case.constants, kind);
        let Some(end) = self.run(case, &base)? else { return Ok(()) };
        for place in case.differences(&base, &end) {
            if missing.remove(&(place, None)) {
                observed.from.entry(place).or_default();
            }
        }
        let from: BTreeSet<Place> = missing.iter().filter_map(|(_, from)| *from).collect();
        for altered in from {
            let mut other = base.clone();
            other.alter(altered, &mut self.random);
            let Some(end_other) = self.run(case, &other)? else { continue };
            for place in case.differences(&end, &end_other) {
                if missing.remove(&(place, Some(altered))) {
                    observed.from.entry(place).or_default().insert(altered);
                }
            }
        }
        Ok(())
    }

    /// Which groups of cells matter: registers whole, and each operand's memory.
    fn scout(&mut self, case: &mut Case) -> Result<BTreeSet<Group>, Error> {
        let mut involved = BTreeSet::new();
        case.vectors = self.touches_vectors(case)?;
        for round in 0..SCOUTED {
            let base = State::new(&mut self.random, &case.operands, &case.constants, round);
            let Some(end) = self.run(case, &base)? else { continue };
            involved.extend(case.differences(&base, &end).into_iter().map(Group::of));
            for group in Group::all(case.operands.len() as u8) {
                if involved.contains(&group) || group.is_vector() && !case.vectors {
                    continue;
                }
                let mut other = base.clone();
                other.scramble(group, &case.operands, &mut self.random);
                let Some(end_other) = self.run(case, &other)? else { continue };
                let changed = case.differences(&end, &end_other);
                if changed.iter().any(|place| Group::of(*place) != group) {
                    involved.insert(group);
                }
            }
        }
        involved.remove(&Group::Next);
        Ok(involved)
    }

    /// Does anything depend on vector registers, or change them?
    fn touches_vectors(&mut self, case: &Case) -> Result<bool, Error> {
        for round in 0..SCOUTED / 2 {
            let base = State::new(&mut self.random, &case.operands, &case.constants, round);
            let Some(end) = self.run(case, &base)? else { continue };
            let mut other = base.clone();
            for group in Group::all(0).filter(|group| group.is_vector()) {
                other.scramble(group, &case.operands, &mut self.random);
            }
            let Some(end_other) = self.run(case, &other)? else { return Ok(true) };
            let changed = case.differences(&base, &end);
            let depends = case.differences(&end, &end_other);
            let vector = |place: &Place| Group::of(*place).is_vector();
            if changed.iter().any(vector) || !depends.iter().all(vector) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One state, and all that differ from it in one byte.
    fn round(&mut self, case: &mut Case, groups: &BTreeSet<Group>, n: u32) -> Result<(), Error> {
        let base = State::new(&mut self.random, &case.operands, &case.constants, n);
        let Some(end) = self.run(case, &base)? else { return Ok(()) };
        case.observed.runs += 1;
        let defined = case.differences(&base, &end);
        for place in defined.iter().filter(|place| **place != Place::Next) {
            case.observed.from.entry(*place).or_default();
            case.written.insert(*place);
        }
        for place in groups.iter().flat_map(|group| group.places(&case.operands)) {
            let mut other = base.clone();
            other.alter(place, &mut self.random);
            let Some(end_other) = self.run(case, &other)? else { continue };
            let moved =
                defined.contains(&place) || case.differences(&other, &end_other).contains(&place);
            let changed = case.differences(&end, &end_other);
            note(&mut case.observed, place, changed, moved);
        }
        Ok(())
    }

    /// Executes the instruction once; `None` if it faults.
    fn run(&mut self, case: &Case, state: &State) -> Result<Option<State>, Error> {
        self.arena.put(&state.memory);
        if case.vectors {
            self.native.load(&state.regs)?;
        } else {
            self.native.load_general(&state.regs)?;
        }
        if self.native.step()? != Step::Done {
            return Ok(None);
        }
        let mut regs = self.native.registers()?;
        if case.vectors {
            regs.vectors = self.native.vectors()?;
        }
        let mut memory = state.memory.clone();
        self.arena.get(&mut memory);
        Ok(Some(State { regs, memory }))
    }
}

/// What changed because a place was altered depends on it; the place itself only
/// if it is defined, not if it merely stays as it is.
fn note(observed: &mut Observed, altered: Place, changed: Vec<Place>, moved: bool) {
    for place in changed {
        if place != altered || moved || observed.from.contains_key(&place) {
            observed.from.entry(place).or_default().insert(altered);
        }
    }
}

/// The two highest bytes of an address cannot be altered without a fault. Where
/// the byte below matters as part of an address, so do they; where it is a sum's,
/// they are like it.
fn finish(case: &mut Case) {
    let Case { observed, operands, written, .. } = case;
    observed.from.retain(|place, _| !matches!(place, Place::Memory(..)) || written.contains(place));
    let registers: BTreeSet<u8> = operands.iter().flat_map(Operand::registers).collect();
    for register in registers {
        let cell = |byte: u16| Place::Register(u16::from(register) * 8 + byte);
        let owners: BTreeSet<Group> = observed.from.keys().map(|place| Group::of(*place)).collect();
        for owner in owners {
            finish_owner(&mut observed.from, owner, cell);
        }
        // They are zero before. What clears the byte below clears them too.
        if let Some(like) = observed.from.get(&cell(5)).cloned() {
            for byte in [6, 7] {
                observed.from.entry(cell(byte)).or_insert_with(|| like.clone());
            }
        }
    }
    finish_target(observed);
}

/// For all that was defined of one register or operand.
fn finish_owner(
    from: &mut BTreeMap<Place, BTreeSet<Place>>,
    owner: Group,
    cell: impl Fn(u16) -> Place,
) {
    let fifth = match owner {
        Group::General(n) => Some(Place::Register(u16::from(n) * 8 + 5)),
        _ => None,
    };
    // In a sum, only the bytes above depend on it.
    let above = |place: &Place| fifth.is_some_and(|fifth| *place >= fifth);
    let own: Vec<Place> = from
        .iter()
        .filter(|(place, from)| Group::of(**place) == owner && from.contains(&cell(5)))
        .map(|(place, _)| *place)
        .collect();
    if own.iter().any(|place| !above(place)) {
        for place in own {
            from.entry(place).or_default().extend([cell(6), cell(7)]);
        }
    } else if let (Some(Place::Register(n)), [_, ..]) = (fifth, &own[..]) {
        let like = from[&Place::Register(n)].clone();
        for byte in [6, 7] {
            let into = from.entry(Place::Register(n - 5 + byte)).or_default();
            into.extend(&like);
            into.extend((6..=byte).map(&cell));
        }
    }
}

/// The same for the target of a jump.
fn finish_target(observed: &mut Observed) {
    let Some(from) = observed.from.get_mut(&Place::Next) else { return };
    let more: Vec<Place> = from
        .iter()
        .flat_map(|place| match *place {
            Place::Register(n @ 0..YMM) if n % 8 == 5 => {
                vec![Place::Register(n + 1), Place::Register(n + 2)]
            }
            Place::Memory(operand, 5) => {
                vec![Place::Memory(operand, 6), Place::Memory(operand, 7)]
            }
            _ => Vec::new(),
        })
        .collect();
    from.extend(more);
}

/// Can it be executed alone?
fn can_run(i: &Instruction) -> bool {
    use Mnemonic::*;
    let privileged = i.is_privileged() || matches!(i.mnemonic(), Int | Int1 | Int3 | Syscall);
    let stops = matches!(i.flow_control(), FlowControl::Interrupt | FlowControl::Exception);
    !i.is_invalid() && !privileged && !stops && !engine_performs(i)
}

/// Numbers that the bytes of an instruction may stand for.
fn constants(bytes: &[u8]) -> Vec<u64> {
    let n = bytes.len();
    let mut found = vec![bytes[n - 1] as i8 as u64];
    if n > 4 {
        found.push(i32::from_le_bytes(bytes[n - 4..].try_into().expect("four")) as u64);
    }
    if n > 2 {
        found.push(i16::from_le_bytes(bytes[n - 2..].try_into().expect("two")) as u64);
    }
    if n > 8 {
        found.push(u64::from_le_bytes(bytes[n - 8..].try_into().expect("eight")));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Cells that are altered together while scouting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    General(u8),
    Vector(u8),
    Cell(u16),
    Operand(u8),
    Next,
}

impl Group {
    fn is_vector(self) -> bool {
        matches!(self, Group::Vector(_) | Group::Cell(X87 | MXCSR | EXCEPTIONS))
    }

    fn of(place: Place) -> Group {
        match place {
            Place::Register(n @ 0..YMM) => Group::General((n / 8) as u8),
            Place::Register(n @ YMM..FLAGS) => Group::Vector(((n - YMM) / 32) as u8),
            Place::Register(n) => Group::Cell(n),
            Place::Memory(n, _) => Group::Operand(n),
            Place::Next => Group::Next,
        }
    }

    fn all(operands: u8) -> impl Iterator<Item = Group> {
        let registers = (0..16).map(Group::General).chain((0..16).map(Group::Vector));
        let cells = (FLAGS..=EXCEPTIONS).map(Group::Cell);
        registers.chain(cells).chain((0..operands).map(Group::Operand))
    }

    /// Its cells one by one: of memory, the bytes of the operand and some around.
    fn places(self, operands: &[Operand]) -> Vec<Place> {
        match self {
            Group::General(n) => (0..8).map(|b| Place::Register(u16::from(n) * 8 + b)).collect(),
            Group::Vector(n) => {
                (0..32).map(|b| Place::Register(YMM + u16::from(n) * 32 + b)).collect()
            }
            Group::Cell(n) => vec![Place::Register(n)],
            Group::Operand(n) => {
                let size = operands[usize::from(n)].size as i16;
                (-2..size + 2).map(|offset| Place::Memory(n, offset)).collect()
            }
            Group::Next => Vec::new(),
        }
    }
}
