//! What becomes of what a walk finds: who is told, and how far it goes on.

use crate::Part;
use crate::wanted::Distance;
use std::collections::HashMap;
use trace::{Instance, InstructionId, PathId, Time};

/// How something was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Used {
    /// A register, by its number in encodings.
    Register(u8),
    /// Flags, vector registers and the like.
    Other,
    /// A piece of memory.
    Memory {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
    },
    /// A register that an address was made of.
    Address(u8),
    /// It ran because of a branch or call.
    Control,
}

/// How much is told of what belongs to a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Every instance.
    OneByOne,
    /// How many instances there are in a record, and how far the nearest is.
    ByRecord,
    /// The latest instances of each instruction; in the end, how many there were.
    InTheEnd,
}

/// Directs a walk. Everything wanted carries a mark; a definition gets the joined
/// marks of all that it defines.
pub trait Follow {
    /// What a wanted thing carries.
    type Mark: Copy + Default + PartialEq + Sync;
    /// One mark for something that is wanted for two reasons.
    fn join(&mut self, a: Self::Mark, b: Self::Mark) -> Self::Mark;
    /// The order of marks: those of one rank are as good as each other.
    fn rank(mark: Self::Mark) -> u64;
    /// One mark for something that is wanted for many reasons, which come by rank.
    fn join_all(&mut self, mut marks: impl Iterator<Item = Self::Mark>) -> Option<Self::Mark> {
        let first = marks.next()?;
        Some(marks.fold(first, |joined, mark| self.join(joined, mark)))
    }
    /// The criterion itself: is it part of the answer?
    fn start(&mut self, at: Instance, instruction: InstructionId);
    /// The mark of what the criterion uses.
    fn seed(&mut self, at: Instance, used: Used) -> Self::Mark;
    /// The mark of what is asked for by name.
    fn named(&mut self, at: Instance, what: Used) -> Self::Mark;
    /// An instance that defined something wanted. What it used is wanted with the
    /// mark that comes back, if one does.
    fn include(
        &mut self,
        at: Instance,
        instruction: InstructionId,
        mark: Self::Mark,
    ) -> Option<Self::Mark>;
    /// Does every definition go on, and do marks count dependences, so that the least is that
    /// of two? Then what code does to what is wanted can be [learned by rote](crate::rote).
    fn counts(&self) -> bool {
        false
    }
    /// Is it enough, for some paths, to be told in the end how instances took part? Then their
    /// order does not matter.
    const TALLIES: bool = false;
    /// So many of the latest instances of an instruction are included one by one all the same.
    const LATEST: u32 = 0;
    /// How instances of a path that are known by rote are told.
    #[inline]
    fn telling(&self, _path: PathId) -> Telling {
        if Self::TALLIES { Telling::InTheEnd } else { Telling::OneByOne }
    }
    /// So many instances of a record were included, and how far the nearest is.
    fn record(&mut self, _time: Time, _instances: u64, _nearest: Distance) {}
    /// The mark of this rank, where marks count dependences.
    fn at_distance(_distance: Distance) -> Self::Mark {
        Self::Mark::default()
    }
    /// Instances of an instruction were included.
    fn tally(&mut self, _instruction: InstructionId, _part: Part) {}
    /// A copy, for a walk that may have to come back.
    fn copy(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// A branch is about to be included by a potential dependence alone.
    fn potential(&mut self, _at: Instance, _instruction: InstructionId) {}
    /// The time is over: what happened before was not looked at.
    fn cut_short(&mut self) {}
}

/// All that the criterion depended on, told one by one with its distance.
pub struct Transitive<V> {
    /// Who is told.
    pub visitor: V,
    /// Nothing farther than this is told.
    pub depth: Distance,
}

/// Who is told what the walk finds.
pub trait Visitor {
    /// An instance is in the slice.
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance);
    /// Is it enough, for some paths, to be told in the end how instances take part, many at a
    /// time? Then the order in which they are told does not matter.
    const TALLIES: bool = false;
    /// So many of the latest instances of an instruction are told one by one all the same.
    const LATEST: u32 = 0;
    /// How instances of a path are told, if they are known by rote. Others are told one by one.
    #[inline]
    fn telling(&self, _path: PathId) -> Telling {
        if Self::TALLIES { Telling::InTheEnd } else { Telling::OneByOne }
    }
    /// So many instances of a record are in the slice, and how far the nearest is.
    fn record(&mut self, _time: Time, _instances: u64, _nearest: Distance) {}
    /// Instances of an instruction are in the slice.
    fn tally(&mut self, _instruction: InstructionId, _part: Part) {}
    /// A copy, for a walk that may have to come back.
    fn copy(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// The branch that comes next is in by a potential dependence alone.
    fn potential(&mut self, _at: Instance, _instruction: InstructionId) {}
    /// The time is over: what happened before was not looked at.
    fn cut_short(&mut self) {}
}

impl<V: Visitor> Follow for Transitive<V> {
    type Mark = Distance;

    #[inline]
    fn join(&mut self, a: Distance, b: Distance) -> Distance {
        a.min(b)
    }

