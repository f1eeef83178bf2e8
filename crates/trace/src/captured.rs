//! What records captured, in half the room.
//!
//! A captured register is mostly an address or a small number, and within a stretch of records
//! few of their upper parts differ. So it is kept as the number of its upper part and its lower
//! part, four bytes in all. To get memory for a trace takes longer than to fill it, and a slice
//! reads most of it: half as much is less than half as long.

use std::ops::Range;
use std::sync::Arc;

/// Bits of a lower part.
const LOW_BITS: u32 = 28;
const LOW: u32 = (1 << LOW_BITS) - 1;

/// Upper parts that have a number.
const UPPERS: usize = 15;

/// Stands for an upper part without a number: the lower part says which of the far ones it is.
const FAR: u32 = UPPERS as u32;

/// The upper parts of a segment.
#[derive(Clone, Default)]
pub(crate) struct Uppers {
    /// In their places.
    known: [u64; UPPERS + 1],
    /// Values as a whole, where there were too many upper parts.
    far: Vec<u64>,
}

impl Uppers {
    /// Bytes beside the values' own.
    pub fn size(&self) -> u64 {
        size_of::<Uppers>() as u64 + 8 * self.far.len() as u64
    }

    #[cold]
    #[inline(never)]
    fn far(&self, short: u32) -> u64 {
        self.far[(short & LOW) as usize]
    }
}

/// What some records in a row captured, one register after the other.
#[derive(Clone, Copy)]
pub struct Captured<'a> {
    short: &'a [u32],
    uppers: &'a Uppers,
}

impl<'a> Captured<'a> {
    pub(crate) fn new(short: &'a [u32], uppers: &'a Uppers) -> Captured<'a> {
        Captured { short, uppers }
    }

    /// How many.
    #[inline]
    pub fn count(self) -> usize {
        self.short.len()
    }

    /// The n-th, which must be there.
    #[inline(always)]
    pub fn at(self, n: usize) -> u64 {
        let short = self.short[n];
        let upper = short >> LOW_BITS;
        if upper == FAR {
            return self.uppers.far(short);
        }
        self.uppers.known[upper as usize] | u64::from(short & LOW)
    }

    /// The n-th, if it is there.
    pub fn get(self, n: usize) -> Option<u64> {
        (n < self.count()).then(|| self.at(n))
    }

    /// Some of them.
    #[inline(always)]
    pub fn range(self, range: Range<usize>) -> Captured<'a> {
        Captured { short: &self.short[range], ..self }
    }

    /// From the n-th on.
    #[inline(always)]
    pub fn from(self, n: usize) -> Captured<'a> {
        Captured { short: &self.short[n..], ..self }
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = u64> + use<'a> {
        (0..self.count()).map(move |n| self.at(n))
    }
}

/// What the records of a whole segment captured.
#[derive(Clone)]
pub enum Whole<'a> {
    /// As it is kept.
    Plain(Captured<'a>),
    /// Unpacked for the one who asks.
    Unpacked(Arc<Unpacked>),
}

/// What was unpacked.
pub struct Unpacked {
    short: Vec<u32>,
    uppers: Uppers,
}

impl Unpacked {
    pub(crate) fn new(values: &[u64]) -> Unpacked {
        let mut short = vec![0; values.len()];
        let uppers = shorten(values, &mut short);
        Unpacked { short, uppers }
    }
}

impl Whole<'_> {
    /// All of it.
    #[inline]
    pub fn all(&self) -> Captured<'_> {
        match self {
            Whole::Plain(all) => *all,
            Whole::Unpacked(own) => Captured { short: &own.short, uppers: &own.uppers },
        }
    }
}

/// Shortens values, of which there are as many as places.
pub(crate) fn shorten(values: &[u64], places: &mut [u32]) -> Uppers {
    let mut shortener = Shortener::default();
    for (value, place) in values.iter().zip(places) {
        *place = shortener.short(*value);
    }
    shortener.end()
}

/// Makes values short, segment by segment.
pub(crate) struct Shortener {
    uppers: Uppers,
    /// How many have a number.
    count: u32,
    /// Upper parts that were met, each where it is looked for.
    met: [Met; 1 << MET_BITS],
}

