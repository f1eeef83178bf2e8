//! Guesses at the next record, from those before it.
//!
//! Writer and reader of a packed segment make the same guesses, because each learns
//! from the same records. What was guessed right need not be written.

use crate::model::{Model, Origin, PathModel};

const PATH_BITS: u32 = 15;
const VALUE_BITS: u32 = 15;

/// Which guesses are made: all, unless it is to be measured what one is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guessing {
    /// Paths from the paths before.
    pub paths: bool,
    /// Registers from what the code tells of earlier registers and memory.
    pub told: bool,
    /// Registers by their last value and stride.
    pub strides: bool,
    /// Registers by what came after the same value before.
    pub contexts: bool,
}

impl Default for Guessing {
    fn default() -> Self {
        Guessing { paths: true, told: true, strides: true, contexts: true }
    }
}

/// Ways to guess a captured register.
const WAYS: usize = 3;
/// From registers and memory as the code tells.
const TOLD: usize = 0;
/// As far from the last one as that was from the one before.
const STRIDE: usize = 1;
/// What came after the same value here.
const CONTEXT: usize = 2;

/// What is remembered of one capture of one path.
#[derive(Clone, Copy, Default)]
struct Slot {
    last: u64,
    stride: u64,
    /// The segment it is of; older ones count as empty.
    segment: u32,
    /// How well each way did.
    trust: [u8; WAYS],
}

/// Guesses at one captured register.
pub(crate) struct Guess {
    ways: [u64; WAYS],
    /// The most trusted one.
    best: usize,
    /// What to count from if all are wrong.
    pub base: u64,
    /// The guess cannot be wrong, short of a switch of threads.
    sure: bool,
    context: usize,
}

impl Guess {
    /// The most trusted one.
    #[inline]
    pub fn best(&self) -> u64 {
        self.ways[self.best]
    }

    /// The others, and the last value.
    pub fn others(&self) -> [u64; 3] {
        let way = |n: usize| self.ways[(self.best + n) % WAYS];
        [way(1), way(2), self.base]
    }
}

/// What has been learnt so far in a segment.
pub(crate) struct Predictor {
    guessing: Guessing,
    segment: u32,
    slots: Vec<Slot>,
    /// What came after three paths, and after one.
    by_three: Vec<u32>,
    by_one: Vec<u32>,
    history: [u32; 3],
    /// What came after a value.
    contexts: Vec<u64>,
    previous: u64,
    /// What memory has, as far as known.
    memory: Vec<u64>,
    registers: Registers,
}

#[derive(Clone, Copy, Default)]
struct Registers {
    values: [u64; 16],
    /// Where a guessed value was loaded from, so that a wrong one can be put right.
    from: [u32; 16],
    known: u16,
    sure: u16,
}

/// One of them.
#[derive(Clone, Copy)]
struct One {
    value: u64,
    from: u32,
    known: bool,
    sure: bool,
}

impl Default for One {
    fn default() -> Self {
        One { value: 0, from: NOWHERE, known: false, sure: false }
    }
}

impl Registers {
    #[inline]
    fn one(&self, register: u8) -> One {
        let n = usize::from(register);
        let has = |set: u16| set >> register & 1 != 0;
        One {
            value: self.values[n],
            from: self.from[n],
            known: has(self.known),
            sure: has(self.sure),
        }
    }
}

const NOWHERE: u32 = u32::MAX;

fn hash(n: u64, bits: u32) -> usize {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}

impl Predictor {
    /// Knows nothing.
    pub fn new(guessing: Guessing) -> Predictor {
        Predictor {
            guessing,
            segment: 0,
            slots: Vec::new(),
            by_three: vec![0; 1 << PATH_BITS],
            by_one: vec![0; 1 << PATH_BITS],
            history: [0; 3],
            contexts: vec![0; 1 << VALUE_BITS],
            previous: 0,
            memory: vec![0; 1 << VALUE_BITS],
            registers: Registers::default(),
        }
    }

