//! What a piece makes of what is wanted in one case.
//!
//! A walk over most of a run meets tens of thousands of cases again and again, so each is a
//! row of words, in the order they are needed: few lines of the cache, one after the other.
//! What was met of it is counted there too.

use crate::Part;
use crate::wanted::Distance;
use crate::wanted_cells::Register;
use trace::{Instance, InstructionId, Parent, Time};

/// A case, as it is learned.
pub struct Case {
    /// What is wanted of all it defines: a word for each of its words of cells, one for
    /// each store, one for the branch.
    pub key: Vec<u64>,
    /// The instructions that belong to the slice, last first.
    pub members: Vec<Member>,
    /// Bytes of stores that are wanted no longer.
    pub stored: Vec<(u8, u32)>,
    /// Registers that are wanted before it, and by whom.
    pub registers: Vec<(Register, u32, Members)>,
    /// Memory that is: a load, and which of its bytes.
    pub memory: Vec<(u8, u32, Members)>,
    /// What decided that members ran.
    pub parents: Vec<(Parent, Members)>,
}

/// Members of a case, by number: a bit for each.
pub type Members = u16;

/// An instruction in the slice.
pub struct Member {
    pub index: u16,
    pub instruction: InstructionId,
    /// Why it is wanted: its mark is that of all of these, joined.
    pub reasons: Vec<Reason>,
    /// Other members that want what it defines.
    pub by: Members,
    /// It is the branch that is wanted.
    pub branch: bool,
}

/// Why a member is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// It defines cells of a register that are wanted behind the piece.
    Register(Register, u32),
    /// It stores bytes that are.
    Store(u8, u32),
}

/// All cases of all pieces.
#[derive(Default)]
pub struct Cases {
    words: Vec<u64>,
    /// Those that were met since they were told.
    met: Vec<CaseId>,
}

/// Where a case begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseId(u32);

/// How many words of each kind a case has.
pub struct Head {
    pub key: usize,
    pub members: usize,
    pub stored: usize,
    pub parents: usize,
    pub registers: usize,
    pub memory: usize,
}

/// The words before the key: the head; how often it was met and when last; when first.
const HEAD: usize = 3;
/// A member that was not met.
const FAR: u64 = Distance::MAX as u64;

impl Head {
    #[inline(always)]
    fn of(word: u64) -> Head {
        let byte = |n: u32| (word >> (8 * n) & 0xff) as usize;
        Head {
            key: byte(0),
            members: byte(1),
            stored: byte(2),
            parents: byte(3),
            registers: (word >> 32 & 0xffff) as usize,
            memory: (word >> 48) as usize,
        }
    }
}

impl Case {
    fn head(&self) -> u64 {
        let bytes = [self.key.len(), self.members.len(), self.stored.len(), self.parents.len()];
        let low = bytes.iter().rev().fold(0, |word, n| word << 8 | *n as u64);
        low | (self.registers.len() as u64) << 32 | (self.memory.len() as u64) << 48
    }
}

/// Something of a register, a store or a load: which, by whom, and its cells or bytes.
#[inline(always)]
fn word(which: u8, by: Members, some: u32) -> u64 {
    u64::from(which) | u64::from(by) << 16 | u64::from(some) << 32
}

/// The same, read.
#[inline(always)]
pub fn parts(word: u64) -> (u8, Members, u32) {
    (word as u8, (word >> 16) as u16, (word >> 32) as u32)
}

const STORE: u64 = 1 << 8;

/// A reason, read.
#[inline(always)]
pub fn reason(word: u64) -> Reason {
    let (which, _, some) = parts(word);
    match word & STORE {
        0 => Reason::Register(which, some),
        _ => Reason::Store(which, some),
    }
}

/// A parent, read: with the members that ran because of it.
#[inline(always)]
pub fn parent(word: u64) -> (Parent, Members) {
    let (here, by, n) = parts(word);
    match here {
        0 => (Parent::Label(n as u16), by),
        _ => (Parent::Here(n as u16), by),
    }
}

