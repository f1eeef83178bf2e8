//! What a piece makes of what is wanted in one case.
//!
//! A distance counts dependences, and the least one counts. So whatever a case makes wanted is
//! as far as its nearest reason and a number of steps that is always the same: members need
//! not be gone through each time. How near a member came is known in the end, from how near
//! each reason came.
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
    /// each store, one for its branches.
    pub key: Vec<u64>,
    /// What all distances in it follow from.
    pub reasons: Vec<Reason>,
    /// The instructions that belong to the slice, last first.
    pub members: Vec<Member>,
    /// Bytes of stores that are wanted no longer.
    pub stored: Vec<(u8, u32)>,
    /// Registers that are wanted before it.
    pub registers: Vec<(Register, u32, Steps)>,
    /// Memory that is: a load, and which of its bytes.
    pub memory: Vec<(u8, u32, Steps)>,
    /// What decided that members ran.
    pub parents: Vec<(Parent, Steps)>,
}

/// How many dependences lie between each reason of a case and something in it;
/// [`UNREACHED`] if it does not follow from that.
pub type Steps = Vec<u8>;

/// More dependences than any piece has.
pub const UNREACHED: u8 = u8::MAX;

/// An instruction in the slice.
pub struct Member {
    pub index: u16,
    pub instruction: InstructionId,
    pub steps: Steps,
}

/// Why something in a piece is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Cells of a register are wanted behind the piece.
    Register(Register, u32),
    /// Bytes of a store are.
    Store(u8, u32),
    /// A branch of the piece is: its number among the instructions of the piece.
    Branch(u8),
}

impl Reason {
    /// Takes in another one of the same register or store.
    pub fn takes(&mut self, other: Reason) -> bool {
        match (self, other) {
            (Reason::Register(one, part), Reason::Register(same, more)) if *one == same => {
                *part |= more;
                true
            }
            (Reason::Store(one, bytes), Reason::Store(same, more)) if *one == same => {
                *bytes |= more;
                true
            }
            _ => false,
        }
    }
}

/// All cases of all pieces.
#[derive(Default)]
pub struct Cases {
    words: Vec<u64>,
    /// Members of all cases: they are asked for in the end.
    members: Vec<Member>,
    /// Those that were met since they were told.
    met: Vec<CaseId>,
}

/// Where a case begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseId(u32);

/// How many words of each kind a case has.
#[derive(Clone, Copy)]
pub struct Head {
    pub key: usize,
    pub reasons: usize,
    pub stored: usize,
    pub parents: usize,
    pub registers: usize,
    pub memory: usize,
}

/// The words before the key: the head; how often it was met and when last; when first, and how
/// many members; the first member.
const HEAD: usize = 4;
/// A reason that was not met.
const FAR: u64 = Distance::MAX as u64;
/// So many steps are told in one word.
const ROW: usize = 8;

/// Words that tell the steps from so many reasons.
#[inline(always)]
fn rows(reasons: usize) -> usize {
    reasons.div_ceil(ROW)
}

impl Head {
    #[inline(always)]
    fn of(word: u64) -> Head {
        let byte = |n: u32| (word >> (8 * n) & 0xff) as usize;
        Head {
            key: byte(0),
            reasons: byte(1),
            stored: byte(2),
            parents: byte(3),
            registers: (word >> 32 & 0xffff) as usize,
            memory: (word >> 48) as usize,
        }
    }
}

impl Case {
    /// Can its row tell how much is in it?
    pub fn fits(&self) -> bool {
        let few = [self.key.len(), self.reasons.len(), self.stored.len(), self.parents.len()];
        let many = [self.registers.len(), self.memory.len()];
        few.iter().all(|n| u8::try_from(*n).is_ok())
            && many.iter().all(|n| u16::try_from(*n).is_ok())
    }

    fn head(&self) -> u64 {
        let bytes = [self.key.len(), self.reasons.len(), self.stored.len(), self.parents.len()];
        let low = bytes.iter().rev().fold(0, |word, n| word << 8 | *n as u64);
        low | (self.registers.len() as u64) << 32 | (self.memory.len() as u64) << 48
    }
}

/// Something of a register, a store or a load: which, of what kind, and its cells or bytes.
#[inline(always)]
fn word(which: u8, kind: u64, some: u32) -> u64 {
    u64::from(which) | kind << 8 | u64::from(some) << 32
}

/// The same, read.
#[inline(always)]
pub fn parts(word: u64) -> (u8, u32) {
    (word as u8, (word >> 32) as u32)
}

const STORE: u64 = 1;
const BRANCH: u64 = 2;

/// A reason, read.
#[inline(always)]
pub fn reason(word: u64) -> Reason {
    let (which, some) = parts(word);
    match word >> 8 & 0xff {
        STORE => Reason::Store(which, some),
        BRANCH => Reason::Branch(which),
        _ => Reason::Register(which, some),
    }
}

/// A parent, read.
#[inline(always)]
pub fn parent(word: u64) -> Parent {
    match parts(word) {
        (0, n) => Parent::Label(n as u16),
        (_, n) => Parent::Here(n as u16),
    }
}