    fn rank(mark: Distance) -> u64 {
        mark.into()
    }

    fn join_all(&mut self, mut marks: impl Iterator<Item = Distance>) -> Option<Distance> {
        marks.next()
    }

    fn start(&mut self, at: Instance, instruction: InstructionId) {
        self.visitor.instance(at, instruction, 0);
    }

    fn seed(&mut self, _: Instance, _: Used) -> Distance {
        1
    }

    fn named(&mut self, _: Instance, _: Used) -> Distance {
        0
    }

    fn include(&mut self, at: Instance, id: InstructionId, mark: Distance) -> Option<Distance> {
        if mark > self.depth {
            return None;
        }
        self.visitor.instance(at, id, mark);
        (mark < self.depth).then_some(mark + 1)
    }

    fn counts(&self) -> bool {
        self.depth == Distance::MAX
    }

    const TALLIES: bool = V::TALLIES;
    const LATEST: u32 = V::LATEST;

    #[inline]
    fn telling(&self, path: PathId) -> Telling {
        self.visitor.telling(path)
    }

    fn record(&mut self, time: Time, instances: u64, nearest: Distance) {
        self.visitor.record(time, instances, nearest);
    }

    #[inline]
    fn at_distance(distance: Distance) -> Distance {
        distance
    }

    fn tally(&mut self, instruction: InstructionId, part: Part) {
        self.visitor.tally(instruction, part);
    }

    fn copy(&self) -> Option<Self> {
        Some(Transitive { visitor: self.visitor.copy()?, depth: self.depth })
    }

    fn potential(&mut self, at: Instance, instruction: InstructionId) {
        self.visitor.potential(at, instruction);
    }

    fn cut_short(&mut self) {
        self.visitor.cut_short();
    }
}

/// One step only: which instance defined what the criteria used.
pub struct Direct<'a> {
    /// Definitions that are passed through: what they used counts instead.
    through: &'a dyn Fn(Instance, InstructionId) -> bool,
    /// What the criteria used.
    pub uses: Vec<(Instance, Used)>,
    /// What was found, latest first: the definition, and a set of uses.
    found: Vec<(Instance, InstructionId, SetId)>,
    sets: Sets,
}

/// A set of numbers of uses; they begin with the empty one.
type SetId = u32;

struct Sets {
    members: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, SetId>,
    joined: HashMap<(SetId, SetId), SetId>,
}

impl Default for Sets {
    fn default() -> Self {
        let members = vec![Vec::new()];
        Sets { members, numbers: HashMap::from([(Vec::new(), 0)]), joined: HashMap::new() }
    }
}

impl Sets {
    fn number(&mut self, members: Vec<u32>) -> SetId {
        let next = self.members.len() as SetId;
        let id = *self.numbers.entry(members.clone()).or_insert(next);
        if id == next {
            self.members.push(members);
        }
        id
    }

    fn join(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b {
            return a;
        }
        if let Some(known) = self.joined.get(&(a, b)) {
            return *known;
        }
        let mut all = self.members[a as usize].clone();
        all.extend(&self.members[b as usize]);
        all.sort_unstable();
        all.dedup();
        let id = self.number(all);
        self.joined.insert((a, b), id);
        id
    }
}

impl<'a> Direct<'a> {
    /// Begins with nothing.
    pub fn new(through: &'a dyn Fn(Instance, InstructionId) -> bool) -> Direct<'a> {
        Direct { through, uses: Vec::new(), found: Vec::new(), sets: Sets::default() }
    }

    /// The uses that a mark stands for.
    pub fn uses_of(&self, mark: u32) -> impl Iterator<Item = usize> + '_ {
        self.sets.members[mark as usize].iter().map(|n| *n as usize)
    }

    /// Every dependence: the number of the use, and the definition it met.
    pub fn dependences(&self) -> impl Iterator<Item = (usize, Instance, InstructionId)> + '_ {
        self.found.iter().flat_map(|&(at, instruction, set)| {
            let uses = self.sets.members[set as usize].iter();
            uses.map(move |n| (*n as usize, at, instruction))
        })
    }

    fn new_use(&mut self, at: Instance, used: Used) -> SetId {
        self.uses.push((at, used));
        self.sets.number(vec![self.uses.len() as u32 - 1])
    }
}

impl Follow for Direct<'_> {
    type Mark = SetId;

    fn join(&mut self, a: SetId, b: SetId) -> SetId {
        self.sets.join(a, b)
    }

    fn rank(mark: SetId) -> u64 {
        mark.into()
    }

    fn start(&mut self, _: Instance, _: InstructionId) {}

    fn seed(&mut self, at: Instance, used: Used) -> SetId {
        self.new_use(at, used)
    }

    fn named(&mut self, at: Instance, what: Used) -> SetId {
        self.new_use(at, what)
    }

    fn include(&mut self, at: Instance, id: InstructionId, mark: SetId) -> Option<SetId> {
        if (self.through)(at, id) {
            return Some(mark);
        }
        self.found.push((at, id, mark));
        None
    }
}
