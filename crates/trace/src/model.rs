//! What the code tells about captured registers before they are seen.
//!
//! A register that a path captures often still has the value it had when the path
//! began, give or take a constant; and what it has at the path's end follows from
//! what was captured. So most captures follow from earlier ones, across records.

use crate::code::{Code, PathId};
use engine::trace::Captures;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A register's value as the code tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// That of a register at the head of the path, and a constant.
    Head(u8, i64),
    /// A capture of the path, and a constant.
    Capture(u16, i64),
    /// What memory has, whose address is a capture of the path and a constant.
    Loaded(u16, i64),
    /// The code does not tell.
    Unknown,
}

/// A register that is stored whole: where to, and what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub address: (u16, i64),
    pub value: Origin,
}

/// What is known of one path.
#[derive(Clone, Copy, Default)]
struct Shape {
    first_capture: u32,
    captures: u16,
    first_final: u32,
    finals: u16,
    first_store: u32,
    stores: u16,
    unknown: u16,
    crossed: bool,
    instructions: u16,
}

/// What is known of all paths so far.
#[derive(Default)]
pub(crate) struct Model {
    shapes: Vec<Shape>,
    captures: Vec<Origin>,
    finals: Vec<(u8, Origin)>,
    stores: Vec<Store>,
    /// Units looked at.
    units: usize,
}

/// One path.
pub(crate) struct PathModel<'a> {
    /// Where its captures come from; their numbers begin at `first`.
    pub captures: &'a [Origin],
    /// Number of its first capture among those of all paths.
    pub first: usize,
    /// Registers that differ at its end from its head.
    pub finals: &'a [(u8, Origin)],
    /// Registers of which nothing is known at its end, as a bit set.
    pub unknown: u16,
    /// Does one of `finals` come from a register that another one changes?
    pub crossed: bool,
    /// What it stores.
    pub stores: &'a [Store],
    /// Instructions it executes.
    pub instructions: u16,
}

impl Model {
    /// Looks at units that are new.
    pub fn extend(&mut self, code: &Code) {
        for unit in self.units..code.units() {
            self.unit(code, unit);
        }
        self.units = code.units();
    }

    /// Number of paths.
    pub fn paths(&self) -> usize {
        self.shapes.len()
    }

    /// Number of captures of all paths together.
    pub fn captures(&self) -> usize {
        self.captures.len()
    }

    #[inline]
    pub fn path(&self, id: PathId) -> PathModel<'_> {
        let s = &self.shapes[id.0 as usize];
        PathModel {
            captures: &self.captures[s.first_capture as usize..][..s.captures.into()],
            first: s.first_capture as usize,
            finals: &self.finals[s.first_final as usize..][..s.finals.into()],
            stores: &self.stores[s.first_store as usize..][..s.stores.into()],
            unknown: s.unknown,
            crossed: s.crossed,
            instructions: s.instructions,
        }
    }

    fn unit(&mut self, code: &Code, unit: usize) {
        let (ops, paths) = code.unit(unit);
        let longest = paths.clone().map(|id| code.path(PathId(id)).len).max().unwrap_or(0);
        let mut walk = UnitWalk::new();
        let mut ends = Vec::new();
        for n in 0..=ops.len() {
            ends.push(walk.end());
            if n < ops.len() && n <= longest.into() {
                walk.step(&code.info(ops[n].instruction).instruction);
            }
        }
        walk.captures.at_end();
        walk.note_captures();
        self.shapes.resize(paths.start as usize, Shape::default());
        for id in paths {
            let path = code.path(PathId(id));
            let (finals, stores) = &ends[usize::from(path.len)];
            let seen = |origin: Origin| origin.only_before(path.captures);
            let (unknown, finals): (Vec<_>, Vec<_>) = finals
                .iter()
                .map(|(r, o)| (*r, seen(*o)))
                .partition(|(_, origin)| *origin == Origin::Unknown);
            let captures = usize::from(path.captures).min(walk.origins.len());
            self.shapes.push(Shape {
                first_capture: self.captures.len() as u32,
                captures: path.captures,
                first_final: self.finals.len() as u32,
                finals: finals.len() as u16,
                first_store: self.stores.len() as u32,
                stores: *stores as u16,
                unknown: unknown.iter().fold(0, |set, (r, _)| set | 1 << r),
                crossed: crossed(&finals),
                instructions: path.len,
            });
            self.captures.extend_from_slice(&walk.origins[..captures]);
            let missing = usize::from(path.captures) - captures;
            self.captures.extend(std::iter::repeat_n(Origin::Unknown, missing));
            self.finals.extend(finals);
            let stored = walk.stores[..*stores].iter();
            self.stores.extend(stored.map(|s| Store { value: seen(s.value), ..*s }));
        }
    }
}