/// The least distance of something in a case, by those of the reasons it follows from.
fn nearest(steps: &[u8], reasons: impl Fn(usize) -> Distance) -> Distance {
    let reached = steps.iter().enumerate().filter(|(_, steps)| **steps != UNREACHED);
    reached.map(|(n, steps)| reasons(n).saturating_add((*steps).into())).min().unwrap_or(0)
}

impl Cases {
    /// Keeps one.
    pub fn add(&mut self, case: Case) -> CaseId {
        let id = CaseId(self.words.len() as u32);
        let words = &mut self.words;
        let count = case.members.len() as u64;
        words.extend([case.head(), 0, count << 32, self.members.len() as u64]);
        words.extend(&case.key);
        for reason in &case.reasons {
            words.push(match *reason {
                Reason::Register(register, part) => word(register, 0, part),
                Reason::Store(store, bytes) => word(store, STORE, bytes),
                Reason::Branch(index) => word(index, BRANCH, 0),
            });
            words.push(FAR);
        }
        let mut put = |what: u64, steps: &Steps| {
            words.push(what);
            words.extend(steps.chunks(ROW).map(|row| {
                let row = row.iter().rev();
                row.fold(u64::MAX, |word, steps| word << 8 | u64::from(*steps))
            }));
        };
        case.stored.iter().for_each(|&(store, bytes)| put(word(store, 0, bytes), &Vec::new()));
        case.registers.iter().for_each(|(r, part, steps)| put(word(*r, 0, *part), steps));
        case.memory.iter().for_each(|(load, bytes, steps)| put(word(*load, 0, *bytes), steps));
        case.parents.iter().for_each(|(parent, steps)| match *parent {
            Parent::Label(n) => put(word(0, 0, n.into()), steps),
            Parent::Here(n) => put(word(1, 0, n.into()), steps),
        });
        self.members.extend(case.members);
        id
    }

    /// Is this the case with that key?
    #[inline(always)]
    pub fn is(&self, case: CaseId, key: &[u64]) -> bool {
        let own = &self.words[case.0 as usize + HEAD..][..key.len()];
        own.iter().zip(key).all(|(a, b)| a == b)
    }

    /// Reads a case from its reasons on.
    #[inline(always)]
    pub fn read(&mut self, case: CaseId) -> (Head, Reader<'_>) {
        let words = &mut self.words[case.0 as usize..];
        let head = Head::of(words[0]);
        let next = HEAD + head.key;
        (head, Reader { words, next, rows: rows(head.reasons) })
    }

    /// The instructions that belong to the slice, last first.
    pub fn members(&self, case: CaseId) -> &[Member] {
        let words = &self.words[case.0 as usize..][..HEAD];
        &self.members[words[3] as usize..][..(words[2] >> 32) as usize]
    }

    /// A case is met once more: earlier than before. Says how often it was.
    #[inline(always)]
    pub fn count(&mut self, case: CaseId, time: Time) -> u32 {
        let words = &mut self.words[case.0 as usize..][..HEAD];
        let count = words[1] as u32;
        if count == 0 {
            words[2] = words[2] >> 32 << 32 | u64::from(time.0);
            self.met.push(case);
        }
        words[1] = u64::from(time.0) << 32 | u64::from(count + 1);
        count + 1
    }

    /// Tells how members took part in what was met, and forgets it. Those that were met first
    /// are known already: so many.
    pub fn tell(&mut self, known: u32, mut told: impl FnMut(InstructionId, Part)) {
        for case in std::mem::take(&mut self.met) {
            let words = &mut self.words[case.0 as usize..];
            let (instances, earliest) = (words[1] & 0xffff_ffff, (words[1] >> 32) as u32);
            let latest = words[2] as u32;
            words[1] = 0;
            let (head, mut reader) = self.read(case);
            let near: Vec<Distance> = (0..head.reasons).map(|_| reader.nearest_yet()).collect();
            let instances = instances.saturating_sub(known.into());
            if instances == 0 {
                continue;
            }
            for member in self.members(case) {
                let distance = nearest(&member.steps, |n| near[n]);
                let at = |time: u32| Instance { time: Time(time), index: member.index };
                let (latest, earliest) = (at(latest), at(earliest));
                told(member.instruction, Part { instances, distance, latest, earliest });
            }
        }
    }
}

impl Member {
    /// How far it is from the criterion, if its case's reasons are so far.
    pub fn distance(&self, near: &[u64]) -> Distance {
        nearest(&self.steps, |n| near[n] as Distance)
    }
}

/// Reads a case, word by word.
pub struct Reader<'a> {
    words: &'a mut [u64],
    next: usize,
    rows: usize,
}

