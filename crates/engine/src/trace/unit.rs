//! What the records of traced units mean, as it is told and kept.
//!
//! There are tens of thousands of units, and whoever reads a trace has no time to take apart
//! those that never run: so they stay the bytes they are told in, and are looked at there.

use std::sync::Arc;

/// The bytes of an instruction, of which there are at most 15. There are many instructions, and
/// each has them: so they lie where it does.
pub type Bytes = arrayvec::ArrayVec<u8, LONGEST>;

const LONGEST: usize = 15;

/// A unit of traced code: its instructions and its paths. Where a path has fewer instructions, the
/// next one was begun and faulted, or a branch left the unit.
///
/// ```
/// use engine::trace::Unit;
/// let nop_twice = [(0x1000, &[0x90][..]), (0x1001, &[0x90])];
/// let told = Unit::tell(7, nop_twice.into_iter(), [(2, 0)].into_iter());
/// let (unit, rest) = Unit::read(&told).expect("a whole unit");
/// assert_eq!((unit.first_path(), unit.paths().collect()), (7, vec![(2, 0)]));
/// assert!(unit.instructions().eq(nop_twice) && rest.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    first_path: u32,
    paths: &'a [[u8; 4]],
    code: &'a [u8],
}

/// So many bytes tell most units.
const ROOM: usize = 256;

/// Number of its first path, how many paths it has, bytes of its instructions.
const HEAD: usize = 12;

/// An instruction is told by its length, its address unless it follows the one before, and its
/// bytes.
const ELSEWHERE: u8 = 1 << 7;

impl<'a> Unit<'a> {
    /// The bytes of a unit with these instructions, by address, and paths: instructions executed,
    /// registers captured.
    pub fn tell<'b>(
        first_path: u32,
        instructions: impl Iterator<Item = (u64, &'b [u8])>,
        paths: impl Iterator<Item = (u16, u16)>,
    ) -> Vec<u8> {
        let mut told = Vec::with_capacity(ROOM);
        told.resize(HEAD, 0);
        let mut count = 0u32;
        for (executed, captures) in paths {
            told.extend([executed.to_le_bytes(), captures.to_le_bytes()].as_flattened());
            count += 1;
        }
        let code = told.len();
        let mut behind = None;
        for (address, bytes) in instructions {
            let len = bytes.len() as u8;
            if behind == Some(address) {
                told.push(len);
            } else {
                told.push(len | ELSEWHERE);
                told.extend(address.to_le_bytes());
            }
            told.extend(bytes);
            behind = Some(address.wrapping_add(len.into()));
        }
        let len = (told.len() - code) as u32;
        let head = [first_path, count, len].map(u32::to_le_bytes);
        told[..HEAD].copy_from_slice(head.as_flattened());
        told
    }

    /// The first of some units, and the bytes behind it; `None` if there is no whole one.
    pub fn read(told: &'a [u8]) -> Option<(Unit<'a>, &'a [u8])> {
        let (head, rest) = told.split_first_chunk::<HEAD>()?;
        let word = |n: usize| head[4 * n..].first_chunk().map(|word| u32::from_le_bytes(*word));
        let (paths, rest) = rest.split_at_checked(4 * word(1)? as usize)?;
        let (code, rest) = rest.split_at_checked(word(2)? as usize)?;
        Some((Unit { first_path: word(0)?, paths: paths.as_chunks().0, code }, rest))
    }

    /// Number of its first path.
    pub fn first_path(&self) -> u32 {
        self.first_path
    }

    /// Its paths: instructions executed, registers captured.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = (u16, u16)> + use<'a> {
        self.paths
            .iter()
            .map(|&[a, b, c, d]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
    }

    /// Its instructions: addresses and bytes.
    pub fn instructions(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let mut left = self.code;
        let mut next = 0u64;
        std::iter::from_fn(move || {
            let (kind, mut rest) = left.split_first()?;
            if kind & ELSEWHERE != 0 {
                let (address, behind) = rest.split_first_chunk()?;
                (next, rest) = (u64::from_le_bytes(*address), behind);
            }
            let len = usize::from(kind & !ELSEWHERE);
            let (bytes, rest) = rest.split_at_checked(len).filter(|_| len <= LONGEST)?;
            let address = next;
            (left, next) = (rest, next.wrapping_add(bytes.len() as u64));
            Some((address, bytes))
        })
    }

