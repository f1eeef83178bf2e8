//! The file that translations are kept in.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | magic `WyCode02` |
//! | 8..16 | hash of all that follows |
//! | 16..72 | lengths: code, cold code, units, exits, words of groups, meanings, their ends |
//! | 72..80 | the next path's number, for traced code |
//! | 80.. | groups, units, exits, code, cold code, ends of meanings, meanings |

use super::meanings::Meanings;
use crate::code::cache::{Exit, Unit};
use crate::hash;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

const MAGIC: [u8; 8] = *b"WyCode02";
const HEADER: usize = 80;

/// The units that were translated from one map of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The map's guest addresses.
    pub range: Range<u64>,
    /// The pages of it that were looked at.
    pub pages: Vec<u64>,
    /// Hash of what was in them.
    pub hash: u64,
}

/// Contents of a cache, to be kept.
pub struct Image {
    /// Code, without links between units.
    pub code: Vec<u8>,
    /// The same for code that is rarely used.
    pub cold: Vec<u8>,
    /// Units, asleep if they belong to a group, else dead.
    pub units: Vec<Unit>,
    /// Exits; `linked` says which unit of the same group to link to again.
    pub exits: Vec<Exit>,
    /// Groups.
    pub groups: Vec<Group>,
    /// What the records of traced units mean.
    pub meanings: Meanings,
}

impl Image {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let groups: Vec<u64> = self.groups.iter().flat_map(group_words).collect();
        let lengths = [
            self.code.len(),
            self.cold.len(),
            self.units.len(),
            self.exits.len(),
            groups.len(),
            self.meanings.bytes.len(),
            self.meanings.ends.len(),
            self.meanings.next_path as usize,
        ];
        let mut bytes = vec![0; 16];
        bytes[..8].copy_from_slice(&MAGIC);
        for word in lengths.iter().map(|n| *n as u64).chain(groups) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(raw(&self.units));
        bytes.extend_from_slice(raw(&self.exits));
        bytes.extend_from_slice(&self.code);
        bytes.extend_from_slice(&self.cold);
        bytes.extend_from_slice(raw(&self.meanings.ends));
        bytes.extend_from_slice(&self.meanings.bytes);
        let sum = hash::bytes(&bytes[16..]);
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

fn group_words(group: &Group) -> Vec<u64> {
    let mut words = vec![group.range.start, group.range.end, group.hash, group.pages.len() as u64];
    words.extend(&group.pages);
    words
}

/// The bytes of records that are numbers without gaps.
pub fn raw<T: Copy>(records: &[T]) -> &[u8] {
    // SAFETY: called for `Unit`, `Exit` and numbers only, which have no padding.
    unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), size_of_val(records)) }
}

/// A file of translations, mapped and found to be whole.
pub struct Loaded {
    start: *mut u8,
    len: usize,
    lengths: [usize; 7],
    next_path: u32,
}