impl Reader<'_> {
    /// The next word.
    #[inline(always)]
    pub fn word(&mut self) -> u64 {
        self.next += 1;
        self.words[self.next - 1]
    }

    /// The next reason.
    #[inline(always)]
    pub fn reason(&mut self) -> Reason {
        self.next += 2;
        reason(self.words[self.next - 2])
    }

    /// The reason that was read last is met at a distance.
    #[inline(always)]
    pub fn near(&mut self, distance: u64) {
        let nearest = &mut self.words[self.next - 1];
        *nearest = distance.min(*nearest);
    }

    /// The least distance of the next reason, which is forgotten.
    fn nearest_yet(&mut self) -> Distance {
        self.next += 2;
        std::mem::replace(&mut self.words[self.next - 1], FAR) as Distance
    }

    /// How far the thing that was read last is from the criterion, if reasons are so far.
    #[inline(always)]
    pub fn distance(&mut self, near: &[u64]) -> Distance {
        if let [near] = near {
            // The usual case, and everything follows from it.
            return (near + (self.word() & 0xff)) as Distance;
        }
        let mut least = u64::MAX;
        for reasons in near.chunks(ROW).take(self.rows) {
            let mut row = self.word();
            for near in reasons {
                let steps = row & 0xff;
                let far = if steps == u64::from(UNREACHED) { u64::MAX } else { near + steps };
                least = least.min(far);
                row >>= 8;
            }
        }
        least as Distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let far = UNREACHED;
        let mut reasons = vec![Reason::Register(43, u32::MAX), Reason::Store(7, 1 << 31)];
        reasons.extend((0..7).map(Reason::Branch));
        let steps = |first: u8, last: u8| vec![first, 3, far, far, far, far, far, far, last];
        let member = |index, n, steps| Member { index, instruction: InstructionId(n), steps };
        Case {
            key: vec![u64::MAX, 0, 1],
            reasons,
            members: vec![member(300, u32::MAX, steps(0, far)), member(299, 5, steps(far, 9))],
            stored: vec![(7, 1 << 31)],
            registers: vec![(31, u32::MAX, steps(1, far))],
            memory: vec![(6, 0xff, steps(far, 2))],
            parents: vec![(Parent::Here(9), steps(4, 4)), (Parent::Label(u16::MAX), steps(1, 0))],
        }
    }

    #[test]
    fn a_case_reads_as_it_was_learned() {
        let mut cases = Cases::default();
        cases.add(case());
        let id = cases.add(case());
        assert!(cases.is(id, &[u64::MAX, 0, 1]) && !cases.is(id, &[u64::MAX, 0, 0]));
        let indices: Vec<u16> = cases.members(id).iter().map(|member| member.index).collect();
        assert_eq!(indices, [300, 299]);
        let (head, mut reader) = cases.read(id);
        let counts = [head.key, head.reasons, head.stored, head.parents];
        assert_eq!((counts, head.registers, head.memory), ([3, 9, 1, 2], 1, 1));
        assert_eq!(reader.reason(), Reason::Register(43, u32::MAX));
        assert_eq!(reader.reason(), Reason::Store(7, 1 << 31));
        (0..7).for_each(|n| assert_eq!(reader.reason(), Reason::Branch(n)));
        let near = [100, 200, 1, 1, 1, 1, 1, 1, 90];
        assert_eq!(parts(reader.word()), (7, 1 << 31));
        assert_eq!((parts(reader.word()), reader.distance(&near)), ((31, u32::MAX), 101));
        assert_eq!((parts(reader.word()), reader.distance(&near)), ((6, 0xff), 92));
        assert_eq!((parent(reader.word()), reader.distance(&near)), (Parent::Here(9), 94));
        assert_eq!((parent(reader.word()), reader.distance(&near)), (Parent::Label(u16::MAX), 90));
    }

    #[test]
    fn what_is_met_is_told_once() {
        let mut cases = Cases::default();
        let id = cases.add(case());
        for (time, distance) in [(70, 50), (60, 30), (50, 40)] {
            cases.count(id, Time(time));
            let (head, mut reader) = cases.read(id);
            for _ in 0..head.reasons {
                reader.reason();
                reader.near(distance);
            }
        }
        let mut told = Vec::new();
        cases.tell(0, |id, part| told.push((id.0, part)));
        let at = |time| Instance { time: Time(time), index: 300 };
        let first = Part { instances: 3, distance: 30, latest: at(70), earliest: at(50) };
        assert_eq!(told[0], (u32::MAX, first));
        assert_eq!(told[1].1.distance, 33);
        assert_eq!(told.len(), 2);
        cases.tell(0, |_, _| panic!("it is told"));
    }

    #[test]
    fn what_is_known_already_is_told_only_as_far_as_there_is_more() {
        let mut cases = Cases::default();
        let (often, seldom) = (cases.add(case()), cases.add(case()));
        let times = [50, 40, 30].map(|time| cases.count(often, Time(time)));
        assert_eq!((times, cases.count(seldom, Time(20))), ([1, 2, 3], 1));
        let mut told = Vec::new();
        cases.tell(2, |id, part| told.push((id.0, part.instances)));
        assert_eq!(told, [(u32::MAX, 1), (5, 1)]);
        cases.tell(0, |_, _| panic!("it is told"));
    }
}