    /// Forgets all: another segment begins.
    pub fn begin(&mut self, model: &Model) {
        self.segment += 1;
        self.slots.resize(model.captures(), Slot::default());
        self.by_three.fill(0);
        self.by_one.fill(0);
        self.contexts.fill(0);
        self.memory.fill(0);
        self.history = [0; 3];
        self.previous = 0;
        self.registers = Registers::default();
    }

    /// The path that comes next, probably, or else that one.
    #[inline]
    pub fn path(&self) -> [u32; 2] {
        if !self.guessing.paths {
            return [u32::MAX; 2];
        }
        [self.by_three[self.after_three()], self.by_one[self.after_one()]]
    }

    /// The path before.
    pub fn last_path(&self) -> u32 {
        self.history[0]
    }

    /// Learns which path came.
    #[inline]
    pub fn learn_path(&mut self, path: u32) {
        let (three, one) = (self.after_three(), self.after_one());
        self.by_three[three] = path;
        self.by_one[one] = path;
        self.history = [path, self.history[0], self.history[1]];
    }

    #[inline]
    fn after_three(&self) -> usize {
        let [a, b, c] = self.history.map(u64::from);
        hash(a ^ b.rotate_left(21) ^ c.rotate_left(42), PATH_BITS)
    }

    #[inline]
    fn after_one(&self) -> usize {
        hash(self.history[0].into(), PATH_BITS)
    }

    /// Guesses at a capture; `captured` are those before it.
    #[inline]
    pub fn capture(&self, slot: usize, origin: Origin, captured: &[u64]) -> Guess {
        if let Origin::Head(register, offset) = origin
            && self.guessing.told
            && self.registers.sure & 1 << register != 0
        {
            let value = self.registers.values[usize::from(register)].wrapping_add(offset as u64);
            let ways = [value; WAYS];
            let base = value;
            return Guess { ways, best: TOLD, base, sure: true, context: 0 };
        }
        self.uncertain(slot, origin, captured)
    }

    fn uncertain(&self, number: usize, origin: Origin, captured: &[u64]) -> Guess {
        let mut slot = self.slots[number];
        if slot.segment != self.segment {
            slot = Slot { last: self.previous, trust: [1, 0, 0], ..Slot::default() };
        }
        let told = self.told(origin, captured).filter(|_| self.guessing.told);
        let stride = if self.guessing.strides { slot.stride } else { 0 };
        let context = hash(self.previous ^ (number as u64) << 48, VALUE_BITS);
        let after = if self.guessing.contexts { self.contexts[context] } else { slot.last };
        let ways = [told.unwrap_or(slot.last), slot.last.wrapping_add(stride), after];
        let [told_trust, stride, by_context] = slot.trust;
        let best = if told.is_some() && told_trust >= stride && told_trust >= by_context {
            TOLD
        } else if by_context > stride {
            CONTEXT
        } else {
            STRIDE
        };
        Guess { ways, best, base: slot.last, sure: false, context }
    }

    fn told(&self, origin: Origin, captured: &[u64]) -> Option<u64> {
        match origin {
            Origin::Head(register, offset) => {
                let known = self.registers.known & 1 << register != 0;
                let value = self.registers.values[usize::from(register)];
                known.then(|| value.wrapping_add(offset as u64))
            }
            Origin::Capture(n, offset) => {
                Some(captured.get(usize::from(n))?.wrapping_add(offset as u64))
            }
            Origin::Loaded(n, offset) => {
                let value = self.memory[address(captured, n, offset)?];
                (value != 0).then_some(value)
            }
            Origin::Unknown => None,
        }
    }

