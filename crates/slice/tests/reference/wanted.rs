//! What a walk back is still looking for, and for which slices.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A place in a run: a register of a thread, a byte of memory, or one that the
/// kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spot {
    /// Thread and cell.
    Register(u32, u16),
    /// Address.
    Memory(u64),
    /// Object and offset.
    Kept(u32, u64),
}

/// For which slices: one bit for each.
pub type Slices = u64;

/// As many slices as fit into one walk.
pub const AT_ONCE: usize = Slices::BITS as usize;

/// What is still looked for.
#[derive(Default)]
pub struct Wanted {
    /// Places, each with the slices it is wanted for.
    pub spots: HashMap<Spot, Slices, BuildHasherDefault<Quick>>,
    /// Branches and calls that decided.
    pub branches: BTreeMap<usize, Slices>,
    /// Steps that belong to slices.
    pub found: BTreeMap<usize, Slices>,
    /// Registers as they are before a step that saved them.
    pub saved: HashMap<usize, Vec<(Spot, Slices)>>,
    /// What is wanted as it was when a signal came, by thread and frame.
    pub interrupted: HashMap<(u32, u64), Vec<(Spot, Slices)>>,
    /// Registers as they are before a symbol's binding, by its first step.
    pub unbound: HashMap<usize, Vec<(Spot, Slices)>>,
}

impl Wanted {
    /// Bytes of a range that are wanted.
    pub fn within(&self, start: u64, len: u64) -> Vec<Spot> {
        let inside = |spot: &&Spot| matches!(spot, Spot::Memory(a) if a.wrapping_sub(start) < len);
        if len > self.spots.len() as u64 {
            return self.spots.keys().filter(inside).copied().collect();
        }
        (start..start + len).map(Spot::Memory).filter(|s| self.spots.contains_key(s)).collect()
    }

    /// Looks for something.
    pub fn add(&mut self, spot: Spot, slices: Slices) {
        if slices != 0 {
            *self.spots.entry(spot).or_default() |= slices;
        }
    }

    /// Stops looking for it; says for which slices that was.
    pub fn take(&mut self, spot: &Spot) -> Slices {
        self.spots.remove(spot).unwrap_or(0)
    }

    /// Looks for several.
    pub fn add_all(&mut self, spots: impl IntoIterator<Item = Spot>, slices: Slices) {
        spots.into_iter().for_each(|spot| self.add(spot, slices));
    }

    /// Looks again for what was taken.
    pub fn give_back(&mut self, taken: impl IntoIterator<Item = (Spot, Slices)>) {
        taken.into_iter().for_each(|(spot, slices)| self.add(spot, slices));
    }

    /// A step belongs to slices, and so does what it ran because of.
    pub fn include(&mut self, step: usize, slices: Slices, parent: Option<usize>) {
        if slices != 0 {
            *self.found.entry(step).or_default() |= slices;
            if let Some(parent) = parent {
                *self.branches.entry(parent).or_default() |= slices;
            }
        }
    }

    /// Takes what is wanted of registers of one thread.
    pub fn take_thread(&mut self, thread: u32) -> Vec<(Spot, Slices)> {
        let own = |(spot, slices): (&Spot, &Slices)| match spot {
            Spot::Register(of, _) if *of == thread => Some((*spot, *slices)),
            _ => None,
        };
        let taken: Vec<(Spot, Slices)> = self.spots.iter().filter_map(own).collect();
        taken.iter().for_each(|(spot, _)| _ = self.spots.remove(spot));
        taken
    }
}

/// Places need no better hash.
#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
