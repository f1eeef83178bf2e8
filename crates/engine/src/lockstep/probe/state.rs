//! States to begin with, and what differs between two of them.

use super::operand::Operand;
use super::{EXCEPTIONS, FLAGS, FS, GS, Group, MXCSR, Place, X87, YMM};
use crate::context::Registers;

/// Bytes kept on either side of an operand.
const AROUND: u64 = 40;
/// CF, PF, AF, ZF, SF, OF, DF: where they are in RFLAGS.
const FLAG_BITS: [u32; 7] = [0, 2, 4, 6, 7, 11, 10];

/// A piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First address.
    pub address: u64,
    /// Contents.
    pub bytes: Vec<u8>,
}

impl Window {
    /// Panics unless it lies in a range.
    pub fn check(&self, start: u64, len: u64) {
        let inside = self.address >= start && self.address + self.bytes.len() as u64 <= start + len;
        assert!(inside, "a window at {:#x} is outside of the arena", self.address);
    }
}

/// Registers, and memory around the operands.
#[derive(Clone)]
pub struct State {
    pub regs: Registers,
    /// One per operand.
    pub memory: Vec<Window>,
}

/// What values a state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any.
    Any,
    /// All the same.
    Same(u64),
    /// Bytes that carries and signs run through.
    Edges,
    /// The least and the greatest numbers of every size.
    Extremes,
    /// Numbers from the instruction, and what is one off.
    Constants,
    /// Small ones, as counts are.
    Small,
    /// Floating-point numbers.
    Floats,
    /// Of every kind.
    Mixed,
}

/// The round in which everything is a number of the code.
pub const EQUAL: u32 = 5;

impl Shape {
    fn of(round: u32, random: &mut Random, constants: &[u64]) -> Shape {
        match round % 14 {
            0 | 1 => Shape::Any,
            2 => Shape::Same(0),
            3 => Shape::Same(u64::MAX),
            4 => Shape::Same(random.next()),
            EQUAL => Shape::Same(random.pick(constants)),
            6 => Shape::Edges,
            7 => Shape::Constants,
            8 => Shape::Small,
            9 => Shape::Floats,
            10 => Shape::Same([1, 0x8080_8080_8080_8080, 1 << 63, 8][random.below(4) as usize]),
            11 | 12 => Shape::Extremes,
            _ => Shape::Mixed,
        }
    }

    fn number(self, random: &mut Random, constants: &[u64]) -> u64 {
        match self {
            Shape::Any => random.next(),
            Shape::Same(value) => value,
            Shape::Edges => u64::from_le_bytes(std::array::from_fn(|_| {
                [0, 0xff, 1, 0x80, 0x7f, 0xfe][random.below(6) as usize]
            })),
            Shape::Extremes => {
                let least = [1 << 63, 0xffff_ffff_8000_0000, 0x8000, 0x80, 0, 1];
                let value: u64 = least[random.below(6) as usize];
                let value = value.wrapping_sub(random.below(3));
                if random.below(2) == 0 { value } else { value ^ 1 << (8 * random.below(8)) }
            }
            Shape::Constants => {
                let value = random.pick(constants);
                let near = [value, value.wrapping_neg(), !value, value.wrapping_add(1)];
                near[random.below(4) as usize]
            }
            Shape::Small => random.below(70),
            Shape::Floats => float(random),
            Shape::Mixed => {
                let shapes = [
                    Shape::Any,
                    Shape::Same(0),
                    Shape::Same(u64::MAX),
                    Shape::Edges,
                    Shape::Constants,
                    Shape::Small,
                ];
                shapes[random.below(6) as usize].number(random, constants)
            }
        }
    }
}

/// A double, or two singles, near one and of both signs; now and then none.
fn float(random: &mut Random) -> u64 {
    let wide = [1.0f64, 1.5, -1.0, 2.0 - f64::EPSILON, 0.0, f64::NAN, 3e9, -0.0];
    let narrow = [1.0f32, 1.5, -1.0, 2.0 - f32::EPSILON, 0.0, f32::NAN, 70000.0, -0.0];
    match random.below(4) {
        0 => wide[random.below(8) as usize].to_bits(),
        1 => {
            let mut half = || u64::from(narrow[random.below(8) as usize].to_bits());
            half() | half() << 32
        }
        2 => (1.0 + random.below(1 << 20) as f64 / 7.0).to_bits(),
        _ => {
            let mut half = || u64::from((1.0 + random.below(1 << 12) as f32 / 7.0).to_bits());
            half() | half() << 32
        }
    }
}

