//! What an instruction defines and from what: as the processor shows it, and as
//! `program::effects` says it.

use engine::Registers;
use engine::lockstep::probe::{self, Observed, Operand, Place, Segment};
use iced_x86::Instruction;
use program::effects::{self, Access, Cell, Cells, Shape, Source, Target};
use std::collections::{BTreeMap, BTreeSet};

/// What is defined, and what each of those depends on.
pub type From = BTreeMap<Place, BTreeSet<Place>>;

/// The operand that `bytes` of an access belong to, and the offset in it.
fn find(operands: &[Operand], access: &Access) -> Option<(u8, i64)> {
    let a = &access.address;
    let segment = match a.segment {
        effects::Segment::None => None,
        effects::Segment::Fs => Some(Segment::Fs),
        effects::Segment::Gs => Some(Segment::Gs),
    };
    let same = |o: &Operand| o.base == a.base && o.index == a.index && o.segment == segment;
    let near = |o: &Operand| (a.displacement.wrapping_sub(o.displacement as i64)).unsigned_abs();
    let (n, operand) =
        operands.iter().enumerate().filter(|(_, o)| same(o)).min_by_key(|(_, o)| near(o))?;
    Some((n as u8, a.displacement.wrapping_sub(operand.displacement as i64)))
}

/// Where a memory operand lies.
#[derive(Clone, Debug)]
pub enum Location {
    /// At a sum of registers, as a probe has it.
    Sum(Operand),
    /// As the model says, for instructions that no probe can execute.
    Model(Access),
}

impl Location {
    /// Bytes.
    pub fn size(&self) -> u32 {
        match self {
            Location::Sum(operand) => operand.size,
            Location::Model(access) => access.size,
        }
    }

    /// Its address with these registers.
    pub fn address(&self, regs: &Registers) -> Option<u64> {
        match self {
            Location::Sum(operand) => Some(operand.address(&regs.gpr, regs.fs, regs.gs)),
            Location::Model(access) => access.address.resolve(&regs.gpr, regs.fs, regs.gs),
        }
    }
}

/// What only the model says of an instruction. `None` if its addresses are not known.
pub fn only_modelled(i: &Instruction) -> Option<(Vec<Location>, From)> {
    let accesses = effects::effects(i).accesses;
    if accesses.iter().any(|access| access.address.vector_index) {
        return None;
    }
    let own: Vec<(u8, i64)> = (0..accesses.len() as u8).map(|n| (n, 0)).collect();
    Some((accesses.into_iter().map(Location::Model).collect(), modelled_by(i, &own)))
}

fn cells(cells: Cells) -> impl Iterator<Item = Place> {
    cells.iter().map(|cell| Place::Register(cell.number()))
}

/// What the model says, with addresses as dependences like any other. `None` if one
/// of its accesses is none of the operands.
pub fn modelled(i: &Instruction, operands: &[Operand]) -> Option<From> {
    let accesses = effects::effects(i).accesses;
    let found: Option<Vec<(u8, i64)>> =
        accesses.iter().map(|access| find(operands, access)).collect();
    Some(modelled_by(i, &found?))
}

/// The same, with the operand of each access and where in it the access begins.
fn modelled_by(i: &Instruction, found: &[(u8, i64)]) -> From {
    let model = effects::effects(i);
    let memory = |access: u8, byte: u16| {
        let (operand, offset) = found[usize::from(access)];
        Place::Memory(operand, (offset + i64::from(byte)) as i16)
    };
    let address = |access: u8| {
        let access = &model.accesses[usize::from(access)];
        let counted = access.repeats.map_or(Cells::NONE, |r| r.registers());
        cells(access.address.registers().union(counted)).collect::<Vec<_>>()
    };
    let mut from = From::new();
    for flow in &model.flows {
        let (to, own): (Vec<Place>, Vec<Place>) = match &flow.to {
            Target::Cells(set) => (cells(*set).collect(), Vec::new()),
            Target::Memory { access, first, len } => (
                (*first..first + len).map(|byte| memory(*access, byte)).collect(),
                address(*access),
            ),
        };
        for (n, place) in to.iter().enumerate() {
            let into = from.entry(*place).or_default();
            into.extend(&own);
            let sources = flow.from.iter().map(|s| (s, flow.shape));
            for (source, shape) in sources.chain(flow.also.iter().map(|s| (s, Shape::Whole))) {
                let (all, at): (Vec<Place>, Vec<Place>) = match source {
                    Source::Cells(set) => (cells(*set).collect(), Vec::new()),
                    Source::Memory { access, first, len } => (
                        (*first..first + len).map(|byte| memory(*access, byte)).collect(),
                        address(*access),
                    ),
                };
                into.extend(at);
                match shape {
                    Shape::Whole => into.extend(all),
                    Shape::Bytewise => into.extend(all.get(n)),
                    Shape::Upward => into.extend(all.iter().take(n + 1)),
                }
            }
        }
    }
    let decides = decides(i, &model, &memory, &address);
    if !decides.is_empty() {
        from.insert(Place::Next, decides);
    }
    from
}

