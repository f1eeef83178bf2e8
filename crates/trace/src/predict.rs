//! Guesses at the next record, from those before it.
//!
//! Writer and reader of a packed segment make the same guesses, because each learns
//! from the same records. What was guessed right need not be written.

use crate::model::{Model, Origin, PathModel};

const PATH_BITS: u32 = 15;
const VALUE_BITS: u32 = 15;

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

const NOWHERE: u32 = u32::MAX;

fn hash(n: u64, bits: u32) -> usize {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
}

impl Predictor {
    /// Knows nothing.
    pub fn new() -> Predictor {
        Predictor {
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
        let told = self.told(origin, captured);
        let context = hash(self.previous ^ (number as u64) << 48, VALUE_BITS);
        let ways =
            [told.unwrap_or(slot.last), slot.last.wrapping_add(slot.stride), self.contexts[context]];
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
        let before = self.registers;
        for store in path.stores {
            let (n, offset) = store.address;
            let value = value(&before, &self.memory, store.value, captured);
            if let (Some(at), Some(value)) = (address(captured, n, offset), value) {
                self.memory[at] = value;
            }
        }
        for (register, origin) in path.finals {
            self.end_register(*register, *origin, &before, captured);
        }
    }

    #[inline]
    fn end_register(&mut self, register: u8, origin: Origin, before: &Registers, captured: &[u64]) {
        let (n, bit) = (usize::from(register), 1u16 << register);
        let (value, sure, from) = match origin {
            Origin::Head(head, offset) => {
                let has = |set: u16| set & 1 << head != 0;
                let value = before.values[usize::from(head)].wrapping_add(offset as u64);
                let from = if offset == 0 { before.from[usize::from(head)] } else { NOWHERE };
                (has(before.known).then_some(value), has(before.sure), from)
            }
            Origin::Capture(c, offset) => {
                (Some(captured[usize::from(c)].wrapping_add(offset as u64)), true, NOWHERE)
            }
            Origin::Loaded(c, offset) => match address(captured, c, offset) {
                Some(at) => (Some(self.memory[at]).filter(|v| *v != 0), false, at as u32),
                None => (None, false, NOWHERE),
            },
            Origin::Unknown => (None, false, NOWHERE),
        };
        let all = &mut self.registers;
        all.from[n] = from;
        all.known = if value.is_some() { all.known | bit } else { all.known & !bit };
        all.sure = if sure && value.is_some() { all.sure | bit } else { all.sure & !bit };
        all.values[n] = value.unwrap_or(0);
    }
}

/// The place of an address in what is known of memory.
#[inline]
fn address(captured: &[u64], n: u16, offset: i64) -> Option<usize> {
    let at = captured.get(usize::from(n))?.wrapping_add(offset as u64);
    Some(hash(at, VALUE_BITS))
}

#[inline]
fn value(before: &Registers, memory: &[u64], origin: Origin, captured: &[u64]) -> Option<u64> {
    match origin {
        Origin::Head(r, offset) => {
            let known = before.known & 1 << r != 0;
            known.then(|| before.values[usize::from(r)].wrapping_add(offset as u64))
        }
        Origin::Capture(n, offset) => {
            Some(captured.get(usize::from(n))?.wrapping_add(offset as u64))
        }
        Origin::Loaded(n, offset) => {
            Some(memory[address(captured, n, offset)?]).filter(|v| *v != 0)
        }
        Origin::Unknown => None,
    }
}