impl State {
    /// One whose operands lie in the arena.
    pub fn new(random: &mut Random, operands: &[Operand], constants: &[u64], round: u32) -> State {
        let shape = Shape::of(round, random, constants);
        let mut regs = Registers { rip: super::arena::CODE, ..Registers::default() };
        for value in &mut regs.gpr {
            *value = shape.number(random, constants);
        }
        regs.rflags = 0x202;
        for bit in FLAG_BITS {
            regs.rflags |= random.below(2) << bit;
        }
        regs.fs = super::arena::DATA + 16 * super::arena::APART;
        regs.gs = super::arena::DATA + 17 * super::arena::APART;
        let Registers { gpr, fs, gs, vectors, .. } = &mut regs;
        fill(&mut vectors.0[160..416], shape, random, constants);
        fill(&mut vectors.0[576..832], shape, random, constants);
        // An empty x87 stack would make most of its instructions fail alike, and a full one those
        // that push.
        vectors.0[4] = 0x0f;
        for register in vectors.0[32..160].chunks_exact_mut(16) {
            let number = 1.0 + random.below(1000) as f64 / 8.0;
            let (mantissa, exponent) = extended(number);
            register[..8].copy_from_slice(&mantissa.to_le_bytes());
            register[8..10].copy_from_slice(&exponent.to_le_bytes());
        }
        vectors.0[512] = 7;
        for operand in operands {
            operand.place(gpr, fs, gs, random.below(64));
        }
        let memory = operands.iter().map(|operand| {
            let address = operand.address(gpr, *fs, *gs) - AROUND;
            let mut bytes = vec![0; (u64::from(operand.size) + 2 * AROUND) as usize];
            fill(&mut bytes, shape, random, constants);
            // Now and then it is equal to what it may be compared with: a register of its own
            // address, RAX, or a number in the code.
            let register = |n: u8| gpr[usize::from(n)];
            let choice = match random.below(4) {
                0 => operand.registers().last().map(register),
                1 => Some(register(0)),
                2 => Some(random.pick(constants)),
                _ => None,
            };
            if let Some(value) = choice {
                let value = value.to_le_bytes();
                let len = value.len().min(operand.size as usize);
                bytes[AROUND as usize..][..len].copy_from_slice(&value[..len]);
            }
            Window { address, bytes }
        });
        let mut memory: Vec<Window> = memory.collect();
        agree(&mut memory);
        State { regs, memory }
    }

    /// What differs after one of them.
    pub fn differences(&self, other: &State, operands: &[Operand], vectors: bool) -> Vec<Place> {
        let mut found = Vec::new();
        let mut bytes = |first: u16, a: &[u8], b: &[u8]| {
            let pairs = a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b);
            found.extend(pairs.map(|(n, _)| Place::Register(first + n as u16)));
        };
        for (n, (a, b)) in self.regs.gpr.iter().zip(&other.regs.gpr).enumerate() {
            bytes(8 * n as u16, &a.to_le_bytes(), &b.to_le_bytes());
        }
        if vectors {
            let (a, b) = (&self.regs.vectors.0, &other.regs.vectors.0);
            for n in 0..16 {
                let first = YMM + 32 * n as u16;
                let (low, high) = (160 + 16 * n..176 + 16 * n, 576 + 16 * n..592 + 16 * n);
                bytes(first, &a[low.clone()], &b[low]);
                bytes(first + 16, &a[high.clone()], &b[high]);
            }
            if a[..6] != b[..6] || a[32..160] != b[32..160] {
                found.push(Place::Register(X87));
            }
            if (a[24] ^ b[24]) & 0xc0 != 0 || a[25] != b[25] {
                found.push(Place::Register(MXCSR));
            }
            if (a[24] ^ b[24]) & 0x3f != 0 {
                found.push(Place::Register(EXCEPTIONS));
            }
        }
        for (n, bit) in FLAG_BITS.iter().enumerate() {
            if (self.regs.rflags ^ other.regs.rflags) >> bit & 1 != 0 {
                found.push(Place::Register(FLAGS + n as u16));
            }
        }
        if self.regs.fs != other.regs.fs {
            found.push(Place::Register(FS));
        }
        if self.regs.gs != other.regs.gs {
            found.push(Place::Register(GS));
        }
        if self.regs.rip != other.regs.rip {
            found.push(Place::Next);
        }
        found.extend(memory_differences(&self.memory, &other.memory, operands));
        found
    }

    /// Gives one place another value.
    pub fn alter(&mut self, place: Place, random: &mut Random) {
        let flip = random.flip();
        match place {
            Place::Register(n @ 0..YMM) => {
                self.regs.gpr[usize::from(n / 8)] ^= u64::from(flip) << (8 * (n % 8));
            }
            Place::Register(n @ YMM..FLAGS) => {
                let (register, byte) = (usize::from(n - YMM) / 32, usize::from(n - YMM) % 32);
                let at =
                    if byte < 16 { 160 + 16 * register + byte } else { 560 + 16 * register + byte };
                self.regs.vectors.0[at] ^= flip;
            }
            // Numbers, how they are rounded, and a condition.
            Place::Register(X87) => match random.below(6) as usize {
                4 => self.regs.vectors.0[1] ^= 4 << random.below(2),
                5 => self.regs.vectors.0[3] ^= 1,
                n => self.regs.vectors.0[32 + 16 * n + random.below(10) as usize] ^= flip,
            },
            // How numbers are rounded, and whether the smallest count as zero.
            Place::Register(MXCSR) => match random.below(3) {
                2 => self.regs.vectors.0[24] ^= 0x40,
                bit => self.regs.vectors.0[25] ^= 0x20 << bit,
            },
            Place::Register(EXCEPTIONS) => self.regs.vectors.0[24] ^= 1 << random.below(6),
            Place::Register(FS) => self.regs.fs ^= u64::from(flip) << 4,
            Place::Register(GS) => self.regs.gs ^= u64::from(flip) << 4,
            Place::Register(n) => self.regs.rflags ^= 1 << FLAG_BITS[usize::from(n - FLAGS)],
            Place::Memory(operand, offset) => {
                let at = self.memory[usize::from(operand)].address + AROUND;
                let at = at.wrapping_add_signed(offset.into());
                alter_byte(&mut self.memory, at, flip);
            }
            Place::Next => {}
        }
    }

    /// Gives a whole group other values.
    pub fn scramble(&mut self, group: Group, operands: &[Operand], random: &mut Random) {
        let addresses =
            |register: u8| operands.iter().any(|o| o.registers().any(|r| r == register));
        match group {
            Group::General(n) if addresses(n) => {
                // So that it still reaches memory.
                self.regs.gpr[usize::from(n)] ^= 8 << random.below(8);
            }
            Group::General(n) => {
                self.regs.gpr[usize::from(n)] ^=
                    [random.next(), 1, u64::MAX][random.below(3) as usize];
            }
            Group::Next => {}
            _ => {
                let places = group.places(operands);
                let one = random.below(places.len() as u64) as usize;
                let all = random.below(2) == 0;
                for (n, place) in places.into_iter().enumerate() {
                    if all || n == one {
                        self.alter(place, random);
                    }
                }
            }
        }
    }
}