impl Origin {
    /// Captures that a path did not come to tell nothing.
    fn only_before(self, captures: u16) -> Origin {
        match self {
            Origin::Capture(n, _) | Origin::Loaded(n, _) if n >= captures => Origin::Unknown,
            known => known,
        }
    }
}

fn crossed(finals: &[(u8, Origin)]) -> bool {
    let from = |o: &Origin| match o {
        Origin::Head(r, _) => Some(*r),
        _ => None,
    };
    finals.iter().any(|(r, _)| finals.iter().any(|(to, o)| from(o) == Some(*r) && to != r))
}

type End = (Vec<(u8, Origin)>, usize);

/// The analysis at one point of a unit.
struct UnitWalk {
    captures: Captures,
    origins: Vec<Origin>,
    /// Where a register was loaded from, while it has that value.
    loaded: [Option<(u16, i64)>; 16],
    stores: Vec<Store>,
}

impl UnitWalk {
    fn new() -> UnitWalk {
        UnitWalk {
            captures: Captures::new(),
            origins: Vec::new(),
            loaded: [None; 16],
            stores: Vec::new(),
        }
    }

    fn step(&mut self, i: &Instruction) {
        self.captures.before(i);
        self.note_captures();
        let before: [Origin; 16] = std::array::from_fn(|r| self.origin(r as u8));
        let access = access(i);
        let address = access.and_then(|a| {
            let base = self.captures.value(a.base)?;
            Some((base.capture, base.offset.wrapping_add(a.displacement)))
        });
        if let (Some(address), Some(a)) = (address, access.filter(|a| a.stores)) {
            self.stores.push(Store { address, value: before[usize::from(a.register)] });
        }
        let heads: [_; 16] = std::array::from_fn(|r| self.captures.since_head(r as u8));
        let values: [_; 16] = std::array::from_fn(|r| self.captures.value(r as u8));
        self.captures.after(i);
        for r in 0..16u8 {
            let kept = self.captures.since_head(r) == heads[usize::from(r)]
                && self.captures.value(r) == values[usize::from(r)]
                && !writes(i, r);
            if !kept {
                self.loaded[usize::from(r)] = None;
            }
        }
        if let (Some(address), Some(a)) = (address, access.filter(|a| !a.stores)) {
            self.loaded[usize::from(a.register)] = Some(address);
        }
    }

    fn note_captures(&mut self) {
        for n in self.origins.len()..self.captures.list().len() {
            let register = self.captures.list()[n].register;
            let origin = match self.captures.since_head(register) {
                Some((from, offset)) => Origin::Head(from, offset),
                None => match self.loaded[usize::from(register)] {
                    Some((capture, offset)) => Origin::Loaded(capture, offset),
                    None => Origin::Unknown,
                },
            };
            self.origins.push(origin);
        }
    }

    fn origin(&self, register: u8) -> Origin {
        if let Some(known) = self.captures.value(register) {
            return Origin::Capture(known.capture, known.offset);
        }
        if let Some((from, offset)) = self.captures.since_head(register) {
            return Origin::Head(from, offset);
        }
        match self.loaded[usize::from(register)] {
            Some((capture, offset)) => Origin::Loaded(capture, offset),
            None => Origin::Unknown,
        }
    }

    /// Registers that differ from the head, and stores so far.
    fn end(&self) -> End {
        let all = (0..16u8).map(|r| (r, self.origin(r)));
        (all.filter(|(r, o)| *o != Origin::Head(*r, 0)).collect(), self.stores.len())
    }
}

fn writes(i: &Instruction, register: u8) -> bool {
    let written = i.op_count() > 0
        && i.op0_kind() == OpKind::Register
        && i.op0_register().is_gpr()
        && i.op0_register().full_register().number() == usize::from(register);
    written && !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}

/// A whole register that is loaded or stored at `base + displacement`.
#[derive(Clone, Copy)]
struct Access {
    base: u8,
    displacement: i64,
    register: u8,
    stores: bool,
}

fn access(i: &Instruction) -> Option<Access> {
    const RSP: u8 = 4;
    let whole = |r: Register| r.is_gpr64().then(|| r.number() as u8);
    let stores = match i.mnemonic() {
        Mnemonic::Push if i.op0_kind() == OpKind::Register => {
            let register = whole(i.op0_register())?;
            return Some(Access { base: RSP, displacement: -8, register, stores: true });
        }
        Mnemonic::Pop if i.op0_kind() == OpKind::Register => {
            let register = whole(i.op0_register())?;
            return Some(Access { base: RSP, displacement: 0, register, stores: false });
        }
        Mnemonic::Mov if i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register => true,
        Mnemonic::Mov if i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Memory => {
            false
        }
        _ => return None,
    };
    let plain = i.memory_index() == Register::None && i.segment_prefix() == Register::None;
    let base = whole(i.memory_base()).filter(|_| plain)?;
    let register = whole(if stores { i.op1_register() } else { i.op0_register() })?;
    Some(Access { base, displacement: i.memory_displacement64() as i64, register, stores })
}