/// A member's second word, read.
pub struct Why(u64);

impl Why {
    #[inline(always)]
    pub fn index(&self) -> u16 {
        self.0 as u16
    }

    #[inline(always)]
    pub fn is_branch(&self) -> bool {
        self.0 >> 48 & 1 != 0
    }

    #[inline(always)]
    pub fn by(&self) -> Members {
        (self.0 >> 16) as u16
    }

    #[inline(always)]
    pub fn reasons(&self) -> usize {
        (self.0 >> 32 & 0xffff) as usize
    }
}

impl Cases {
    /// Keeps one.
    pub fn add(&mut self, case: &Case) -> CaseId {
        let id = CaseId(self.words.len() as u32);
        let words = &mut self.words;
        words.extend([case.head(), 0, 0]);
        words.extend(&case.key);
        for member in &case.members {
            words.push(FAR << 32 | u64::from(member.instruction.0));
            let why = u64::from(member.index) | u64::from(member.branch) << 48;
            words.push(why | u64::from(member.by) << 16 | (member.reasons.len() as u64) << 32);
            words.extend(member.reasons.iter().map(|reason| match *reason {
                Reason::Register(register, part) => word(register, 0, part),
                Reason::Store(store, bytes) => word(store, 0, bytes) | STORE,
            }));
        }
        words.extend(case.stored.iter().map(|&(store, bytes)| word(store, 0, bytes)));
        words.extend(case.registers.iter().map(|&(register, part, by)| word(register, by, part)));
        words.extend(case.memory.iter().map(|&(load, bytes, by)| word(load, by, bytes)));
        words.extend(case.parents.iter().map(|&(parent, by)| match parent {
            Parent::Label(n) => word(0, by, n.into()),
            Parent::Here(n) => word(1, by, n.into()),
        }));
        id
    }

    /// Is this the case with that key?
    #[inline(always)]
    pub fn is(&self, case: CaseId, key: &[u64]) -> bool {
        let own = &self.words[case.0 as usize + HEAD..][..key.len()];
        own.iter().zip(key).all(|(a, b)| a == b)
    }

    /// Reads a case from its members on.
    #[inline(always)]
    pub fn read(&mut self, case: CaseId) -> (Head, Reader<'_>) {
        let words = &mut self.words[case.0 as usize..];
        let head = Head::of(words[0]);
        let next = HEAD + head.key;
        (head, Reader { words, next })
    }

    /// A case is met once more: earlier than before.
    #[inline(always)]
    pub fn count(&mut self, case: CaseId, time: Time) {
        let words = &mut self.words[case.0 as usize..][..HEAD];
        let count = words[1] as u32;
        if count == 0 {
            words[2] = time.0.into();
            self.met.push(case);
        }
        words[1] = u64::from(time.0) << 32 | u64::from(count + 1);
    }

    /// Tells how members took part in what was met, and forgets it.
    pub fn tell(&mut self, mut told: impl FnMut(InstructionId, Part)) {
        for case in std::mem::take(&mut self.met) {
            let words = &mut self.words[case.0 as usize..];
            let (instances, earliest) = (words[1] & 0xffff_ffff, (words[1] >> 32) as u32);
            let latest = words[2] as u32;
            words[1] = 0;
            let (head, mut reader) = self.read(case);
            for _ in 0..head.members {
                let (place, instruction, why) = reader.member();
                let distance = reader.far(place);
                let at = |time: u32| Instance { time: Time(time), index: why.index() };
                let (latest, earliest) = (at(latest), at(earliest));
                told(instruction, Part { instances, distance, latest, earliest });
                reader.pass(why.reasons());
            }
        }
    }
}

/// Reads a case, word by word.
pub struct Reader<'a> {
    words: &'a mut [u64],
    next: usize,
}