// SAFETY: the pointer is to a map that this value owns and nobody writes to.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Maps a file; `None` if it is not what was once written.
    pub(super) fn map(file: &File, len: u64) -> Option<Loaded> {
        let len = usize::try_from(len).ok().filter(|len| *len >= HEADER)?;
        let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE);
        // SAFETY: a new map, where the kernel likes.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, read, private, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let mut loaded = Loaded { start: start.cast(), len, lengths: [0; 7], next_path: 0 };
        let bytes = loaded.part(0, len);
        let word = |n: usize| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().expect("8"));
        if bytes[..8] != MAGIC || word(1) != hash::bytes(&bytes[16..]) {
            return None;
        }
        let lengths = [2, 3, 4, 5, 6, 7, 8].map(|n| word(n) as usize);
        loaded.next_path = word(9) as u32;
        loaded.lengths = lengths;
        let end = loaded.ends()?;
        (end == len).then_some(loaded)
    }

    fn part(&self, at: usize, len: usize) -> &[u8] {
        assert!(at <= self.len && len <= self.len - at);
        // SAFETY: within the map, which is replaced by renaming only and never changed.
        unsafe { std::slice::from_raw_parts(self.start.add(at), len) }
    }

    /// Where the last part ends, if the lengths can be right.
    fn ends(&self) -> Option<usize> {
        let [code, cold, units, exits, groups, meanings, ends] = self.lengths;
        let records = units.checked_mul(size_of::<Unit>())?;
        let more = exits.checked_mul(size_of::<Exit>())?;
        let ends = ends.checked_mul(4)?;
        [HEADER, groups.checked_mul(8)?, records, more, code, cold, ends, meanings]
            .into_iter()
            .try_fold(0usize, usize::checked_add)
    }

    /// Units.
    pub fn units(&self) -> Vec<Unit> {
        self.records(self.units_at(), self.lengths[2])
    }

    /// Exits.
    pub fn exits(&self) -> Vec<Exit> {
        self.records(self.exits_at(), self.lengths[3])
    }

    /// Code, as it was at the beginning of the cache.
    pub fn code(&self) -> &[u8] {
        self.part(self.code_at(), self.lengths[0])
    }

    /// Rarely used code.
    pub fn cold(&self) -> &[u8] {
        self.part(self.code_at() + self.lengths[0], self.lengths[1])
    }

    /// What the records of traced units mean.
    pub fn meanings(&self) -> Meanings {
        let at = self.code_at() + self.lengths[0] + self.lengths[1];
        Meanings {
            ends: self.records(at, self.lengths[6]),
            bytes: self.part(at + 4 * self.lengths[6], self.lengths[5]).to_vec(),
            next_path: self.next_path,
        }
    }

    /// Groups; `None` if they are not what was once written.
    pub fn groups(&self) -> Option<Vec<Group>> {
        let words: Vec<u64> = self.records(HEADER, self.lengths[4]);
        let mut rest = words.as_slice();
        let mut groups = Vec::new();
        while let [start, end, hash, pages, more @ ..] = rest {
            let n = usize::try_from(*pages).ok().filter(|n| *n <= more.len())?;
            let (pages, after) = more.split_at(n);
            groups.push(Group { range: *start..*end, pages: pages.to_vec(), hash: *hash });
            rest = after;
        }
        rest.is_empty().then_some(groups)
    }

    fn units_at(&self) -> usize {
        HEADER + 8 * self.lengths[4]
    }

    fn exits_at(&self) -> usize {
        self.units_at() + self.lengths[2] * size_of::<Unit>()
    }

    fn code_at(&self) -> usize {
        self.exits_at() + self.lengths[3] * size_of::<Exit>()
    }

    fn records<T: Copy>(&self, at: usize, n: usize) -> Vec<T> {
        let bytes = self.part(at, n * size_of::<T>());
        let mut records = Vec::<T>::with_capacity(n);
        // SAFETY: called for records that are numbers without gaps, for which all bytes
        // are allowed; all of the vector's new length was written.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                records.as_mut_ptr().cast::<u8>(),
                bytes.len(),
            );
            records.set_len(n);
        }
        records
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: our own map.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Image, Loaded, Meanings};
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::FromRawFd;

    fn image() -> Image {
        let group = Group { range: 0x1000..0x9000, pages: vec![0x1000, 0x3000], hash: 7 };
        Image {
            code: b"some code".to_vec(),
            cold: b"cold".to_vec(),
            units: Vec::new(),
            exits: Vec::new(),
            groups: vec![group],
            meanings: Meanings { bytes: b"meaning".to_vec(), ends: vec![3, 7], next_path: 5 },
        }
    }

    fn loaded(bytes: &[u8]) -> Option<Loaded> {
        // SAFETY: a new file in memory, whose descriptor is nobody else's.
        let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"image".as_ptr(), 0)) };
        file.write_all(bytes).expect("a file in memory");
        Loaded::map(&file, bytes.len() as u64)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let read = loaded(&image().bytes()).expect("whole");
        assert_eq!(read.code(), b"some code");
        assert_eq!(read.cold(), b"cold");
        assert_eq!(read.groups(), Some(image().groups));
        assert_eq!(read.meanings(), image().meanings);
    }

    #[test]
    fn a_file_that_is_not_as_it_was_written_is_not_used() {
        let whole = image().bytes();
        for n in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[n] ^= 4;
            assert!(loaded(&damaged).is_none(), "byte {n} changed");
        }
        assert!(loaded(&whole[..whole.len() - 1]).is_none(), "cut");
        assert!(loaded(&[]).is_none(), "empty");
    }
}
