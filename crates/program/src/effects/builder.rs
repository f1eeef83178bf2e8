//! How flows are put together, operand by operand.

use super::access::{self, Access};
use super::place::Place;
use super::{Cell, Cells, Effects, Flow, Shape, Source, Target};
use iced_x86::{EncodingKind, Instruction, OpKind, Register};

/// Collects the effects of one instruction.
pub(super) struct Builder<'a> {
    pub i: &'a Instruction,
    out: Effects,
    explicit: Option<u8>,
}

/// Has every operand cells of its own? x87, MMX, masks, segment and control
/// registers have not.
pub(super) fn representable(i: &Instruction) -> bool {
    let encoding = matches!(i.encoding(), EncodingKind::Legacy | EncodingKind::VEX);
    encoding
        && (0..i.op_count()).all(|n| {
            i.op_kind(n) != OpKind::Register || Place::register(i.op_register(n)).is_some()
        })
}

impl<'a> Builder<'a> {
    pub fn new(i: &'a Instruction) -> Builder<'a> {
        Builder { i, out: Effects::default(), explicit: None }
    }

    pub fn finish(self) -> Effects {
        self.out
    }

    /// Whether it is encoded with VEX: three operands, and upper halves are cleared.
    pub fn vex(&self) -> bool {
        self.i.encoding() == EncodingKind::VEX
    }

    pub fn is_memory(&self, n: u32) -> bool {
        n < self.i.op_count() && self.i.op_kind(n) == OpKind::Memory
    }

    pub fn is_register(&self, n: u32) -> bool {
        n < self.i.op_count() && self.i.op_kind(n) == OpKind::Register
    }

    /// Whether two operands are the same register.
    pub fn same(&self, a: u32, b: u32) -> bool {
        self.is_register(a) && self.is_register(b) && self.i.op_register(a) == self.i.op_register(b)
    }

    /// The immediate operand, sign-extended, if there is one.
    pub fn immediate(&self, n: u32) -> Option<u64> {
        if n >= self.i.op_count() {
            return None;
        }
        self.i.try_immediate(n).ok()
    }

    /// The last operand if it is an immediate.
    pub fn control(&self) -> Option<u8> {
        self.immediate(self.i.op_count().checked_sub(1)?).map(|value| value as u8)
    }

    /// Adds a memory operand that is not written in the instruction.
    pub fn access(&mut self, access: Access) -> Place {
        self.out.accesses.push(access);
        let number = (self.out.accesses.len() - 1) as u8;
        Place::Memory { access: number, first: 0, len: access.size as u16 }
    }

    /// Changes the memory operand that is written in the instruction.
    pub fn adjust(&mut self, n: u32, change: impl FnOnce(&mut Access)) -> Place {
        let number = self.explicit_access(n);
        let access = &mut self.out.accesses[usize::from(number)];
        change(access);
        Place::Memory { access: number, first: 0, len: access.size as u16 }
    }

    fn explicit_access(&mut self, n: u32) -> u8 {
        if let Some(number) = self.explicit {
            return number;
        }
        self.out.accesses.push(access::explicit(self.i, n));
        let number = (self.out.accesses.len() - 1) as u8;
        self.explicit = Some(number);
        number
    }

    fn operand(&mut self, n: u32, change: impl FnOnce(&mut Access)) -> Place {
        match self.i.op_kind(n) {
            OpKind::Register => {
                Place::register(self.i.op_register(n)).expect("operands were looked at before")
            }
            OpKind::Memory => self.adjust(n, change),
            _ => Place::Constant,
        }
    }

    /// Operand `n` as a source.
    pub fn read(&mut self, n: u32) -> Place {
        self.operand(n, |access| access.reads = true)
    }

    /// The first `len` bytes of operand `n` as a source. A memory operand is that
    /// short itself.
    pub fn read_low(&mut self, n: u32, len: usize) -> Place {
        let place = self.read(n);
        if place.len() > len { place.low(len) } else { place }
    }

    /// Operand `n` as a target. What the processor clears above it is defined here.
    pub fn write(&mut self, n: u32) -> Place {
        let place = self.operand(n, |access| access.writes = true);
        if self.is_register(n) {
            self.clear_above(self.i.op_register(n));
        }
        place
    }

    /// Operand `n` as both.
    pub fn modify(&mut self, n: u32) -> Place {
        self.read(n);
        self.write(n)
    }

    /// Marks a memory operand as written; a register is left as it is.
    pub fn adjust_write(&mut self, n: u32) {
        self.operand(n, |access| access.writes = true);
    }

    /// A write to a register clears what is above it: 32-bit ones, and vector
    /// registers in VEX instructions.
    pub fn clear_above(&mut self, register: Register) {
        let number = register.number() as u8;
        if register.is_gpr32() {
            self.constant(Place::gpr(number, 8).part(4, 4));
        } else if register.is_xmm() && self.vex() {
            self.constant(Place::ymm(number, 32).part(16, 16));
        }
    }

    /// Defines a register of this size from nothing but what `f` adds for it.
    pub fn define_gpr(&mut self, number: u8, size: usize, from: &[Place], shape: Shape) {
        if size == 4 {
            self.constant(Place::gpr(number, 8).part(4, 4));
        }
        self.flow(Place::gpr(number, size as u16), from, shape);
    }

    /// Defined from nothing.
    pub fn constant(&mut self, to: Place) {
        self.flow(to, &[], Shape::Whole);
    }

    pub fn flow(&mut self, to: Place, from: &[Place], shape: Shape) {
        self.flow_also(to, from, shape, &[]);
    }

    pub fn flow_also(&mut self, to: Place, from: &[Place], shape: Shape, also: &[Place]) {
        if let Some(to) = to.target() {
            self.push(to, from, shape, also);
        }
    }

    /// Flags, each computed from all of `from`.
    pub fn flags(&mut self, flags: &[Cell], from: &[Place]) {
        self.flag_set(flags.iter().copied().collect(), from);
    }

    pub fn flag_set(&mut self, flags: Cells, from: &[Place]) {
        if !flags.is_empty() {
            self.push(Target::Cells(flags), from, Shape::Whole, &[]);
        }
    }

    /// Flags that may also keep their value: those of shifts whose count may be zero.
    pub fn flags_or_kept(&mut self, flags: Cells, from: &[Place]) {
        if flags.is_empty() {
            return;
        }
        let mut flow = new_flow(Target::Cells(flags), &[], Shape::Bytewise, from);
        flow.from.push(Source::Cells(flags));
        self.out.flows.push(flow);
    }

    /// The flags that the manuals leave undefined. Some processors keep some of them; nobody can
    /// rely on that, so what they were before is no source: every line with a comparison would
    /// depend on the arithmetic before it.
    pub fn undefined_flags(&mut self, from: &[Place]) {
        self.flag_set(Cells::of_flags(self.i.rflags_undefined()), from);
    }

    /// The flags that are set to a constant.
    pub fn constant_flags(&mut self) {
        let bits = self.i.rflags_cleared() | self.i.rflags_set();
        self.flag_set(Cells::of_flags(bits), &[]);
    }

    fn push(&mut self, to: Target, from: &[Place], shape: Shape, also: &[Place]) {
        self.out.flows.push(new_flow(to, from, shape, also));
    }

    /// As [`Builder::bytes`], for moves: a byte that stays where it is is not defined.
    pub fn moved_bytes(&mut self, to: Place, of: impl Fn(usize) -> Vec<Place>) {
        self.bytes_unless(to, &of, |k| of(k) == [to.byte(k)]);
    }

    /// As [`Builder::bytes`], but for bytes that stay as they are.
    pub fn bytes_unless(
        &mut self,
        to: Place,
        of: impl Fn(usize) -> Vec<Place>,
        stays: impl Fn(usize) -> bool,
    ) {
        let mut k = 0;
        while k < to.len() {
            let start = k;
            k += (k..to.len()).take_while(|k| !stays(*k)).count();
            if k > start {
                self.bytes(to.part(start, k - start), |byte| of(start + byte));
            }
            k += (k..to.len()).take_while(|k| stays(*k)).count();
        }
    }

    /// Byte k of `to` is computed from the single bytes that `of(k)` names. Runs of
    /// bytes with the same pattern become one flow.
    pub fn bytes(&mut self, to: Place, of: impl Fn(usize) -> Vec<Place>) {
        let mut start = 0;
        let mut pattern = if to.len() > 0 { of(0) } else { return };
        for k in 1..=to.len() {
            let next = if k < to.len() { Some(of(k)) } else { None };
            let len = (k - start) as u16;
            let goes_on = next.as_ref().is_some_and(|next| {
                next.len() == pattern.len()
                    && pattern.iter().zip(next).all(|(a, b)| a.continues(*b, len))
            });
            if goes_on {
                continue;
            }
            let from: Vec<Place> = pattern.iter().map(|place| place.stretched(k - start)).collect();
            let shape = if from.is_empty() { Shape::Whole } else { Shape::Bytewise };
            self.flow(to.part(start, k - start), &from, shape);
            start = k;
            pattern = next.unwrap_or_default();
        }
    }
}

fn new_flow(to: Target, from: &[Place], shape: Shape, also: &[Place]) -> Flow {
    let sources = |places: &[Place]| {
        let mut list: Vec<Source> = Vec::new();
        for source in places.iter().filter_map(|place| place.source()) {
            if !list.contains(&source) {
                list.push(source);
            }
        }
        list
    };
    Flow { to, from: sources(from), also: sources(also), shape }
}