#[derive(Clone, Copy)]
struct Met {
    upper: u64,
    /// Its number, where that is in a short value.
    number: u32,
}

const MET_BITS: u32 = 6;

/// None has so many bits.
const NOTHING: Met = Met { upper: u64::MAX, number: 0 };

impl Default for Shortener {
    fn default() -> Shortener {
        Shortener { uppers: Uppers::default(), count: 0, met: [NOTHING; 1 << MET_BITS] }
    }
}

impl Shortener {
    /// A value in short.
    #[inline(always)]
    pub fn short(&mut self, value: u64) -> u32 {
        let (short, met) = self.known(value);
        if met { short } else { self.meet(value) }
    }

    /// A value in short, and whether it could be told: whether its upper part was met lately.
    #[inline(always)]
    pub fn known(&self, value: u64) -> (u32, bool) {
        let upper = value >> LOW_BITS;
        let met = self.met[place(upper)];
        (met.number | (value as u32 & LOW), met.upper == upper)
    }

    /// It was not met lately.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, value: u64) -> u32 {
        let upper = value >> LOW_BITS;
        let known = &self.uppers.known[..self.count as usize];
        let number = known.iter().position(|known| *known == upper << LOW_BITS);
        let number = match number {
            Some(number) => number as u32,
            None if self.count < FAR => {
                self.uppers.known[self.count as usize] = upper << LOW_BITS;
                self.count += 1;
                self.count - 1
            }
            None => {
                self.uppers.far.push(value);
                return FAR << LOW_BITS | (self.uppers.far.len() as u32 - 1);
            }
        };
        let number = number << LOW_BITS;
        self.met[place(upper)] = Met { upper, number };
        number | (value as u32 & LOW)
    }

    /// What the values since the last end have in common; the next ones begin anew.
    pub fn end(&mut self) -> Uppers {
        std::mem::take(self).uppers
    }
}

/// Where an upper part is looked for.
#[inline(always)]
fn place(upper: u64) -> usize {
    (upper.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - MET_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(values: &[u64]) -> Uppers {
        let mut short = vec![0; values.len()];
        let uppers = shorten(values, &mut short);
        assert!(Captured::new(&short, &uppers).all().eq(values.iter().copied()));
        uppers
    }

    #[test]
    fn addresses_and_small_numbers_take_four_bytes_each() {
        let addresses = [0x5555_5555_4000, 0x7fff_ffff_e000, 0x7fff_f7fc_1000, 0, 1 << 20];
        let stepped = |n: u64| addresses.iter().map(move |a: &u64| a.wrapping_add(8 * n));
        let downward = (0..1000).map(|n: u64| n.wrapping_neg());
        let values: Vec<u64> = (0..1000).flat_map(stepped).chain(downward).collect();
        assert!(again(&values).far.is_empty());
    }

    #[test]
    fn whatever_was_captured_is_told_as_it_was() {
        // A xorshift generator, every width of number among its values.
        let mut x = 7u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let values: Vec<u64> = (0..10_000).map(|n| next() >> (n % 64)).collect();
        assert!(!again(&values).far.is_empty());
        again(&[]);
        again(&[u64::MAX, 0, u64::MAX, 1 << LOW_BITS, (1 << LOW_BITS) - 1]);
        // As many upper parts as have a number, and one more; then all of them once more.
        let uppers = (0..=UPPERS as u64).map(|n| n << LOW_BITS);
        let twice: Vec<u64> = uppers.clone().chain(uppers).collect();
        assert_eq!(again(&twice).far, [(UPPERS as u64) << LOW_BITS; 2]);
    }

    #[test]
    fn another_segment_begins_anew() {
        let mut shortener = Shortener::default();
        let one: Vec<u32> = (0..20).map(|n| shortener.short(n << LOW_BITS)).collect();
        let first = shortener.end();
        let two = [shortener.short(19 << LOW_BITS)];
        let second = shortener.end();
        assert_eq!((first.far.len(), second.far.len()), (5, 0));
        assert_eq!(Captured::new(&one, &first).at(19), 19 << LOW_BITS);
        assert_eq!(Captured::new(&two, &second).at(0), 19 << LOW_BITS);
        assert_eq!(Captured::new(&two, &second).get(1), None);
    }
}