    /// Could this be a unit, whoever says so? It has instructions, and no path has more of them.
    pub fn is_sound(&self) -> bool {
        let mut told = 0;
        let mut count = 0;
        let mut behind = None;
        for (address, bytes) in self.instructions() {
            let elsewhere = behind != Some(address);
            told += 1 + bytes.len() + if elsewhere { size_of::<u64>() } else { 0 };
            count += 1;
            behind = Some(address.wrapping_add(bytes.len() as u64));
        }
        let few = |(executed, _): (u16, u16)| usize::from(executed) <= count;
        count > 0 && told == self.code.len() && self.paths().all(few)
    }

    /// Is it the same but for the numbers of its paths?
    pub fn is_like(&self, other: &Unit<'_>) -> bool {
        (self.paths, self.code) == (other.paths, other.code)
    }
}

/// Units, one after the other, as they are told. Copies share the bytes.
#[derive(Clone, Debug)]
pub struct Units(Arc<Vec<u8>>);

impl Units {
    /// Of bytes; `None` if there are some that tell no whole unit.
    pub fn new(told: Vec<u8>) -> Option<Units> {
        let mut left = &told[..];
        while !left.is_empty() {
            left = Unit::read(left)?.1;
        }
        Some(Units(Arc::new(told)))
    }

    /// All of them, each with its place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Unit<'_>)> {
        let mut left = &self.0[..];
        std::iter::from_fn(move || {
            let place = self.0.len() - left.len();
            let (unit, rest) = Unit::read(left)?;
            left = rest;
            Some((place, unit))
        })
    }

    /// The one at a place.
    pub fn at(&self, place: usize) -> Option<Unit<'_>> {
        Some(Unit::read(self.0.get(place..)?)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_back_as_they_were_told() {
        let far = [(0x1000, &[0xeb, 0x10][..]), (0x1012, &[0x90]), (0x1013, &[0x0f, 0x0b])];
        let mut told = Unit::tell(3, far.into_iter(), [(2, 1), (3, 700)].into_iter());
        let second = told.len();
        told.extend(Unit::tell(5, [].into_iter(), [].into_iter()));
        let units = Units::new(told.clone()).expect("whole units");
        let all: Vec<_> = units.iter().map(|(place, unit)| (place, unit.first_path())).collect();
        assert_eq!(all, [(0, 3), (second, 5)]);
        let unit = units.at(0).expect("the first");
        assert!(unit.instructions().eq(far));
        assert!(unit.paths().eq([(2, 1), (3, 700)]));
        assert!(units.at(second).expect("the second").instructions().next().is_none());
        for cut in 0..second {
            assert!(Unit::read(&told[..cut]).is_none(), "no whole unit in {cut} bytes");
            assert!(cut == 0 || Units::new(told[..cut].to_vec()).is_none());
        }
    }

    #[test]
    fn what_cannot_be_a_unit_is_told_from_one() {
        let code = [(0x1000, &[0x90][..]), (0x1001, &[0x0f, 0x0b]), (0x2000, &[0xc3])];
        let told = |paths: &[(u16, u16)]| Unit::tell(0, code.into_iter(), paths.iter().copied());
        let sound = |told: &[u8]| Unit::read(told).is_some_and(|(unit, _)| unit.is_sound());
        assert!(sound(&told(&[(2, 1), (3, 700)])));
        assert!(!sound(&told(&[(4, 0)])), "more were executed than there are");
        let mut long = told(&[(3, 0)]);
        long[HEAD + 4] = ELSEWHERE | 16;
        assert!(!sound(&long), "no instruction has 16 bytes");
        assert!(!sound(&Unit::tell(0, [].into_iter(), [].into_iter())));
    }

    #[test]
    fn two_are_alike_whatever_the_numbers_of_their_paths() {
        let nop = |first, paths| Unit::tell(first, [(0x1000, &[0x90][..])].into_iter(), paths);
        let [one, two, other] = [(1, 1), (2, 1), (1, 0)].map(|(n, k)| nop(n, [(k, 0)].into_iter()));
        let read = |told| Unit::read(told).expect("whole").0;
        assert!(read(&one).is_like(&read(&two)));
        assert!(!read(&one).is_like(&read(&other)));
    }
}