/// What says where an instruction goes.
fn decides(
    i: &Instruction,
    model: &effects::Effects,
    memory: &dyn Fn(u8, u16) -> Place,
    address: &dyn Fn(u8) -> Vec<Place>,
) -> BTreeSet<Place> {
    use iced_x86::FlowControl::*;
    let mut all: BTreeSet<Place> = cells(effects::condition(i)).collect();
    if matches!(i.flow_control(), IndirectBranch | IndirectCall | Return) {
        for (n, access) in model.accesses.iter().enumerate().filter(|(_, a)| a.reads) {
            all.extend(address(n as u8));
            all.extend((0..access.size as u16).map(|byte| memory(n as u8, byte)));
        }
    }
    all
}

/// How the two differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// Observed, not modelled: the model is wrong.
    pub unmodelled: BTreeSet<(Place, Option<Place>)>,
    /// Modelled, never observed: the model is coarse, or the probe not clever.
    pub unobserved: BTreeSet<(Place, Option<Place>)>,
}

impl Gap {
    /// Compares.
    pub fn between(observed: &From, modelled: &From) -> Gap {
        Gap { unmodelled: minus(observed, modelled), unobserved: minus(modelled, observed) }
    }
}

/// What one has and the other has not. A target that is wholly missing is named by
/// itself.
fn minus(one: &From, other: &From) -> BTreeSet<(Place, Option<Place>)> {
    let mut found = BTreeSet::new();
    for (place, from) in one {
        match other.get(place) {
            None => _ = found.insert((*place, None)),
            Some(known) => found.extend(from.difference(known).map(|p| (*place, Some(*p)))),
        }
    }
    found
}

/// A place as people write it.
pub fn name(place: &Place) -> String {
    match place {
        Place::Register(n) => Cell::new(*n).to_string(),
        Place::Memory(operand, offset) => format!("m{operand}[{offset}]"),
        Place::Next => "next".to_owned(),
    }
}

/// Is it a flag that the manual leaves open?
pub fn is_open(i: &Instruction, to: &Place) -> bool {
    let undefined = Cells::of_flags(i.rflags_undefined());
    matches!(to, Place::Register(n) if undefined.contains(Cell::new(*n)))
}

/// Why a dependence that the model has may never be observed.
pub fn excuse(i: &Instruction, to: &Place, from: Option<&Place>) -> Option<&'static str> {
    use iced_x86::Mnemonic::*;
    let flag = |place: &Place| match place {
        Place::Register(n) if *n >= Cell::CF.number() && *n <= Cell::DF.number() => {
            Some(Cells::from(Cell::new(*n)))
        }
        _ => None,
    };
    if is_open(i, to) {
        return Some("the manual leaves this flag open; another processor may differ");
    }
    if matches!(from, Some(Place::Register(n)) if *n == Cell::DF.number()) {
        return Some("where the next element is does not show in one");
    }
    match i.mnemonic() {
        Bsf | Bsr => Some("of zero, the manual leaves the result open"),
        Div | Idiv | Mul | Imul => Some("a product or quotient is taken as a whole"),
        Add | Sub | Cmp | Adc | Sbb | Neg | Cmpxchg | Xadd if flag(to) == Some(Cell::OF.into()) => {
            Some("few states bring a carry from there to the sign")
        }
        _ => None,
    }
}

/// Observes an instruction, and looks harder for what the model has and was not
/// seen.
pub fn observe(
    probe: &mut probe::Probe,
    bytes: &[u8],
    modelled: &From,
    rounds: u32,
) -> Option<Observed> {
    let mut observed = probe.observe(bytes).expect("the scratch process works")?;
    let missing: BTreeSet<(Place, Option<Place>)> = modelled
        .iter()
        .flat_map(|(to, from)| {
            let seen = observed.from.get(to);
            let defined = seen.is_none().then_some((*to, None));
            let unseen = from.iter().filter(move |p| !seen.is_some_and(|s| s.contains(p)));
            defined.into_iter().chain(unseen.map(|p| (*to, Some(*p))))
        })
        .collect();
    if !missing.is_empty() {
        probe.search(bytes, &mut observed, &missing, rounds).expect("the scratch process works");
    }
    Some(observed)
}