    /// Learns what was captured.
    #[inline]
    pub fn learn_capture(
        &mut self,
        number: usize,
        origin: Origin,
        captured: &[u64],
        guess: &Guess,
        value: u64,
    ) {
        if !guess.sure {
            self.learn_slot(number, guess, value);
        }
        match origin {
            Origin::Head(register, offset) => {
                let value = value.wrapping_sub(offset as u64);
                self.correct(register, value);
            }
            Origin::Loaded(n, offset) => {
                if let Some(at) = address(captured, n, offset) {
                    self.memory[at] = value;
                }
            }
            Origin::Capture(..) | Origin::Unknown => {}
        }
    }

    /// A register turned out to have this value at the head.
    #[inline]
    fn correct(&mut self, register: u8, value: u64) {
        let (n, bit) = (usize::from(register), 1 << register);
        let all = &mut self.registers;
        if all.known & bit != 0 && all.values[n] != value && all.from[n] != NOWHERE {
            self.memory[all.from[n] as usize] = value;
        }
        all.values[n] = value;
        all.from[n] = NOWHERE;
        all.known |= bit;
        all.sure |= bit;
    }

    fn learn_slot(&mut self, number: usize, guess: &Guess, value: u64) {
        let slot = &mut self.slots[number];
        if slot.segment != self.segment {
            *slot = Slot { segment: self.segment, last: value, trust: [1, 0, 0], stride: 0 };
        }
        for (trust, way) in slot.trust.iter_mut().zip(guess.ways) {
            *trust = if way == value { (*trust + 1).min(15) } else { *trust / 2 };
        }
        slot.stride = value.wrapping_sub(slot.last);
        slot.last = value;
        self.contexts[guess.context] = value;
        self.previous = value;
    }

    /// Learns what a path left behind.
    #[inline]
    pub fn end(&mut self, path: &PathModel, captured: &[u64]) {
        for store in path.stores {
            let (n, offset) = store.address;
            if let Some(at) = address(captured, n, offset)
                && let Some(value) = self.told(store.value, captured)
            {
                self.memory[at] = value;
            }
        }
        if path.crossed {
            let before = self.registers;
            for (register, origin) in path.finals {
                self.end_register(*register, *origin, &before, captured);
            }
        } else {
            for (register, origin) in path.finals {
                let before = match *origin {
                    Origin::Head(head, _) => self.registers.one(head),
                    _ => One::default(),
                };
                self.set(*register, *origin, before, captured);
            }
        }
        self.registers.known &= !path.unknown;
        self.registers.sure &= !path.unknown;
    }

    #[inline]
    fn end_register(&mut self, register: u8, origin: Origin, before: &Registers, captured: &[u64]) {
        let before = match origin {
            Origin::Head(head, _) => before.one(head),
            _ => One::default(),
        };
        self.set(register, origin, before, captured);
    }

    /// A register's value at a path's end; `head` is the one it comes from.
    #[inline]
    fn set(&mut self, register: u8, origin: Origin, head: One, captured: &[u64]) {
        let one = match origin {
            Origin::Head(_, offset) => One {
                value: head.value.wrapping_add(offset as u64),
                from: if offset == 0 { head.from } else { NOWHERE },
                ..head
            },
            Origin::Capture(c, offset) => {
                let value = captured[usize::from(c)].wrapping_add(offset as u64);
                One { value, known: true, sure: true, from: NOWHERE }
            }
            Origin::Loaded(c, offset) => match address(captured, c, offset) {
                Some(at) => {
                    let value = self.memory[at];
                    One { value, known: value != 0, sure: false, from: at as u32 }
                }
                None => One::default(),
            },
            Origin::Unknown => One::default(),
        };
        let all = &mut self.registers;
        let n = usize::from(register);
        all.values[n] = one.value;
        all.from[n] = one.from;
        all.known = all.known & !(1 << register) | u16::from(one.known) << register;
        all.sure = all.sure & !(1 << register) | u16::from(one.sure) << register;
    }
}

/// The place of an address in what is known of memory.
#[inline]
fn address(captured: &[u64], n: u16, offset: i64) -> Option<usize> {
    let at = captured.get(usize::from(n))?.wrapping_add(offset as u64);
    Some(hash(at, VALUE_BITS))
}