impl Reader<'_> {
    /// The next word.
    #[inline(always)]
    pub fn word(&mut self) -> u64 {
        self.next += 1;
        self.words[self.next - 1]
    }

    fn pass(&mut self, words: usize) {
        self.next += words;
    }

    /// The next member: its place, and why it is one.
    #[inline(always)]
    pub fn member(&mut self) -> (usize, InstructionId, Why) {
        let place = self.next;
        let id = InstructionId(self.word() as u32);
        (place, id, Why(self.word()))
    }

    /// A member is met at a distance.
    #[inline(always)]
    pub fn near(&mut self, place: usize, distance: Distance) {
        let word = &mut self.words[place];
        if u64::from(distance) < *word >> 32 {
            *word = u64::from(distance) << 32 | *word & 0xffff_ffff;
        }
    }

    /// A member's least distance, which is forgotten.
    fn far(&mut self, place: usize) -> Distance {
        let word = &mut self.words[place];
        let distance = (*word >> 32) as Distance;
        *word |= FAR << 32;
        distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let member = |index, n, reasons, by, branch| Member {
            index,
            instruction: InstructionId(n),
            reasons,
            by,
            branch,
        };
        let both = vec![Reason::Register(43, u32::MAX), Reason::Store(7, 1 << 31)];
        Case {
            key: vec![u64::MAX, 0, 1],
            members: vec![member(300, u32::MAX, both, 0, true), member(299, 5, vec![], 1, false)],
            stored: vec![(7, 1 << 31)],
            registers: vec![(31, u32::MAX, 0b11)],
            memory: vec![(6, 0xff, 1 << 15)],
            parents: vec![(Parent::Here(9), 1), (Parent::Label(u16::MAX), 2)],
        }
    }

    #[test]
    fn a_case_reads_as_it_was_learned() {
        let mut cases = Cases::default();
        cases.add(&case());
        let id = cases.add(&case());
        assert!(cases.is(id, &[u64::MAX, 0, 1]) && !cases.is(id, &[u64::MAX, 0, 0]));
        let (head, mut reader) = cases.read(id);
        let counts = [head.key, head.members, head.stored, head.parents];
        assert_eq!((counts, head.registers, head.memory), ([3, 2, 1, 2], 1, 1));
        let (_, instruction, why) = reader.member();
        assert_eq!((instruction.0, why.index(), why.by()), (u32::MAX, 300, 0));
        assert!(why.is_branch() && why.reasons() == 2);
        assert_eq!(reason(reader.word()), Reason::Register(43, u32::MAX));
        assert_eq!(reason(reader.word()), Reason::Store(7, 1 << 31));
        let (_, instruction, why) = reader.member();
        assert_eq!((instruction.0, why.index(), why.by()), (5, 299, 1));
        assert!(!why.is_branch() && why.reasons() == 0);
        assert_eq!(parts(reader.word()), (7, 0, 1 << 31));
        assert_eq!(parts(reader.word()), (31, 0b11, u32::MAX));
        assert_eq!(parts(reader.word()), (6, 1 << 15, 0xff));
        assert_eq!(parent(reader.word()), (Parent::Here(9), 1));
        assert_eq!(parent(reader.word()), (Parent::Label(u16::MAX), 2));
    }

    #[test]
    fn what_is_met_is_told_once() {
        let mut cases = Cases::default();
        let id = cases.add(&case());
        for (time, distance) in [(70, 5), (60, 3), (50, 4)] {
            cases.count(id, Time(time));
            let (_, mut reader) = cases.read(id);
            let (place, ..) = reader.member();
            reader.near(place, distance);
        }
        let mut told = Vec::new();
        cases.tell(|id, part| told.push((id.0, part)));
        let at = |time| Instance { time: Time(time), index: 300 };
        let first = Part { instances: 3, distance: 3, latest: at(70), earliest: at(50) };
        assert_eq!(told[0], (u32::MAX, first));
        assert_eq!(told.len(), 2);
        cases.tell(|_, _| panic!("it is told"));
    }
}