fn alter_byte(windows: &mut [Window], at: u64, flip: u8) {
    for window in windows {
        if let Some(byte) =
            at.checked_sub(window.address).and_then(|offset| window.bytes.get_mut(offset as usize))
        {
            *byte ^= flip;
        }
    }
}

/// Windows that overlap hold the same.
fn agree(windows: &mut [Window]) {
    for n in 1..windows.len() {
        let (before, rest) = windows.split_at_mut(n);
        let this = &mut rest[0];
        for other in before.iter() {
            for (k, byte) in this.bytes.iter_mut().enumerate() {
                let at = (this.address + k as u64).checked_sub(other.address);
                if let Some(same) = at.and_then(|at| other.bytes.get(at as usize)) {
                    *byte = *same;
                }
            }
        }
    }
}

/// Each differing byte once, for the operand it belongs to.
fn memory_differences(a: &[Window], b: &[Window], operands: &[Operand]) -> Vec<Place> {
    let mut found: Vec<(u64, Place)> = Vec::new();
    for (n, (one, other)) in a.iter().zip(b).enumerate() {
        for (k, _) in one.bytes.iter().zip(&other.bytes).enumerate().filter(|(_, (a, b))| a != b) {
            let at = one.address + k as u64;
            let inside = |n: usize, window: &Window| {
                let start = window.address + AROUND;
                (start..start + u64::from(operands[n].size)).contains(&at)
            };
            let owner = a.iter().enumerate().find(|(n, window)| inside(*n, window));
            let (n, start) = owner.map_or((n, one.address), |(n, window)| (n, window.address));
            let offset = at.wrapping_sub(start + AROUND) as i16;
            if !found.iter().any(|(known, _)| *known == at) {
                found.push((at, Place::Memory(n as u8, offset)));
            }
        }
    }
    found.into_iter().map(|(_, place)| place).collect()
}

fn fill(bytes: &mut [u8], shape: Shape, random: &mut Random, constants: &[u64]) {
    for chunk in bytes.chunks_mut(8) {
        let number = shape.number(random, constants).to_le_bytes();
        chunk.copy_from_slice(&number[..chunk.len()]);
    }
}

/// A positive number as the x87 keeps it.
fn extended(number: f64) -> (u64, u16) {
    let bits = number.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as u16;
    (1 << 63 | (bits & ((1 << 52) - 1)) << 11, exponent - 1023 + 16383)
}

/// Numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    /// The first.
    pub fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// The next.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    fn pick(&mut self, list: &[u64]) -> u64 {
        list[self.below(list.len() as u64) as usize]
    }

    /// Bits of a byte to be inverted: never none.
    fn flip(&mut self) -> u8 {
        match self.below(6) {
            0 | 1 => 0x01,
            2 => 0x80,
            3 => 0xff,
            4 => 1 << self.below(8),
            _ => 1 + self.below(255) as u8,
        }
    }
}
